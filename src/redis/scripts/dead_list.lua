-- ARGV: cursor, and how many letters to look at. Looks at fewer if these exceed 512 KiB. Answers
-- now, the next cursor ("0" at the end), and key and dead letter of some.
local count = tonumber(ARGV[2])
local page, bytes

repeat
	page, bytes = redis.call('HSCAN', KEYS[5], ARGV[1], 'COUNT', count), 0
	for i = 2, #page[2], 2 do
		bytes = bytes + #page[2][i]
	end
	count = math.floor(count / 4)
until bytes <= 524288 or count == 0
return {now, page[1], page[2]}
