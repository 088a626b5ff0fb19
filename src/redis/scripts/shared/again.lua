-- What a recurring task's occurrence leaves behind when it ends: the next one. False: the task is
-- none. Where times have been missed, "one" runs once for all of them, "skip" not at all, and "all"
-- once for each. By the calendar the next time stands in the entry, written by a worker; where that
-- does not say it, the task is left without one, for a worker to schedule (claim.lua). Needs hint
-- and group.
-- Times before `oldest` (nil: none) are skipped. Returns how many of `all` these were, too.
local function again(key, oldest)
	local missed, at, rest = string.match(redis.call('HGET', KEYS[7], key) or '',
		'^(%a+) (%d+) (.+)$')
	local period = tonumber(string.match(rest or '', '^[1-9]%d*$'))
	local following, calendar = string.match(rest or '', '^cron (%S+) (.+)$')
	local due
	local skipped = 0
	if period then
		at = at + period
		if oldest and at < oldest then
			skipped = missed == 'all' and math.ceil((oldest - at) / period) or 0
			at = at + math.ceil((oldest - at) / period) * period
		end
		if at < now and missed ~= 'all' then
			at = at + math.floor((now - at) / period) * period
			if at < now and missed == 'skip' then
				at = at + period
			end
		end
		due = at
	elseif calendar then
		local time = tonumber(following)
		if time and (time >= now or missed == 'all') then
			due, at, rest = time, time, 'cron - ' .. calendar
		else
			due = now
			if string.sub(following, 1, 1) ~= '*' then
				rest = string.format('cron *%d %s', now, calendar)
			end
		end
	else
		return false
	end
	redis.call('HDEL', KEYS[3], key)
	grouping().set_due(key, due)
	redis.call('HSET', KEYS[7], key, string.format('%s %d %s', missed, at, rest))
	hint(due)
	return true, skipped
end

-- Ends an occurrence, as again() does, or a task that does not recur.
local function finish(key, oldest)
	local recurs, skipped = again(key, oldest)

	if not recurs then
		redis.call('ZREM', KEYS[1], key)
		redis.call('HDEL', KEYS[2], key)
		redis.call('HDEL', KEYS[3], key)
	end
	return skipped or 0
end
