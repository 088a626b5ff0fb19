-- with: read group
-- Answers now, tasks, those due, those with an attempt behind them, dead letters, when the next is
-- to be looked at, or -1, 1 if the shard is paused, recurring tasks, and tasks ever added.
-- Something else may have written any number.
local added = string.match(tostring(redis.pcall('GET', KEYS[9])), '^%d+$') or 0
local group = grouping()
local first = tonumber(read('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
local turn = group.next_turn()
local due = (first or turn) and math.min(first or turn, turn or first) or -1

return {now, read('ZCARD', KEYS[1]), read('ZCOUNT', KEYS[1], '-inf', now) +
	(turn and group.count_due() or 0),
	read('HLEN', KEYS[3]), read('HLEN', KEYS[5]),
	due == -1 and due or math.min(math.max(due, 0), 9007199254740991),
	read('EXISTS', KEYS[6]), read('HLEN', KEYS[7]),
	math.min(tonumber(added), 9007199254740991)}
