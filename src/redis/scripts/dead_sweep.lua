-- Deletes the dead letters of a shard that are too old, and the oldest of those that are too many;
-- at most a hundred, beside looking at a hundred. ARGV: age in milliseconds and how many may stay
-- (-1: any), cursor ("0" at first). Answers how many went, whether there is more to do now (0 or
-- 1), and the next cursor.
local age, most, cursor = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local count = redis.call('HLEN', KEYS[5])
local over = most >= 0 and count - most or 0
local went = 0

-- Something else may have written any number, or none.
local function died(letter)
	return math.min(tonumber(string.match(letter, '^%d+') or 0), 9007199254740991)
end

-- Letters that claim.lua has made, or an earlier version, are not in the order of deaths: they come
-- into it first. What dies meanwhile is younger than all of these.
if redis.call('ZCARD', KEYS[8]) < count then
	local page = redis.call('HSCAN', KEYS[5], cursor, 'COUNT', 100)

	for i = 1, #page[2], 2 do
		redis.call('ZADD', KEYS[8], string.format('%.0f', died(page[2][i + 1])), page[2][i])
	end
	if page[1] ~= '0' then
		return {0, 1, page[1]}
	end
end
local oldest = redis.call('ZRANGE', KEYS[8], 0, 99, 'WITHSCORES')
for i = 1, #oldest, 2 do
	local key, score = oldest[i], tonumber(oldest[i + 1])
	local letter = redis.call('HGET', KEYS[5], key)

	if over <= 0 and (age < 0 or score >= now - age) then
		return {went, 0, '0'}
	end
	if letter and died(letter) ~= score then
		-- It has died again, by claim.lua: its turn comes later.
		redis.call('ZADD', KEYS[8], string.format('%.0f', died(letter)), key)
		return {went, 1, '0'}
	end
	redis.call('ZREM', KEYS[8], key)
	if letter then
		redis.call('HDEL', KEYS[5], key)
		went = went + 1
		over = over - 1
	end
end
return {went, #oldest == 200 and 1 or 0, '0'}
