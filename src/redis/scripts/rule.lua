-- Returns the rule of a name (shared/limits.lua). ARGV: the name.
return redis.call('HGET', KEYS[6], ARGV[1]) or '0 0 0 0 0'
