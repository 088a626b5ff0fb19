-- with: hint group rules turns again bury
-- Leases what is due; nothing while the shard is paused. ARGV: limit, lease in milliseconds, the
-- most bytes of keys and records, the worker's name ("": none), the number of its claim, "1" if
-- the reply to an earlier claim with that number was lost, how many bytes make a reply worth a
-- note, the age and the number of dead letters that may stay (trim), and "1" if limits of groups
-- matter; then groups, and how many of each may begin (turns.lua). A claim of 64 KiB or more takes
-- one task whatever its size. A task that has begun all its attempts and whose lease ended becomes
-- a dead letter. Answers now in microseconds; when the next is to be looked at, -1 if none is; how
-- many were buried; the token of all runs; key and due time of each; its record; its attempt,
-- nothing if each has its first; key and entry of those that recur by the calendar and whose next
-- time is to be found out (schedule.lua); how many occurrences were skipped, for they would have
-- begun later than their grace allows; and groups that lack permits, with the number of tasks. As
-- it came from Redis where that can be: what is made again here, for each task, costs more than
-- reading it.
--
-- A note has number, token and end of the lease of a worker's last large claim. Its key expires
-- with the lease. A worker that lost the reply began none of these runs: they are given back
-- uncounted.
local function note_key()
	return string.sub(KEYS[1], 1, -4) .. 'note/' .. ARGV[4]
end
-- The functions of groups, if the shard has any.
local group = redis.call('EXISTS', KEYS[11]) == 1 and grouping()
if ARGV[6] == '1' then
	local number, token, score = string.match(redis.call('GET', note_key()) or '',
		'^(%d+) (%d+) (%d+)$')
	local keys = number == ARGV[5] and
		redis.call('ZRANGEBYSCORE', KEYS[1], score, score, 'LIMIT', 0, 1000) or {}
	local runs = #keys > 0 and redis.call('HMGET', KEYS[3], unpack(keys)) or {}

	for i, key in ipairs(keys) do
		local attempt, its_token = string.match(runs[i] or '', '^(%d+):(%d+)$')

		if its_token == token then
			if group then
				group.set_due(key, now)
			else
				redis.call('ZADD', KEYS[1], string.format('%d', now), key)
			end
			if attempt == '1' then
				redis.call('HDEL', KEYS[3], key)
			else
				redis.call('HSET', KEYS[3], key, attempt - 1)
			end
		end
	end
end
if redis.call('EXISTS', KEYS[6]) == 1 then
	return {string.format('%d', now_us), -1, 0, 0, {}, {}, {}, {}, 0, {}}
end
-- Arguments are text where that can be: Redis would print a number as one with a fraction.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now), 'WITHSCORES',
	'LIMIT', '0', group and string.format('%d', ARGV[1] + 1) or ARGV[1])
local places, lacks, turns_end
if group then
	-- In earlier versions users of a group had their turns in these keys. They are groups now.
	local tag = string.sub(KEYS[1], 1, -4)
	local names = redis.call('HKEYS', tag .. 'users')
	for i, name in ipairs(names) do
		redis.call('ZADD', KEYS[11], 'NX', '0', name)
	end
	if #names > 0 then
		redis.call('DEL', tag .. 'users', tag .. 'order')
	end
	local permits = ARGV[10] == '1' and {} or nil
	for i = 11, permits and #ARGV - 2 or 0, 2 do
		permits[ARGV[i]] = tonumber(ARGV[i + 1])
	end
	due, places, lacks, turns_end = turns_claim(due, tonumber(ARGV[1]), permits)
end
local reply = {string.format('%d', now_us), -1, 0, 0, due, {}, {}, {}, 0, lacks or {}}
local handled = #due / 2
local ends = {}

if #due > 0 then
	local count = #due / 2
	local keys = {}
	for i = 1, count do
		keys[i] = due[2 * i - 1]
	end
	local runs = redis.call('HMGET', KEYS[3], unpack(keys))
	local every = redis.call('EXISTS', KEYS[7]) == 1 and
		redis.call('HMGET', KEYS[7], unpack(keys)) or {}
	-- The time, so that tokens go up even where a server has lost the last of them.
	local token = math.max(tonumber(redis.call('GET', KEYS[4]) or 0) + 1, now_us)
	local token_text = string.format('%d', token)
	local lease_end = string.format('%d', now + ARGV[2])
	local first_run = '1:' .. token_text
	local taken, records, schedules = {}, reply[6], reply[8]
	local scores, states, attempts = {}, {}, nil
	local n, bytes = 0, 0
	local seen = {}
	local most, some = tonumber(ARGV[3])
	-- The first is the latest, and no grace is shorter than a second.
	local some_are_late = group or now - due[2] > 1000
	local all_confirmed = group and group.confirms_all()

	redis.call('SET', KEYS[4], token_text)
	reply[4] = token
	for i = 1, count do
		-- So few records at a time that hardly any is read that stays for the next claim.
		if i % 25 == 1 then
			some = redis.call('HMGET', KEYS[2],
				unpack(keys, i, math.min(i + 24, count)))
		end
		local key, record, run = keys[i], some[(i - 1) % 25 + 1], runs[i]
		local place = places and places[i]
		local begun = run and tonumber(string.match(run, '^%d+')) or 0
		local open = every[i] and string.match(every[i], '^%a+ %d+ cron ([*-])')
		local grace = some_are_late and begun == 0 and record and
			tonumber(string.match(record, '^%d+ %d+ ([1-9]%d*)'))
		-- One that is not ours is claimed, too: the worker makes it a dead letter.
		if place and not all_confirmed and
				(seen[key] or not group.confirms(key, due[2 * i])) then
			-- It was moved or replaced, and its place in the queue stayed.
		elseif open == '*' then
			-- This is no time when it is due. If the worker dies: in 10 s again.
			redis.call('ZADD', KEYS[1], string.format('%d', now + 10000), key)
			schedules[#schedules + 1] = key
			schedules[#schedules + 1] = every[i]
		elseif not record or
				run and begun >= tonumber(string.match(record, '^%d+') or 1) then
			reply[3] = reply[3] + 1
			ends[#ends + 1] = {key, begun, record}
		elseif group and run and not place and group.of(record) then
			-- Its lease ended, so it waits for its turn, and for a permit, again.
			ends[#ends + 1] = {key, back = due[2 * i], record = record}
		elseif grace and now - due[2 * i] > grace then
			reply[9] = reply[9] + 1
			ends[#ends + 1] = {key, oldest = now - grace}
		elseif bytes + #key + #record > most and (n > 0 or most < 65536) then
			handled = i - 1
			break
		else
			if open then
				schedules[#schedules + 1] = key
				schedules[#schedules + 1] = every[i]
			end
			n = n + 1
			taken[n] = i
			seen[key] = place
			records[n] = record
			if begun > 0 and not attempts then
				attempts = {}
				for k = 1, n - 1 do
					attempts[k] = 1
				end
			end
			if attempts then
				attempts[n] = begun + 1
			end
			scores[2 * n - 1] = lease_end
			scores[2 * n] = key
			states[2 * n - 1] = key
			states[2 * n] = begun == 0 and first_run or begun + 1 .. ':' .. token_text
			bytes = bytes + #key + #record
		end
	end
	if n > 0 then
		redis.call('ZADD', KEYS[1], unpack(scores))
		-- Until a value of more than 64 bytes comes in, Redis keeps a hash of up to 512
		-- entries as a list, where finding a key takes longer the more there are.
		if n > 10 then
			redis.call('HSET', KEYS[3], '', string.rep(' ', 65))
		end
		redis.call('HSET', KEYS[3], unpack(states))
		if n > 10 then
			redis.call('HDEL', KEYS[3], '')
		end
		if ARGV[4] ~= '' and bytes >= tonumber(ARGV[7]) then
			redis.call('SET', note_key(), ARGV[5] .. ' ' .. token_text .. ' ' ..
				lease_end, 'PX', ARGV[2])
		end
	end
	reply[7] = attempts or reply[7]
	if n < count then
		reply[5] = {}
		for i = 1, n do
			reply[5][2 * i - 1] = keys[taken[i]]
			reply[5][2 * i] = due[2 * taken[i]]
		end
	end
end
if group then
	turns_end(handled)
end
-- A recurring task goes on in its group, which has its next turn by now.
for _, task in ipairs(ends) do
	if task.back then
		group.set_due(task[1], tonumber(task.back), task.record)
	elseif task.oldest then
		reply[9] = reply[9] + finish(task[1], task.oldest)
	else
		bury(task[1], task[2], task[3], 'the lease of its last attempt expired')
	end
end
local first = redis.call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')
if first[2] then
	reply[2] = tonumber(first[2])
end
local turn = group and group.next_turn()
if turn then
	reply[2] = reply[2] < 0 and turn or math.min(reply[2], turn)
end
if trim(ARGV[8], ARGV[9]) then
	reply[2] = now
end
return reply
