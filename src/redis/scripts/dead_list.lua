-- ARGV: cursor, how many letters to look at, and how many of these to leave out. Looks at fewer if
-- these exceed 512 KiB. Answers now, the next cursor ("0" at the end), key and dead letter of some,
-- and 0; or how many it has shown at this cursor, if there are more that exceed that.
local count, seen = tonumber(ARGV[2]), tonumber(ARGV[3])
local page, bytes

repeat
	page, bytes = redis.call('HSCAN', KEYS[5], ARGV[1], 'COUNT', count), 0
	for i = 2, #page[2], 2 do
		bytes = bytes + #page[2][i]
	end
	count = math.floor(count / 4)
until bytes <= 524288 or count == 0
if seen == 0 and bytes <= 524288 then
	return {now, page[1], page[2], 0}
end
local some = {}
bytes = 0
for i = 2 * seen + 1, #page[2], 2 do
	if bytes > 262144 then
		return {now, ARGV[1], some, (i - 1) / 2}
	end
	some[#some + 1] = page[2][i]
	some[#some + 1] = page[2][i + 1]
	bytes = bytes + #page[2][i + 1]
end
return {now, page[1], some, 0}
