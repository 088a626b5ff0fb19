-- Batches. A batch is what a claim has taken, and its lease; its token is that of all its runs. In
-- `state`, kTOKEN is written once: "WORKER NUMBER" of the claim, LF, and, packed, the keys, the
-- attempts that some of them had before, and the groups of those that have one. sTOKEN has a letter
-- for each: 1 runs, f was replaced while it ran, x is over. The batch ends with the last run of
-- these, or with its lease.
local function batching()
	local state, leases = KEYS[4], KEYS[9]
	local batches = {}

	-- Returns a batch with all that it holds, or nil if it is over.
	function batches.read(token)
		local kept = redis.call('HMGET', state, 'k' .. token, 's' .. token)
		if not (kept[1] and kept[2]) then
			return nil
		end
		local start = string.find(kept[1], '\n', 1, true)
		local keys, tries, groups = unpack(cmsgpack.unpack(string.sub(kept[1], start + 1)))
		return {token = token, keys = keys, tries = tries, groups = groups,
			slots = kept[2], claim = string.sub(kept[1], 1, start - 1)}
	end

	-- Writes the letters that are left, or ends the batch.
	function batches.write(token, slots)
		if string.find(slots, '[1f]') then
			redis.call('HSET', state, 's' .. token, slots)
		else
			redis.call('HDEL', state, 's' .. token, 'k' .. token)
			redis.call('ZREM', leases, token)
		end
	end

	-- Counts the runs of a batch that have places, by their groups: all, or some of them.
	function batches.count(batch, counts, first, last)
		for i = first or 1, last or #batch.keys do
			local name = batch.groups[i] or ''
			if string.find(batch.slots, '^[1f]', i) then
				counts[name] = (counts[name] or 0) + 1
			end
		end
		return counts
	end

	-- Makes the tasks that a batch still has due at that time. `tried` is 1 if these runs were
	-- attempts, or 0: then an occurrence keeps its due time. Returns how many tasks these were.
	function batches.give_back(batch, due, tried)
		local keys, dues, states = {}, {}, {}
		for i, key in ipairs(batch.keys) do
			if string.find(batch.slots, '^1', i) then
				local attempts = (batch.tries[i] or 0) + tried
				local entry = tried == 0 and redis.call('HGET', KEYS[7], key) or ''
				local planned, computed = string.match(entry, '^(%d+) (%d+)')
				-- What is planned for after the claim was moved to before it.
				local is_kept = planned and
					planned * 1000 <= tonumber(batch.token) and
					tonumber(computed) <= now + AHEAD
				keys[#keys + 1] = key
				dues[#dues + 1] = is_kept and tonumber(planned) or due
				if attempts > 0 then
					states[#states + 1] = key
					states[#states + 1] = attempts
				end
			end
		end
		if #keys > 0 then
			grouping().set_all_due(keys, dues)
		end
		if #states > 0 then
			redis.call('HSET', KEYS[3], unpack(states))
		end
		if redis.call('EXISTS', KEYS[6]) == 1 then
			limiting().hold(batches.count(batch, {}), -1)
		end
		batches.write(batch.token, '')
		return #keys
	end

	-- Gives back what is on leases that have ended, about 1,000 tasks at most.
	function batches.lapse()
		local ended = redis.call('ZRANGEBYSCORE', leases, '-inf', string.format('%d', now),
			'WITHSCORES', 'LIMIT', '0', '1000')
		local given = 0
		for i = 1, #ended, 2 do
			local batch = given < 1000 and batches.read(ended[i])
			if batch then
				given = given + batches.give_back(batch, tonumber(ended[i + 1]), 1)
			end
		end
	end

	-- Returns the batch of each of these tasks that is on lease, and its place there. It looks
	-- through all batches.
	local function runs_of(keys)
		local is_wanted, runs = {}, {}
		for _, key in ipairs(keys) do
			is_wanted[key] = true
		end
		for _, token in ipairs(redis.call('ZRANGE', leases, '0', '-1')) do
			local kept = redis.call('HGET', state, 'k' .. token) or ''
			local batch = (#keys > 1 or string.find(kept, keys[1], 1, true)) and
				batches.read(token)
			for i, key in ipairs(batch and batch.keys or {}) do
				if is_wanted[key] and string.find(batch.slots, '^1', i) then
					runs[#runs + 1] = {batch, i}
				end
			end
		end
		return runs
	end

	-- Returns the batch that has the task on lease, the task's place there, and when the lease
	-- ends; or nil.
	function batches.find(key)
		local batch, place = unpack(runs_of({key})[1] or {})
		return batch, place, batch and redis.call('ZSCORE', leases, batch.token)
	end

	-- Returns the task's score in `due`, or nil and whether it is on lease. One whose lease has
	-- ended waits from now on.
	function batches.score_of(key)
		local score = redis.call('ZSCORE', KEYS[1], key)
		if score or redis.call('HEXISTS', KEYS[2], key) == 0 then
			return score or nil, false
		end
		local batch, _, ends = batches.find(key)
		if batch and tonumber(ends) <= now then
			batches.give_back(batch, tonumber(ends), 1)
			return redis.call('ZSCORE', KEYS[1], key), false
		end
		return nil, batch ~= nil
	end

	-- Makes the runs stale that these tasks have, as they are replaced.
	function batches.fence(keys)
		for _, run in ipairs(runs_of(keys)) do
			local batch, i = unpack(run)
			batch.slots = string.sub(batch.slots, 1, i - 1) .. 'f' ..
				string.sub(batch.slots, i + 1)
			redis.call('HSET', state, 's' .. batch.token, batch.slots)
		end
	end
	return batches
end
