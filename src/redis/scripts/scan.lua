-- Returns now, the next cursor ("0" at the end), key and value of some of a hash, and 0. ARGV:
-- the hash's place in KEYS, cursor, how many entries to look at, and how many of these to leave
-- out. It looks at fewer if the values exceed 512 KiB. If those of one place in the hash do, it
-- returns some of them and the cursor again, and in place of 0 how many it has shown there.
local count, seen = tonumber(ARGV[3]), tonumber(ARGV[4])
local page, bytes

repeat
	page, bytes = redis.call('HSCAN', KEYS[tonumber(ARGV[1])], ARGV[2], 'COUNT', count), 0
	for i = 2, #page[2], 2 do
		bytes = bytes + #page[2][i]
	end
	count = count > 1 and math.max(1, math.floor(count / 4)) or 0
until bytes <= 524288 or count == 0
if seen == 0 and bytes <= 524288 then
	return {now, page[1], page[2], 0}
end
local some = {}
bytes = 0
for i = 2 * seen + 1, #page[2], 2 do
	if bytes > 262144 then
		return {now, ARGV[2], some, (i - 1) / 2}
	end
	some[#some + 1] = page[2][i]
	some[#some + 1] = page[2][i + 1]
	bytes = bytes + #page[2][i + 1]
end
return {now, page[1], some, 0}
