-- with: hint group
-- Sets the rule of a group or pattern, in a shard or among the namespace's own keys. ARGV: the
-- group or pattern, its rule, which is "0 0 0 0 0" to remove it, and how many patterns there may
-- be. Answers 0, or -1: there would be too many. rules.lua says how rules are kept.
local name, text, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local key = string.match(KEYS[1], '^.*}') .. 'groups'
local is_gone = text == '0 0 0 0 0'

if string.find(name, '*', 1, true) then
	local lines = {}
	for line, pattern in string.gmatch(redis.call('HGET', key, '//') or '',
			'(%d+ %d+ %d+ %d+ %d+ ([^\n]+)\n)') do
		if pattern ~= name then
			lines[#lines + 1] = line
		end
	end
	if not is_gone then
		if #lines >= most then
			return -1
		end
		lines[#lines + 1] = text .. ' ' .. name .. '\n'
	end
	local function size(line)
		return #string.match(line, '%d+ %d+ %d+ %d+ %d+ (.*)')
	end
	table.sort(lines, function(a, b)
		return size(a) > size(b) or size(a) == size(b) and a < b
	end)
	if #lines == 0 then
		redis.call('HDEL', key, '//')
	else
		redis.call('HSET', key, '//', table.concat(lines))
	end
elseif is_gone then
	redis.call('HDEL', key, name)
else
	redis.call('HSET', key, name, text)
end
-- What it kept back may go on. Of a pattern the groups come by themselves.
local group = string.sub(KEYS[1], -4) == '}due' and grouping()
if group and group.is_used() then
	group.wake(name)
	hint(now)
end
return 0
