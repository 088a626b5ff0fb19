-- with: rules permits
-- As permit.lua, for groups. ARGV: the worker's name, for how many milliseconds its word is good,
-- and for each its name, how many it has, wants more, and did not begin. Answers both numbers of
-- each. "running/GROUP" has what workers have of a group; it expires with their words, and when the
-- bucket is full again.
local tag = string.sub(KEYS[1], 1, -7)
local name, good_for = ARGV[1], tonumber(ARGV[2])
local answers = {}

for i = 3, #ARGV, 4 do
	local running = tag .. 'running/' .. ARGV[i]
	local rule = rule_read(redis.call('HGET', tag .. 'groups', ARGV[i]))
	local given, wait = -1, -1

	if rule.is_limited then
		given, wait = permit(rule, running, running, name, good_for,
			tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]))
		redis.call('PEXPIRE', running, string.format('%d', math.max(good_for,
			rule.rate > 0 and 1000 + rule.burst / rule.rate * 1000 or 0)))
	else
		redis.call('DEL', running)
	end
	answers[#answers + 1] = given
	answers[#answers + 1] = wait
end
return answers
