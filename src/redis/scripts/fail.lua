-- with: hint again bury
-- Ends failed runs. ARGV: how many, then key, run, wait in milliseconds until the next attempt (-1:
-- there is none, it is a dead letter) and reason of each. Answers as ack does.
local count = tonumber(ARGV[1])
local answers = {}
local earliest

for i = 0, count - 1 do
	local key, run, wait, reason = unpack(ARGV, 4 * i + 2, 4 * i + 5)
	if redis.call('HGET', KEYS[3], key) ~= run then
		answers[i + 1] = redis.call('ZSCORE', KEYS[1], key) and 's' or 'g'
	else
		local attempts = tonumber(string.match(run, '^%d+'))
		answers[i + 1] = 'o'
		if wait == '-1' then
			bury(key, attempts, redis.call('HGET', KEYS[2], key) or '', reason)
		else
			-- Rounded up, as due_time: never a fraction of a millisecond early.
			local due = wait == '0' and now or math.ceil(now_us / 1000) + wait
			redis.call('ZADD', KEYS[1], string.format('%d', due), key)
			redis.call('HSET', KEYS[3], key, attempts)
			earliest = math.min(due, earliest or due)
		end
	end
end
if earliest then
	hint(earliest)
end
return table.concat(answers)
