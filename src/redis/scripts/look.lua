-- Tells when each shard of the namespace is to be looked at. All lie on this server: it is no
-- cluster. ARGV: how many shards. Answers for each how many milliseconds from now, -1: never, or
-- not before it is resumed.
local tag = string.match(KEYS[1], '^(.*/)%d+}due$')
local answers = {}

for shard = 1, ARGV[1] do
	local keys = tag .. shard - 1
	local first = redis.call('ZRANGE', keys .. '}due', 0, 0, 'WITHSCORES')

	answers[shard] = first[2] and redis.call('EXISTS', keys .. '}pause') == 0 and
		math.min(math.max(tonumber(first[2]) - now, 0), 9007199254740991) or -1
end
return answers
