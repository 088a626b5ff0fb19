/* SPDX-License-Identifier: MIT */
/* This is the lateness of tasks, in the last interval and in the whole run. */
#ifndef SOAK_LATENESS_H
#define SOAK_LATENESS_H

#include <stdint.h>

/* All fields are nanoseconds. */
struct lateness {
	uint64_t count;
	int64_t p50;
	int64_t p99;
	int64_t most;
};

void lateness_begin(void);
void lateness_end(void);

/* Records a lateness. Any thread may call it. */
void lateness_record(int64_t lateness);

/* Returns the lateness since the call before. Only one thread may call this and the next. */
struct lateness lateness_of_interval(void);
/* Returns the sum of all such intervals. */
struct lateness lateness_of_all(void);

#endif
