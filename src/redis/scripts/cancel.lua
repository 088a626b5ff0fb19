-- with: hint group limits batch
-- Takes a task out, or gives a recurring one its next occurrence. ARGV: key, and either 1: none is
-- to follow, or 0; and once that is known, the entry in `every` that the next was computed from,
-- when it is due ("": never), and the time by which that was computed. Answers 0, or -2: there is
-- none, -3: it is on lease, -4: it recurs, in another way than that entry.
local key, whole, was, next, computed = unpack(ARGV)
local score, is_leased = batching().score_of(key)
local every = redis.call('HGET', KEYS[7], key)

if whole == '1' and every then
	redis.call('HDEL', KEYS[7], key)
	every = nil
end
if not score then
	return is_leased and -3 or -2
end
if every and every ~= was then
	return -4
end
local group = grouping()
group.leave(key, score)
redis.call('HDEL', KEYS[3], key)
if every and next ~= '' then
	redis.call('HSET', KEYS[7], key, next .. ' ' .. computed .. ' ' ..
		string.match(every, '^%d+ %d+ (.+)$'))
	group.set_due(key, tonumber(next))
	hint(tonumber(next))
else
	redis.call('ZREM', KEYS[1], key)
	redis.call('HDEL', KEYS[2], key)
	redis.call('HDEL', KEYS[7], key)
end
return 0
