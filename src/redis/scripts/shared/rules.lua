-- The rules of groups, which group_rule.lua writes: a hash of each group to its "weight running
-- rate burst paused", 0 for what is not limited. The field CUT, which is no group's name, has a
-- turn that was cut short, as "3 NAME" (turns.lua).
local CUT = '\n'

-- Reads a group's rule. Without one (nil) there is no limit.
local function rule_read(text)
	local weight, most, rate, burst, paused = string.match(text or '',
		'^(%d+) (%d+) (%d+) (%d+) (%d+)$')
	if not weight then
		return {weight = 1}
	end
	most, rate = tonumber(most), tonumber(rate)
	return {weight = math.max(tonumber(weight), 1), most = most, rate = rate,
		burst = tonumber(burst), is_paused = paused ~= '0', is_limited = most + rate > 0}
end
