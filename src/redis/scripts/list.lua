-- ARGV: from which due time on, how many of that time to leave out, limit. Answers now, 1 if
-- there are more, then key, due time, run ("" if none), record and recurrence ("" if none) of
-- each. It ends once the records exceed 512 KiB.
local found = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', ARGV[2],
	ARGV[3])
local keys, reply = {}, {now, 0}
local bytes, first, records, runs, every = 0, 1

for i = 1, #found, 2 do
	keys[#keys + 1] = found[i]
end
for i, key in ipairs(keys) do
	if bytes > 524288 then
		reply[2] = 1
		return reply
	end
	if i % 20 == 1 then
		first = i
		records = redis.call('HMGET', KEYS[2], unpack(keys, i, math.min(i + 19, #keys)))
		runs = redis.call('HMGET', KEYS[3], unpack(keys, i, math.min(i + 19, #keys)))
		every = redis.call('HMGET', KEYS[7], unpack(keys, i, math.min(i + 19, #keys)))
	end
	local n, at = #reply, i - first + 1
	reply[n + 1] = key
	reply[n + 2] = found[2 * i]
	reply[n + 3] = runs[at] or ''
	reply[n + 4] = records[at] or ''
	reply[n + 5] = every[at] or ''
	bytes = bytes + #reply[n + 4]
end
reply[2] = #keys == tonumber(ARGV[3]) and 1 or 0
return reply
