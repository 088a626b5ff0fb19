/* SPDX-License-Identifier: MIT */
/*
 * The wheels that the benches compare, behind one set of calls: the library in both layouts, and
 * without threads of its own; go-zero's design with a buffered and an unbuffered channel. Tasks do
 * nothing. A call that fails ends the program.
 */
#ifndef BENCH_SUPPORT_CONTENDER_H
#define BENCH_SUPPORT_CONTENDER_H

#include "keys.h"

#include <stddef.h>
#include <stdint.h>

struct contender_state {
	int64_t pending;
	int64_t fired;
	int64_t wakeups; /* times the owner woke from sleep */
	/*
	 * The owner's, nanoseconds, since the beginning: its CPU time, and by the clock. go-zero's
	 * design has only its ticks counted, not its commands.
	 */
	int64_t longest_turn;
	int64_t longest_turn_wall;
};

/* What each of them can do. */
struct contender_calls {
	void *(*create)(int variant, int64_t interval, size_t slots);
	/* Lets time pass; set_together does it by itself. */
	void (*start)(void *wheel);
	void (*destroy)(void *wheel);
	void (*set)(void *wheel, const struct random_key *key, int64_t delay);
	void (*move)(void *wheel, const struct random_key *key, int64_t delay);
	void (*remove)(void *wheel, const struct random_key *key);
	/* Applies commands and runs what is due, where the wheel has no owner thread. */
	void (*poll)(void *wheel);
	/* Waits until the commands before have been applied. */
	void (*flush)(void *wheel);
	/* CPU time of the owner's thread so far, nanoseconds; 0 where there is none. */
	int64_t (*owner_cpu)(void *wheel);
	struct contender_state (*state)(void *wheel);
	/*
	 * Sets `count` timers that are all due in one tick, and answers when that is, on the
	 * stopwatch. The wheel must be new and not started.
	 */
	int64_t (*set_together)(void *wheel, const struct random_key *keys, size_t count);
	/* From that time on: waits until the task of each of these timers has run. */
	void (*wait_fired)(void *wheel, size_t count);
};

struct contender {
	const char *name;  /* in CSV files and plots */
	const char *title; /* in tables */
	const struct contender_calls *calls;
	int variant; /* of these calls */
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
