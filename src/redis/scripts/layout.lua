-- The namespace's layout, as text: what the first to open it has set, or ARGV[1], set now.
-- Read first: a replica, and a server whose memory is full, can't write.
local layout = redis.call('GET', KEYS[1])

if not layout then
	layout = ARGV[1]
	redis.call('SET', KEYS[1], layout)
end
return layout
