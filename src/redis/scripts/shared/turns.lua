-- Turns of groups, by deficit round robin (Shreedhar and Varghese, 1995), with the namespace's own
-- tasks as the group ''. A turn gives as many tasks as the weight says. A group that has something
-- due stands by the last turn or, if there was none since it was idle, by when the first task was
-- due: so it comes before all that had a turn since then, once.
--
-- Returns the keys of up to `most` tasks in the order of turns, the first of which a smaller `most`
-- gives, the groups of these tasks, and a function that takes them out of `queue` and writes when
-- all have their next turns. `own` are the first of the namespace's own due tasks, one more than
-- `most` at least. `limits` are the functions of limits, or false. A group that may begin no more
-- is kept back until a place is free, its rate allows one, or for 10 s. ARGV[1] is claim.lua's.
local function turns_claim(own, most, limits)
	local state, queue, turns = KEYS[4], unpack(KEYS, 10, 11)
	local now_digits = string.format('%015d', now)
	-- `all` are the turns that this claim has begun, `active` those of them that have more.
	local keys, groups, places, all, active = {}, {}, {}, {}, {}

	-- Returns a number as text: Redis would print it as one with a fraction.
	local function text_of(number)
		return string.format('%d', number)
	end

	local own_turn = #own > 0 and redis.call('ZSCORE', turns, '')
	if own_turn and tonumber(own_turn) > now_us then
		-- The server's clock was set back.
		redis.call('ZADD', turns, now_us, '')
	end
	local was_cut, cut_goes_on = redis.call('HGET', state, 'cut') or '', true
	local spent, cut = string.match(was_cut, '^(%d+) (.*)$')

	-- The turns that have come, whatever `most` is. Some may begin no more; those beyond wait.
	local names = redis.call('ZRANGEBYSCORE', turns, '-inf', text_of(now_us), 'LIMIT', '0',
		text_of(math.max(ARGV[1], 10) + 1))

	local function begin(name)
		local turn = {name = name, own = name == '' and own, weight = 1, spent = 0,
			taken = 0, served = 0, places = {}, allowed = math.huge}
		if limits and name ~= '' then
			local rule = limits.rule(name)
			turn.weight = rule.weight
			turn.allowed, turn.again = limits.allowed(name, rule)
		end
		if name == cut then
			turn.spent, cut_goes_on = spent % turn.weight, false
		end
		all[#all + 1] = turn
		return turn
	end

	-- Returns key and place of a turn's next due task, or nil: turn.following is when one is.
	local function next_due(turn)
		local at, start = turn.taken + 1, #turn.name + 2
		if turn.own then
			return own[at]
		end
		if at > #turn.places and not turn.is_whole then
			-- About its share of the claim, and one more.
			local count = math.ceil(most / #names) + 1
			local found = redis.call('ZRANGEBYLEX', queue,
				at > 1 and '(' .. turn.places[at - 1] or '[' .. turn.name .. '\0',
				'(' .. turn.name .. '\1', 'LIMIT', '0', text_of(count))
			for i, place in ipairs(found) do
				turn.places[at + i - 1] = place
			end
			turn.is_whole = #found < count
		end
		local place = turn.places[at]
		local digits = place and string.sub(place, start, start + 14)
		if place and digits <= now_digits then
			return string.sub(place, start + 15), place
		end
		turn.following = tonumber(digits)
	end

	while #keys < most do
		local name = names[#all + 1]
		local turn = name and begin(name) or table.remove(active, 1)
		if not turn then
			break
		end
		local key, place = next_due(turn)

		turn.served = turn.served + 1
		while key and turn.taken < turn.allowed and turn.spent < turn.weight and
				#keys < most do
			keys[#keys + 1], groups[#groups + 1] = key, turn.name
			places[#places + 1] = place
			turn.taken, turn.spent = turn.taken + 1, turn.spent + 1
			key, place = next_due(turn)
		end
		turn.is_kept_back = key and turn.taken == turn.allowed
		turn.goes_on = key and not turn.is_kept_back
		if not turn.goes_on or turn.spent == turn.weight then
			turn.spent = 0
		end
		if turn.goes_on then
			table.insert(active, turn.spent > 0 and 1 or #active + 1, turn)
		end
	end

	-- Returns when the next turn is, nil: it has that already, or -1: never.
	local function turn_next(turn)
		if turn.spent > 0 and turn.served == 1 or turn.own and turn.taken == 0 then
			return nil
		elseif turn.is_kept_back then
			return turn.again
		elseif turn.goes_on or turn.own then
			return now_us - (turn.behind or 0)
		end
		return turn.following and turn.following * 1000 or -1
	end

	return keys, groups, function()
		local scores, gone, first = {}, {}, active[1]
		local is_cut = first and first.spent > 0 and
			text_of(first.spent) .. ' ' .. first.name or cut_goes_on and was_cut or ''
		-- They keep their order: each has a microsecond of its own.
		for i, turn in ipairs(active) do
			turn.behind = #active - i
		end
		for _, turn in ipairs(all) do
			local next = turn_next(turn)
			if next == -1 then
				gone[#gone + 1] = turn.name
			elseif next then
				scores[#scores + 1] = text_of(next)
				scores[#scores + 1] = turn.name
			end
		end
		for _, change in ipairs({{'ZREM', queue, places}, {'ZADD', turns, scores},
				{'ZREM', turns, gone}}) do
			local command, key, values = unpack(change)
			if #values > 0 then
				redis.call(command, key, unpack(values))
			end
		end
		if is_cut == '' and was_cut ~= '' then
			redis.call('HDEL', state, 'cut')
		elseif is_cut ~= was_cut then
			redis.call('HSET', state, 'cut', is_cut)
		end
	end
end
