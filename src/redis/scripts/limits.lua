-- Returns the namespace's limits: how many may run, how many a second (0: no limit).
local limits = redis.call('HMGET', KEYS[1], 'running', 'rate')
return {tonumber(limits[1] or 0), tonumber(limits[2] or 0)}
