-- Returns what an add in that mode answers if it is not made, or nil. `score` is that of the task
-- with the key, if there is one.
local function refusal(mode, score)
	return mode == 'new' and score and -1 or mode == 'replace' and not score and -2 or nil
end
