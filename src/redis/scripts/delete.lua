-- Deletes all keys of a shard. ARGV: 1 if its tasks and dead letters go, too. Returns 0, or -1: it
-- has some.
-- Calls of one key each work in a slot on its way to another node, too.
if ARGV[1] ~= '1' and redis.call('EXISTS', KEYS[1]) + redis.call('EXISTS', KEYS[2]) +
		redis.call('EXISTS', KEYS[5]) > 0 then
	return -1
end
for _, key in ipairs(KEYS) do
	redis.call('UNLINK', key)
end
redis.call('UNLINK', string.sub(KEYS[1], 1, -4) .. 'busy')
return 0
