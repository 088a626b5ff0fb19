-- Deletes the namespace's own keys. Returns 0.
local tag = string.sub(KEYS[1], 1, -8)

for _, name in ipairs({'present', 'workers', 'layout'}) do
	redis.call('UNLINK', tag .. name)
end
return 0
