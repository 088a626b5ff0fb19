/* SPDX-License-Identifier: MIT */
/*
 * A storm makes a wheel that holds many timers process all of them at once, while hearts beat on
 * it. Two wheels take part, behind one set of calls: the library (storm_library.c) and the classic
 * cascading wheel (storm_cascading.c).
 *
 * Times are on the stopwatch, in nanoseconds, unless stated otherwise. A call that fails ends the
 * program.
 */
#ifndef BENCH_SUPPORT_STORM_H
#define BENCH_SUPPORT_STORM_H

#include "cascading_wheel.h"
#include "heartbeat.h"
#include "keys.h"

#include <timingwheel/timingwheel.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* This is the time between beats of all hearts. */
#define BEAT_STEP (NANOSECONDS_PER_SECOND / 100)
/* This is the longest period; all hearts have the same one, and start one step after the other. */
#define BEAT_PERIOD_MOST (10 * BEAT_STEP)

enum { HEARTS_MOST = BEAT_PERIOD_MOST / BEAT_STEP };

enum storm {
	STORM_SLOT,  /* all are in one coarse slot, and cascade level by level */
	STORM_TICK,  /* all are due in one tick */
	STORM_DRAIN, /* all are drained */
	STORM_STOPS, /* all are stopped one by one */
	STORM_STOP,  /* the wheel is stopped */
	STORM_COUNT
};

struct storm_plan {
	const struct storm_rival *rival;
	enum storm storm;
	int64_t count;
	int64_t interval;
	int64_t slots;  /* a power of two */
	int64_t beat;   /* a heart's period, BEAT_STEP to BEAT_PERIOD_MOST */
	int64_t coarse; /* the longest that the coarse slot may span, unless it is of level 1 */
	int64_t calm;
	int64_t workers; /* the library's; 0 for inline */
	bool keyed;
	/* The library's hearts are schedules by handle (0) or keyed timers (1). */
	int heartbeat;
	uint64_t seed;
};

/* All fields are doubles, one measure each. */
struct storm_result {
	struct lateness usual;
	struct lateness storm;  /* beats that share no coarse slot with the timers … */
	struct lateness shared; /* … and that do; none at all when the wheel is stopped */
	double after; /* from the last deadline, or the call, until all timers were accounted for */
};

struct heart {
	struct storm_trial *trial;
	struct heartbeat beats;
	/* The library uses this. */
	struct tw_timer timer;
	atomic_bool ends; /* a keyed heart stops setting itself */
	/* The cascading wheel uses this. */
	struct cascading_timer cascading;
};

/* A trial is one run. The rivals own their parts, the running thread all others. */
struct storm_trial {
	const struct storm_plan *plan;
	struct storm_result *result;
	struct generator generator;
	int64_t stopped_before; /* to age the memory */
	int64_t origin;         /* the first of the wheel's ticks */
	int64_t begins;         /* when the storm begins */
	int64_t first;          /* the first deadline of timers that are due in the storm */
	int64_t due;            /* the last deadline, or the time of the call */
	uint32_t *order;
	size_t heart_count;
	struct heart hearts[HEARTS_MOST];
	/* The library uses these. */
	struct tw_wheel *wheel;
	struct tw_timer *handles; /* either these or the keys */
	struct random_key *keys;
	/* The cascading wheel uses these. */
	struct cascading_wheel *cascading;
	struct cascading_timer *timers;
};

/* A rival's timers that come back are counted by fates_add(). */
struct storm_rival {
	const char *name;
	const char *title;
	void (*create)(struct storm_trial *trial);
	void (*destroy)(struct storm_trial *trial);
	/* Makes its memory order random. */
	void (*age)(struct storm_trial *trial);
	void (*set)(struct storm_trial *trial, size_t i, int64_t deadline);
	/* Waits until the wheel has applied all sets. */
	void (*flush)(struct storm_trial *trial);
	void (*start_heart)(struct heart *heart);
	/* Stops a heart, which does not run after the return. */
	void (*stop_heart)(struct heart *heart);
	void (*drain)(struct storm_trial *trial);
	void (*stop_one)(struct storm_trial *trial, size_t i);
	void (*stop)(struct storm_trial *trial);
	/* Returns whether the wheel, too, has completed the single stops. */
	bool (*has_stopped_all)(struct storm_trial *trial);
};

extern const struct storm_rival storm_library;
extern const struct storm_rival storm_cascading;

/* Runs a storm, for process_run_trial(), of a struct storm_plan with a struct storm_result. */
void storm_run(const void *plan, void *result);

#endif
