/* SPDX-License-Identifier: MIT */
/*
 * A case in words: calls for one namespace of one shard, by a clock of the server's that stands
 * still, and what each of them returns.
 *
 *     STEPS(task_is_claimed_when_it_is_due_and_not_before,
 *           "add a in 1s = 1s; pass 999ms; claim = none; pass 1ms; claim = a#1@1s; done a")
 *
 * A step is a call and `= answer`. The answer is what is said below, or a status without its
 * prefix; `= any` may be any, and a step without an answer must not fail. Times are those since the
 * case began (-5s, 1h30m), and lengths: 90s, 5ms, 7us, never. A word with blanks is in quotes.
 *
 *     add KEY in 1h        = its due time. Also: at TIME, every LENGTH, cron EXPRESSION, zone ZONE,
 *                          missed one|skip|all, latest LENGTH, grace LENGTH, max N, group NAME,
 *                          body TEXT, url URL, mode any|new|replace
 *     add a in 1h , b      several by one call, with an answer for each
 *     restore KEY due 1h   also: tried N, latest_due TIME, why TEXT, state dead
 *     move KEY in 1h       = its due time; or at TIME
 *     cancel KEY, cancel KEY whole
 *     claim                = a#1@TIME, a job of a for its first attempt, that was due then; or the
 *                          beginning, a#1; or none. Also: most N, lease LENGTH
 *     next                 = when the last claim says to look again
 *     done a, snooze a, extend a LENGTH, retry a in LENGTH, kill a why TEXT
 *                          about the last job of a; a:1 means the first one
 *     get KEY due tried    = these fields of the task, and of others above; token: some or none
 *     letter KEY due why   = these fields of the dead letter
 *     list                 = the keys of all tasks
 *     stats tasks dead     = these numbers
 *     revive KEY, drop KEY about a dead letter
 *     limits GROUP running N rate N/LENGTH
 *                          set the group's limits; '' is the namespace
 *     listen               subscribe to hints
 *     hints                = the waits that have been published since, 5s 0, or none
 *     keys                 = the number of the namespace's keys in Redis
 *     redis HDEL {}body a  any command; {} is the tag of the shard
 *     pass LENGTH, clock TIME
 *                          set the clock
 */
#ifndef REDIS_SUPPORT_STEPS_H
#define REDIS_SUPPORT_STEPS_H

#include "support/fixture.h"

#define STEPS(name, text)                                     \
	STORED(one_shard, name)                               \
	{                                                     \
		steps_run(fixture, text, __FILE__, __LINE__); \
	}

/* A file of such cases has this in place of FIXTURE_FILE. */
#define CLOCKED_FILE TEST_FILE(clocked_start_server, fixture_stop_server)

int clocked_start_server(void **state);
/* Sets the server's clock, to microseconds since the beginning of all cases. */
void clocked_set(int64_t us);
void steps_run(struct fixture *fixture, const char *text, const char *file, int line);

#endif
