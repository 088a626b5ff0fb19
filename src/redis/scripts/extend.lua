-- with: group limits
-- Makes leases end later, or sooner. ARGV: how many, their keys, their runs, and the new length in
-- milliseconds. Answers as ack does.
local count = tonumber(ARGV[1])
local runs = redis.call('HMGET', KEYS[3], unpack(ARGV, 2, count + 1))
local lease_end = string.format('%d', now + ARGV[2 * count + 2])
local answers, scores, places = {}, {}, {}

for i = 1, count do
	local key = ARGV[1 + i]
	if runs[i] == ARGV[1 + count + i] then
		scores[#scores + 1] = lease_end
		scores[#scores + 1] = key
		places[#scores] = runs[i] .. '\0' .. key
		answers[i] = 'o'
	else
		answers[i] = redis.call('ZSCORE', KEYS[1], key) and 's' or 'g'
	end
end
if #scores > 0 then
	redis.call('ZADD', KEYS[1], unpack(scores))
	local limits = redis.call('EXISTS', KEYS[6]) == 1 and limiting()
	if limits then
		for i = 2, #scores, 2 do
			limits.prolong(places[i], scores[i], lease_end)
		end
	end
end
return table.concat(answers)
