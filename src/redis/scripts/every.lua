-- with: hint due_time
-- Adds a recurring task, or puts it in the place of one. ARGV: mode (any, new, replace), key, at,
-- delay, record, what becomes of missed times (one, skip, all), then either the period in
-- milliseconds or "cron - ZONE EXPRESSION", and 1 if a task with the same calendar is to keep its
-- time. Of a period's beginning in the past the next time is meant, so saying the same again
-- changes nothing. Answers its due time, or -1: it exists, -2: it doesn't.
local mode, key, missed, rest = ARGV[1], ARGV[2], ARGV[6], ARGV[7]
local period = tonumber(rest)
local due = due_time(ARGV[3], ARGV[4])
local at = tonumber(ARGV[3])

if period and at > 0 and at < now then
	due = at + math.ceil((now - at) / period) * period
end
local score = redis.call('ZSCORE', KEYS[1], key)
if mode == 'new' and score then
	return -1
end
if mode == 'replace' and not score then
	return -2
end
redis.call('HSET', KEYS[2], key, ARGV[5])
redis.pcall('INCRBY', KEYS[9], 1)
if ARGV[8] == '1' and score then
	local kind, present, calendar = string.match(redis.call('HGET', KEYS[7], key) or '',
		'^(%a+) (%d+) cron %S+ (.+)$')
	if kind == missed and 'cron - ' .. calendar == rest then
		return math.max(1, tonumber(present))
	end
end
redis.call('ZADD', KEYS[1], string.format('%d', due), key)
redis.call('HDEL', KEYS[3], key)
redis.call('HSET', KEYS[7], key, string.format('%s %d %s', missed, due, rest))
hint(due)
return due
