-- Turns of groups, by deficit round robin (Shreedhar and Varghese, 1995), with the namespace's own
-- tasks as the group ''. A turn gives as many tasks as the weight says. A group that has something
-- due stands by the last turn or, if there was none since it was idle, by when the first task was
-- due: so it comes before all that had a turn since then, once.
--
-- Returns up to `most` tasks in the order of turns: keys and due times as ZRANGEBYSCORE returns
-- them, the place of each in `queue`, and a function that takes the first `handled` of these tasks
-- out of `queue` and writes when all have their next turns. `own` are the first `most` and one of
-- the namespace's own due tasks. `permits` has how many tasks may begin of each group with limits
-- (nil: limits are ignored). A group that lacks permits is kept back for 10 s, or until a claim has
-- some, and then comes first. It is returned in a list of at most 100: its name, and how many more
-- of it are due; others are left where they are, for the next claim. A group that is paused is kept
-- back for 10 s, too. Needs rules and group.
local function turns_claim(own, most, permits)
	local queue_key, turns_key, groups_key = unpack(KEYS, 10, 12)
	local has_rules = redis.call('EXISTS', groups_key) == 1
	local now_digits = string.format('%015d', now)
	local tasks, lacks, texts = {}, {}, {}
	-- All turns that were loaded. From `at` on, `active` has those that come in this round;
	-- `kept` those that have more after it.
	local all, active, kept, at, round = {}, {}, {}, 1, 1
	local is_whole

	-- Returns a number as text: Redis would print it as one with a fraction.
	local function text_of(number)
		texts[number] = texts[number] or string.format('%d', number)
		return texts[number]
	end

	-- Keeps back a turn that may take no more, though more is due.
	local function starve(turn)
		if #lacks >= 200 then
			turn.round = turn.taken > 0 and turn.round or nil
			return
		end
		lacks[#lacks + 1] = turn.name
		lacks[#lacks + 1] = redis.call('ZLEXCOUNT', queue_key, '[' .. turn.name .. '\0',
			'(' .. turn.name .. '\0' .. string.format('%015d', now + 1)) - turn.taken
		turn.following = now + 10000
	end

	-- Appends up to `count` of the groups that have a turn by now and are not loaded yet.
	local function load(count)
		if #all > 1000 then
			-- The others have their turns in the next claim.
			is_whole = true
			return
		end
		local names = redis.call('ZRANGEBYSCORE', turns_key, '-inf', text_of(now_us),
			'LIMIT', text_of(#all), text_of(count))
		is_whole = #names < count
		if #names == 0 then
			return
		end
		local rules = has_rules and
			redis.call('HMGET', groups_key, CUT, unpack(names)) or {}
		local spent, cut = string.match(rules[1] or '', '^(%d+) (.*)$')
		for i, name in ipairs(names) do
			local rule = rule_read(rules[i + 1])
			local turn = {name = name, weight = rule.weight, taken = 0, left = 0,
				was_cut = cut == name,
				spent = cut == name and spent % rule.weight or 0,
				allowed = rule.is_limited and permits and
					(permits[name] or 0) or math.huge,
				is_paused = rule.is_paused, own = name == '' and own}
			all[#all + 1] = turn
			if name ~= '' or #own > 0 then
				active[#active + 1] = turn
			end
		end
	end

	-- Appends up to `count` due tasks of a turn to a list. turn.following becomes the due time
	-- of the next.
	local function take_due(turn, count, list)
		turn.following = nil
		if turn.own then
			for i = turn.taken + 1, math.min(turn.taken + count, #own / 2) do
				table.insert(list, {own[2 * i - 1], own[2 * i], turn = turn})
				turn.taken = i
			end
			turn.following = own[2 * turn.taken + 1] and now
			return
		end
		local start = #turn.name + 2
		local found = redis.call('ZRANGEBYLEX', queue_key,
			turn.last or '[' .. turn.name .. '\0', '(' .. turn.name .. '\1',
			'LIMIT', '0', text_of(count + 1))
		local taken = 0
		for i, place in ipairs(found) do
			local digits = string.sub(place, start, start + 14)
			if i > count or digits > now_digits then
				turn.following = tonumber(digits)
				break
			end
			taken = i
			list[#list + 1] = {string.sub(place, start + 15),
				string.match(digits, '^0*(%d+)'), place, turn = turn}
		end
		turn.taken = turn.taken + taken
		turn.last = taken > 0 and '(' .. found[taken] or turn.last
	end

	-- Gives the turn up to `count` tasks. Returns whether more of it is due.
	local function turn_take(turn, count, list)
		turn.was_served_before = turn.was_served_before or turn.round and turn.round < round
		turn.round = round
		count = turn.is_paused and 0 or math.min(count, turn.allowed - turn.taken)
		take_due(turn, count, list)
		if not turn.following or turn.following > now then
			return false
		elseif turn.is_paused then
			turn.following = now + 10000
		elseif turn.taken == turn.allowed then
			starve(turn)
		end
		return turn.following <= now
	end

	-- Returns how many whole rounds `count` tasks are, if no turn was cut short.
	local function whole_rounds(count)
		local sum = 0
		for _, turn in ipairs(active) do
			sum = turn.spent == 0 and sum + turn.weight or math.huge
		end
		return math.floor(count / sum)
	end

	-- Gives each turn the tasks of some whole rounds, which all can be loaded for.
	local function take_rounds(rounds)
		local blocks, still = {}, {}
		for i, turn in ipairs(active) do
			blocks[i] = {turn = turn}
			if turn_take(turn, rounds * turn.weight, blocks[i]) and #blocks[i] > 0 then
				still[#still + 1] = turn
			end
		end
		for k = 1, rounds do
			for _, block in ipairs(blocks) do
				local weight = block.turn.weight
				for i = (k - 1) * weight + 1, math.min(k * weight, #block) do
					tasks[#tasks + 1] = block[i]
				end
			end
		end
		active, kept = {}, still
	end

	-- Gives the next turn the rest of its tasks.
	local function take_one()
		local turn, before = active[at], #tasks
		local count = math.min(turn.weight - turn.spent, most - before)
		local goes_on = turn_take(turn, count, tasks)
		turn.spent = turn.spent + #tasks - before
		-- One that gave nothing has nothing more for this claim.
		goes_on = goes_on and #tasks > before
		if goes_on and turn.spent == turn.weight then
			kept[#kept + 1] = turn
		end
		if not goes_on or turn.spent == turn.weight then
			turn.spent = 0
			at = at + 1
		end
	end

	local function take()
		while #tasks < most do
			if at > #active and not is_whole then
				load(most - #tasks + 1)
			end
			if at > #active then
				if #kept == 0 then
					return
				end
				active, kept, at, round = kept, {}, 1, round + 1
			end
			local rounds = at == 1 and is_whole and whole_rounds(most - #tasks) or 0
			if rounds > 0 then
				take_rounds(rounds)
			else
				take_one()
			end
		end
	end

	-- Returns when the next turn is, nil: it has that already, or -1: never.
	local function turn_next(turn)
		local goes_on = turn.left > 0 or turn.following and turn.following <= now
		if not turn.round or turn.left > 0 and turn.left == turn.taken or
				turn.spent > 0 and not turn.was_served_before then
			return nil
		elseif goes_on then
			return now_us - (turn.behind or 0)
		elseif turn.own then
			return now_us
		end
		return turn.following and turn.following * 1000 or -1
	end

	local group = permits and next(permits) and grouping()
	for name in pairs(permits or {}) do
		group.wake(name)
	end
	local own_turn = #own > 0 and redis.call('ZSCORE', turns_key, '')
	if own_turn and tonumber(own_turn) > now_us then
		-- The server's clock was set back.
		redis.call('ZADD', turns_key, now_us, '')
	end
	take()

	local due, places = {}, {}
	for i, task in ipairs(tasks) do
		due[2 * i - 1], due[2 * i], places[i] = task[1], task[2], task[3]
	end
	return due, places, lacks, function(handled)
		local scores, gone, left, cut = {}, {}, {}, nil
		for i = 1, handled do
			left[#left + 1] = tasks[i][3]
		end
		if #left > 0 then
			redis.call('ZREM', queue_key, unpack(left))
		end
		for i = handled + 1, #tasks do
			tasks[i].turn.left = tasks[i].turn.left + 1
		end
		-- They keep their order: each has a microsecond of its own.
		for i = at, #active do
			active[i].behind = #active + #kept - i
		end
		for i, turn in ipairs(kept) do
			turn.behind = #kept - i
		end
		for _, turn in ipairs(all) do
			local next = turn_next(turn)
			if turn.spent > 0 and turn.round then
				cut = string.format('%d %s', turn.spent, turn.name)
			elseif turn.was_cut and turn.round then
				cut = cut or ''
			end
			if next == -1 then
				gone[#gone + 1] = turn.name
			elseif next then
				scores[#scores + 1] = text_of(next)
				scores[#scores + 1] = turn.name
			end
		end
		if cut == '' then
			redis.call('HDEL', groups_key, CUT)
		elseif cut then
			redis.call('HSET', groups_key, CUT, cut)
		end
		-- So few at a time as a call in Lua takes.
		local function write(command, values)
			for i = 1, #values, 1000 do
				local last = math.min(i + 999, #values)
				redis.call(command, turns_key, unpack(values, i, last))
			end
		end
		write('ZADD', scores)
		write('ZREM', gone)
	end
end
