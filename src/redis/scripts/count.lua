-- with: group
-- Answers now, tasks, those due, those with an attempt behind them, dead letters, when the next is
-- to be looked at, or -1, 1 if the shard is paused, recurring tasks, and tasks ever added.
local group = grouping()
local first = tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
local turn = group.next_turn()
local due = (first or turn) and math.min(first or turn, turn or first) or -1

return {now, redis.call('ZCARD', KEYS[1]), redis.call('ZCOUNT', KEYS[1], '-inf', now) +
	(turn and group.count_due() or 0),
	redis.call('HLEN', KEYS[3]), redis.call('HLEN', KEYS[5]),
	due,
	string.match(redis.call('HGET', KEYS[6], '') or '', '1$') and 1 or 0,
	redis.call('HLEN', KEYS[7]),
	tonumber(redis.call('GET', KEYS[9]) or 0)}
