-- The rules of groups, which group_rule.lua writes: "weight running rate burst paused" of the group
-- or pattern that is the field, 0 where it says nothing. The field '//' has those of patterns, a
-- line each, the longest pattern first; in each of its names one * stands for any text.
--
-- Returns a function that returns the rule of a path, whose own text it is given: what that says
-- goes before what patterns say, the longest first. A user without a name, which stands for the
-- own tasks of its tenant, has no rule.
local function rules(key)
	local patterns
	-- Appends the pattern of a name, or of a group and a user: what is before and after a star.
	local function read_pattern(text, pattern)
		local parts = {text = text}
		for name in string.gmatch(pattern, '[^/]+') do
			local before, after = string.match(name, '^([^*]*)%*(.*)$')
			parts[#parts + 1] = {before or name, after}
		end
		patterns[#patterns + 1] = parts
	end
	local function fits(part, name)
		local before, after = part[1], part[2]
		if not after then
			return name == before
		end
		return #name >= #before + #after and string.sub(name, 1, #before) == before and
			(after == '' or string.sub(name, -#after) == after)
	end
	local function fits_all(parts, group, user)
		return #parts == (user and 2 or 1) and fits(parts[1], group) and
			(not user or fits(parts[2], user))
	end
	local function read_patterns()
		patterns = {}
		for text, pattern in string.gmatch(redis.call('HGET', key, '//') or '',
				'(%d+ %d+ %d+ %d+ %d+) ([^\n]+)\n') do
			read_pattern(text, pattern)
		end
	end
	return function(path, own)
		local rule = {0, 0, 0, 0, 0}
		local function add(text)
			local i = 1
			for number in string.gmatch(text, '%d+') do
				if rule[i] == 0 then
					rule[i] = tonumber(number)
				end
				i = i + 1
			end
		end
		if own then
			add(own)
		end
		if not patterns then
			read_patterns()
		end
		if path ~= '' and string.sub(path, -1) ~= '/' then
			local group, user = string.match(path, '^([^/]*)/?(.*)$')
			user = user ~= '' and user or nil
			for _, pattern in ipairs(patterns) do
				if fits_all(pattern, group, user) then
					add(pattern.text)
				end
			end
		end
		-- 4294967295 is no limit, which goes before one of a pattern.
		for i = 2, 4 do
			rule[i] = rule[i] < 4294967295 and rule[i] or 0
		end
		return {weight = math.max(rule[1], 1), most = rule[2], rate = rule[3],
			burst = rule[4], is_paused = rule[5] > 0,
			is_limited = rule[2] + rule[3] > 0}
	end
end
