-- with: leased hint group again
-- Takes a task out, or one occurrence of a recurring task: the next one follows. ARGV: key, and 1
-- if none is to follow. Answers 0, or -2: there is none, -3: it is on lease.
local key = ARGV[1]
local score = redis.call('ZSCORE', KEYS[1], key)

if ARGV[2] == '1' then
	redis.call('HDEL', KEYS[7], key)
end
if not score then
	return -2
end
if leased(redis.call('HGET', KEYS[3], key), score) then
	return -3
end
grouping().leave(key, score)
finish(key)
return 0
