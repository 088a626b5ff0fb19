-- The workers of the namespace that have reported that they are there (present.lua), those that did
-- last first. Answers of each for how many milliseconds that is still good, and what it said.
local reply = {}
local present = redis.call('ZREVRANGEBYSCORE', KEYS[2], '+inf',
	string.format('(%d', now), 'WITHSCORES', 'LIMIT', 0, 1000)

for i = 1, #present, 2 do
	reply[i] = present[i + 1] - now
	reply[i + 1] = redis.call('HGET', KEYS[3], present[i]) or ''
end
return reply
