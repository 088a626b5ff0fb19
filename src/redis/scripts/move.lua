-- with: hint due_time leased group
-- Gives a task another due time. ARGV: key, at, delay. Answers it, or -2: there is no such task,
-- -3: it is on lease.
local key = ARGV[1]
local score = redis.call('ZSCORE', KEYS[1], key)

if not score then
	return -2
end
local run = redis.call('HGET', KEYS[3], key)
if leased(run, score) then
	return -3
end
if run then
	-- A lease that has ended is over now: its worker may not end the task that was moved.
	redis.call('HSET', KEYS[3], key, (string.match(run, '^%d+')))
end
local due = due_time(ARGV[2], ARGV[3])
local group = grouping()
group.leave(key, score)
group.set_due(key, due)
hint(due)
return due
