-- with: hint due_time group refusal
-- Adds a task that has a latest due time, or replaces one. ARGV: mode (any, new, replace), key, at,
-- delay, record, and how long after its first add the task is due at the latest, in microseconds.
-- The latest due time stands at the end of the record's head (record.h), so what replaces or ends
-- the task ends it, too. A task that waits for its first attempt leaves it to the one that replaces
-- it here. Returns the due time, or -1: it exists, -2: it doesn't.
local mode, key, at, delay, record, latest = unpack(ARGV)
local score = redis.call('ZSCORE', KEYS[1], key)
local refused = refusal(mode, score)

if refused then
	return refused
end
local waits = score and redis.call('HEXISTS', KEYS[3], key) == 0
local replaced = waits and redis.call('HGET', KEYS[2], key) or ''
local limit = string.match(replaced, '^%d+ %d+ %d+ (%d+)\n') or
	string.format('%d', due_time('0', latest))
local due = math.max(now, math.min(due_time(at, delay), limit))
local group = grouping()

record = string.gsub(record, '\n', ' ' .. limit .. '\n', 1)
group.leave(key, score)
redis.call('HDEL', KEYS[3], key)
redis.call('HDEL', KEYS[7], key)
group.set_due(key, due, record)
redis.call('HSET', KEYS[2], key, record)
redis.call('INCRBY', KEYS[9], 1)
hint(due)
return due
