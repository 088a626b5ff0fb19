-- Reads a key. The error that it has a wrong type names it.
local function read(command, key, ...)
	local reply = redis.pcall(command, key, ...)

	if type(reply) ~= 'table' or not reply.err then
		return reply
	end
	if string.find(reply.err, 'WRONGTYPE', 1, true) then
		error(key .. ': ' .. reply.err, 0)
	end
	return redis.call(command, key, ...)
end
