/* SPDX-License-Identifier: MIT */
/*
 * Threads use a cache at random: they set, get, pin, take, touch and delete values that each reader
 * can check.
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

/* These are the kinds of sizes. */
enum sizes { ALL_SIZES, ONE_SIZE, TWO_SIZES, DRIFTING, SOME_HUGE, SIZES };

/* This belongs to one cache. All but the first two fields start as zero. */
struct cache_use {
	/* These are constant once threads use it. */
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	/* Any thread may use these. */
	_Atomic uint32_t sizes;  /* enum sizes */
	_Atomic uint64_t size;   /* the size of ONE_SIZE, and the current one of DRIFTING */
	atomic_bool is_stopping; /* set before tw_cache_stop: calls may return TW_CLOSED */
	_Atomic uint64_t sequence;
	_Atomic uint64_t removals;
	_Atomic uint64_t calls;
	_Atomic uint64_t sets;
	_Atomic uint64_t wrong;   /* wrong values and statuses */
	_Atomic uint64_t expired; /* values at or past their deadline */
	_Atomic(const struct tw_cache_entry *) pins[CACHE_PINS];
};

/* A user is a thread that uses it. */
struct cache_user {
	struct cache_use *use;
	struct generator generator;
	unsigned char *value; /* CACHE_VALUE_MOST bytes */
};

void cache_user_act(struct cache_user *user);

/* Checks an entry that a thread requested at this time of the wheel's clock; with 0 the deadline is
 * not checked. */
void cache_use_judge(struct cache_use *use, const struct tw_cache_entry *entry, tw_duration asked);

/* Counts removals, for tw_cache_options with the use as context. */
void cache_use_on_remove(void *use, const struct tw_cache_entry *entry, enum tw_cache_cause cause);

void cache_use_release_pins(struct cache_use *use);

/* Checks the last statistics of a destroyed cache. */
void cache_use_check(const struct cache_use *use, const struct tw_cache_stats *stats);

#endif
