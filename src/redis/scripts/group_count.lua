-- ARGV: names of groups, each followed by a newline. Answers of each how many of its tasks wait,
-- and the due time of the first of these or 0.
local queue = KEYS[10]
local reply = {}

for name in string.gmatch(ARGV[1], '([^\n]*)\n') do
	local from, to = '[' .. name .. '\0', '(' .. name .. '\1'
	local first = redis.call('ZRANGEBYLEX', queue, from, to, 'LIMIT', 0, 1)[1]
	local due = string.sub(first or '', #name + 2, #name + 16)
	reply[#reply + 1] = first and redis.call('ZLEXCOUNT', queue, from, to) or 0
	reply[#reply + 1] = tonumber(due) or 0
end
return reply
