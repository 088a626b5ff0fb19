-- with: hint due_time
-- Adds a recurring task, or puts it in the place of one. ARGV: mode (any, new, replace), key, at,
-- delay, record, period in milliseconds, what becomes of missed times (one, skip, all). Of a
-- beginning in the past the next time is meant, so saying the same again changes nothing.
-- Answers its due time, or -1: it exists, -2: it doesn't.
local mode, key, period = ARGV[1], ARGV[2], tonumber(ARGV[6])
local due = due_time(ARGV[3], ARGV[4])
local at = tonumber(ARGV[3])

if at > 0 and at < now then
	due = at + math.ceil((now - at) / period) * period
end
local score = redis.call('ZSCORE', KEYS[1], key)
if mode == 'new' and score then
	return -1
end
if mode == 'replace' and not score then
	return -2
end
redis.call('ZADD', KEYS[1], string.format('%d', due), key)
redis.call('HDEL', KEYS[3], key)
redis.call('HSET', KEYS[2], key, ARGV[5])
redis.call('HSET', KEYS[7], key, string.format('%s %d %d', ARGV[7], due, period))
hint(due)
return due
