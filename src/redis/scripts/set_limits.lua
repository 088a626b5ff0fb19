-- Sets the namespace's limits. ARGV: how many may run, how many a second (0: no limit), the channel
-- for hints and the number of shards. Returns 0.
if ARGV[1] == '0' and ARGV[2] == '0' then
	redis.call('DEL', KEYS[1])
else
	redis.call('HSET', KEYS[1], 'running', ARGV[1])
	redis.call('HSET', KEYS[1], 'rate', ARGV[2])
	redis.call('HDEL', KEYS[1], 'tokens')
end
-- A shard that there is none of: the limits are to be looked at.
redis.pcall('PUBLISH', ARGV[3], ARGV[4] .. ' 0')
return 0
