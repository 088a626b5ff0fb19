-- Gives a worker a part of what a limit allows: of `most` that may run, and of `rate` a second, of
-- which at most `burst` at once (0: a tenth of a second's worth). `running` is a hash of what each
-- worker has and until when its word is good; `bucket` one with the fields `tokens` and `at`.
-- Returns how many more the worker `name` may begin, which has `has`, wants `wanted`, and was given
-- `unused` that it did not begin; and in how many milliseconds it is to ask again if that is too
-- few, -1: it is not too few.
local function permit(limit, running, bucket, name, good_for, has, wanted, unused)
	local given, wait = wanted, -1

	if limit.most > 0 then
		local words = redis.call('HGETALL', running)
		local left = limit.most - has

		for i = 1, #words, 2 do
			local count, good_until = string.match(words[i + 1], '^(%d+) (%d+)$')
			if words[i] == 'tokens' or words[i] == 'at' or words[i] == name then
				-- The bucket's, or the worker's own.
			elseif not count or tonumber(good_until) <= now then
				redis.call('HDEL', running, words[i])
			else
				left = left - count
			end
		end
		given = math.max(math.min(given, left), 0)
		if given < wanted then
			wait = 100
		end
	end
	if limit.rate > 0 then
		local state = redis.call('HMGET', bucket, 'tokens', 'at')
		local room = limit.burst > 0 and limit.burst or math.max(limit.rate / 10, 1)
		local tokens = tonumber(state[1] or room)
		local passed = math.max(now_us - tonumber(state[2] or now_us), 0)

		tokens = math.min(tokens + passed * limit.rate / 1000000 + unused, room)
		if tokens < given then
			given = math.floor(tokens)
			wait = math.max(wait, math.ceil((given + 1 - tokens) * 1000 / limit.rate))
		end
		redis.call('HSET', bucket, 'tokens', string.format('%.6f', tokens - given))
		redis.call('HSET', bucket, 'at', string.format('%.0f', now_us))
	end
	if has + given > 0 then
		redis.call('HSET', running, name,
			string.format('%d %d', has + given, now + good_for))
	else
		redis.call('HDEL', running, name)
	end
	return given, wait
end
