-- with: hint group
-- Gives back what was not begun, or is to run later: the attempt does not count. ARGV: how many,
-- their keys, their runs, and their waits in milliseconds until each is due again. A negative wait
-- is rounded up to a time that others of its shard have, too. Answers as ack does.
local group = grouping()
local has_groups = group.is_used()
local count = tonumber(ARGV[1])
local runs = redis.call('HMGET', KEYS[3], unpack(ARGV, 2, count + 1))
local answers, scores, states, fresh = {}, {}, {}, {}
local earliest

for i = 1, count do
	local key, run, wait = ARGV[1 + i], runs[i], tonumber(ARGV[1 + 2 * count + i])
	if run ~= ARGV[1 + count + i] then
		answers[i] = redis.call('ZSCORE', KEYS[1], key) and 's' or 'g'
	else
		local attempts = tonumber(string.match(run, '^%d+')) - 1
		-- As fail does.
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
		answers[i] = 'o'
		earliest = math.min(due, earliest or due)
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
return table.concat(answers)
