-- Returns now, the next cursor ("0" at the end), key and value of some of a hash, and how many
-- entries it has looked at. ARGV: the hash's place in KEYS, cursor, and how many entries to look
-- at. It looks at fewer if the values exceed 512 KiB.
local count = tonumber(ARGV[3])
local page, bytes

repeat
	page, bytes = redis.call('HSCAN', KEYS[tonumber(ARGV[1])], ARGV[2], 'COUNT', count), 0
	for i = 2, #page[2], 2 do
		bytes = bytes + #page[2][i]
	end
	local fits = bytes <= 524288 or count == 1
	count = fits and count or math.ceil(count / 4)
until fits
return {now, page[1], page[2], count}
