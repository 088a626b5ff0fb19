-- with: hint group limits batch
-- Sets the rule of a group, of all groups without one ('*'), or of the namespace (''). ARGV: the
-- name, and the rule, "" to remove it (limits.lua). The shard's first rule gives places to all
-- runs. Returns 0.
local name, text = ARGV[1], ARGV[2]
local had_rules = redis.call('EXISTS', KEYS[6]) == 1
local limits, batches = limiting(), batching()

local function hold_all()
	local counts = {}
	for _, token in ipairs(redis.call('ZRANGE', KEYS[9], '0', '-1')) do
		local batch = batches.read(token)
		counts = batch and batches.count(batch, counts) or counts
	end
	limits.hold(counts, 1)
end

if text ~= '' then
	redis.call('HSET', KEYS[6], name, text)
	if not had_rules then
		hold_all()
	end
elseif redis.call('HDEL', KEYS[6], name) == 1 and redis.call('EXISTS', KEYS[6]) == 0 then
	redis.call('DEL', KEYS[12])
end
limits.wake(name)
-- What it kept back may go on.
hint(0)
return 0
