-- When: at a time, or after a delay in microseconds, rounded up; the past and no delay are now.
local function due_time(at, delay)
	if at ~= '0' then
		return math.max(tonumber(at), now)
	end
	return delay == '0' and now or math.ceil((now_us + delay) / 1000)
end
