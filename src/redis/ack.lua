-- Takes out tasks that are done. ARGV: how many, then key and run ("attempt:token") of each.
-- Answers a letter for each: o done, g gone, s stale: the lease is another's.
local count = tonumber(ARGV[1])
local keys, mine, answers = {}, {}, {}

for i = 1, count do
	keys[i] = ARGV[2 * i]
end
local runs = redis.call('HMGET', KEYS[3], unpack(keys))
for i = 1, count do
	if runs[i] == ARGV[2 * i + 1] then
		mine[#mine + 1] = keys[i]
		answers[i] = 'o'
	else
		answers[i] = redis.call('ZSCORE', KEYS[1], keys[i]) and 's' or 'g'
	end
end
if #mine > 0 then
	redis.call('ZREM', KEYS[1], unpack(mine))
	redis.call('HDEL', KEYS[2], unpack(mine))
	redis.call('HDEL', KEYS[3], unpack(mine))
end
return table.concat(answers)
