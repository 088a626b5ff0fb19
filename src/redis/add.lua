-- Adds a task. ARGV: mode (any, new, replace), key, at, delay, record. Answers its due time, or -1:
-- it exists, -2: it doesn't.
local mode, key = ARGV[1], ARGV[2]
local due = due_time(ARGV[3], ARGV[4])

if mode == 'new' then
	if redis.call('ZADD', KEYS[1], 'NX', due, key) == 0 then
		return -1
	end
else
	if mode == 'replace' and not redis.call('ZSCORE', KEYS[1], key) then
		return -2
	end
	if redis.call('ZADD', KEYS[1], due, key) == 0 then
		redis.call('HDEL', KEYS[3], key)
	end
end
redis.call('HSET', KEYS[2], key, ARGV[5])
hint_if_first(key, due)
return due
