-- with: hint group limits batch
-- Ends runs of tasks. ARGV has them by their batches: b, the batch's token, and the place that the
-- next run has there. The runs that follow have the next places. Each is a verb, the key, and what
-- the verb takes; but d has several, as most are done:
--   d  done: how many, and their keys
--   n  done or passed over, and it recurs: when it is due next ("": never), and the time by which
--      that was computed
--   w  it waits for another attempt: the attempts so far ("": none, and its record keeps the due
--      time), and the wait in milliseconds
--   k  failed for good: what n takes ("" if it does not recur), the attempts, and the reason
-- Answers a letter for each: o ended, s another run has it, g there is no such task.
local TAKES = {n = 4, w = 4, k = 6}
local has_limits = redis.call('EXISTS', KEYS[6]) == 1
local answers, gone, states, counts = {}, {}, {}, {}
local waiting, dues = {}, {}
local batches, held = batching(), {}
local last, at = #ARGV - 2, 1
local batch, place, earliest

-- Returns the letters of a batch, and the groups of its tasks where these count.
local function open(token)
	local kept = has_limits and batches.read(token) or {groups = {}}

	return {slots = redis.call('HGET', KEYS[4], 's' .. token) or '', groups = kept.groups}
end

-- Answers for the run at the present place. Returns whether it has the task.
local function answer(key)
	local runs = string.find(batch.slots, '^1', place)

	answers[#answers + 1] = runs and 'o' or
		redis.call('HEXISTS', KEYS[2], key) == 1 and 's' or 'g'
	return runs
end

-- Notes that the run at the present place is over, or this many.
local function leave(count)
	if has_limits then
		batches.count(batch, counts, place, place + count - 1)
	end
	if batch.slots ~= '' then
		batch.slots = string.sub(batch.slots, 1, place - 1) .. string.rep('x', count) ..
			string.sub(batch.slots, place + count)
	end
	place = place + count
end

-- Takes tasks out whose runs are done, at once as many as their runs still have.
local function done(count, first)
	while count > 0 do
		local _, last = string.find(batch.slots, '^1+', place)
		local some = last and math.min(count, last - place + 1) or 1
		if last then
			redis.call('HDEL', KEYS[2], unpack(ARGV, first, first + some - 1))
			answers[#answers + 1] = string.rep('o', some)
		else
			answer(ARGV[first])
		end
		leave(some)
		first, count = first + some, count - some
	end
end

local function wait_until(key, due)
	waiting[#waiting + 1], dues[#dues + 1] = key, due
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
		attempts = math.min(attempts,
			tonumber(string.match(record, '^%d+ (%d+)') or attempts))
		redis.call('HSET', KEYS[5], letter,
			string.format('%d:%d:%d:', now, attempts, #reason) .. reason .. record)
		redis.call('ZADD', KEYS[8], string.format('%d', now), letter)
	end
end

-- Lets a task wait. Its attempts count, or, if there are none, its record has the new due time.
local function put_off(key, attempts, wait)
	-- Rounded up, as due_time: never a fraction of a millisecond early.
	local due = wait == 0 and now or math.ceil(now_us / 1000) + wait

	if attempts == '0' then
		grouping().redate(key, due)
	elseif attempts ~= '' then
		states[#states + 1] = key
		states[#states + 1] = attempts
	end
	wait_until(key, due)
end

while at <= last do
	local verb, key = ARGV[at], ARGV[at + 1]
	if verb == 'b' then
		batch, place = held[key] or open(key), tonumber(ARGV[at + 2])
		held[key] = batch
		at = at + 3
	elseif verb == 'd' then
		done(tonumber(key), at + 2)
		at = at + 2 + key
	else
		if not answer(key) then
			-- That run is over.
		elseif verb == 'w' then
			put_off(key, ARGV[at + 2], tonumber(ARGV[at + 3]))
		else
			if verb == 'k' then
				bury(key, ARGV[at + 4], ARGV[at + 5])
			end
			go_on(key, ARGV[at + 2], ARGV[at + 3])
		end
		leave(1)
		at = at + TAKES[verb]
	end
end
if #gone > 0 then
	redis.call('HDEL', KEYS[2], unpack(gone))
end
if #states > 0 then
	redis.call('HSET', KEYS[3], unpack(states))
end
if #waiting > 0 then
	grouping().set_all_due(waiting, dues)
	hint(earliest)
end
for token, its in pairs(held) do
	if its.slots ~= '' then
		batches.write(token, its.slots)
	end
end
-- All have their places back, also those whose task was replaced.
if has_limits and limiting().hold(counts, -1) then
	hint(0)
end
return table.concat(answers)
