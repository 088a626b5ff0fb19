-- Answers now, tasks, those due, those with an attempt behind them, dead letters, when the next is
-- to be looked at, or -1, 1 if the shard is paused, recurring tasks, and tasks ever added.
-- Something else may have written any number.
local added = string.match(tostring(redis.pcall('GET', KEYS[9])), '^%d+$') or 0
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')

return {now, redis.call('ZCARD', KEYS[1]), redis.call('ZCOUNT', KEYS[1], '-inf', now),
	redis.call('HLEN', KEYS[3]), redis.call('HLEN', KEYS[5]), first[2] and
	math.min(math.max(tonumber(first[2]), 0), 9007199254740991) or -1,
	redis.call('EXISTS', KEYS[6]), redis.call('HLEN', KEYS[7]),
	math.min(tonumber(added), 9007199254740991)}
