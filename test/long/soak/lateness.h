/* SPDX-License-Identifier: MIT */
/* How late tasks ran, of the last interval and of the whole run. */
#ifndef SOAK_LATENESS_H
#define SOAK_LATENESS_H

#include <stdint.h>

/* Nanoseconds. */
struct lateness {
	uint64_t count;
	int64_t p50;
	int64_t p99;
	int64_t most;
};

void lateness_begin(void);
void lateness_end(void);

/* Any thread. */
void lateness_record(int64_t lateness);

/* What was recorded since the call before. One thread's, as is the next. */
struct lateness lateness_of_interval(void);
/* All that such calls have told of. */
struct lateness lateness_of_all(void);

#endif
