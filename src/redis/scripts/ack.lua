-- with: hint group again
-- Takes out tasks that are done. ARGV: how many, then their keys, then their runs
-- ("attempt:token"). Answers a letter for each: o done, g gone, s stale: the lease is another's.
local count = tonumber(ARGV[1])
local runs = redis.call('HMGET', KEYS[3], unpack(ARGV, 2, count + 1))
local answers
local mine = {}

for i = 1, count do
	if runs[i] == ARGV[count + 1 + i] then
		mine[#mine + 1] = ARGV[i + 1]
	else
		answers = answers or {}
		answers[i] = redis.call('ZSCORE', KEYS[1], ARGV[i + 1]) and 's' or 'g'
	end
end
if #mine > 0 and redis.call('EXISTS', KEYS[7]) == 1 then
	local last = {}

	local done = {}

	for _, key in ipairs(mine) do
		if not done[key] and not again(key) then
			last[#last + 1] = key
		end
		done[key] = true
	end
	mine = last
end
if #mine > 0 then
	redis.call('ZREM', KEYS[1], unpack(mine))
	redis.call('HDEL', KEYS[2], unpack(mine))
	redis.call('HDEL', KEYS[3], unpack(mine))
end
if not answers then
	return string.rep('o', count)
end
for i = 1, count do
	answers[i] = answers[i] or 'o'
end
return table.concat(answers)
