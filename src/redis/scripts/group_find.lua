-- with: group limits batch
-- Finds groups with many waiting tasks, whatever the number of groups. ARGV: how many places of
-- `queue`, turns and batches to look at. Answers name, about how many tasks wait, and how many are
-- on lease, several times of most groups: the caller adds these up. `queue` is in the order of
-- names, so of N evenly spaced places one is of each group that has an Nth of all. A group has much
-- the same place in each shard, so each shard looks at other places: those of all shards are evenly
-- spaced, too.
local most = tonumber(ARGV[1])
local queue, turns = unpack(KEYS, 10, 11)
local reply = {}
local offset = string.match(KEYS[1], '(%d+)}due$') * 0.618034 % 1

if redis.call('EXISTS', turns) == 0 then
	return reply
end

local function add(name, waiting, running)
	local i = #reply
	reply[i + 1], reply[i + 2], reply[i + 3] = name, math.floor(waiting + 0.5),
		math.floor(running + 0.5)
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

local waiting = redis.call('ZCARD', queue)
local places = sample(queue, 0, waiting)
for _, place in ipairs(places) do
	add(string.match(place, '^[^%z]*'), waiting / #places, 0)
end

-- These find small groups, if there are few.
for _, name in ipairs(redis.call('ZRANGE', turns, 0, most)) do
	add(name, 0, 0)
end

local batches = batching()
local ended = redis.call('ZCOUNT', KEYS[9], '-inf', now)
local leases = redis.call('ZCARD', KEYS[9]) - ended
local tokens, running = sample(KEYS[9], ended, leases), {}
for _, token in ipairs(tokens) do
	local batch = batches.read(token)
	running = batch and batches.count(batch, running) or running
end
running[''] = nil
for name, count in pairs(running) do
	add(name, 0, count * leases / #tokens)
end
return reply
