-- with: hint group
-- Restores tasks as a listing returned them. ARGV: for each its mode (any, new, replace), key, time
-- when it is to be looked at, attempts begun, record and entry in `every` ("": none). Returns for
-- each 0, or -1: it exists, -2: it doesn't.
local group = grouping()
local answers = {}
local added = 0
local earliest

for i = 1, #ARGV - 2, 6 do
	local mode, key, score, attempts, record, every = unpack(ARGV, i, i + 5)
	local exists = redis.call('ZSCORE', KEYS[1], key)
	local answer = mode == 'new' and exists and -1 or
		mode == 'replace' and not exists and -2 or 0

	if answer == 0 then
		local due = tonumber(score)

		group.leave(key, exists)
		group.set_due(key, due, record)
		redis.call('HSET', KEYS[2], key, record)
		redis.call('HDEL', KEYS[3], key)
		redis.call('HDEL', KEYS[7], key)
		if attempts ~= '0' then
			redis.call('HSET', KEYS[3], key, attempts)
		end
		if every ~= '' then
			redis.call('HSET', KEYS[7], key, every)
		end
		added = added + 1
		if not earliest or due < earliest then
			earliest = due
		end
	end
	answers[#answers + 1] = answer
end
if earliest then
	-- Another program may have written there; tasks are restored all the same.
	redis.call('INCRBY', KEYS[9], added)
	hint(earliest)
end
return answers
