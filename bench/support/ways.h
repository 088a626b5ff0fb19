/* SPDX-License-Identifier: MIT */
/*
 * Ways are the kinds of timers that timers.c compares, behind one set of calls: the library's by
 * key, by handle, and alarms. A name is how a caller refers to a timer: a key, a handle, or an
 * alarm's address. Tasks only count. A call that fails ends the program.
 */
#ifndef BENCH_SUPPORT_WAYS_H
#define BENCH_SUPPORT_WAYS_H

#include <timingwheel/timingwheel.h>

#include <stddef.h>
#include <stdint.h>

/* Timers are a wheel and the names of its timers. */
struct timers {
	const struct way *way;
	size_t count;
	int64_t interval;
	size_t slots;
	uint64_t seed;
	/* The way's calls set these. */
	struct tw_wheel *wheel;
	char *names; /* name_size bytes each */
	struct tw_alarm *alarms;
};

struct way {
	const char *name;
	size_t name_size;
	size_t own_bytes; /* caller's memory that a timer takes */
	/* Creates the names, before anything is measured. */
	void (*prepare)(struct timers *timers);
	void (*create)(struct timers *timers);
	void (*set)(struct timers *timers, void *name, int64_t delay);
	/* Sets a timer that is pending; NULL where this is a move. */
	void (*set_again)(struct timers *timers, void *name, int64_t delay);
	void (*move)(struct timers *timers, void *name, int64_t delay);
	void (*stop)(struct timers *timers, void *name);
	/* Returns how many are set; NULL for alarms, which are not counted. */
	int64_t (*pending)(struct timers *timers);
};

extern const struct way way_key;
extern const struct way way_handle;
extern const struct way way_alarm;

void timers_destroy(struct timers *timers);

/* Waits until earlier calls have been applied. */
void timers_flush(struct timers *timers);

/* Sets all timers of a new wheel for one tick. Returns its time on the stopwatch. */
int64_t timers_set_together(struct timers *timers);

/* Waits, after that time, until the task of each has run. */
void timers_wait_fired(struct timers *timers);

static inline void *name_at(const struct timers *timers, size_t i)
{
	return timers->names + i * timers->way->name_size;
}

#endif
