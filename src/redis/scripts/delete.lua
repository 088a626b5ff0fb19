-- Deletes all keys of a shard. ARGV: 1 if its tasks and dead letters go, too. Returns 0, or -1: it
-- has some.
if ARGV[1] ~= '1' and redis.call('EXISTS', KEYS[1], KEYS[5]) > 0 then
	return -1
end
local tag = string.sub(KEYS[1], 1, -4)
redis.call('UNLINK', tag .. 'queue', tag .. 'turns', tag .. 'groups', tag .. 'order', tag .. 'users',
	unpack(KEYS))
return 0
