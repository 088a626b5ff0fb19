-- with: hint group
-- Pauses the shard, or lets it go on: ARGV: 1 or 0. Answers 0.
if ARGV[1] == '1' then
	redis.call('SET', KEYS[6], 1)
elseif redis.call('DEL', KEYS[6]) == 1 then
	local first = tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
	local due = grouping().next_turn()
	if due or first then
		hint(math.max(0, math.min(first or due, due or first)))
	end
end
return 0
