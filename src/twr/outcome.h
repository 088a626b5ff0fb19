/* SPDX-License-Identifier: MIT */
/* What twr ends with; from 64 on as in sysexits.h. */
#ifndef TWR_OUTCOME_H
#define TWR_OUTCOME_H

#include <timingwheel/redis.h>

enum exit_code {
	EXIT_DONE = 0,
	EXIT_NOT_DONE = 1, /* no such task; it exists; it is leased */
	EXIT_USAGE = 2,
	EXIT_BAD_DATA = 65,
	EXIT_UNREACHABLE = 69, /* or of no use: too old, may evict tasks, answers with an error */
	EXIT_SYSTEM = 71,      /* no memory, no thread, standard output is gone */
	EXIT_UNKNOWN = 75,     /* done or not done; trying again is safe */
	EXIT_REFUSED = 77
};

/* The exit code of a status. */
int outcome_code(enum tw_status status);
/* Explains a status that isn't TW_OK on stderr: the rest of a line. */
void outcome_say(enum tw_status status, const struct tw_redis_error *error);
/* The exit code of a status, which is explained on stderr if it isn't TW_OK. */
int outcome(enum tw_status status, const struct tw_redis_error *error);
/* The same for a call's status, with the error that the redis kept. */
int outcome_of_call(struct tw_redis *redis, enum tw_status status);

#endif
