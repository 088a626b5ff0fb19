/* SPDX-License-Identifier: MIT */
/*
 * How a cache is used by threads at random: set, got, pinned, taken, touched and deleted, with
 * values that can be judged by each thread that is given them.
 */
#ifndef SOAK_CACHE_USE_H
#define SOAK_CACHE_USE_H

#include "support/generator.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <timingwheel/cache.h>

enum {
	CACHE_KEYS = 200000,
	CACHE_PINS = 64, /* released by any thread */
	CACHE_VALUE_MOST = 200000
};

/* Which sizes are set. */
enum sizes { ALL_SIZES, ONE_SIZE, TWO_SIZES, DRIFTING, SOME_HUGE, SIZES };

/* Of one cache. All zero but the first two to begin with. */
struct cache_use {
	/* Constant once threads use it. */
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	/* Any thread. */
	_Atomic uint32_t sizes;  /* enum sizes */
	_Atomic uint64_t size;   /* of ONE_SIZE, and where DRIFTING stands */
	atomic_bool is_stopping; /* set before tw_cache_stop: calls may answer TW_CLOSED */
	_Atomic uint64_t sequence;
	_Atomic uint64_t told; /* removals */
	_Atomic uint64_t calls;
	_Atomic uint64_t sets;
	_Atomic uint64_t wrong;   /* values and answers */
	_Atomic uint64_t expired; /* values at or past their deadline */
	_Atomic(const struct tw_cache_entry *) pins[CACHE_PINS];
};

/* A thread that uses it. */
struct cache_user {
	struct cache_use *use;
	struct generator generator;
	unsigned char *value; /* CACHE_VALUE_MOST bytes */
};

void cache_user_act(struct cache_user *user);

/* What a thread sees of an entry that it asked for at this time of the wheel's clock; 0: the
 * deadline is not judged. */
void cache_use_judge(struct cache_use *use, const struct tw_cache_entry *entry, tw_duration asked);

/* For tw_cache_options, with the use as context: counts. */
void cache_use_on_remove(void *use, const struct tw_cache_entry *entry, enum tw_cache_cause cause);

void cache_use_release_pins(struct cache_use *use);

/* Of a cache that is no more: these were its statistics. */
void cache_use_check(const struct cache_use *use, const struct tw_cache_stats *stats);

#endif
