-- Deletes the shard's letters that died more than `age` milliseconds ago, and the oldest of those
-- that are more than `most` (0: any), at most a hundred. Returns whether there are more to delete.
local function trim(age, most)
	local count = most == '0' and 0 or redis.call('ZCARD', KEYS[8]) - most
	if age ~= '0' then
		count = math.max(count, redis.call('ZCOUNT', KEYS[8], '-inf',
			string.format('(%d', now - age)))
	end
	if count > 0 then
		local oldest = redis.call('ZRANGE', KEYS[8], '0', math.min(count, 100) - 1)
		redis.call('ZREM', KEYS[8], unpack(oldest))
		redis.call('HDEL', KEYS[5], unpack(oldest))
	end
	return count > 100
end
