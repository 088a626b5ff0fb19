-- with: hint
-- Gives back what was not begun, or is to run later: the attempt does not count. ARGV: how many,
-- then key, run and wait in milliseconds until it is due again of each. Answers as ack does.
local count = tonumber(ARGV[1])
local answers = {}
local earliest

for i = 0, count - 1 do
	local key, run, wait = unpack(ARGV, 3 * i + 2, 3 * i + 4)
	if redis.call('HGET', KEYS[3], key) ~= run then
		answers[i + 1] = redis.call('ZSCORE', KEYS[1], key) and 's' or 'g'
	else
		local attempts = tonumber(string.match(run, '^%d+')) - 1
		-- As fail does.
		local due = wait == '0' and now or math.ceil(now_us / 1000) + wait
		redis.call('ZADD', KEYS[1], string.format('%d', due), key)
		if attempts > 0 then
			redis.call('HSET', KEYS[3], key, attempts)
		else
			redis.call('HDEL', KEYS[3], key)
		end
		answers[i + 1] = 'o'
		earliest = math.min(due, earliest or due)
	end
end
if earliest then
	hint(earliest)
end
return table.concat(answers)
