-- with: group limits batch
-- Lists tasks by their due times, or one task. ARGV: from which due time on, how many
-- of that time to leave out, limit, and the key of the one. Answers now, 1 if there are more, then
-- of each key, due time or end of the lease, run (attempts as "3", with the token of a run on lease
-- as "3:17", "" if there are none), record, and recurrence ("" if none). Those of a time come as:
-- without a group, with one, on lease until then. It ends once the records exceed 512 KiB.
local from, skip, limit = tonumber(ARGV[1]) or 0, tonumber(ARGV[2]), tonumber(ARGV[3])
local batches, tasks = batching(), {}

local function add(key, due, run)
	tasks[#tasks + 1] = {key = key, due = due, run = run, place = #tasks}
end

local function add_run(batch, i, ends)
	add(batch.keys[i], tonumber(ends), (batch.tries[i] or 0) + 1 .. ':' .. batch.token)
end

local function add_one(key)
	local score = redis.call('ZSCORE', KEYS[1], key)

	if score then
		add(key, grouping().due_of(score))
		return
	end
	local batch, place, ends = batches.find(key)
	if batch then
		add_run(batch, place, ends)
	end
end

-- Adds those of `due` up to that score, which have scores so much higher than their due times.
local function add_waiting(higher, last)
	local first = string.format('%d', math.max(from, 0) + higher)
	local left_out = math.min(skip, redis.call('ZCOUNT', KEYS[1], first, first))
	local found = redis.call('ZRANGEBYSCORE', KEYS[1], first, last, 'WITHSCORES',
		'LIMIT', left_out, limit)

	skip = skip - left_out
	for i = 1, #found, 2 do
		add(found[i], found[i + 1] - higher)
	end
end

local function add_leased()
	local leases = redis.call('ZRANGEBYSCORE', KEYS[9], ARGV[1], '+inf', 'WITHSCORES',
		'LIMIT', '0', skip + limit)
	local most = #tasks + limit
	for k = 1, #leases, 2 do
		local batch = #tasks < most and batches.read(leases[k])
		for i = 1, batch and #batch.keys or 0 do
			if not string.find(batch.slots, '^1', i) then
				-- That run is over.
			elseif skip > 0 then
				skip = skip - 1
			else
				add_run(batch, i, leases[k + 1])
			end
		end
	end
end

if ARGV[4] then
	add_one(ARGV[4])
elseif limit > 0 then
	add_waiting(0, '(4000000000000000')
	add_waiting(4000000000000000, '+inf')
	add_leased()
end
table.sort(tasks, function(a, b)
	return a.due < b.due or a.due == b.due and a.place < b.place
end)
local reply, bytes = {now, #tasks >= limit and 1 or 0}, 0
for i = 1, math.min(limit, #tasks) do
	local task = tasks[i]
	local record = redis.call('HGET', KEYS[2], task.key) or ''
	if bytes > 524288 then
		reply[2] = 1
		break
	end
	for _, part in ipairs({task.key, string.format('%d', task.due),
			task.run or redis.call('HGET', KEYS[3], task.key) or '', record,
			redis.call('HGET', KEYS[7], task.key) or ''}) do
		reply[#reply + 1] = part
	end
	bytes = bytes + #record
end
return reply
