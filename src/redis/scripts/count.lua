-- with: read
-- Answers now, tasks, those due, those with an attempt behind them, dead letters, when the next is
-- to be looked at, or -1, 1 if the shard is paused, recurring tasks, and tasks ever added.
-- Something else may have written any number.
local added = string.match(tostring(redis.pcall('GET', KEYS[9])), '^%d+$') or 0
local first = read('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')

return {now, read('ZCARD', KEYS[1]), read('ZCOUNT', KEYS[1], '-inf', now),
	read('HLEN', KEYS[3]), read('HLEN', KEYS[5]), first[2] and
	math.min(math.max(tonumber(first[2]), 0), 9007199254740991) or -1,
	read('EXISTS', KEYS[6]), read('HLEN', KEYS[7]),
	math.min(tonumber(added), 9007199254740991)}
