-- with: hint due_time leased group refusal
-- Adds a recurring task, or replaces a task by one. ARGV: mode (any, new, replace), key, at, delay,
-- record, rhythm (time.lua), and the time from which it is to recur (0: none is given, -1: a delay
-- is). A task that recurs in this way already keeps its occurrence, for it was only declared again.
-- Returns the due time, or -1: it exists, -2: it doesn't.
local mode, key, at, delay, record, rhythm = unpack(ARGV)
local from = tonumber(ARGV[7])
local score = redis.call('ZSCORE', KEYS[1], key)
local refused = refusal(mode, score)

if refused then
	return refused
end
local group = grouping()
local was_due, is_queued = group.due_of(score or 0)
group.leave(key, score)
redis.call('HSET', KEYS[2], key, record)
redis.call('INCRBY', KEYS[9], 1)
if score and from >= 0 then
	local present, was = string.match(redis.call('HGET', KEYS[7], key) or '',
		'^(%d+) %d+ (.+)$')
	local period = tonumber(string.match(rhythm, '^%a+ (%d+)$'))

	-- A calendar has no beginning by which series differ.
	if was == rhythm and (from == 0 or not period and from <= now or period and
			from <= tonumber(present) and (present - from) % period == 0) then
		if is_queued or group.of(record) and
				not leased(redis.call('HGET', KEYS[3], key), score) then
			group.set_due(key, was_due, record)
		end
		return math.max(1, tonumber(present))
	end
end
-- The time is one of the series, also if it passed on the way here.
local due = at ~= '0' and tonumber(at) or due_time(at, delay)
group.set_due(key, due, record)
redis.call('HDEL', KEYS[3], key)
redis.call('HSET', KEYS[7], key,
	string.format('%d %d %s', due, from == 0 and now or 0, rhythm))
hint(due)
return due
