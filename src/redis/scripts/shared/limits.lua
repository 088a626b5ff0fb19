-- Limits. `limits` has the rule of the namespace under '', those of groups under their names, and
-- under '*' that of all groups without one: "weight running rate per paused". `rate` tasks may
-- begin in `per` milliseconds; 0 is no limit.
--
-- In a shard with limits each run has a place, "ATTEMPT:TOKEN", a zero byte and its key, until it
-- is reported or its lease ends. `running` has the place by the end of the lease, `places` has its
-- group, and `busy` how many each group has; the namespace has them all.
--
-- "rate/GROUP" is the microsecond up to which the rate is used up (the generic cell rate
-- algorithm). A tenth of `rate` may begin at once. For slow rates this is one task, and 50 ms make
-- up for claims that come late. The key expires a second after all of it has come back.
--
-- `parked` has each group that a claim has kept back, with the turn that it would have had, and ''
-- if the namespace was kept back.
local function limiting()
	local tag = string.sub(KEYS[1], 1, -4)
	local running, places, busy = tag .. 'running', tag .. 'places', tag .. 'busy'
	local limits, rates = {}, {}

	-- Reads a rule. Without one (nil) there is no limit.
	function limits.rule(text)
		local weight, most, rate, per, paused = string.match(text or '',
			'^(%d+) (%d+) (%d+) (%d+) (%d+)$')
		return {weight = math.max(tonumber(weight or 1), 1), most = tonumber(most or 0),
			rate = tonumber(rate or 0), per = 1000 * (per or 0),
			is_paused = (paused or '0') ~= '0'}
	end

	-- Notes up to when a rate is used up.
	local function set_used(name, used)
		redis.call('SET', tag .. 'rate/' .. name, string.format('%.2f', used), 'PX',
			string.format('%d', (used - now_us) / 1000 + 1000))
	end

	-- Returns how many tasks the rate allows now, and when it allows one more.
	local function rate_allows(name, rule)
		local each = rule.per / rule.rate
		local room = math.max(rule.rate / 10 * each, each + math.min(each / 2, 50000))
		local used = tonumber(redis.call('GET', tag .. 'rate/' .. name) or 0)
		-- The rule was slower before, or the clock was ahead.
		if used > now_us + room then
			used = now_us + room
			set_used(name, used)
		end
		used = math.max(used, now_us)
		local count = math.floor((now_us + room - used) / each + 0.000001)
		rates[name] = {used = used, each = each}
		return count, math.ceil(used + (count + 1) * each - room)
	end

	-- Returns how many tasks of the group, or of the namespace (''), may begin now, and the
	-- microsecond when to look for more.
	function limits.allowed(name, rule)
		local count, again = math.huge, now_us + 10000000
		if rule.is_paused then
			return 0, again
		end
		if rule.most > 0 then
			local held = name == '' and redis.call('ZCARD', running) or
				redis.call('HGET', busy, name) or 0
			count = math.max(rule.most - held, 0)
		end
		if rule.rate > 0 then
			local by_rate, at = rate_allows(name, rule)
			if by_rate <= count then
				count, again = by_rate, at
			end
		end
		return count, again
	end

	-- Gives places of a group ('': of none) to runs whose lease ends then.
	function limits.hold(name, list, lease_end)
		local scores, groups = {}, {}
		for i, place in ipairs(list) do
			scores[2 * i - 1], scores[2 * i] = lease_end, place
			groups[2 * i - 1], groups[2 * i] = place, name
		end
		local added = redis.call('ZADD', running, unpack(scores))
		redis.call('HSET', places, unpack(groups))
		if name ~= '' then
			redis.call('HINCRBY', busy, name, added)
		end
	end

	-- Has a place end with the task's lease. If it had ended before, the run takes one again.
	function limits.prolong(place, key, lease_end)
		if redis.call('ZSCORE', running, place) then
			redis.call('ZADD', running, lease_end, place)
		else
			limits.hold(grouping().of(redis.call('HGET', KEYS[2], key)) or '',
				{place}, lease_end)
		end
	end

	-- Notes that tasks of a group, or of the namespace, have begun.
	function limits.spend(name, count)
		local rate = rates[name]
		if rate and count > 0 then
			set_used(name, rate.used + count * rate.each)
		end
	end

	-- Notes that the namespace was kept back.
	function limits.park()
		redis.call('HSET', KEYS[12], '', '0')
	end

	-- Gives a group that was kept back its turn. Returns whether it was.
	function limits.wake(name)
		local turn = redis.call('HGET', KEYS[12], name)
		if turn then
			redis.call('HDEL', KEYS[12], name)
		end
		if turn and name ~= '' then
			redis.call('ZADD', KEYS[11], 'XX', turn, name)
		end
		return turn
	end

	-- Takes places back. Returns whether a group, or the namespace, was kept back and goes on.
	function limits.leave(list)
		local groups = redis.call('HMGET', places, unpack(list))
		local counts, seen, goes_on = {}, {}, false
		for i, name in ipairs(groups) do
			if name and not seen[list[i]] then
				counts[name] = (counts[name] or 0) + 1
				seen[list[i]] = true
			end
		end
		redis.call('ZREM', running, unpack(list))
		redis.call('HDEL', places, unpack(list))
		for name, count in pairs(counts) do
			if name ~= '' and redis.call('HINCRBY', busy, name, -count) <= 0 then
				redis.call('HDEL', busy, name)
			end
			goes_on = limits.wake(name) or goes_on
		end
		return limits.wake('') or goes_on
	end

	-- Takes back the places of leases that have ended.
	function limits.expire()
		local ended
		repeat
			ended = redis.call('ZRANGEBYSCORE', running, '-inf',
				string.format('%d', now), 'LIMIT', '0', '1000')
			if #ended > 0 then
				limits.leave(ended)
			end
		until #ended < 1000
	end
	return limits
end
