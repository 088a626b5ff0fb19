/* SPDX-License-Identifier: MIT */
/*
 * A storm: a wheel that holds many timers is made to do something with all of them at once, while
 * hearts beat on it. Two wheels are put to it, behind one set of calls: the library
 * (storm_library.c) and the classic cascading wheel (storm_cascading.c).
 *
 * Times are on the stopwatch, in nanoseconds, if nothing else is said. A call that fails ends the
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

/* From one beat to the next, whichever heart's. */
#define BEAT_STEP (NANOSECONDS_PER_SECOND / 100)
/* The longest period; each heart has the same, and they begin one step after the other. */
#define BEAT_PERIOD_MOST (10 * BEAT_STEP)

enum { HEARTS_MOST = BEAT_PERIOD_MOST / BEAT_STEP };

enum storm {
	STORM_SLOT,  /* all lie in one coarse slot, and come down level by level */
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
	int64_t coarse; /* what the coarse slot takes at most, unless it is of level 1 */
	int64_t calm;
	int64_t workers; /* the library's; 0: inline */
	bool keyed;
	int heartbeat; /* the library's; 0: by handle, a schedule; 1: keyed, setting itself again */
	uint64_t seed;
};

/* The owner's longest: processor time of its thread, and by the clock. */
struct storm_turns {
	double work;
	double wall;
};

/* All doubles, one measure each. */
struct storm_result {
	struct storm_turns before; /* until the storm began */
	struct storm_turns turns;  /* and until it ended */
	struct lateness usual;
	struct lateness storm;  /* of beats that share no coarse slot with the timers … */
	struct lateness shared; /* … and that do; none at all when the wheel is stopped */
	double after; /* from the last deadline, or the call, until all timers were accounted for */
};

struct heart {
	struct storm_trial *trial;
	struct heartbeat beats;
	/* The library's. */
	struct tw_timer timer;
	atomic_bool ends; /* a keyed one is not to set itself again */
	/* The cascading wheel's. */
	struct cascading_timer cascading;
};

/* One run. The rivals' parts are theirs; all else is the thread's that runs it. */
struct storm_trial {
	const struct storm_plan *plan;
	struct storm_result *result;
	struct generator generator;
	int64_t stopped_before; /* to age the memory */
	int64_t origin;         /* of the wheel's ticks */
	int64_t begins;         /* the storm */
	int64_t first;          /* deadline, of those that come due in the storm */
	int64_t due;            /* the last deadline, or when to call */
	uint32_t *order;
	size_t heart_count;
	struct heart hearts[HEARTS_MOST];
	/* The library's. */
	struct tw_wheel *wheel;
	struct tw_timer *handles; /* or */
	struct random_key *keys;
	/* The cascading wheel's. */
	struct cascading_wheel *cascading;
	struct cascading_timer *timers;
};

/* What comes back is counted by fates_add(). */
struct storm_rival {
	const char *name;
	const char *title;
	void (*create)(struct storm_trial *trial);
	void (*destroy)(struct storm_trial *trial);
	/* Mixes up its memory. */
	void (*age)(struct storm_trial *trial);
	void (*set)(struct storm_trial *trial, size_t i, int64_t deadline);
	/* Waits until the wheel has heard of all that were set. */
	void (*flush)(struct storm_trial *trial);
	void (*start_heart)(struct heart *heart);
	/* It is not running any more on return. */
	void (*stop_heart)(struct heart *heart);
	void (*drain)(struct storm_trial *trial);
	void (*stop_one)(struct storm_trial *trial, size_t i);
	void (*stop)(struct storm_trial *trial);
	/* Whether the wheel, too, has done all that was to be done about one-by-one stops. */
	bool (*has_stopped_all)(struct storm_trial *trial);
	struct storm_turns (*longest_turns)(struct storm_trial *trial);
};

extern const struct storm_rival storm_library;
extern const struct storm_rival storm_cascading;

/* One run, for process_run_trial(): a struct storm_plan, a struct storm_result. */
void storm_run(const void *plan, void *result);

#endif
