-- The namespace's layout, as text: what the first to open it has set, or ARGV[1], set now.
-- Read first: a replica, and a server whose memory is full, can't write.
local key = string.sub(KEYS[1], 1, -7) .. 'layout'
local layout = redis.call('GET', key)

if not layout then
	layout = ARGV[1]
	redis.call('SET', key, layout)
end
return layout
