-- Deletes all keys of a shard, or the namespace's own. ARGV: 1 if tasks and dead letters go, too.
-- Returns 0, or -1: there are some.
-- Calls of one key each work in a slot on its way to another node, too.
if ARGV[1] ~= '1' and redis.call('EXISTS', KEYS[1]) + redis.call('EXISTS', KEYS[2]) +
		redis.call('EXISTS', KEYS[5]) > 0 then
	return -1
end
for _, key in ipairs(KEYS) do
	redis.call('UNLINK', key)
end
return 0
