-- with: hint
-- Gives back what was not begun: due now, and the attempt does not count. ARGV and answer as ack's.
local count = tonumber(ARGV[1])
local answers = {}

for i = 1, count do
	local key, run = ARGV[2 * i], ARGV[2 * i + 1]
	if redis.call('HGET', KEYS[3], key) ~= run then
		answers[i] = redis.call('ZSCORE', KEYS[1], key) and 's' or 'g'
	else
		local attempts = tonumber(string.match(run, '^%d+')) - 1
		redis.call('ZADD', KEYS[1], now, key)
		if attempts > 0 then
			redis.call('HSET', KEYS[3], key, attempts)
		else
			redis.call('HDEL', KEYS[3], key)
		end
		answers[i] = 'o'
	end
end
hint(now)
return table.concat(answers)
