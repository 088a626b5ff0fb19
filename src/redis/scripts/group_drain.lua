-- Takes up to 1,000 waiting tasks of a group out of the shard. ARGV: the group. Answers how many
-- these were.
local name = ARGV[1]
local keys = {}
local places = redis.call('ZRANGEBYLEX', KEYS[10], '[' .. name .. '\0', '(' .. name .. '\1',
	'LIMIT', '0', '1000')

for i, place in ipairs(places) do
	-- The name, a zero byte and 15 digits stand before it.
	keys[i] = string.sub(place, #name + 17)
end
if #keys > 0 then
	redis.call('ZREM', KEYS[1], unpack(keys))
	for _, i in ipairs({2, 3, 7}) do
		redis.call('HDEL', KEYS[i], unpack(keys))
	end
	redis.call('ZREM', KEYS[10], unpack(places))
end
return #keys
