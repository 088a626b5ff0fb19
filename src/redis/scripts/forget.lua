-- Deletes the namespace's own keys. Returns 0.
local tag = string.sub(KEYS[1], 1, -7)

for _, name in ipairs({'limits', 'running', 'present', 'workers', 'groups', 'layout'}) do
	redis.call('UNLINK', tag .. name)
end
return 0
