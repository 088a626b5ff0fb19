-- Stands before every script. Of KEYS a script is given as many as it needs, in this order, all
-- with the hash tag of one shard:
--   1 due    sorted set: key of each task, by the millisecond when it is next to be looked at: its
--            due time, its next attempt, or the end of its lease
--   2 body   hash: key to record, which begins with the number of attempts that the task may have
--            (record.h)
--   3 run    hash: key to attempts begun; "3:17" is the third, on lease with token 17; none: 0
--   4 token  the last fencing token, microseconds since 1970 or one more than the one before; while
--            the clock is behind it, then also the last time, and how far claim.lua has looked
--   5 dead   hash: key to "died:attempts:size of reason:reason" and the record
--   6 limits hash: group to its rule, and '' to that of the namespace (limits.lua)
--   7 every  hash: key of a recurring task to "due computed rhythm": when its present occurrence
--            was due at first, the time by which that was computed (0: a program gave it), and the
--            rhythm, as "one 60000" or "skip cron UTC 0 9 * * *": what becomes of missed times, and
--            the period in milliseconds, or zone and expression
--   8 died   sorted set: key of each dead letter, by the millisecond when it died
--   9 added  how many tasks were ever added
-- Where tasks have groups there are beside them
--   queue  sorted set by name: group, a zero byte, due time in 15 digits and key of each task of a
--          group that waits
--   turns  sorted set: each group that has one in `queue`, by the microsecond of its turn; and '',
--          the namespace itself
--   parked hash: group that limits keep back to the turn that it would have had, and the turn that
--          was cut short (limits.lua, turns.lua)
-- Where there are limits, "running", "places", "busy" and "rate/GROUP" (limits.lua).
-- The namespace's own keys are, in this order:
--   1 present  sorted set: worker, by the millisecond until which its report is good
--   2 workers  hash: worker to its report
--   3 layout   "3 16": the version of these keys, and the number of shards; a call that reads it
--              has it as the first one
-- Besides, "note/WORKER" is there for the time of a lease: what a worker's last large claim took
-- (claim.lua). And "wait" is there for a millisecond behind changes that are waited for (router.c).
-- Times are this server's, taken here. A script that begins with "with:" has the named files of
-- this folder before it, too; only those, for each call makes their functions again.
if #KEYS == 1 then
	-- Of a slot on its way to this node one key alone is declared: a node refuses several as
	-- long as one of them is not there, as those are that have nothing to hold (router.c).
	local tag = string.sub(KEYS[1], 1, -4)
	KEYS[2], KEYS[3] = tag .. 'body', tag .. 'run'
	KEYS[4], KEYS[5], KEYS[6] = tag .. 'token', tag .. 'dead', tag .. 'limits'
	KEYS[7], KEYS[8], KEYS[9] = tag .. 'every', tag .. 'died', tag .. 'added'
	KEYS[10], KEYS[11], KEYS[12] = tag .. 'queue', tag .. 'turns', tag .. 'parked'
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
-- A time that is this many milliseconds later was read from a clock that was ahead.
local AHEAD = 5000
