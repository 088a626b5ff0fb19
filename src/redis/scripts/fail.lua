-- with: hint group again bury
-- Ends runs of tasks that are to run later. ARGV: how many, their keys, their runs, their waits in
-- milliseconds until the next attempt. Failed runs also have their reasons, and the age and the
-- number of dead letters that may stay (trim); a wait of -1 makes a dead letter. Without reasons
-- the attempt does not count, and a negative wait is rounded up to a time that others of the shard
-- have, too. Answers as ack does.
local group = grouping()
local has_groups = group.is_used()
local count = tonumber(ARGV[1])
local counts = #ARGV > 3 * count + 3
local runs = redis.call('HMGET', KEYS[3], unpack(ARGV, 2, count + 1))
local answers, scores, states, fresh = {}, {}, {}, {}
local done = {}
local earliest

for i = 1, count do
	local key, run, wait = ARGV[1 + i], runs[i], tonumber(ARGV[1 + 2 * count + i])
	if done[key] or run ~= ARGV[1 + count + i] then
		answers[i] = redis.call('ZSCORE', KEYS[1], key) and 's' or 'g'
	else
		local attempts = tonumber(string.match(run, '^%d+')) - (counts and 0 or 1)
		done[key] = counts
		answers[i] = 'o'
		if counts and wait == -1 then
			bury(key, attempts, redis.call('HGET', KEYS[2], key) or '',
				ARGV[1 + 3 * count + i])
		else
			-- Rounded up, as due_time: never a fraction of a millisecond early.
			local due = wait == 0 and now or math.ceil(now_us / 1000) + math.abs(wait)
			if wait < 0 then
				local apart = wait < -4096 and 1024 or 256
				due = math.ceil(due / apart) * apart
			end
			if has_groups then
				group.set_due(key, due)
			else
				scores[#scores + 1] = string.format('%d', due)
				scores[#scores + 1] = key
			end
			if attempts > 0 then
				states[#states + 1] = key
				states[#states + 1] = attempts
			else
				fresh[#fresh + 1] = key
			end
			earliest = math.min(due, earliest or due)
		end
	end
end
if earliest then
	if #scores > 0 then
		redis.call('ZADD', KEYS[1], unpack(scores))
	end
	if #states > 0 then
		redis.call('HSET', KEYS[3], unpack(states))
	end
	if #fresh > 0 then
		redis.call('HDEL', KEYS[3], unpack(fresh))
	end
	hint(earliest)
end
if counts then
	trim(ARGV[2 + 4 * count], ARGV[3 + 4 * count])
end
return table.concat(answers)
