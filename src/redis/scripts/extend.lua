-- Makes leases end later, or sooner. ARGV: how many, then key and run of each, then the new length
-- in milliseconds. Answers as ack does.
local count = tonumber(ARGV[1])
local lease_end = string.format('%d', now + ARGV[2 * count + 2])
local answers = {}

for i = 1, count do
	local key = ARGV[2 * i]
	if redis.call('HGET', KEYS[3], key) == ARGV[2 * i + 1] then
		redis.call('ZADD', KEYS[1], lease_end, key)
		answers[i] = 'o'
	else
		answers[i] = redis.call('ZSCORE', KEYS[1], key) and 's' or 'g'
	end
end
return table.concat(answers)
