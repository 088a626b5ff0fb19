-- Deletes the namespace's own keys. Returns 0.
local tag = string.sub(KEYS[1], 1, -7)

redis.call('UNLINK', KEYS[1], tag .. 'running', tag .. 'present', tag .. 'workers', tag .. 'layout')
return 0
