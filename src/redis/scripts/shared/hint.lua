-- Tells workers when the shard is to be looked at, if nothing in it is to be looked at before. The
-- script's last ARGV are the channel and the shard. Further ahead than 12 s it says nothing:
-- workers look at every shard more often than that, whatever they hear. So it does no harm either
-- if the user may not publish.
local function hint(due)
	if due - now <= 12000 and redis.call('ZCOUNT', KEYS[1], '-inf',
			string.format('(%d', due)) == 0 then
		redis.pcall('PUBLISH', ARGV[#ARGV - 1], ARGV[#ARGV] .. ' ' ..
			string.format('%d', math.max(0, due * 1000 - now_us)))
	end
end
