-- with: hint group again bury
-- Ends failed runs. ARGV: how many, their keys, their runs, their waits in milliseconds until the
-- next attempt (-1: there is none, it is a dead letter), their reasons, and the age and the number
-- of dead letters that may stay (trim). Answers as ack does.
local group = grouping()
local has_groups = group.is_used()
local count = tonumber(ARGV[1])
local runs = redis.call('HMGET', KEYS[3], unpack(ARGV, 2, count + 1))
local answers, scores, states = {}, {}, {}
local done = {}
local earliest

for i = 1, count do
	local key, run, wait = ARGV[1 + i], runs[i], ARGV[1 + 2 * count + i]
	if done[key] or run ~= ARGV[1 + count + i] then
		answers[i] = redis.call('ZSCORE', KEYS[1], key) and 's' or 'g'
	else
		local attempts = tonumber(string.match(run, '^%d+'))
		done[key] = true
		answers[i] = 'o'
		if wait == '-1' then
			bury(key, attempts, redis.call('HGET', KEYS[2], key) or '',
				ARGV[1 + 3 * count + i])
		else
			-- Rounded up, as due_time: never a fraction of a millisecond early.
			local due = wait == '0' and now or math.ceil(now_us / 1000) + wait
			if has_groups then
				group.set_due(key, due)
			else
				scores[#scores + 1] = string.format('%d', due)
				scores[#scores + 1] = key
			end
			states[#states + 1] = key
			states[#states + 1] = attempts
			earliest = math.min(due, earliest or due)
		end
	end
end
if earliest then
	if #scores > 0 then
		redis.call('ZADD', KEYS[1], unpack(scores))
	end
	redis.call('HSET', KEYS[3], unpack(states))
	hint(earliest)
end
trim(ARGV[2 + 4 * count], ARGV[3 + 4 * count])
return table.concat(answers)
