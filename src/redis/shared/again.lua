-- What a recurring task's occurrence leaves behind when it ends: the next one. False: the task is
-- none. Where times have been missed, "one" runs once for all of them, "skip" not at all, and "all"
-- once for each. Needs hint.
local function again(key)
	local missed, at, period = string.match(redis.call('HGET', KEYS[7], key) or '',
		'^(%a+) (%d+) ([1-9]%d*)$')
	if not missed then
		return false
	end
	at = at + period
	if at < now and missed ~= 'all' then
		at = at + math.floor((now - at) / period) * period
		if at < now and missed == 'skip' then
			at = at + period
		end
	end
	-- Something else may have written any number.
	at = math.min(at, 9007199254740991)
	redis.call('HDEL', KEYS[3], key)
	redis.call('ZADD', KEYS[1], string.format('%d', at), key)
	redis.call('HSET', KEYS[7], key, string.format('%s %d %d', missed, at, period))
	hint(at)
	return true
end
