-- with: hint group limits batch
-- Adds tasks, one after the other. ARGV has of each its mode, key, at, delay, record, and what the
-- mode's second letter says. The first letter is a: any, n: there must be no such task, r: there
-- must be one. The second one:
--   p  a task without a group, or g: one with a group; nothing follows
--   l  it has a latest due time: how long after its first add that is, in microseconds
--   e  it recurs: the rhythm (time.lua), and the time from which it is to recur (0: none is given,
--      -1: a delay is)
--   r  it is restored as a listing returned it: the attempts begun, and its entry in `every`, ""
--      if it does not recur
--   d  it is a dead letter: at is when it died, and delay "died:attempts:size of reason:reason"
--   m  it is moved to another due time, and has no record here
--   t  it is a dead letter that becomes a task again, due now: nothing follows the key
-- Returns for each its due time, or -1: it exists, -2: it doesn't, -3: it is on lease.
local TAKES = {p = 5, g = 5, l = 6, e = 7, r = 7, d = 5, m = 4, t = 2}
local last, at = #ARGV - 2, 1
local answers, earliest = {}, math.huge

-- When: at a time, or after a delay in microseconds, rounded up; the past and no delay are now.
local function due_time(at, delay)
	if at ~= '0' then
		return math.max(tonumber(at), now)
	end
	return delay == '0' and now or math.ceil((now_us + delay) / 1000)
end

-- Returns whether all are of the mode "ap", and then writes them. Most adds are; so this does
-- without functions.
local function add_plain()
	local scores, tasks, keys = {}, {}, {}

	while at <= last do
		if ARGV[at] ~= 'ap' then
			return false
		end
		local key, given, delay = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
		local due = given ~= '0' and tonumber(given) or delay == '0' and now or
			math.ceil((now_us + delay) / 1000)
		if due < now then
			due = now
		end
		if due < earliest then
			earliest = due
		end
		local n = #keys + 1
		-- As text: Redis would print a number as one with a fraction, which takes longer.
		local text = string.format('%d', due)
		scores[2 * n - 1], scores[2 * n] = text, key
		tasks[2 * n - 1], tasks[2 * n] = key, text .. ' ' .. ARGV[at + 4]
		keys[n], answers[n] = key, due
		at = at + 5
	end
	local fresh = redis.call('ZADD', KEYS[1], unpack(scores))
	local new = redis.call('HSET', KEYS[2], unpack(tasks))
	if new < #keys then
		redis.call('HDEL', KEYS[3], unpack(keys))
		redis.call('HDEL', KEYS[7], unpack(keys))
	end
	-- What waits is in both, and what is on lease in `body` alone.
	if fresh > new then
		batching().fence(keys)
	end
	redis.call('HINCRBY', KEYS[4], 'added', #keys)
	hint(earliest)
	return true
end

-- A task that leaves its group leaves its place in the group's queue, too.
if redis.call('EXISTS', KEYS[11]) == 0 and add_plain() then
	return answers
end
local group = grouping()
local added = 0
-- The tasks that are to be written, and which keys these are.
local keys, dues, records, is_unwritten = {}, {}, {}, {}
at, answers, earliest = 1, {}, math.huge

local function write()
	local tasks = {}
	for i, key in ipairs(keys) do
		tasks[2 * i - 1], tasks[2 * i] = key, records[i]
	end
	if #keys > 0 then
		group.set_all_due(keys, dues, records)
		redis.call('HSET', KEYS[2], unpack(tasks))
		keys, dues, records, is_unwritten = {}, {}, {}, {}
	end
end

-- A task that recurs in this way already keeps its occurrence, for it was only declared again.
-- Returns when that was due at first, or nil.
local function present_of(key, exists, rhythm, from)
	local present, was = string.match(redis.call('HGET', KEYS[7], key) or '',
		'^(%d+) %d+ (.+)$')
	local period = tonumber(string.match(rhythm, '^%a+ (%d+)$'))

	-- A calendar has no beginning by which series differ.
	return exists and from >= 0 and was == rhythm and (from == 0 or
		not period and from <= now or period and from <= tonumber(present) and
		(present - from) % period == 0) and math.max(1, tonumber(present)) or nil
end

-- Writes the record of such a task, which stays due as it is, or on lease.
local function declare_again(key, score, record)
	group.leave(key, score)
	redis.call('HSET', KEYS[2], key, record)
	if score then
		group.set_due(key, group.due_of(score), record)
	end
end

-- Returns the due time and the record of a task that has a latest due time. That stands at the end
-- of the record's head (record.h), so what replaces or ends the task ends it, too. A task that
-- waits for its first attempt leaves it to the one that replaces it here.
local function limit(key, score, due, record, latest)
	local waits = score and redis.call('HEXISTS', KEYS[3], key) == 0
	local replaced = waits and redis.call('HGET', KEYS[2], key) or ''
	local most = string.match(replaced, '^%d+ %d+ %d+ (%d+)\n') or
		string.format('%d', due_time('0', latest))

	return math.max(now, math.min(due, most)),
		(string.gsub(record, '\n', ' ' .. most .. '\n', 1))
end

-- Gives a task another due time, which it returns, or why not.
local function move(key, due)
	local score, is_leased = batching().score_of(key)

	if not score then
		return is_leased and -3 or -2
	end
	group.leave(key, score)
	group.set_due(key, due, group.redate(key, due))
	earliest = math.min(due, earliest)
	return due
end

-- Takes a dead letter out. Returns its record, without a due time.
local function letter_take(key, letter)
	local head, size = string.match(letter, '^(%d+:%d+:(%d+):)')

	redis.call('HDEL', KEYS[5], key)
	redis.call('ZREM', KEYS[8], key)
	return (string.gsub(string.sub(letter, #head + size + 1), '^%d+ ', '', 1))
end

while at <= last do
	local mode, key, given, delay, record, more, rest = unpack(ARGV, at, at + 6)
	local kind = string.sub(mode, 2)
	if is_unwritten[key] then
		write()
	end
	local exists = redis.call('HEXISTS', KEYS[kind == 'd' and 5 or 2], key) == 1
	local score = exists and kind ~= 'd' and redis.call('ZSCORE', KEYS[1], key)
	local is_refused = string.byte(mode) == 110 and exists or
		string.byte(mode) == 114 and not exists
	if kind == 't' then
		local letter = redis.call('HGET', KEYS[5], key)
		given, delay = '0', '0'
		record = letter and not exists and letter_take(key, letter)
		is_refused, exists = not record, letter and exists
	end
	local present = kind == 'e' and present_of(key, exists, more, tonumber(rest))
	-- A time of a series stays one, also if it passed on the way here, and a restored one, too.
	local due = (kind == 'r' or kind == 'd' or kind == 'e' and given ~= '0') and
		tonumber(given) or due_time(given, delay)

	if is_refused then
		due = exists and -1 or -2
	elseif kind == 'm' then
		due = move(key, due)
	elseif kind == 'd' then
		redis.call('HSET', KEYS[5], key, delay .. given .. ' ' .. record)
		redis.call('ZADD', KEYS[8], given, key)
	elseif present then
		due = present
		declare_again(key, score, string.format('%d ', due) .. record)
		added = added + 1
	else
		if kind == 'l' then
			due, record = limit(key, score, due, record, more)
		end
		if exists and not score then
			batching().fence({key})
		end
		if exists then
			group.leave(key, score)
			redis.call('HDEL', KEYS[3], key)
			redis.call('HDEL', KEYS[7], key)
		end
		if kind == 'e' then
			redis.call('HSET', KEYS[7], key,
				string.format('%d %d %s', due, rest == '0' and now or 0, more))
		elseif kind == 'r' then
			if more ~= '0' then
				redis.call('HSET', KEYS[3], key, more)
			end
			if rest ~= '' then
				redis.call('HSET', KEYS[7], key, rest)
			end
		end
		local n = #keys + 1
		keys[n], dues[n], records[n] = key, due, string.format('%d ', due) .. record
		is_unwritten[key] = true
		earliest = math.min(due, earliest)
		added = added + (kind == 't' and 0 or 1)
	end
	answers[#answers + 1] = due
	at = at + TAKES[kind]
end
write()
if added > 0 then
	redis.call('HINCRBY', KEYS[4], 'added', added)
end
-- A group whose turn has come is known to all workers.
if earliest < math.huge and (group.next_turn() or earliest) >= earliest then
	hint(earliest)
end
return answers
