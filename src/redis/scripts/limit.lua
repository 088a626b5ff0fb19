-- with: hint group leased limits
-- Sets the rule of a group, of all groups without one ('*'), or of the namespace (''). ARGV: the
-- name, and the rule, "" to remove it (limits.lua). The shard's first rule gives places to all
-- runs. Returns 0.
local name, text = ARGV[1], ARGV[2]
local had_rules = redis.call('EXISTS', KEYS[6]) == 1
local limits, group = limiting(), grouping()

local function hold_all()
	local cursor = '0'
	repeat
		local page = redis.call('HSCAN', KEYS[3], cursor, 'COUNT', 1000)
		cursor = page[1]
		for i = 1, #page[2], 2 do
			local key, run = page[2][i], page[2][i + 1]
			local score = redis.call('ZSCORE', KEYS[1], key)
			if score and leased(run, score) then
				limits.hold(group.of(redis.call('HGET', KEYS[2], key)) or '',
					{run .. '\0' .. key}, score)
			end
		end
	until cursor == '0'
end

if text ~= '' then
	redis.call('HSET', KEYS[6], name, text)
	if not had_rules then
		hold_all()
	end
elseif redis.call('HDEL', KEYS[6], name) == 1 and redis.call('EXISTS', KEYS[6]) == 0 then
	local tag = string.sub(KEYS[1], 1, -4)
	redis.call('DEL', tag .. 'running', tag .. 'places', tag .. 'busy')
end
limits.wake(name)
-- What it kept back may go on.
hint(0)
return 0
