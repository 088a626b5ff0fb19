-- with: group limits batch turns
-- Leases what is due to a batch; nothing while the shard is paused. ARGV: limit, lease in
-- milliseconds, the most bytes of keys and records, the worker's name ("": none), the number of its
-- claim, "1" if the reply to an earlier claim with that number was lost, and the age in
-- milliseconds and the number of dead letters that may stay (0: any). No more begin than limits
-- allow (limits.lua). A claim of 64 KiB or more takes one task whatever its size. Answers now in
-- microseconds; when the next is to be looked at, -1 if none is; the batch's token; the keys; of
-- each its record, "" if it is lost; and its note, "ATTEMPT DUE ENTRY", with its entry in `every`
-- if it recurs. The note is "" for a first attempt of a task that does not recur: its record says
-- when it was due. Where all are that, there may be no notes. What has had all its attempts, would
-- begin too late, has lost its record or was scheduled by a clock that was ahead is for the worker
-- to end (jobs.c).

-- The functions of groups, if the shard has any.
local group = redis.call('EXISTS', KEYS[11]) == 1 and grouping()
local limits = redis.call('EXISTS', KEYS[6]) == 1 and limiting()

if ARGV[6] == '1' then
	-- A worker that lost the reply began none of these runs: they are given back uncounted.
	local batches, claim = batching(), ARGV[4] .. ' ' .. ARGV[5]
	for _, token in ipairs(redis.call('ZRANGE', KEYS[9], '0', '-1')) do
		local batch = batches.read(token)
		if batch and batch.claim == claim then
			batches.give_back(batch, now, 0)
		end
	end
end
if redis.call('ZCOUNT', KEYS[9], '-inf', string.format('%d', now)) > 0 then
	batching().lapse()
end

-- Returns when the shard is to be looked at next, or -1.
local function next_look()
	local look = group and group.next_turn() or math.huge
	for _, i in ipairs({1, 9}) do
		local first = redis.call('ZRANGE', KEYS[i], '0', '0', 'WITHSCORES')
		look = math.min(look, tonumber(first[2]) or look)
	end
	return look < math.huge and look or -1
end

local limit, allowed, again, is_paused = tonumber(ARGV[1]), math.huge, nil, false
if limits then
	local rule = limits.rule('')
	allowed, again = limits.allowed('', rule)
	limit, is_paused = math.min(limit, allowed), rule.is_paused
end
local last, seen, cursor = unpack(redis.call('HMGET', KEYS[4], 'token', 'seen', 'cursor'))
local is_set_back = tonumber(seen or 0) > now + AHEAD
if is_set_back then
	-- Some of the tasks that recur by times of then are made due, for the worker to find their
	-- times by this clock. The next claim goes on at the cursor.
	local group = grouping()
	local page = redis.call('HSCAN', KEYS[7], cursor or '0', 'COUNT', '500')
	for i = 1, #page[2], 2 do
		local key, computed = page[2][i], string.match(page[2][i + 1], '^%d+ (%d+)')
		local score = redis.call('ZSCORE', KEYS[1], key)
		if score and tonumber(computed or 0) > now + AHEAD then
			group.leave(key, score)
			group.set_due(key, now)
		end
	end
	is_set_back = page[1] ~= '0'
	redis.call('HSET', KEYS[4], 'cursor', page[1], 'seen', is_set_back and seen or now)
end
-- Arguments are text where that can be: Redis would print a number as one with a fraction.
local keys = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now),
	'LIMIT', '0', string.format('%d', group and limit + 1 or limit))
local own, names, turns_end = keys, {}, nil
if group then
	keys, names, turns_end = turns_claim(own, limit, limits)
end
local token, records, notes = 0, {}, {}
local count, n = #keys, 0

if count > 0 then
	local has_runs = redis.call('EXISTS', KEYS[3]) == 1
	-- Until a value of more than 64 bytes comes in, Redis keeps a hash of up to 512 entries as
	-- a list, where finding a key takes longer the more there are.
	if has_runs and count > 10 then
		redis.call('HSET', KEYS[3], '', string.rep(' ', 65))
		redis.call('HDEL', KEYS[3], '')
	end
	local runs = has_runs and redis.call('HMGET', KEYS[3], unpack(keys)) or {}
	local has_entries = redis.call('EXISTS', KEYS[7]) == 1
	local entries = has_entries and redis.call('HMGET', KEYS[7], unpack(keys)) or {}
	local tried, tries, groups, counts = {}, {}, {}, {}
	local bytes, most, some = 0, tonumber(ARGV[3]), nil

	for i = 1, count do
		-- So few records at a time that hardly any is read that stays for the next claim.
		if i % 25 == 1 then
			some = redis.call('HMGET', KEYS[2],
				unpack(keys, i, math.min(i + 24, count)))
		end
		local key, record = keys[i], some[(i - 1) % 25 + 1] or ''
		local begun, entry = runs[i], entries[i]
		bytes = bytes + #key + #record
		if bytes > most and (n > 0 or most < 65536) then
			break
		end
		n = i
		records[n] = record
		if begun then
			tried[#tried + 1], tries[n] = key, tonumber(begun)
		end
		if begun or entry then
			local score = redis.call('ZSCORE', KEYS[1], key) or now
			notes[n] = string.format('%d %d %s', (begun or 0) + 1,
				group and group.due_of(score) or score, entry or '')
		elseif has_runs or has_entries then
			notes[n] = ''
		end
		local name = names[i] or ''
		groups[n] = name ~= '' and name or nil
		counts[name] = (counts[name] or 0) + 1
	end
	if n < count and group then
		-- Only as many have had their turns: the first, whose records these are.
		local all = keys
		keys, names, turns_end = turns_claim(own, n, limits)
		assert(table.concat(keys, '\n') == table.concat(all, '\n', 1, n))
	elseif n < count then
		keys = {unpack(keys, 1, n)}
	end
	if #tried > 0 then
		redis.call('HDEL', KEYS[3], unpack(tried))
	end
	if n > 0 then
		-- The time, so that tokens go up even where a server has lost the last of them.
		token = math.max((last or 0) + 1, now_us)
		local text = string.format('%d', token)

		if group then
			redis.call('ZREM', KEYS[1], unpack(keys))
		else
			redis.call('ZREMRANGEBYRANK', KEYS[1], '0', string.format('%d', n - 1))
		end
		redis.call('ZADD', KEYS[9], string.format('%d', now + ARGV[2]), text)
		redis.call('HSET', KEYS[4], 'token', text, 's' .. text, string.rep('1', n),
			'k' .. text, ARGV[4] .. ' ' .. ARGV[5] .. '\n' ..
			cmsgpack.pack({keys, tries, groups}),
			'seen', is_set_back and seen or string.format('%d', now))
		if limits then
			limits.hold(counts, 1)
			allowed = allowed - n
		end
	end
end
if group then
	turns_end()
end
-- To count is quicker than to print a score.
local next = n == limit and redis.call('ZCOUNT', KEYS[1], '-inf', string.format('%d', now)) > 0 and
	now or next_look()
if is_paused then
	next = -1
elseif allowed == 0 and next >= 0 and next <= now then
	-- When the namespace allows more.
	local ends = redis.call('ZRANGE', KEYS[9], '0', '0', 'WITHSCORES')[2]
	next = math.min(math.ceil(again / 1000), tonumber(ends) or math.huge)
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
	next = now
end
return {string.format('%d', now_us), next, token, keys, records, notes}
