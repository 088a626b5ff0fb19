-- Adds tasks, one after the other. ARGV: for each its mode (any, new, replace), key, at, delay and
-- record. Answers for each its due time, or -1: it exists, -2: it doesn't.
local answers, added = {}, {}
local earliest

local function add(mode, key, due, record)
	-- As text: Redis would print a number as one with a fraction, which takes longer.
	local score = string.format('%d', due)

	if mode == 'new' then
		if redis.call('ZADD', KEYS[1], 'NX', score, key) == 0 then
			return -1
		end
	else
		if mode == 'replace' and not redis.call('ZSCORE', KEYS[1], key) then
			return -2
		end
		if redis.call('ZADD', KEYS[1], score, key) == 0 then
			redis.call('HDEL', KEYS[3], key)
		end
	end
	redis.call('HSET', KEYS[2], key, record)
	earliest = math.min(due, earliest or due)
	return due
end

for i = 1, #ARGV - 2, 5 do
	answers[#answers + 1] = add(ARGV[i], ARGV[i + 1], due_time(ARGV[i + 2], ARGV[i + 3]),
		ARGV[i + 4])
end
if earliest then
	hint_if_first(earliest)
end
return answers
