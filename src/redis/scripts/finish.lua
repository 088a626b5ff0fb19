-- with: hint group limits
-- Ends runs of tasks. ARGV has of each a verb, the key, the run ("attempt:token"), and what the
-- verb takes:
--   d  done: nothing
--   n  done or passed over, and it recurs: when it is due next ("": never), and the time by which
--      that was computed
--   w  failed: the wait in milliseconds until the next attempt
--   r  given back, so that the attempt does not count: as w
--   k  failed for good: what n takes ("" if it does not recur), and the reason
-- Answers a letter for each: o ended, s another run has it, g there is no such task.
local TAKES = {d = 0, n = 2, w = 1, r = 1, k = 3}
local group = grouping()
local has_groups
local keys, places = {}, {}
local answers, gone, fresh, scores, states, ended = {}, {}, {}, {}, {}, {}
local last, at = #ARGV - 2, 1
local earliest

while at <= last do
	keys[#keys + 1] = ARGV[at + 1]
	places[#keys] = at
	at = at + 3 + TAKES[ARGV[at]]
end
local runs = redis.call('HMGET', KEYS[3], unpack(keys))

local function wait_until(key, due)
	if has_groups == nil then
		has_groups = group.is_used()
	end
	if has_groups then
		group.set_due(key, due)
	else
		scores[#scores + 1] = string.format('%d', due)
		scores[#scores + 1] = key
	end
	earliest = math.min(due, earliest or due)
end

-- Goes on with the next occurrence, or takes the task out. A time that was computed by a clock that
-- was ahead of this one is wrong: the worker that claims the task finds another (claim.lua).
local function go_on(key, next, computed)
	local rhythm = next ~= '' and string.match(redis.call('HGET', KEYS[7], key) or '',
		'^%d+ %d+ (.+)$')

	if not rhythm then
		redis.call('HDEL', KEYS[7], key)
		gone[#gone + 1] = key
		return
	end
	redis.call('HSET', KEYS[7], key, next .. ' ' .. computed .. ' ' .. rhythm)
	fresh[#fresh + 1] = key
	wait_until(key, tonumber(computed) > now + AHEAD and now or tonumber(next))
end

-- Keeps the record of a task that is given up as a dead letter. A recurring task goes on, so the
-- letter of this occurrence has a key of its own, KEY#due=TIME, which lies in the same shard
-- (space.c). Keys have at most 1024 bytes, so a longer one keeps only its last letter.
local function bury(key, attempts, reason)
	local record = redis.call('HGET', KEYS[2], key)
	local due = string.match(redis.call('HGET', KEYS[7], key) or '', '^%d+')
	local letter = due and #key <= 1000 and key .. '#due=' .. due or key

	if record then
		attempts = math.min(attempts, tonumber(string.match(record, '^%d+') or attempts))
		redis.call('HSET', KEYS[5], letter,
			string.format('%d:%d:%d:', now, attempts, #reason) .. reason .. record)
		redis.call('ZADD', KEYS[8], string.format('%d', now), letter)
	end
end

for i, key in ipairs(keys) do
	local place = places[i]
	local verb, run = ARGV[place], ARGV[place + 2]

	if runs[i] ~= run or ended[key] then
		answers[i] = redis.call('ZSCORE', KEYS[1], key) and 's' or 'g'
	elseif verb == 'd' then
		answers[i] = 'o'
		gone[#gone + 1] = key
	else
		local attempts = tonumber(string.match(run, '^%d+'))
		local wait = tonumber(ARGV[place + 3])

		answers[i] = 'o'
		ended[key] = verb ~= 'r'
		if verb == 'k' then
			bury(key, attempts, ARGV[place + 5])
		end
		if verb == 'k' or verb == 'n' then
			go_on(key, ARGV[place + 3], ARGV[place + 4])
		else
			-- Rounded up, as due_time: never a fraction of a millisecond early.
			local due = wait == 0 and now or math.ceil(now_us / 1000) + wait
			attempts = verb == 'r' and attempts - 1 or attempts
			if attempts > 0 then
				states[#states + 1] = key
				states[#states + 1] = attempts
			else
				fresh[#fresh + 1] = key
			end
			wait_until(key, due)
		end
	end
end
if #gone > 0 then
	redis.call('ZREM', KEYS[1], unpack(gone))
	redis.call('HDEL', KEYS[2], unpack(gone))
	redis.call('HDEL', KEYS[3], unpack(gone))
end
if #scores > 0 then
	redis.call('ZADD', KEYS[1], unpack(scores))
end
if #states > 0 then
	redis.call('HSET', KEYS[3], unpack(states))
end
if #fresh > 0 then
	redis.call('HDEL', KEYS[3], unpack(fresh))
end
if earliest then
	hint(earliest)
end
-- All have their places back, also those whose task was replaced.
if redis.call('EXISTS', string.sub(KEYS[1], 1, -4) .. 'running') == 1 then
	local left = {}
	for i, place in ipairs(places) do
		left[i] = ARGV[place + 2] .. '\0' .. ARGV[place + 1]
	end
	if limiting().leave(left) then
		hint(0)
	end
end
return table.concat(answers)
