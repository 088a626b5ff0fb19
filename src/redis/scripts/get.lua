-- ARGV: key. Answers now, due time, run ("" if none), record and recurrence ("" if none); nothing
-- if there is no such task.
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])

if not score then
	return {}
end
return {now, score, redis.call('HGET', KEYS[3], ARGV[1]) or '',
	redis.call('HGET', KEYS[2], ARGV[1]) or '', redis.call('HGET', KEYS[7], ARGV[1]) or ''}
