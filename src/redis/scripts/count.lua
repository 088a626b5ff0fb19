-- with: group
-- Answers now, tasks, those due, those with an attempt begun, dead letters, when the next is to be
-- looked at, or -1, 1 if the shard is paused, recurring tasks, and tasks ever added.
local group = grouping()
local waiting = redis.call('ZCARD', KEYS[1])
local tasks = math.max(redis.call('HLEN', KEYS[2]), waiting)
local due = redis.call('ZCOUNT', KEYS[1], '-inf', now)
local turn = group.next_turn()
local look = turn or math.huge

-- What is on lease is due once that has ended.
for _, token in ipairs(redis.call('ZRANGEBYSCORE', KEYS[9], '-inf', now)) do
	local slots = redis.call('HGET', KEYS[4], 's' .. token) or ''
	due = due + select(2, string.gsub(slots, '1', '1'))
end
for _, key in ipairs({KEYS[1], KEYS[9]}) do
	look = math.min(look, tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or look)
end
return {now, tasks, due + (turn and group.count_due() or 0),
	redis.call('HLEN', KEYS[3]) + tasks - waiting, redis.call('HLEN', KEYS[5]),
	look < math.huge and look or -1,
	string.match(redis.call('HGET', KEYS[6], '') or '', '1$') and 1 or 0,
	redis.call('HLEN', KEYS[7]),
	tonumber(redis.call('HGET', KEYS[4], 'added') or 0)}
