-- Turns of groups, by deficit round robin (Shreedhar and Varghese, 1995), with the namespace's own
-- tasks as the group ''. A turn gives as many tasks as the weight says. A group that has something
-- due stands by the last turn or, if there was none since it was idle, by when the first task was
-- due: so it comes before all that had a turn since then, once.
--
-- Returns up to `most` tasks in the order of turns: keys and due times as ZRANGEBYSCORE returns
-- them, the tasks with their places in `queue` and their turns, and a function that takes the first
-- `handled` of these tasks out of `queue` and writes when all have their next turns. `own` are the
-- first `most` and one of the namespace's own due tasks. `limits` are the functions of limits, or
-- false. A group that may begin no more is kept back until a place is free, its rate allows one, or
-- for 10 s. Needs group.
local CUT = '\n' -- the field of `parked` that has a turn that was cut short, as "3 NAME"
local function turns_claim(own, most, limits)
	local queue_key, turns_key, parked_key = unpack(KEYS, 10, 12)
	local now_digits = string.format('%015d', now)
	-- `all` are the turns that were loaded, `active` those that have more for this claim.
	local tasks, all, active, is_whole = {}, {}, {}, false

	-- Returns a number as text: Redis would print it as one with a fraction.
	local function text_of(number)
		return string.format('%d', number)
	end

	local own_turn = #own > 0 and redis.call('ZSCORE', turns_key, '')
	if own_turn and tonumber(own_turn) > now_us then
		-- The server's clock was set back.
		redis.call('ZADD', turns_key, now_us, '')
	end
	local has_parked = redis.call('EXISTS', parked_key) == 1

	-- Returns up to `count` of the turns that have come and are not in `all` yet.
	local function load(count)
		local names = redis.call('ZRANGEBYSCORE', turns_key, '-inf', text_of(now_us),
			'LIMIT', text_of(#all), text_of(count))
		local parked = has_parked and
			redis.call('HMGET', parked_key, CUT, unpack(names)) or {}
		local rules = limits and redis.call('HMGET', KEYS[6], '*', unpack(names)) or {}
		local spent, cut = string.match(parked[1] or '', '^(%d+) (.*)$')
		local loaded = {}

		-- After a thousand the others have their turns in the next claim.
		is_whole = #names < count or #all + #names > 1000
		for i, name in ipairs(names) do
			local turn = {name = name, own = name == '' and own, weight = 1, taken = 0,
				left = 0, allowed = math.huge, was_parked = parked[i + 1]}
			if limits and name ~= '' then
				local rule = limits.rule(rules[i + 1] or rules[1])
				turn.weight = rule.weight
				turn.allowed, turn.again = limits.allowed(name, rule)
			end
			turn.was_cut = cut == name
			turn.spent = turn.was_cut and spent % turn.weight or 0
			all[#all + 1] = turn
			if name ~= '' or #own > 0 then
				loaded[#loaded + 1] = turn
			end
		end
		return loaded
	end

	-- Returns up to `count` due tasks of a turn. turn.following becomes the next due time.
	local function take_due(turn, count)
		local list = {}
		turn.following = nil
		if turn.own then
			for i = turn.taken + 1, math.min(turn.taken + count, #own / 2) do
				list[#list + 1] = {own[2 * i - 1], own[2 * i], turn = turn}
			end
			turn.following = own[2 * (turn.taken + #list) + 1] and now
			return list
		end
		local start = #turn.name + 2
		local found = redis.call('ZRANGEBYLEX', queue_key,
			turn.last or '[' .. turn.name .. '\0', '(' .. turn.name .. '\1',
			'LIMIT', '0', text_of(count + 1))
		for i, place in ipairs(found) do
			local digits = string.sub(place, start, start + 14)
			if i > count or digits > now_digits then
				turn.following = tonumber(digits)
				break
			end
			list[i] = {string.sub(place, start + 15), string.match(digits, '^0*(%d+)'),
				place, turn = turn}
			turn.last = '(' .. place
		end
		return list
	end

	-- Gives a turn its tasks of some rounds. Returns these, and whether more of it is due.
	local function turn_take(turn, rounds, room)
		local list = take_due(turn, math.min(rounds * turn.weight - turn.spent, room,
			turn.allowed - turn.taken))
		local goes_on = turn.following and turn.following <= now

		turn.served = (turn.served or 0) + 1
		turn.taken = turn.taken + #list
		turn.is_kept_back = goes_on and turn.taken == turn.allowed
		goes_on = goes_on and not turn.is_kept_back and #list > 0
		turn.spent = goes_on and (turn.spent + #list) % turn.weight or 0
		return list, goes_on
	end

	-- Gives each active turn its tasks of some whole rounds, or the rest of one. Those of one
	-- round come before those of the next. The turns `kept` come before the next round.
	local function take_rounds(kept)
		local room, sum = most - #tasks, #kept > 0 and math.huge or 0
		for _, turn in ipairs(active) do
			sum = turn.spent == 0 and sum + turn.weight or math.huge
		end
		local rounds = is_whole and #active > 0 and math.max(1, math.floor(room / sum)) or 1
		local blocks, still = {}, {}
		for i, turn in ipairs(active) do
			local goes_on = true
			if room > 0 then
				blocks[i], goes_on = turn_take(turn, rounds, room)
				room = room - #blocks[i]
			end
			if goes_on then
				local is_next = not blocks[i] or turn.spent > 0
				table.insert(is_next and still or kept, turn)
			end
		end
		for k = 1, rounds do
			for i, block in ipairs(blocks) do
				local weight = active[i].weight
				for at = (k - 1) * weight + 1, math.min(k * weight, #block) do
					tasks[#tasks + 1] = block[at]
				end
			end
		end
		for _, turn in ipairs(kept) do
			still[#still + 1] = turn
		end
		active = still
	end

	-- Returns when the next turn is, nil: it has that already, or -1: never.
	local function turn_next(turn, is_kept_back)
		if turn.left > 0 and turn.left == turn.taken or
				turn.spent > 0 and turn.served == 1 then
			return nil
		elseif is_kept_back then
			return turn.again
		elseif turn.left > 0 or turn.following and turn.following <= now then
			return now_us - (turn.behind or 0)
		elseif turn.own then
			return now_us
		end
		return turn.following and turn.following * 1000 or -1
	end

	while #tasks < most and (#active > 0 or not is_whole) do
		local kept = {}
		if not is_whole then
			kept, active = active, load(most - #tasks + 1)
		end
		take_rounds(kept)
	end
	local due = {}
	for i, task in ipairs(tasks) do
		due[2 * i - 1], due[2 * i] = task[1], task[2]
	end
	return due, tasks, function(handled)
		local scores, gone, taken, set, deleted = {}, {}, {}, {}, {}
		for i, task in ipairs(tasks) do
			if i <= handled then
				taken[#taken + 1] = task[3]
			else
				task.turn.left = task.turn.left + 1
			end
		end
		-- They keep their order: each has a microsecond of its own.
		for i, turn in ipairs(active) do
			turn.behind = #active - i
		end
		for _, turn in ipairs(all) do
			-- Some that it gave may not have begun.
			local is_kept_back = turn.is_kept_back and turn.left == 0
			local next = turn.served and turn_next(turn, is_kept_back)
			if next == -1 then
				gone[#gone + 1] = turn.name
			elseif next then
				scores[#scores + 1] = text_of(next)
				scores[#scores + 1] = turn.name
			end
			if turn.served and turn.spent > 0 then
				set[#set + 1] = CUT
				set[#set + 1] = text_of(turn.spent) .. ' ' .. turn.name
			elseif turn.served and turn.was_cut then
				deleted[#deleted + 1] = CUT
			end
			if is_kept_back and (turn.taken > 0 or not turn.was_parked) then
				set[#set + 1] = turn.name
				set[#set + 1] = text_of(now_us)
			elseif turn.served and turn.was_parked and not is_kept_back then
				deleted[#deleted + 1] = turn.name
			end
		end
		-- What was cut short is deleted before it is set.
		for _, change in ipairs({{'ZREM', queue_key, taken}, {'ZADD', turns_key, scores},
				{'ZREM', turns_key, gone}, {'HDEL', parked_key, deleted},
				{'HSET', parked_key, set}}) do
			local command, key, values = unpack(change)
			if #values > 0 then
				redis.call(command, key, unpack(values))
			end
		end
	end
end
