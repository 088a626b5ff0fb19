-- with: hint
-- Adds tasks of many shards, one after the other, on a server that is no cluster. ARGV: for each
-- its shard and what add.lua has. Answers as add.lua does; see there.
local tag = string.match(KEYS[1], '^(.*/)%d+}due$')
local dues, bodies, runs, earliest, added = {}, {}, {}, {}, {}
local answers = {}
local n = 0

for i = 1, #ARGV - 2, 6 do
	local shard, mode, key, at, delay = unpack(ARGV, i, i + 4)
	local due_key = dues[shard]
	local due = at ~= '0' and tonumber(at) or delay == '0' and now or
		math.ceil((now_us + delay) / 1000)
	if due < now then
		due = now
	end
	if not due_key then
		due_key = tag .. shard .. '}due'
		dues[shard] = due_key
		bodies[shard] = tag .. shard .. '}body'
		runs[shard] = tag .. shard .. '}run'
	end
	local score, answer = string.format('%d', due), due

	if mode == 'new' then
		if redis.call('ZADD', due_key, 'NX', score, key) == 0 then
			answer = -1
		end
	elseif mode == 'replace' and not redis.call('ZSCORE', due_key, key) then
		answer = -2
	elseif redis.call('ZADD', due_key, score, key) == 0 then
		redis.call('HDEL', runs[shard], key)
		redis.call('HDEL', tag .. shard .. '}every', key)
	end
	if answer > 0 then
		redis.call('HSET', bodies[shard], key, ARGV[i + 5])
		added[shard] = (added[shard] or 0) + 1
		if not earliest[shard] or due < earliest[shard] then
			earliest[shard] = due
		end
	end
	n = n + 1
	answers[n] = answer
end
for shard, due in pairs(earliest) do
	redis.pcall('INCRBY', tag .. shard .. '}added', added[shard])
	hint(due, dues[shard], shard)
end
return answers
