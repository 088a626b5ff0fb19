-- Stands before every script. Of KEYS a script is given as many as it needs, in this order, all with
-- the hash tag of one shard:
--   1 due    sorted set: key of each task, by the millisecond when it is next to be looked at: its
--            due time, its next attempt, or the end of its lease
--   2 body   hash: key to record, which begins with the number of attempts that the task may have
--   3 run    hash: key to attempts begun; "3:17" is the third, on lease with token 17; none: 0
--   4 token  the last fencing token
--   5 dead   hash: key to "died:attempts:size of reason:reason" and the record
-- The last two ARGV are the channel for hints and the shard. Times are this server's, taken here.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- Milliseconds from now for which an earlier task is announced: workers look at every shard more
-- often than that, whatever they hear.
local HORIZON = 12000

-- Tells workers that the shard is to be looked at in so many microseconds.
local function hint(due)
	if due - now <= HORIZON then
		redis.call('PUBLISH', ARGV[#ARGV - 1], ARGV[#ARGV] .. ' ' ..
			string.format('%.0f', math.max(0, due * 1000 - now_us)))
	end
end

-- The same if nothing in the shard is to be looked at before that.
local function hint_if_first(due)
	if due - now <= HORIZON and redis.call('ZCOUNT', KEYS[1], '-inf', '(' ..
			string.format('%d', due)) == 0 then
		hint(due)
	end
end

-- When: at a time, or after a delay in microseconds, rounded up; the past is now.
local function due_time(at, delay)
	if at ~= '0' then
		return math.max(tonumber(at), now)
	end
	return math.max(math.ceil((now_us + delay) / 1000), now)
end

local function leased(run, score)
	return run and tonumber(score) > now and string.find(run, ':', 1, true)
end
