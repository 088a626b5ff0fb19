-- with: hint due_time group
-- Adds tasks of groups, one after the other. ARGV: for each what add.lua has. Answers as it does.
local group = grouping()
local answers = {}
local added = 0
local earliest

for i = 1, #ARGV - 2, 5 do
	local mode, key, at, delay, record = unpack(ARGV, i, i + 4)
	local due = due_time(at, delay)
	local score = redis.call('ZSCORE', KEYS[1], key)

	if mode == 'new' and score then
		answers[#answers + 1] = -1
	elseif mode == 'replace' and not score then
		answers[#answers + 1] = -2
	else
		if score then
			group.leave(key, score)
			redis.call('HDEL', KEYS[3], key)
			redis.call('HDEL', KEYS[7], key)
		end
		group.set_due(key, due, record)
		redis.call('HSET', KEYS[2], key, record)
		added = added + 1
		answers[#answers + 1] = due
		earliest = math.min(due, earliest or due)
	end
end
if added > 0 then
	redis.pcall('INCRBY', KEYS[9], added)
end
-- A group whose turn has come is known to all workers.
if earliest and (group.next_turn() or earliest) >= earliest then
	hint(earliest)
end
return answers
