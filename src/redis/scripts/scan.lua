-- with: read
-- Returns now, the next cursor ("0" at the end), and key and value of some of a hash. ARGV: the
-- hash's place in KEYS, cursor.
local page = read('HSCAN', KEYS[tonumber(ARGV[1])], ARGV[2], 'COUNT', 100)

return {now, page[1], page[2]}
