/* SPDX-License-Identifier: MIT */
/*
 * Contenders are the wheels that the benches compare, behind one set of calls: the library in both
 * layouts, and without threads of its own; go-zero's design with a buffered and an unbuffered
 * channel. Tasks do nothing. A call that fails ends the program.
 */
#ifndef BENCH_SUPPORT_CONTENDER_H
#define BENCH_SUPPORT_CONTENDER_H

#include "keys.h"

#include <stddef.h>
#include <stdint.h>

struct contender_state {
	int64_t pending;
	int64_t fired;
};

/* These are the calls of a contender. */
struct contender_calls {
	void *(*create)(int variant, int64_t interval, size_t slots);
	/* Starts the time; set_together does so itself. */
	void (*start)(void *wheel);
	void (*destroy)(void *wheel);
	void (*set)(void *wheel, const struct random_key *key, int64_t delay);
	void (*move)(void *wheel, const struct random_key *key, int64_t delay);
	void (*remove)(void *wheel, const struct random_key *key);
	/* Applies commands and runs due timers, where the wheel has no owner thread. */
	void (*poll)(void *wheel);
	/* Waits until earlier commands have been applied. */
	void (*flush)(void *wheel);
	/* Returns the CPU time of the owner's thread so far in nanoseconds, 0 without one. */
	int64_t (*owner_cpu)(void *wheel);
	struct contender_state (*state)(void *wheel);
	/*
	 * Sets `count` timers that are all due in one tick, and returns its time on the stopwatch.
	 * The wheel must be new and not started.
	 */
	int64_t (*set_together)(void *wheel, const struct random_key *keys, size_t count);
	/* Waits until the task of each timer has run. It is called after that time. */
	void (*wait_fired)(void *wheel, size_t count);
};

struct contender {
	const char *name;  /* in CSV files and plots */
	const char *title; /* in tables */
	const struct contender_calls *calls;
	int variant; /* an argument of these calls */
};

static inline void *contender_create(const struct contender *contender, int64_t interval,
				     size_t slots)
{
	return contender->calls->create(contender->variant, interval, slots);
}

extern const struct contender contender_levels;
extern const struct contender contender_rounds;
extern const struct contender contender_inline; /* one thread sets and polls */
extern const struct contender contender_buffered;
extern const struct contender contender_unbuffered;

#endif
