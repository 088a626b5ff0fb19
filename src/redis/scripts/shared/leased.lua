-- Whether a worker has it: "3:17", and the end of the lease is to come. A task of a group that
-- waits has a score of 4e15 and more (group.lua).
local function leased(run, score)
	return run and tonumber(score) > now and tonumber(score) < 4000000000000000 and
		string.find(run, ':', 1, true)
end
