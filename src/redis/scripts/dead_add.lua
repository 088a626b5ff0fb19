-- Puts a dead letter there. ARGV: mode (any, new, replace), key, when it died,
-- "died:attempts:size of reason:reason", record. Answers 0, or -1: there is one, -2: there is none.
local mode, key, died, head, record = unpack(ARGV)

if mode ~= 'any' and (redis.call('HEXISTS', KEYS[5], key) == 1) ~= (mode == 'replace') then
	return mode == 'new' and -1 or -2
end
redis.call('HSET', KEYS[5], key, head .. record)
redis.call('ZADD', KEYS[8], died, key)
return 0
