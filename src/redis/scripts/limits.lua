-- Sets the namespace's limits, if there are any ARGV: how many may run, how many a second (0: no
-- limit), the channel for hints and the number of shards. Answers both.
if #ARGV > 0 then
	if ARGV[1] == '0' and ARGV[2] == '0' then
		redis.call('DEL', KEYS[1])
	else
		redis.call('HSET', KEYS[1], 'running', ARGV[1])
		redis.call('HSET', KEYS[1], 'rate', ARGV[2])
		redis.call('HDEL', KEYS[1], 'tokens')
	end
	-- A shard that there is none of: the limits are to be looked at.
	redis.pcall('PUBLISH', ARGV[3], ARGV[4] .. ' 0')
end
local limits = redis.call('HMGET', KEYS[1], 'running', 'rate')
return {tonumber(limits[1] or 0), tonumber(limits[2] or 0)}
