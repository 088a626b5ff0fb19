-- test_keys.sh puts this before each script, with its name for SCRIPT: a command whose key the call
-- did not name is an error. These keys are touched without a name, beside those of a
-- call that names one key alone while its slot is on its way to another node (shared/time.lua).
local unnamed = {
	-- These are of rates, which few groups have.
	claim = '}rate/',
}
local redis = (function()
	local own, named = redis, {}
	for _, key in ipairs(KEYS) do
		named[key] = true
	end
	local function check(command, key)
		if command ~= 'TIME' and command ~= 'PUBLISH' and not named[key] and
				not (unnamed.SCRIPT and string.find(key, unnamed.SCRIPT)) then
			error('SCRIPT does not name the key ' .. tostring(key), 0)
		end
	end
	return {
		call = function(command, ...)
			check(command, ...)
			return own.call(command, ...)
		end,
		pcall = function(command, ...)
			check(command, ...)
			return own.pcall(command, ...)
		end,
	}
end)()
