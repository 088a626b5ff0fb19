-- Stands before every script. Of KEYS a script is given as many as it needs, in this order, all
-- with the hash tag of one shard:
--   1 due    sorted set: key of each task that waits, by the millisecond when it is due
--   2 body   hash: key of each task, waiting or on lease, to its record (record.h), which begins
--            with the due time of its first attempt and the number of attempts that it may have.
--            To print a score takes Redis a third of a task's claim, so claims read the due time
--            there, unless the task has been tried or recurs
--   3 run    hash: key of a task that waits for another attempt to the number of those begun
--   4 state  hash: "token", the last token, microseconds since 1970 or one more than the last;
--            "seen", the time of the last claim, and "cursor", how far claims have looked through
--            `every` for times by a clock that was ahead (claim.lua); "cut", a group's turn that
--            was cut short, as "3 NAME": the tasks it has had; "added", how many tasks were ever
--            added; kTOKEN and sTOKEN of each batch (batch.lua)
--   5 dead   hash: key to "died:attempts:size of reason:reason" and the record
--   6 limits hash: group to its rule, and '' to that of the namespace (limits.lua)
--   7 every  hash: key of a recurring task to "due computed rhythm": when its present occurrence
--            was due at first, the time by which that was computed (0: a program gave it), and the
--            rhythm, as "one 60000" or "skip cron UTC 0 9 * * *": what becomes of missed times, and
--            the period in milliseconds, or zone and expression
--   8 died   sorted set: key of each dead letter, by the millisecond when it died
--   9 leases sorted set: token of each batch, by the millisecond when its lease ends
-- Where tasks have groups there are beside them
--   queue  sorted set by name: group, a zero byte, due time in 15 digits and key of each task of a
--          group that waits
--   turns  sorted set: each group that has one in `queue`, by the microsecond of its turn; and '',
--          the namespace itself
-- Where there are limits
--   busy   hash: group, or '', to the number of its runs that have places
-- and the keys "rate/GROUP" (limits.lua).
-- The namespace's own keys are, in this order:
--   1 layout   "5 16": the version of these keys, and the number of shards
--   2 present  sorted set: worker, by the millisecond until which its report is good
--   3 workers  hash: worker to its report
-- Besides, "wait" is there for a millisecond behind changes that are waited for (router.c).
-- Times are this server's, taken here. A script that begins with "with:" has the named files of
-- this folder before it, too; only those, for each call makes their functions again.
if #KEYS == 1 then
	-- Of a slot on its way to this node one key alone is declared: a node refuses several as
	-- long as one of them is not there, as those are that have nothing to hold (router.c).
	local tag, first = string.match(KEYS[1], '^(.*})(.*)$')
	for _, name in ipairs(first == 'layout' and {'present', 'workers'} or {'body', 'run',
			'state', 'dead', 'limits', 'every', 'died', 'leases', 'queue', 'turns',
			'busy'}) do
		KEYS[#KEYS + 1] = tag .. name
	end
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
-- A time that is this many milliseconds later was read from a clock that was ahead.
local AHEAD = 5000
