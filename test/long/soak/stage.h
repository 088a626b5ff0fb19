/* SPDX-License-Identifier: MIT */
/* The wheels and caches that threads use together. */
#ifndef SOAK_STAGE_H
#define SOAK_STAGE_H

#include "cache_use.h"
#include "model/wheel_user.h"

enum { PLACES_MOST = 4, CACHES_MOST = 2, PLACE_USERS = 6, STORM = PLACE_USERS, PLACE_TIMERS = 8 };

/* A wheel, and what each thread knows of it. */
struct place {
	struct tw_wheel *wheel;
	struct model model;
	struct wheel_user users[PLACE_USERS + 1]; /* the last is that of storms */
	struct timer_set timers[PLACE_USERS];
	struct model_timer timer[PLACE_USERS][PLACE_TIMERS];
};

struct stage {
	/* Constant once threads use it. */
	struct place places[PLACES_MOST];
	struct cache_use caches[CACHES_MOST];
	int place_count;
	int cache_count;
	/* Any thread. */
	atomic_bool is_over; /* threads end soon */
	_Atomic uint64_t operations;
};

/* Makes a wheel for so many users, and storms of so many values; the seed is theirs. */
void place_open(struct place *place, tw_duration interval, size_t slots,
		const struct tw_options *options, unsigned users, size_t storm_size, uint64_t seed);
/* The wheel is destroyed. */
void place_close(struct place *place);

/* Its wheel is idle and empty, or destroyed: all that it was given has come back. */
void place_check_empty(struct place *place);

#endif
