-- Makes a task a dead letter, with its record (nil: there is none, and no letter). A recurring task
-- goes on with its next occurrence, so the letter of this one has a key of its own, KEY#due=TIME,
-- which lies in the same shard (space.c). Keys have at most 1024 bytes, so a longer one keeps only
-- its last letter.
local function bury(key, attempts, record, reason)
	local due = string.match(redis.call('HGET', KEYS[7], key) or '', '^%a+ (%d+) ')
	local letter = due and #key <= 1000 and key .. '#due=' .. due or key

	if record then
		redis.call('HSET', KEYS[5], letter,
			string.format('%d:%d:%d:', now, attempts, #reason) .. reason .. record)
		redis.call('ZADD', KEYS[8], string.format('%d', now), letter)
	end
	finish(key)
end

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
