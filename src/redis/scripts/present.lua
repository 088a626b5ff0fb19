-- A worker reports that it is there. ARGV: its name, what it says of itself, for how many
-- milliseconds that is good. At most a thousand are kept; none outlives its time. Answers 0.
local until_when, words = unpack(KEYS, 2, 3)
local gone = redis.call('ZRANGEBYSCORE', until_when, '-inf', now, 'LIMIT', 0, 100)

if #gone > 0 then
	redis.call('ZREM', until_when, unpack(gone))
	redis.call('HDEL', words, unpack(gone))
end
if redis.call('ZSCORE', until_when, ARGV[1]) or redis.call('ZCARD', until_when) < 1000 then
	redis.call('ZADD', until_when, string.format('%d', now + ARGV[3]), ARGV[1])
	redis.call('HSET', words, ARGV[1], ARGV[2])
	redis.call('PEXPIRE', until_when, ARGV[3])
	redis.call('PEXPIRE', words, ARGV[3])
end
return 0
