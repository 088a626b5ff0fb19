-- with: hint group
-- Adds tasks, one after the other. ARGV: for each its mode (any, new, replace), key, at, delay and
-- record. Returns for each its due time, or -1: it exists, -2: it doesn't. This is the script that
-- runs most often, so it does without functions, unless the shard has groups.
local group = redis.call('EXISTS', KEYS[11]) == 1 and grouping()
local answers = {}
local added = 0
local earliest

for i = 1, #ARGV - 2, 5 do
	local mode, key, at, delay = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
	-- As due_time, which would cost 0.4 us of an add's 10.
	local due = at ~= '0' and tonumber(at) or delay == '0' and now or
		math.ceil((now_us + delay) / 1000)
	if due < now then
		due = now
	end
	-- As text: Redis would print a number as one with a fraction, which takes longer.
	local score, answer = string.format('%d', due), due

	if group and mode ~= 'new' then
		-- It may have a place in a group's queue.
		group.leave(key, redis.call('ZSCORE', KEYS[1], key))
	end
	if mode == 'new' then
		if redis.call('ZADD', KEYS[1], 'NX', score, key) == 0 then
			answer = -1
		end
	elseif mode == 'replace' and not redis.call('ZSCORE', KEYS[1], key) then
		answer = -2
	elseif redis.call('ZADD', KEYS[1], score, key) == 0 then
		redis.call('HDEL', KEYS[3], key)
		redis.call('HDEL', KEYS[7], key)
	end
	if answer > 0 then
		redis.call('HSET', KEYS[2], key, ARGV[i + 4])
		added = added + 1
		if not earliest or due < earliest then
			earliest = due
		end
	end
	answers[#answers + 1] = answer
end
if earliest then
	redis.call('INCRBY', KEYS[9], added)
	hint(earliest)
end
return answers
