-- with: leased group limits turns trim
-- Leases what is due; nothing while the shard is paused. ARGV: limit, lease in milliseconds, the
-- most bytes of keys and records, the worker's name ("": none), the number of its claim, "1" if
-- the reply to an earlier claim with that number was lost, how many bytes make a reply worth a
-- note, and the age and the number of dead letters that may stay (trim). No more begin than limits
-- allow (limits.lua). A claim of 64 KiB or more takes one task whatever its size. Answers now in
-- microseconds; when the next is to be looked at, -1 if none is; the token of all runs; key and due
-- time of each; its record, "" if it is lost; its attempt, nothing if each has its first; and its
-- entry in `every`, "" if it does not recur, nothing if none does. What has had all its attempts,
-- would begin too late, has lost its record or was scheduled by a clock that was ahead is for the
-- worker to end (jobs.c). As it came from Redis where that can be: what is made again here, for
-- each task, costs more than reading it.
--
-- A note has number, token and end of the lease of a worker's last large claim. Its key expires
-- with the lease. A worker that lost the reply began none of these runs: they are given back
-- uncounted.
local function note_key()
	return string.sub(KEYS[1], 1, -4) .. 'note/' .. ARGV[4]
end
-- The functions of groups, if the shard has any.
local group = redis.call('EXISTS', KEYS[11]) == 1 and grouping()
local limits = redis.call('EXISTS', KEYS[6]) == 1 and limiting()
if ARGV[6] == '1' then
	local number, token, score = string.match(redis.call('GET', note_key()) or '',
		'^(%d+) (%d+) (%d+)$')
	local keys = number == ARGV[5] and
		redis.call('ZRANGEBYSCORE', KEYS[1], score, score, 'LIMIT', 0, 1000) or {}
	local runs = #keys > 0 and redis.call('HMGET', KEYS[3], unpack(keys)) or {}
	local left = {}

	for i, key in ipairs(keys) do
		local attempt, its_token = string.match(runs[i] or '', '^(%d+):(%d+)$')

		if its_token == token then
			left[#left + 1] = runs[i] .. '\0' .. key
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
	if limits and #left > 0 then
		limits.leave(left)
	end
end
-- How many tasks may begin, and when to look for more than the namespace allows.
local limit, allowed, again = tonumber(ARGV[1]), math.huge, nil
if limits then
	limits.expire()
	local rule = limits.rule(redis.call('HGET', KEYS[6], ''))
	allowed, again = limits.allowed('', rule)
	if allowed == 0 then
		limits.park()
		local next = rule.is_paused and -1 or math.ceil(again / 1000)
		return {string.format('%d', now_us), next, 0, {}, {}, {}, {}}
	end
	limit = math.min(limit, allowed)
end
-- The last token and, where the clock was ahead when that was made, the last time.
local last = redis.call('GET', KEYS[4]) or '0'
local seen, cursor = last, '0'
if not tonumber(last) then
	last, seen, cursor = string.match(last, '^(%d+) (%d+) (%d+)$')
end
local is_set_back = tonumber(seen) > now_us + AHEAD * 1000
if is_set_back then
	-- Some of the tasks that recur by times of then are made due, for the worker to find their
	-- times by this clock. The next claim goes on at the cursor.
	local group = grouping()
	local page = redis.call('HSCAN', KEYS[7], cursor, 'COUNT', '500')
	for i = 1, #page[2], 2 do
		local key, computed = page[2][i], string.match(page[2][i + 1], '^%d+ (%d+)')
		local score = redis.call('ZSCORE', KEYS[1], key)
		if score and tonumber(computed or 0) > now + AHEAD and
				not leased(redis.call('HGET', KEYS[3], key), score) then
			group.leave(key, score)
			group.set_due(key, now)
		end
	end
	cursor = page[1]
	is_set_back = cursor ~= '0'
	seen = is_set_back and seen or string.format('%d', now_us)
	redis.call('SET', KEYS[4], table.concat({last, seen, cursor}, ' '))
end
-- Arguments are text where that can be: Redis would print a number as one with a fraction.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now), 'WITHSCORES',
	'LIMIT', '0', string.format('%d', group and limit + 1 or limit))
local tasks, turns_end
if group then
	due, tasks, turns_end = turns_claim(due, limit, limits)
end
local reply = {string.format('%d', now_us), -1, 0, due, {}, {}, {}}
local handled = #due / 2
local back = {}

if #due > 0 then
	local count = #due / 2
	local keys = {}
	for i = 1, count do
		keys[i] = due[2 * i - 1]
	end
	local runs = redis.call('HMGET', KEYS[3], unpack(keys))
	local every = redis.call('EXISTS', KEYS[7]) == 1 and
		redis.call('HMGET', KEYS[7], unpack(keys))
	-- The time, so that tokens go up even where a server has lost the last of them.
	local token = math.max(last + 1, now_us)
	local token_text = string.format('%d', token)
	local lease_end = string.format('%d', now + ARGV[2])
	local first_run = '1:' .. token_text
	local taken, records, entries = {}, reply[5], reply[7]
	local scores, states, attempts = {}, {}, nil
	local n, bytes = 0, 0
	local seen_keys = {}
	local most, some = tonumber(ARGV[3])
	local all_confirmed = group and group.confirms_all()

	redis.call('SET', KEYS[4], token <= now_us + AHEAD * 1000 and token_text or
		string.format('%d %d %s', token, is_set_back and seen or now_us, cursor))
	reply[3] = token
	for i = 1, count do
		-- So few records at a time that hardly any is read that stays for the next claim.
		if i % 25 == 1 then
			some = redis.call('HMGET', KEYS[2],
				unpack(keys, i, math.min(i + 24, count)))
		end
		local key, record, run = keys[i], some[(i - 1) % 25 + 1] or '', runs[i]
		local place = tasks and tasks[i][3]
		local begun = run and tonumber(string.match(run, '^%d+')) or 0
		-- One that is not ours is claimed, too: the worker makes it a dead letter.
		if place and not all_confirmed and
				(seen_keys[key] or not group.confirms(key, due[2 * i])) then
			-- It was moved or replaced, and its place in the queue stayed.
		elseif group and run and not place and group.of(record) then
			-- Its lease ended, so it waits for its turn again.
			back[#back + 1] = {key, tonumber(due[2 * i]), record}
		elseif bytes + #key + #record > most and (n > 0 or most < 65536) then
			handled = i - 1
			break
		else
			n = n + 1
			taken[n] = i
			if every then
				entries[n] = every[i] or ''
			end
			if tasks then
				tasks[i].turn.begun = tasks[i].turn.begun + 1
			end
			seen_keys[key] = place
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
		if limits then
			local begun = {}
			for i = 1, n do
				local name = tasks and tasks[taken[i]].turn.name or ''
				local place = states[2 * i] .. '\0' .. states[2 * i - 1]
				begun[name] = begun[name] or {}
				table.insert(begun[name], place)
			end
			for name, list in pairs(begun) do
				limits.hold(name, list, lease_end)
				limits.spend(name, name ~= '' and #list or 0)
			end
			limits.spend('', n)
			allowed = allowed - n
		end
		if ARGV[4] ~= '' and bytes >= tonumber(ARGV[7]) then
			redis.call('SET', note_key(), ARGV[5] .. ' ' .. token_text .. ' ' ..
				lease_end, 'PX', ARGV[2])
		end
	end
	reply[6] = attempts or reply[6]
	if n < count then
		reply[4] = {}
		for i = 1, n do
			reply[4][2 * i - 1] = keys[taken[i]]
			reply[4][2 * i] = due[2 * taken[i]]
		end
	end
end
if group then
	turns_end(handled)
end
for _, task in ipairs(back) do
	group.set_due(unpack(task))
end
local first = redis.call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')
if first[2] then
	reply[2] = tonumber(first[2])
end
local turn = group and group.next_turn()
if turn then
	reply[2] = reply[2] < 0 and turn or math.min(reply[2], turn)
end
if allowed == 0 and reply[2] >= 0 and reply[2] <= now then
	limits.park()
	reply[2] = math.ceil(again / 1000)
end
if trim(ARGV[8], ARGV[9]) or is_set_back then
	reply[2] = now
end
return reply
