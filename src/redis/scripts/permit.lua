-- A worker asks how many more tasks it may begin. ARGV: its name, how many it has, how many more it
-- wants, how many it was given and did not begin, for how many milliseconds its word is good.
-- Answers how many it is given, -1: there are no limits; and in how many milliseconds it is to ask
-- again if that is too few, -1: then it is not too few.
local limits = redis.call('HMGET', KEYS[1], 'running', 'rate', 'tokens', 'at')
local running = string.sub(KEYS[1], 1, -7) .. 'running'
local most, rate = tonumber(limits[1] or 0), tonumber(limits[2] or 0)
local has, wanted = tonumber(ARGV[2]), tonumber(ARGV[3])
local given, wait = wanted, -1

if not limits[1] then
	redis.call('DEL', running)
	return {-1, -1}
end
if most > 0 then
	local words = redis.call('HGETALL', running)
	local left = most - has

	for i = 1, #words, 2 do
		local count, good_until = string.match(words[i + 1], '^(%d+) (%d+)$')
		if not count or tonumber(good_until) <= now then
			redis.call('HDEL', running, words[i])
		elseif words[i] ~= ARGV[1] then
			left = left - count
		end
	end
	given = math.max(math.min(given, left), 0)
	if given < wanted then
		wait = 100
	end
end
if rate > 0 then
	-- A tenth of a second's worth may be begun at once.
	local room = math.max(rate / 10, 1)
	local tokens = tonumber(limits[3] or room)
	local passed = math.max(now_us - tonumber(limits[4] or now_us), 0)

	tokens = math.min(tokens + passed * rate / 1000000 + ARGV[4], room)
	if tokens < given then
		given = math.floor(tokens)
		wait = math.max(wait, math.ceil((given + 1 - tokens) * 1000 / rate))
	end
	redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens - given))
	redis.call('HSET', KEYS[1], 'at', string.format('%.0f', now_us))
end
if has + given > 0 then
	redis.call('HSET', running, ARGV[1], string.format('%d %d', has + given, now + ARGV[5]))
else
	redis.call('HDEL', running, ARGV[1])
end
return {given, wait}
