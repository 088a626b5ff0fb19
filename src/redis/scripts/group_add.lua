-- with: hint due_time group refusal
-- Adds tasks of groups, one after the other. ARGV and answers are those of add.lua.
local group = grouping()
local answers = {}
local added = 0
local earliest
-- The tasks that are to be written: keys and records, their due times, and which keys these are.
local tasks, dues, is_unwritten = {}, {}, {}

local function write()
	group.set_all_due(tasks, dues)
	redis.call('HSET', KEYS[2], unpack(tasks))
	added = added + #dues
	tasks, dues, is_unwritten = {}, {}, {}
end

for i = 1, #ARGV - 2, 5 do
	local mode, key, at, delay, record = unpack(ARGV, i, i + 4)
	local due = due_time(at, delay)
	if is_unwritten[key] then
		write()
	end
	local score = redis.call('ZSCORE', KEYS[1], key)
	local refused = refusal(mode, score)

	if not refused then
		if score then
			group.leave(key, score)
			redis.call('HDEL', KEYS[3], key)
			redis.call('HDEL', KEYS[7], key)
		end
		local n = #dues + 1
		tasks[2 * n - 1], tasks[2 * n], dues[n] = key, record, due
		is_unwritten[key] = true
		earliest = math.min(due, earliest or due)
	end
	answers[#answers + 1] = refused or due
end
if earliest then
	write()
	redis.call('INCRBY', KEYS[9], added)
	-- A group whose turn has come is known to all workers.
	if (group.next_turn() or earliest) >= earliest then
		hint(earliest)
	end
end
return answers
