-- with: group
-- Takes up to 1,000 waiting tasks of a group out of the shard. ARGV: the group. Answers how many
-- places in the queue it has emptied, and how many of these had a task still.
local MOST = 1000
local queue = KEYS[10]
local name = ARGV[1]
local group = grouping()
local removed = 0
local places = redis.call('ZRANGEBYLEX', queue, '[' .. name .. '\0', '(' .. name .. '\1',
	'LIMIT', 0, MOST)

for _, place in ipairs(places) do
	local due, key = string.match(place, '^%Z*%z(' .. string.rep('%d', 15) .. ')(.*)$')
	if group.confirms(key, tonumber(due)) then
		removed = removed + redis.call('ZREM', KEYS[1], key)
		for _, i in ipairs({2, 3, 7}) do
			redis.call('HDEL', KEYS[i], key)
		end
	end
	redis.call('ZREM', queue, place)
end
return {#places, removed}
