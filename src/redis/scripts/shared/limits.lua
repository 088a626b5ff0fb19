-- Limits. `limits` has the rule of the namespace under '', those of groups under their names, and
-- under '*' that of all groups without one: "weight running rate per paused". `rate` tasks may
-- begin in `per` milliseconds; 0 is no limit.
--
-- In a shard with limits each run has a place until it is reported or its lease ends, also if its
-- task was replaced (batch.lua). `busy` has the number of these of each group, and under '' of all.
--
-- "rate/GROUP" is the microsecond up to which the rate is used up (the generic cell rate
-- algorithm). A tenth of `rate` may begin at once. For slow rates this is one task, and 50 ms make
-- up for claims that come late. The key expires a second after all of it has come back.
local function limiting()
	local rate_key = string.sub(KEYS[1], 1, -4) .. 'rate/'
	local busy = KEYS[12]
	local limits, rates = {}, {}

	-- Returns the rule of a group, or of the namespace (''). Without one there is no limit.
	function limits.rule(name)
		local text = redis.call('HGET', KEYS[6], name) or
			name ~= '' and redis.call('HGET', KEYS[6], '*')
		local weight, most, rate, per, paused = string.match(text or '',
			'^(%d+) (%d+) (%d+) (%d+) (%d+)$')
		return {weight = math.max(tonumber(weight or 1), 1), most = tonumber(most or 0),
			rate = tonumber(rate or 0), per = 1000 * (per or 0),
			is_paused = (paused or '0') ~= '0'}
	end

	-- Notes up to when a rate is used up.
	local function set_used(name, used)
		redis.call('SET', rate_key .. name, string.format('%.2f', used), 'PX',
			string.format('%d', (used - now_us) / 1000 + 1000))
	end

	-- Returns how many tasks the rate allows now, and when it allows one more.
	local function rate_allows(name, rule)
		local each = rule.per / rule.rate
		local room = math.max(rule.rate / 10 * each, each + math.min(each / 2, 50000))
		local used = tonumber(redis.call('GET', rate_key .. name) or 0)
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
			count = math.max(rule.most - (redis.call('HGET', busy, name) or 0), 0)
		end
		if rule.rate > 0 then
			local by_rate, at = rate_allows(name, rule)
			if by_rate <= count then
				count, again = by_rate, at
			end
		end
		return count, again
	end

	-- Gives a group a turn now, if it has one later.
	function limits.wake(name)
		local turn = name ~= '' and redis.call('ZSCORE', KEYS[11], name)
		if turn and tonumber(turn) > now_us then
			redis.call('ZADD', KEYS[11], string.format('%d', now_us), name)
		end
	end

	-- Gives places to runs, whose numbers are by groups, '' being none, and takes those of a
	-- claim from the rates. -1 takes the places back. Returns whether a group, or the
	-- namespace, had no place left that now has one.
	function limits.hold(counts, sign)
		local total, goes_on = 0, false
		for _, count in pairs(counts) do
			total = total + count
		end
		counts[''] = total > 0 and total or nil
		for name, count in pairs(counts) do
			local held = redis.call('HINCRBY', busy, name, sign * count)
			local most = sign < 0 and limits.rule(name).most or 0
			local rate = rates[name]
			if held <= 0 then
				redis.call('HDEL', busy, name)
			end
			if most > 0 and held + count >= most then
				limits.wake(name)
				goes_on = true
			end
			if rate then
				set_used(name, rate.used + count * rate.each)
			end
		end
		return goes_on
	end
	return limits
end
