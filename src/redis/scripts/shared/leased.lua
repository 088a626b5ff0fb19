-- Whether a worker has it: "3:17", and the end of the lease is to come.
local function leased(run, score)
	return run and tonumber(score) > now and string.find(run, ':', 1, true)
end
