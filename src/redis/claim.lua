-- Leases what is due. ARGV: limit, lease in milliseconds. A task that has begun all its attempts
-- and whose lease ended becomes a dead letter. What is over 4 MiB stays for the next claim. Answers
-- now in microseconds; when the next is to be looked at, -1 if none is; how many were buried; the
-- first token; then key, due time, attempt and record of each, with tokens that count up. As text:
-- Redis would print a number as one with a fraction, for each task anew.
local lease_end = string.format('%d', now + ARGV[2])
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local reply = {string.format('%.0f', now_us), -1, 0, 0}

local function bury(key, attempts, record)
	local reason = 'its last lease ended without a word from its worker'

	reply[3] = reply[3] + 1
	redis.call('ZREM', KEYS[1], key)
	redis.call('HDEL', KEYS[2], key)
	redis.call('HDEL', KEYS[3], key)
	if record then
		redis.call('HSET', KEYS[5], key,
			string.format('%d:%d:%d:', now, attempts, #reason) .. reason .. record)
	end
end

-- The records of the keys from number `first` on: so few at a time that hardly any is read that
-- stays for the next claim.
local SOME = 25
local function some_records(keys, first)
	return redis.call('HMGET', KEYS[2], unpack(keys, first, math.min(first + SOME - 1, #keys)))
end

if #due > 0 then
	local keys = {}
	for i = 1, #due, 2 do
		keys[#keys + 1] = due[i]
	end
	local runs = redis.call('HMGET', KEYS[3], unpack(keys))
	-- The time, so that tokens go up even where a server has lost the last of them.
	local token = math.max(tonumber(redis.call('GET', KEYS[4]) or 0) + 1, now_us)
	local scores, states = {}, {}
	local bytes = 0
	local records

	redis.call('SET', KEYS[4], string.format('%.0f', token + #keys - 1))
	reply[4] = token
	for i, key in ipairs(keys) do
		if i % SOME == 1 then
			records = some_records(keys, i)
		end
		local record, run = records[(i - 1) % SOME + 1], runs[i]
		local attempts = run and tonumber(string.match(run, '^%d+')) or 0
		-- One that is not ours is claimed, too: the worker makes it a dead letter.
		if not record or attempts >= tonumber(string.match(record, '^%d+') or 1) then
			bury(key, attempts, record)
		else
			scores[#scores + 1] = lease_end
			scores[#scores + 1] = key
			states[#states + 1] = key
			states[#states + 1] = string.format('%d:%.0f', attempts + 1, token)
			local n = #reply
			reply[n + 1] = key
			reply[n + 2] = due[2 * i]
			reply[n + 3] = attempts + 1
			reply[n + 4] = record
			token = token + 1
			bytes = bytes + #record
		end
		if bytes > 4194304 then
			break
		end
	end
	if #scores > 0 then
		redis.call('ZADD', KEYS[1], unpack(scores))
		redis.call('HSET', KEYS[3], unpack(states))
	end
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if first[2] then
	reply[2] = tonumber(first[2])
end
return reply
