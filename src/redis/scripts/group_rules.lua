-- Lists the rules of groups, or one. ARGV: a cursor, "0" at first, about how many fields, and the
-- name of the one, or "". Answers the next cursor, "0" at the end, and each field and its text
-- (rules.lua).
local key = string.sub(KEYS[1], 1, -7) .. 'groups'

if ARGV[3] == '' then
	return redis.call('HSCAN', key, ARGV[1], 'COUNT', ARGV[2])
end
local text = redis.call('HGET', key, ARGV[3])
return {'0', text and {ARGV[3], text} or {}}
