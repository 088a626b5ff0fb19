-- with: hint group
-- Writes what a worker or a client has found out about tasks that recur by the calendar. ARGV: how
-- many, then of each its key, the entry that this was made from, the entry to write ("": it recurs
-- no more) and when it is due ("": as it is). Changes nothing where the entry has become another.
-- Returns a letter for each: o written, s another.
local group = grouping()
local answers = {}

for i = 1, tonumber(ARGV[1]) do
	local key, was, is, due = unpack(ARGV, 4 * i - 2, 4 * i + 1)
	if redis.call('HGET', KEYS[7], key) ~= was then
		answers[i] = 's'
	else
		answers[i] = 'o'
		if is ~= '' then
			redis.call('HSET', KEYS[7], key, is)
		else
			redis.call('HDEL', KEYS[7], key)
		end
		if due ~= '' then
			group.leave(key, redis.call('ZSCORE', KEYS[1], key))
		end
		if is == '' and due ~= '' then
			redis.call('ZREM', KEYS[1], key)
			redis.call('HDEL', KEYS[2], key)
			redis.call('HDEL', KEYS[3], key)
		elseif due ~= '' then
			group.set_due(key, tonumber(due))
			hint(tonumber(due))
		end
	end
end
return table.concat(answers)
