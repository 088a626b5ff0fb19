-- with: read
-- ARGV: cursor. Answers now, the next cursor ("0" at the end), and key and dead letter of some.
local page = read('HSCAN', KEYS[5], ARGV[1], 'COUNT', 100)

return {now, page[1], page[2]}
