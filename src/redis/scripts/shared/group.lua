-- Tasks of groups. One that waits is in `queue`, under its group and its due time, and stands in
-- `due` by that time and 4e15 more: so a claim by due time alone does not come upon it, and all
-- else finds it there. `turns` has each group that has a task in `queue`, by the microsecond of its
-- turn (turns.lua). Most namespaces have no groups, so these functions are made where one is asked
-- for.
local function grouping()
	local QUEUED = 4000000000000000
	local queue, turns = unpack(KEYS, 10, 11)
	local group = {}

	-- Returns the group that a record names, or nil.
	function group.of(record)
		return string.match(record or '', '^[^\n]*\nG ([^\n]*)\n')
	end

	-- Returns the due time that the score of a task says.
	function group.due_of(score)
		score = tonumber(score)
		return score < QUEUED and score or score - QUEUED
	end

	-- Returns a task's place in `queue`, and its score in `due`.
	local function place_of(name, due, key)
		local digits = string.format('%015d', due)
		return name .. '\0' .. digits .. key, '4' .. digits
	end

	-- Takes a task with that score out of `queue`, if it is there. It stays in `due`.
	function group.leave(key, score)
		local is_queued = tonumber(score or 0) >= QUEUED
		local name = is_queued and group.of(redis.call('HGET', KEYS[2], key))
		if name then
			redis.call('ZREM', queue, (place_of(name, group.due_of(score), key)))
		end
	end

	-- Makes tasks, which are in no queue, due at those times: in the groups that their records
	-- name, or by themselves. `records` may be nil where the tasks have them already.
	function group.set_all_due(keys, dues, records)
		local scores, places, firsts = {}, {}, {}

		records = records or redis.call('EXISTS', turns) == 1 and
			redis.call('HMGET', KEYS[2], unpack(keys)) or {}
		for i, due in ipairs(dues) do
			local key, name = keys[i], group.of(records[i])
			if name then
				local n = #places
				places[n + 1] = '0'
				places[n + 2], scores[2 * i - 1] = place_of(name, due, key)
				if due < (firsts[name] or math.huge) then
					firsts[name] = due
				end
			else
				scores[2 * i - 1] = string.format('%d', due)
			end
			scores[2 * i] = key
		end
		redis.call('ZADD', KEYS[1], unpack(scores))
		if #places > 0 then
			redis.call('ZADD', queue, unpack(places))
		end
		if next(firsts) then
			redis.call('ZADD', turns, 'NX', '0', '')
		end
		for name, due in pairs(firsts) do
			local turn = redis.call('ZSCORE', turns, name)
			if not turn or tonumber(turn) > due * 1000 then
				redis.call('ZADD', turns, string.format('%d', due * 1000), name)
			end
		end
	end

	-- Writes the due time of a first attempt into the record of a task. Returns the record, or
	-- nil.
	function group.redate(key, due)
		local record = redis.call('HGET', KEYS[2], key)

		record = record and string.gsub(record, '^%d+', string.format('%d', due), 1)
		if record then
			redis.call('HSET', KEYS[2], key, record)
		end
		return record or nil
	end

	-- Makes a task due in this way.
	function group.set_due(key, due, record)
		group.set_all_due({key}, {due}, record and {record})
	end

	-- Returns how many tasks in `queue` are due.
	function group.count_due()
		return redis.call('ZCOUNT', KEYS[1], QUEUED, string.format('%d', QUEUED + now))
	end

	-- Returns when a group has its next turn, or nil.
	function group.next_turn()
		local first = redis.call('ZRANGE', turns, '0', '1', 'WITHSCORES')
		local turn = first[first[1] == '' and 4 or 2]
		return turn and math.floor(turn / 1000)
	end
	return group
end
