-- Tells when each shard of the namespace is to be looked at. All lie on this server: it is no
-- cluster. ARGV: how many shards. Answers for each how many milliseconds from now, -1: never, or
-- not before it is resumed.
local tag = string.match(KEYS[1], '^(.*/)%d+}due$')
local answers = {}

for shard = 1, ARGV[1] do
	local keys = tag .. shard - 1
	local first = tonumber(redis.call('ZRANGE', keys .. '}due', 0, 0, 'WITHSCORES')[2])
	local turns = redis.call('ZRANGE', keys .. '}turns', 0, 1, 'WITHSCORES')
	local turn = tonumber(turns[turns[1] == '' and 4 or 2])

	if turn then
		first = math.min(first or turn / 1000, math.ceil(turn / 1000))
	end
	answers[shard] = first and redis.call('EXISTS', keys .. '}pause') == 0 and
		math.min(math.max(first - now, 0), 9007199254740991) or -1
end
return answers
