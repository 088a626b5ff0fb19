-- with: group limits batch turns
-- Leases what is due to a batch; nothing while the shard is paused. ARGV: limit, lease in
-- milliseconds, the most bytes of keys and records, the worker's name ("": none), the number of its
-- claim, "1" if the reply to an earlier claim with that number was lost, and the age in
-- milliseconds and the number of dead letters that may stay (0: any). No more begin than limits
-- allow (limits.lua). A claim of 64 KiB or more takes one task whatever its size. Answers now in
-- microseconds; when the next is to be looked at, -1 if none is; the batch's token; key and due
-- time of each; its record, "" if it is lost; its attempt, nothing if each has its first; and its
-- entry in `every`, "" if it does not recur, nothing if none does. What has had all its attempts,
-- would begin too late, has lost its record or was scheduled by a clock that was ahead is for the
-- worker to end (jobs.c). As it came from Redis where that can be: what is made again here, for
-- each task, costs more than reading it.

-- The functions of groups, if the shard has any.
local group = redis.call('EXISTS', KEYS[11]) == 1 and grouping()
local limits = redis.call('EXISTS', KEYS[6]) == 1 and limiting()

-- Returns when the first lease ends, or nil.
local function first_end()
	return tonumber(redis.call('ZRANGE', KEYS[9], '0', '0', 'WITHSCORES')[2])
end

local ends = first_end()
if ends and (ends <= now or ARGV[6] == '1') then
	local batches, claim = batching(), ARGV[4] .. ' ' .. ARGV[5]
	-- A worker that lost the reply began none of these runs: they are given back uncounted.
	for _, token in ipairs(ARGV[6] == '1' and redis.call('ZRANGE', KEYS[9], '0', '-1') or {}) do
		local batch = batches.read(token)
		if batch and batch.claim == claim then
			batches.give_back(batch, now, 0)
		end
	end
	batches.lapse()
	ends = first_end()
end
-- How many tasks may begin, and when to look for more than the namespace allows.
local limit, allowed, again = tonumber(ARGV[1]), math.huge, nil
if limits then
	local rule = limits.rule(redis.call('HGET', KEYS[6], ''))
	allowed, again = limits.allowed('', rule)
	if allowed == 0 then
		limits.park()
		local next = rule.is_paused and -1 or
			math.min(math.ceil(again / 1000), ends or math.huge)
		return {string.format('%d', now_us), next, 0, {}, {}, {}, {}}
	end
	limit = math.min(limit, allowed)
end
-- The last token and, where the clock was ahead when that was made, the last time.
local last, ahead = unpack(redis.call('HMGET', KEYS[4], 'token', 'ahead'))
last = last or '0'
local seen, cursor = string.match(ahead or last .. ' 0', '^(%d+) (%d+)$')
local is_set_back = tonumber(seen) > now_us + AHEAD * 1000
if is_set_back then
	-- Some of the tasks that recur by times of then are made due, for the worker to find their
	-- times by this clock. The next claim goes on at the cursor.
	local group = grouping()
	local page = redis.call('HSCAN', KEYS[7], cursor, 'COUNT', '500')
	for i = 1, #page[2], 2 do
		local key, computed = page[2][i], string.match(page[2][i + 1], '^%d+ (%d+)')
		local score = redis.call('ZSCORE', KEYS[1], key)
		if score and tonumber(computed or 0) > now + AHEAD then
			group.leave(key, score)
			group.set_due(key, now)
		end
	end
	cursor = page[1]
	is_set_back = cursor ~= '0'
	seen = is_set_back and seen or string.format('%d', now_us)
	ahead = seen .. ' ' .. cursor
	redis.call('HSET', KEYS[4], 'ahead', ahead)
end
-- Arguments are text where that can be: Redis would print a number as one with a fraction.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now), 'WITHSCORES',
	'LIMIT', '0', string.format('%d', group and limit + 1 or limit))
local tasks, turns_end
if group then
	due, tasks, turns_end = turns_claim(due, limit, limits)
end
local reply = {string.format('%d', now_us), -1, 0, due, {}, {}, {}}
local n = 0

if #due > 0 then
	local count = #due / 2
	local keys = {}
	for i = 1, count do
		keys[i] = due[2 * i - 1]
	end
	local has_runs = redis.call('EXISTS', KEYS[3]) == 1
	-- Until a value of more than 64 bytes comes in, Redis keeps a hash of up to 512 entries as
	-- a list, where finding a key takes longer the more there are.
	if has_runs and count > 10 then
		redis.call('HSET', KEYS[3], '', string.rep(' ', 65))
		redis.call('HDEL', KEYS[3], '')
	end
	local runs = has_runs and redis.call('HMGET', KEYS[3], unpack(keys)) or {}
	local every = redis.call('EXISTS', KEYS[7]) == 1 and
		redis.call('HMGET', KEYS[7], unpack(keys))
	local records, entries = reply[5], reply[7]
	local tried, tries, groups, counts = {}, {}, {}, {}
	local bytes, most, some = 0, tonumber(ARGV[3]), nil

	for i = 1, count do
		-- So few records at a time that hardly any is read that stays for the next claim.
		if i % 25 == 1 then
			some = redis.call('HMGET', KEYS[2],
				unpack(keys, i, math.min(i + 24, count)))
		end
		local key, record, begun = keys[i], some[(i - 1) % 25 + 1] or '', runs[i]
		bytes = bytes + #key + #record
		if bytes > most and (n > 0 or most < 65536) then
			break
		end
		n = i
		records[n] = record
		if every then
			entries[n] = every[i] or ''
		end
		if begun then
			tried[#tried + 1], tries[n] = key, tonumber(begun)
		end
		if has_runs then
			reply[6][n] = (begun or 0) + 1
		end
		local name = tasks and tasks[i].turn.name or ''
		groups[n] = name ~= '' and name or nil
		counts[name] = (counts[name] or 0) + 1
	end
	if #tried > 0 then
		redis.call('HDEL', KEYS[3], unpack(tried))
	end
	if n > 0 then
		-- The time, so that tokens go up even where a server has lost the last of them.
		local token = math.max(last + 1, now_us)
		local text = string.format('%d', token)
		local lease_end = now + ARGV[2]

		if group then
			redis.call('ZREM', KEYS[1], unpack(keys, 1, n))
		else
			redis.call('ZREMRANGEBYRANK', KEYS[1], '0', string.format('%d', n - 1))
		end
		redis.call('ZADD', KEYS[9], string.format('%d', lease_end), text)
		redis.call('HSET', KEYS[4], 'token', text, 's' .. text, string.rep('1', n),
			'k' .. text, ARGV[4] .. ' ' .. ARGV[5] .. '\n' ..
			cmsgpack.pack({{unpack(keys, 1, n)}, tries, groups}))
		if token > now_us + AHEAD * 1000 then
			local time = is_set_back and seen or string.format('%d', now_us)
			redis.call('HSET', KEYS[4], 'ahead', time .. ' ' .. cursor)
		elseif ahead then
			redis.call('HDEL', KEYS[4], 'ahead')
		end
		ends = math.min(ends or lease_end, lease_end)
		reply[3] = token
		if limits then
			limits.hold(counts, 1)
			for name, begun in pairs(counts) do
				limits.spend(name, name ~= '' and begun or 0)
			end
			limits.spend('', n)
			allowed = allowed - n
		end
	end
	if n < count then
		reply[4] = {unpack(due, 1, 2 * n)}
	end
end
if group then
	turns_end(n)
end
local first = tonumber(redis.call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2])
if first or ends then
	reply[2] = math.min(first or ends, ends or first)
end
local turn = group and group.next_turn()
if turn then
	reply[2] = reply[2] < 0 and turn or math.min(reply[2], turn)
end
if allowed == 0 and reply[2] >= 0 and reply[2] <= now then
	limits.park()
	reply[2] = math.min(math.ceil(again / 1000), ends or math.huge)
end
-- At most a hundred letters are deleted.
local letters = ARGV[8] == '0' and 0 or redis.call('ZCARD', KEYS[8]) - ARGV[8]
if ARGV[7] ~= '0' then
	letters = math.max(letters, redis.call('ZCOUNT', KEYS[8], '-inf',
		string.format('(%d', now - ARGV[7])))
end
if letters > 0 then
	local oldest = redis.call('ZRANGE', KEYS[8], '0', math.min(letters, 100) - 1)
	redis.call('ZREM', KEYS[8], unpack(oldest))
	redis.call('HDEL', KEYS[5], unpack(oldest))
end
if letters > 100 or is_set_back then
	reply[2] = now
end
return reply
