-- with: hint group
-- Sets the rule of a group, in a shard or among the namespace's own keys. ARGV: the group, and its
-- rule, which is "0 0 0 0 0" to remove it. Returns 0. rules.lua says how rules are kept.
local name, text = ARGV[1], ARGV[2]
local key = string.match(KEYS[1], '^.*}') .. 'groups'

if text == '0 0 0 0 0' then
	redis.call('HDEL', key, name)
else
	redis.call('HSET', key, name, text)
end
-- What it kept back may go on.
local group = string.sub(KEYS[1], -4) == '}due' and grouping()
if group and group.is_used() then
	group.wake(name)
	hint(now)
end
return 0
