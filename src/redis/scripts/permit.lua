-- with: permits
-- A worker asks how many more tasks it may begin. ARGV: its name, how many it has, how many more it
-- wants, how many it was given and did not begin, for how many milliseconds its word is good.
-- Answers how many it is given, -1: there are no limits; and in how many milliseconds it is to ask
-- again if that is too few, -1: then it is not too few.
local limits = redis.call('HMGET', KEYS[1], 'running', 'rate')
local running = string.sub(KEYS[1], 1, -7) .. 'running'

if not limits[1] then
	redis.call('DEL', running)
	return {-1, -1}
end
return {permit({most = tonumber(limits[1]), rate = tonumber(limits[2] or 0), burst = 0},
	running, KEYS[1], ARGV[1], ARGV[5], tonumber(ARGV[2]), tonumber(ARGV[3]),
	tonumber(ARGV[4]))}
