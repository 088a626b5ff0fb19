/* SPDX-License-Identifier: MIT */
/* An outcome is twr's exit code. Codes from 64 on are as in sysexits.h. */
#ifndef TWR_OUTCOME_H
#define TWR_OUTCOME_H

#include <timingwheel/redis.h>

enum exit_code {
	EXIT_DONE = 0,
	EXIT_NOT_DONE = 1, /* there is no such task, or it exists, or it is leased */
	EXIT_USAGE = 2,
	EXIT_BAD_DATA = 65,
	EXIT_UNREACHABLE =
		69,        /* or it is of no use: too old, may evict tasks, answers with an error */
	EXIT_SYSTEM = 71,  /* no memory, no thread, standard output is gone */
	EXIT_UNKNOWN = 75, /* done or not done; trying again is safe */
	EXIT_REFUSED = 77
};

/* Returns the exit code of a status. */
int outcome_code(enum tw_status status);
/* Explains a status that is not TW_OK on stderr, as the rest of a line. */
void outcome_say(enum tw_status status, const struct tw_redis_error *error);
/* Returns the exit code of a status. It is explained on stderr if it is not TW_OK. */
int outcome(enum tw_status status, const struct tw_redis_error *error);
/* Returns the exit code of a call's status, as outcome() does, with the error that the handle
 * kept. */
int outcome_of_call(struct tw_redis *redis, enum tw_status status);

#endif
