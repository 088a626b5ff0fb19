-- with: hint due_time group refusal
-- Adds tasks of groups, those of each shard one after the other. ARGV: for each its shard and what
-- add.lua has. Answers as it does. The shards may be many on a server that is no cluster.
local group = grouping()
local tag, own = string.match(KEYS[1], '^(.*/)(%d+)}due$')
local names = {'due', 'body', 'run', [7] = 'every', [9] = 'added', [10] = 'queue',
	[11] = 'turns'}
local answers = {}
-- For each shard where its tasks begin in ARGV.
local places = {}

for i = 1, #ARGV - 2, 6 do
	local some = places[ARGV[i]] or {}
	places[ARGV[i]] = some
	some[#some + 1] = i
end

for shard, some in pairs(places) do
	local added = 0
	local earliest
	-- The tasks that are to be written: keys and records, their due times, and which keys
	-- these are.
	local tasks, dues, is_unwritten = {}, {}, {}

	local function write()
		group.set_all_due(tasks, dues)
		redis.call('HSET', KEYS[2], unpack(tasks))
		added = added + #dues
		tasks, dues, is_unwritten = {}, {}, {}
	end

	if shard ~= own then
		for place, name in pairs(names) do
			KEYS[place] = tag .. shard .. '}' .. name
		end
		own = shard
		group.enter()
	end
	for _, i in ipairs(some) do
		local mode, key, at, delay, record = unpack(ARGV, i + 1, i + 5)
		local due = due_time(at, delay)
		if is_unwritten[key] then
			write()
		end
		local score = redis.call('ZSCORE', KEYS[1], key)
		local refused = refusal(mode, score)

		if not refused then
			if score then
				group.leave(key, score)
				redis.call('HDEL', KEYS[3], key)
				redis.call('HDEL', KEYS[7], key)
			end
			local n = #dues + 1
			tasks[2 * n - 1], tasks[2 * n], dues[n] = key, record, due
			is_unwritten[key] = true
			earliest = math.min(due, earliest or due)
		end
		answers[(i + 5) / 6] = refused or due
	end
	if earliest then
		write()
		redis.pcall('INCRBY', KEYS[9], added)
		-- A group whose turn has come is known to all workers.
		if (group.next_turn() or earliest) >= earliest then
			hint(earliest, KEYS[1], shard)
		end
	end
end
return answers
