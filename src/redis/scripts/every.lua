-- with: hint due_time leased group refusal
-- Adds a recurring task, or replaces a task by one. ARGV: mode (any, new, replace), key, at, delay,
-- record, what becomes of missed times (one, skip, all), either the period in milliseconds or
-- "cron - ZONE EXPRESSION", and the time from which it is to recur (0: none is given, -1: a delay
-- is). A task that recurs in this way already keeps its occurrence, for it was only declared again.
-- If `at` has passed, the next time of its series counts. Returns the due time, or -1: it exists,
-- -2: it doesn't.
local mode, key, missed, rest = ARGV[1], ARGV[2], ARGV[6], ARGV[7]
local period = tonumber(rest)
local due = due_time(ARGV[3], ARGV[4])
local at = tonumber(ARGV[3])

if period and at > 0 and at < now then
	due = at + math.ceil((now - at) / period) * period
end
local score = redis.call('ZSCORE', KEYS[1], key)
local refused = refusal(mode, score)
if refused then
	return refused
end
local group = grouping()
local was_due, is_queued = group.due_of(score or 0)
group.leave(key, score)
redis.call('HSET', KEYS[2], key, ARGV[5])
redis.call('INCRBY', KEYS[9], 1)
local from = tonumber(ARGV[8])
if score and from >= 0 then
	local was_missed, present, was = string.match(redis.call('HGET', KEYS[7], key) or '',
		'^(%a+) (%d+) (.+)$')
	if was_missed == missed and string.gsub(was, '^cron %S+', 'cron -') == rest then
		present = tonumber(present)
		-- A calendar has no beginning by which series differ.
		if from == 0 or not period and from <= now or
				period and from <= present and (present - from) % period == 0 then
			if is_queued or group.of(ARGV[5]) and
					not leased(redis.call('HGET', KEYS[3], key), score) then
				group.set_due(key, was_due, ARGV[5])
			end
			return math.max(1, present)
		end
	end
end
group.set_due(key, due, ARGV[5])
redis.call('HDEL', KEYS[3], key)
redis.call('HSET', KEYS[7], key, string.format('%s %d %s', missed, due, rest))
hint(due)
return due
