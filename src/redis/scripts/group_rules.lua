-- Lists the rules of groups, or one. ARGV: a cursor, "0" at first, about how many fields, and the
-- name of the one, or "". Answers the next cursor, "0" at the end, and each field and its text:
-- '//' has the patterns (rules.lua).
local key = string.sub(KEYS[1], 1, -7) .. 'groups'

if ARGV[3] == '' then
	return redis.call('HSCAN', key, ARGV[1], 'COUNT', ARGV[2])
end
local field = string.find(ARGV[3], '*', 1, true) and '//' or ARGV[3]
local text = redis.call('HGET', key, field)
return {'0', text and {field, text} or {}}
