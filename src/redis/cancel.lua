-- with: leased
-- Takes a task out. ARGV: key. Answers 0, or -2: there is none, -3: it is on lease.
local key = ARGV[1]
local score = redis.call('ZSCORE', KEYS[1], key)

if not score then
	return -2
end
if leased(redis.call('HGET', KEYS[3], key), score) then
	return -3
end
redis.call('ZREM', KEYS[1], key)
redis.call('HDEL', KEYS[2], key)
redis.call('HDEL', KEYS[3], key)
return 0
