-- with: hint
-- Pauses the shard, or lets it go on: ARGV: 1 or 0. Answers 0.
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')

if ARGV[1] == '1' then
	redis.call('SET', KEYS[6], 1)
elseif redis.call('DEL', KEYS[6]) == 1 and first[2] then
	hint(math.min(math.max(tonumber(first[2]), 0), 9007199254740991))
end
return 0
