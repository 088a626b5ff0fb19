-- Turns, by deficit round robin (Shreedhar and Varghese, 1995): of groups, with the namespace's own
-- tasks as the group '', and in a group that has users of these. A turn gives as many tasks as the
-- weight says. Who has something due stands by the last turn or, if there was none since it was
-- idle, by when the first task was due: so it comes before all that had a turn since then, once.
--
-- Returns up to `most` tasks in the order of turns: keys and due times as ZRANGEBYSCORE returns
-- them, the place of each in `queue`, and a function that takes the first `handled` of these tasks
-- out of `queue` and writes when all have their next turns. `own` are the first `most` and one of
-- the namespace's own due tasks. `permits` has how many tasks may begin of each group and user with
-- limits (nil: limits are ignored). One that lacks permits is kept back for 10 s, or until a claim
-- has some, and then comes first. It is returned in a list of at most 100: its path, and how many
-- more of it may be due; others are left where they are, for the next claim. One that is paused is
-- kept back for 10 s, too. Needs rules and group.
local function turns_claim(own, most, permits)
	local queue_key, turns_key, order_key, users_key, groups_key = unpack(KEYS, 10, 14)
	local has_users = redis.call('EXISTS', users_key) == 1
	local rule_of = redis.call('EXISTS', groups_key) == 1 and rules(groups_key)
	local rotations, take = {}, nil
	local lacks, lack_of = {}, {}
	local texts, now_digits = {}, string.format('%015d', now)

	-- Returns a number as text: Redis would print it as one with a fraction.
	local function text_of(number)
		texts[number] = texts[number] or string.format('%d', number)
		return texts[number]
	end

	-- Returns a rotation of the users of a group, or (nil) of the groups. From `at` on,
	-- `active` has those whose turn comes in this round; `kept` those that have more after it.
	local function rotation_new(group)
		local rotation = {group = group, all = {}, active = {}, kept = {}, at = 1,
			round = 1}
		rotations[#rotations + 1] = rotation
		return rotation
	end

	-- Notes how many tasks a turn lacks permits for, in itself and in its group.
	local function lack(turn, count)
		if turn.parent then
			lack(turn.parent, count)
		end
		if turn.allowed < math.huge then
			local at = lack_of[turn.path]
			if at then
				lacks[at + 1] = lacks[at + 1] + count
			else
				lack_of[turn.path] = #lacks + 1
				lacks[#lacks + 1] = turn.path
				lacks[#lacks + 1] = count
			end
		end
	end

	-- Keeps back a turn that may take no more, though more is due.
	local function starve(turn)
		local count = most
		-- There must be room for the turn and its group.
		if #lacks > 196 and not lack_of[turn.path] then
			turn.round = turn.taken > 0 and turn.round or nil
			return
		end
		if not turn.rotation then
			count = redis.call('ZLEXCOUNT', queue_key, '[' .. turn.path .. '\0',
				'(' .. turn.path .. '\0' .. string.format('%015d', now + 1))
				- turn.taken
		end
		lack(turn, count)
		turn.following = now + 10000
	end

	-- Appends up to `count` of those that have a turn by now and are not in the rotation yet.
	local function load(rotation, count)
		local names, paths = {}, {}
		if #rotation.all > 1000 then
			-- The others have their turns in the next claim.
			rotation.is_whole = true
			return
		end
		if rotation.group then
			local start = rotation.group .. '\0'
			local found = redis.call('ZRANGEBYLEX', order_key,
				rotation.last or '[' .. start,
				'[' .. start .. string.format('%016d', now_us) .. '\255',
				'LIMIT', '0', text_of(count))
			for i, member in ipairs(found) do
				names[i] = string.sub(member, #start + 17)
				paths[i] = rotation.group .. '/' .. names[i]
				rotation.last = '(' .. member
			end
		else
			names = redis.call('ZRANGEBYSCORE', turns_key, '-inf', text_of(now_us),
				'LIMIT', text_of(#rotation.all), text_of(count))
			paths = names
		end
		rotation.is_whole = #names < count
		if #names == 0 then
			return
		end
		local own_rules = rule_of and
			redis.call('HMGET', groups_key, '/' .. (rotation.group or ''),
				unpack(paths)) or {}
		local users = has_users and not rotation.group and
			redis.call('HMGET', users_key, unpack(names)) or {}
		local spent, cut = string.match(own_rules[1] or '', '^(%d+) (.*)$')
		for i, name in ipairs(names) do
			local rule = rule_of and rule_of(paths[i], own_rules[i + 1])
			local weight = rule and rule.weight or 1
			local turn = {name = name, path = paths[i], weight = weight,
				taken = 0, left = 0, was_cut = cut == name,
				spent = cut == name and spent % weight or 0,
				allowed = rule and rule.is_limited and permits and
					(permits[paths[i]] or 0) or math.huge,
				is_paused = rule and rule.is_paused}
			if rotation.group and name == '' then
				turn.path = rotation.group
			end
			turn.own = turn.path == '' and own
			turn.rotation = users[i] and rotation_new(name)
			turn.parent = rotation.turn
			if turn.rotation then
				turn.rotation.turn = turn
			end
			rotation.all[#rotation.all + 1] = turn
			if turn.path ~= '' or #own > 0 then
				rotation.active[#rotation.active + 1] = turn
			end
		end
	end

	-- Appends up to `count` due tasks of a turn that is of one group or user. turn.following
	-- becomes the due time of the next.
	local function take_tasks(turn, count, tasks)
		turn.following = nil
		if turn.own then
			for i = turn.taken + 1, math.min(turn.taken + count, #own / 2) do
				table.insert(tasks, {own[2 * i - 1], own[2 * i], turn = turn})
				turn.taken = i
			end
			turn.following = own[2 * turn.taken + 1] and now
			return
		end
		local start = #turn.path + 2
		local found = redis.call('ZRANGEBYLEX', queue_key,
			turn.last or '[' .. turn.path .. '\0', '(' .. turn.path .. '\1',
			'LIMIT', '0', text_of(count + 1))
		local taken = 0
		for i, place in ipairs(found) do
			local digits = string.sub(place, start, start + 14)
			if i > count or digits > now_digits then
				turn.following = tonumber(digits)
				break
			end
			taken = i
			tasks[#tasks + 1] = {string.sub(place, start + 15),
				string.match(digits, '^0*(%d+)'), place, turn = turn}
		end
		turn.taken = turn.taken + taken
		turn.last = taken > 0 and '(' .. found[taken] or turn.last
	end

	-- Gives the turn up to `count` tasks. Returns whether more of it is due.
	local function turn_take(turn, count, tasks, round)
		local before = #tasks
		turn.was_served_before = turn.was_served_before or turn.round and turn.round < round
		turn.round = round
		count = turn.is_paused and 0 or math.min(count, turn.allowed - turn.taken)
		if turn.rotation then
			take(turn.rotation, count, tasks)
			turn.taken = turn.taken + #tasks - before
			turn.following = turn.rotation.following
		else
			take_tasks(turn, count, tasks)
		end
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
	local function whole_rounds(active, count)
		local sum = 0
		for _, turn in ipairs(active) do
			sum = turn.spent == 0 and sum + turn.weight or math.huge
		end
		return math.floor(count / sum)
	end

	-- Gives each of a rotation the tasks of some whole rounds, which all can be loaded for.
	local function take_rounds(rotation, rounds, tasks)
		local blocks, still = {}, {}
		for i, turn in ipairs(rotation.active) do
			blocks[i] = {turn = turn}
			if turn_take(turn, rounds * turn.weight, blocks[i], rotation.round) and
					#blocks[i] > 0 then
				still[#still + 1] = turn
			end
		end
		for round = 1, rounds do
			for _, block in ipairs(blocks) do
				local weight = block.turn.weight
				local last = math.min(round * weight, #block)
				for i = (round - 1) * weight + 1, last do
					tasks[#tasks + 1] = block[i]
				end
			end
		end
		rotation.active, rotation.kept = {}, still
	end

	local function has_more(rotation)
		return rotation.at <= #rotation.active or #rotation.kept > 0
	end

	-- Appends up to `count` tasks by turns. rotation.following becomes when the next is due.
	function take(rotation, count, tasks)
		local last = #tasks + count
		while #tasks < last do
			if rotation.at > #rotation.active and not rotation.is_whole then
				load(rotation, last - #tasks + 1)
			end
			if rotation.at > #rotation.active then
				if #rotation.kept == 0 then
					break
				end
				rotation.active, rotation.kept, rotation.at = rotation.kept, {}, 1
				rotation.round = rotation.round + 1
			end
			local rounds = rotation.at == 1 and rotation.is_whole and
				whole_rounds(rotation.active, last - #tasks) or 0
			if rounds > 0 then
				take_rounds(rotation, rounds, tasks)
			else
				local turn, before = rotation.active[rotation.at], #tasks
				local goes_on = turn_take(turn, math.min(turn.weight - turn.spent,
					last - before), tasks, rotation.round)
				turn.spent = turn.spent + #tasks - before
				-- One that gave nothing has nothing more for this claim.
				goes_on = goes_on and #tasks > before
				if goes_on and turn.spent == turn.weight then
					rotation.kept[#rotation.kept + 1] = turn
				end
				if not goes_on or turn.spent == turn.weight then
					turn.spent = 0
					rotation.at = rotation.at + 1
				end
			end
		end
		if not has_more(rotation) and not rotation.is_whole then
			load(rotation, 1)
		end
		rotation.following = has_more(rotation) and now or nil
		if not rotation.following and rotation.group then
			local start = rotation.group .. '\0'
			local next = redis.call('ZRANGEBYLEX', order_key,
				rotation.last or '[' .. start, '(' .. rotation.group .. '\1',
				'LIMIT', '0', '1')[1]
			local earliest = next and
				math.ceil(string.sub(next, #start + 1, #start + 16) / 1000)
			for _, turn in ipairs(rotation.all) do
				if turn.following and turn.following < (earliest or math.huge) then
					earliest = turn.following
				end
			end
			rotation.following = earliest
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
	for path in pairs(permits or {}) do
		group.wake(path)
	end
	local own_turn = #own > 0 and redis.call('ZSCORE', turns_key, '')
	if own_turn and tonumber(own_turn) > now_us then
		-- The server's clock was set back.
		redis.call('ZADD', turns_key, now_us, '')
	end
	local tasks = {}
	local groups = rotation_new()
	take(groups, most, tasks)

	local due, places = {}, {}
	for i, task in ipairs(tasks) do
		due[2 * i - 1], due[2 * i], places[i] = task[1], task[2], task[3]
	end
	return due, places, lacks, function(handled)
		local scores, gone, leave, enter, turns, users = {}, {}, {}, {}, {}, {}
		local left = {}
		for i = 1, handled do
			left[#left + 1] = tasks[i][3]
		end
		if #left > 0 then
			redis.call('ZREM', queue_key, unpack(left))
		end
		for i = handled + 1, #tasks do
			local turn = tasks[i].turn
			while turn do
				turn.left = turn.left + 1
				turn = turn.parent
			end
		end
		for _, rotation in ipairs(rotations) do
			local cut
			-- They keep their order: each has a microsecond of its own.
			local last = #rotation.active + #rotation.kept
			for i = rotation.at, #rotation.active do
				rotation.active[i].behind = last - i
			end
			for i, turn in ipairs(rotation.kept) do
				turn.behind = #rotation.kept - i
			end
			for _, turn in ipairs(rotation.all) do
				local next = turn_next(turn)
				local group = rotation.group
				if turn.spent > 0 and turn.round then
					cut = string.format('%d %s', turn.spent, turn.name)
				elseif turn.was_cut and turn.round then
					cut = cut or ''
				end
				if next and not group then
					if next == -1 then
						gone[#gone + 1] = turn.name
						if turn.rotation then
							users[#users + 1] = turn.name
						end
					else
						scores[#scores + 1] = string.format('%d', next)
						scores[#scores + 1] = turn.name
					end
				elseif next then
					local path = group .. '/' .. turn.name
					local text = string.format('%016d',
						math.min(next, 9000000000000000))
					leave[#leave + 1] = group .. '\0' ..
						redis.call('HGET', users_key, path) .. turn.name
					if next == -1 then
						users[#users + 1] = path
					else
						enter[#enter + 1] = '0'
						enter[#enter + 1] = group .. '\0' .. text ..
							turn.name
						turns[#turns + 1] = path
						turns[#turns + 1] = text
					end
				end
			end
			if cut == '' then
				redis.call('HDEL', groups_key, '/' .. (rotation.group or ''))
			elseif cut then
				redis.call('HSET', groups_key, '/' .. (rotation.group or ''), cut)
			end
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
		write('ZREM', order_key, leave)
		write('ZADD', order_key, enter)
		write('HSET', users_key, turns)
		write('HDEL', users_key, users)
	end
end
