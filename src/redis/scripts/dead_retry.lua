-- with: hint group
-- Makes a dead letter a task again, due now. ARGV: key. Answers 0, or -2: there is none, -1: a task
-- has the key.
local key = ARGV[1]
local letter = redis.call('HGET', KEYS[5], key)

if not letter then
	return -2
end
if redis.call('ZSCORE', KEYS[1], key) then
	return -1
end
local head, size = string.match(letter, '^(%d+:%d+:(%d+):)')
local record = string.sub(letter, #head + size + 1)
redis.call('HSET', KEYS[2], key, record)
grouping().set_due(key, now, record)
redis.call('HDEL', KEYS[5], key)
redis.call('ZREM', KEYS[8], key)
hint(now)
return 0
