-- with: group limits batch
-- Finds groups with many waiting tasks, whatever the number of groups. ARGV: how many places of
-- `queue`, turns and batches to look at; and names of further groups, each with a newline. Answers
-- of each group that has a task: name, how many tasks wait, about how many are on lease, and the
-- due time of the first that waits or 0. `queue` is in the order of names, so of N evenly spaced
-- places one is of each group that has an Nth of all. A group has much the same place in each
-- shard, so each shard looks at other places: those of all shards are evenly spaced, too.
local most = tonumber(ARGV[1])
local queue, turns = unpack(KEYS, 10, 11)
local names, running, reply = {}, {}, {}
local offset = string.match(KEYS[1], '(%d+)}due$') * 0.618034 % 1

if redis.call('EXISTS', turns) == 0 then
	return reply
end

-- Returns up to `most` of the `count` members from a rank on, at evenly spaced ranks.
local function sample(key, rank, count)
	local some, step = {}, math.max(count / most, 1)
	for i = 1, math.min(count, most) do
		local at = rank + math.floor((i - 1 + offset) * step)
		some[i] = redis.call('ZRANGE', key, at, at)[1]
	end
	return some
end

for name in string.gmatch(ARGV[2], '([^\n]*)\n') do
	names[name] = true
end
for _, place in ipairs(sample(queue, 0, redis.call('ZCARD', queue))) do
	names[string.match(place, '^[^%z]*')] = true
end
-- These are small groups, if there are few.
for _, name in ipairs(redis.call('ZRANGEBYSCORE', turns, '-inf', '+inf', 'LIMIT', 0, most)) do
	names[name] = true
end
local batches = batching()
local ended = redis.call('ZCOUNT', KEYS[9], '-inf', now)
local leases = redis.call('ZCARD', KEYS[9]) - ended
local tokens = sample(KEYS[9], ended, leases)
for _, token in ipairs(tokens) do
	local batch = batches.read(token)
	running = batch and batches.count(batch, running) or running
end
for name in pairs(running) do
	names[name] = true
end
names[''] = nil
for name in pairs(names) do
	local from, to = '[' .. name .. '\0', '(' .. name .. '\1'
	local first = redis.call('ZRANGEBYLEX', queue, from, to, 'LIMIT', 0, 1)[1]
	local held = math.floor((running[name] or 0) * leases / math.max(#tokens, 1) + 0.5)
	if first or held > 0 then
		local due = string.sub(first or '', #name + 2, #name + 16)
		local i = #reply
		reply[i + 1], reply[i + 2], reply[i + 3], reply[i + 4] = name,
			first and redis.call('ZLEXCOUNT', queue, from, to) or 0, held,
			tonumber(due) or 0
	end
end
return reply
