-- with: group limits batch
-- ARGV: key. Answers now, due time or end of the lease, run (attempts as "3", with the token of a
-- run on lease as "3:17", "" if there are none), record and recurrence ("" if none); nothing if
-- there is no such task.
local key = ARGV[1]
local score = redis.call('ZSCORE', KEYS[1], key)
local run = redis.call('HGET', KEYS[3], key) or ''

if not score then
	local batch, place, ends = batching().find(key)
	if not batch then
		return {}
	end
	score, run = ends, (batch.tries[place] or 0) + 1 .. ':' .. batch.token
end
return {now, string.format('%d', grouping().due_of(score)), run,
	redis.call('HGET', KEYS[2], key) or '', redis.call('HGET', KEYS[7], key) or ''}
