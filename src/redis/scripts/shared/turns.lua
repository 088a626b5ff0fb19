-- Turns of groups, by deficit round robin (Shreedhar and Varghese, 1995), with the namespace's own
-- tasks as the group ''. A turn gives as many tasks as the weight says. A group that has something
-- due stands by the last turn or, if there was none since it was idle, by when the first task was
-- due: so it comes before all that had a turn since then, once.
--
-- Returns up to `most` tasks in the order of turns: keys and due times as ZRANGEBYSCORE returns
-- them, the tasks with their places in `queue` and their turns, and a function that takes the first
-- `handled` of these tasks out of `queue` and writes when all have their next turns; until then
-- turn.begun counts those that begin. `own` are the first `most` and one of the namespace's own due
-- tasks. `limits` are the functions of limits, or false. A group that may begin no more is kept
-- back until a place is free, its rate allows one, or for 10 s. Needs group.
local CUT = '\n' -- the field of `parked` that has a turn that was cut short, as "3 NAME"
local function turns_claim(own, most, limits)
	local queue_key, turns_key, parked_key = unpack(KEYS, 10, 12)
	local has_parked = redis.call('EXISTS', parked_key) == 1
	local now_digits = string.format('%015d', now)
	local tasks, texts = {}, {}
	-- All turns that were loaded. From `at` on, `active` has those that come in this round;
	-- `kept` those that have more after it.
	local all, active, kept, at, round = {}, {}, {}, 1, 1
	local is_whole

	-- Returns a number as text: Redis would print it as one with a fraction.
	local function text_of(number)
		texts[number] = texts[number] or string.format('%d', number)
		return texts[number]
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
		local rules = limits and redis.call('HMGET', KEYS[6], '*', unpack(names)) or {}
		local parked = has_parked and
			redis.call('HMGET', parked_key, CUT, unpack(names)) or {}
		local spent, cut = string.match(parked[1] or '', '^(%d+) (.*)$')
		for i, name in ipairs(names) do
			local turn = {name = name, weight = 1, taken = 0, begun = 0, left = 0,
				allowed = math.huge, was_cut = cut == name,
				was_parked = parked[i + 1], own = name == '' and own}
			if limits and name ~= '' then
				local rule = limits.rule(rules[i + 1] or rules[1])
				turn.weight = rule.weight
				turn.allowed, turn.again = limits.allowed(name, rule)
			end
			turn.spent = cut == name and spent % turn.weight or 0
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
		take_due(turn, math.min(count, turn.allowed - turn.taken), list)
		local goes_on = turn.following and turn.following <= now
		turn.is_kept_back = goes_on and turn.taken == turn.allowed
		return goes_on and not turn.is_kept_back
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
		-- Some that it gave may not have begun.
		turn.is_kept_back = turn.is_kept_back and turn.left == 0 and
			turn.begun == turn.allowed
		if not turn.round or turn.left > 0 and turn.left == turn.taken or
				turn.spent > 0 and not turn.was_served_before then
			return nil
		elseif turn.is_kept_back then
			return turn.again
		elseif goes_on then
			return now_us - (turn.behind or 0)
		elseif turn.own then
			return now_us
		end
		return turn.following and turn.following * 1000 or -1
	end

	local own_turn = #own > 0 and redis.call('ZSCORE', turns_key, '')
	if own_turn and tonumber(own_turn) > now_us then
		-- The server's clock was set back.
		redis.call('ZADD', turns_key, now_us, '')
	end
	take()

	-- Adds to the fields of `parked` that are set and deleted.
	local function park(turn, set, deleted)
		if turn.is_kept_back and (turn.taken > 0 or not turn.was_parked) then
			set[#set + 1] = turn.name
			set[#set + 1] = text_of(now_us)
		elseif turn.was_parked and not turn.is_kept_back then
			deleted[#deleted + 1] = turn.name
		end
	end

	local due = {}
	for i, task in ipairs(tasks) do
		due[2 * i - 1], due[2 * i] = task[1], task[2]
	end
	return due, tasks, function(handled)
		local scores, gone, left, cut = {}, {}, {}, nil
		local set, deleted = {}, {}
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
			if turn.round then
				park(turn, set, deleted)
			end
		end
		if cut == '' then
			deleted[#deleted + 1] = CUT
		elseif cut then
			set[#set + 1] = CUT
			set[#set + 1] = cut
		end
		-- So few at a time as a call in Lua takes.
		local function write(command, key, values)
			for i = 1, #values, 1000 do
				local last = math.min(i + 999, #values)
				redis.call(command, key, unpack(values, i, last))
			end
		end
		write('ZADD', turns_key, scores)
		write('ZREM', turns_key, gone)
		write('HSET', parked_key, set)
		write('HDEL', parked_key, deleted)
	end
end
