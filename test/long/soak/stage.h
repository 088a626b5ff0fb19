/* SPDX-License-Identifier: MIT */
/* The wheels and caches that threads use together. */
#ifndef SOAK_STAGE_H
#define SOAK_STAGE_H

#include "book.h"
#include "cache_use.h"

enum { PLACES_MOST = 4, CACHES_MOST = 2 };

/* A wheel and what it was given. */
struct place {
	struct tw_wheel *wheel;
	struct account account;
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

/* A wheel that keeps its books in the place; context and release are not the caller's. */
void place_open(struct place *place, tw_duration interval, size_t slots, struct tw_options options);

/* Whether a call may have returned this. What it may not is a failed check. */
void place_judge_status(struct place *place, enum tw_status status);

/* Its wheel is idle and empty, or destroyed: all that it was given has come back. */
void place_check_empty(struct place *place);

#endif
