-- Deletes a dead letter. ARGV: key. Answers 0, or -2: there is none.
redis.call('ZREM', KEYS[8], ARGV[1])
return redis.call('HDEL', KEYS[5], ARGV[1]) == 1 and 0 or -2
