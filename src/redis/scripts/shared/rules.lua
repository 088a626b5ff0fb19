-- The rules of groups, which group_rule.lua writes: "weight running rate burst paused" of the group
-- or pattern that is the field, 0 where it says nothing. The field '//' has those of patterns, a
-- line each, the longest pattern first; in one, * stands for any text without a slash.
--
-- Returns a function that returns the rule of a path, whose own text it is given: what that says
-- goes before what patterns say, the longest first. A user without a name, which stands for the
-- own tasks of its tenant, has no rule.
local function rules(key)
	local patterns
	local function read_patterns()
		patterns = {}
		for text, pattern in string.gmatch(redis.call('HGET', key, '//') or '',
				'(%d+ %d+ %d+ %d+ %d+) ([^\n]+)\n') do
			local escaped = string.gsub(pattern, '[^%w*]', '%%%0')
			patterns[#patterns + 1] = {text = text,
				match = '^' .. string.gsub(escaped, '%*', '[^/]*') .. '$'}
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
			for _, pattern in ipairs(patterns) do
				if string.find(path, pattern.match) then
					add(pattern.text)
				end
			end
		end
		-- 4294967295 is no limit, which goes before one of a pattern.
		for i = 2, 3 do
			rule[i] = rule[i] < 4294967295 and rule[i] or 0
		end
		return {weight = math.max(rule[1], 1), running = rule[2], rate = rule[3],
			burst = rule[4], paused = rule[5] > 0,
			is_limited = rule[2] + rule[3] > 0}
	end
end
