-- Makes the leases of batches end later, or sooner. ARGV: the new length in milliseconds, then of
-- each run its token, its place in the batch (0: it is any that runs), and its key. Answers as
-- finish does.
local lease_end = string.format('%d', now + ARGV[1])
local answers, scores, slots = {}, {}, {}

for at = 2, #ARGV, 3 do
	local token, place, key = unpack(ARGV, at, at + 2)
	slots[token] = slots[token] or redis.call('HGET', KEYS[4], 's' .. token) or ''
	if string.find(slots[token], place == '0' and '1' or '^1', tonumber(place)) then
		scores[#scores + 1] = lease_end
		scores[#scores + 1] = token
		answers[#answers + 1] = 'o'
	else
		answers[#answers + 1] = redis.call('HEXISTS', KEYS[2], key) == 1 and 's' or 'g'
	end
end
if #scores > 0 then
	redis.call('ZADD', KEYS[9], unpack(scores))
end
return table.concat(answers)
