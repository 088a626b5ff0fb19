/* SPDX-License-Identifier: MIT */
/* A stage has the wheels and caches that threads use together. */
#ifndef SOAK_STAGE_H
#define SOAK_STAGE_H

#include "cache_use.h"
#include "model/wheel_user.h"

enum { PLACES_MOST = 4, CACHES_MOST = 2, PLACE_USERS = 6, STORM = PLACE_USERS, PLACE_TIMERS = 8 };

/* A place is a wheel, and what each thread knows of it. */
struct place {
	struct tw_wheel *wheel;
	struct model model;
	struct wheel_user users[PLACE_USERS + 1]; /* the last one makes the storms */
	struct timer_set timers[PLACE_USERS];
	struct model_timer timer[PLACE_USERS][PLACE_TIMERS];
};

struct stage {
	/* These are constant once threads use it. */
	struct place places[PLACES_MOST];
	struct cache_use caches[CACHES_MOST];
	int place_count;
	int cache_count;
	/* Any thread may use these. */
	atomic_bool is_over; /* threads end soon */
	_Atomic uint64_t operations;
};

/* Opens a wheel for `users` users, and storms of `storm_size` values; the seed is theirs. */
void place_open(struct place *place, tw_duration interval, size_t slots,
		const struct tw_options *options, unsigned users, size_t storm_size, uint64_t seed);
/* Destroys the wheel. */
void place_close(struct place *place);

/* Checks that all values have come back. The wheel is idle and empty, or destroyed. */
void place_check_empty(struct place *place);

#endif
