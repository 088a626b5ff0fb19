-- with: read
-- ARGV: from which due time on, how many of that time to leave out, limit. Answers now, then key,
-- due time, run ("" if none), record and recurrence ("" if none) of each.
local found = read('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', ARGV[2],
	ARGV[3])
local keys, reply = {}, {now}

if #found == 0 then
	return reply
end
for i = 1, #found, 2 do
	keys[#keys + 1] = found[i]
end
local records = read('HMGET', KEYS[2], unpack(keys))
local runs = read('HMGET', KEYS[3], unpack(keys))
local every = read('HMGET', KEYS[7], unpack(keys))
for i, key in ipairs(keys) do
	local n = #reply
	reply[n + 1] = key
	reply[n + 2] = found[2 * i]
	reply[n + 3] = runs[i] or ''
	reply[n + 4] = records[i] or ''
	reply[n + 5] = every[i] or ''
end
return reply
