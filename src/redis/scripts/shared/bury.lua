-- Ends an occurrence, as again() does, or a task that does not recur. Needs again.
local function finish(key, oldest)
	local recurs, skipped = again(key, oldest)

	if not recurs then
		redis.call('ZREM', KEYS[1], key)
		redis.call('HDEL', KEYS[2], key)
		redis.call('HDEL', KEYS[3], key)
	end
	return skipped or 0
end

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
	end
	-- A sweep finds the letters that a script without this key has made (dead_sweep.lua).
	if record and KEYS[8] then
		redis.call('ZADD', KEYS[8], string.format('%d', now), letter)
	end
	finish(key)
end
