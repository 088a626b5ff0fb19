/* SPDX-License-Identifier: MIT */
/*
 * A cache that one thread alone uses at random, beside its model (cache_model.h). It has one shard
 * and no jitter, and lives on a wheel that the caller drives, on the manual clock: so every answer
 * is known, every removal with its cause, and what is left. Main thread; it asserts as cmocka does.
 */
#ifndef MODEL_CACHE_TRIAL_H
#define MODEL_CACHE_TRIAL_H

#include "cache_model.h"
#include "support/seed.h"

struct cache_trial {
	struct cache_model model;
	struct cache_client client;
	struct random random;
};

/* Returns how many allocations have failed so far; NULL: none do. */
extern uint64_t (*cache_trial_refusals)(void);

/* Makes wheel and cache, with options by random numbers. One trial at a time. */
void cache_trial_begin(struct cache_trial *trial, struct random random);
/* Makes them with these options and a thread for loads: takes may be told by a call. */
void cache_trial_begin_with(struct cache_trial *trial, struct random random,
			    const struct tw_cache_options *options, unsigned keys);
/* Makes a random call and judges what it causes, or lets some time pass. */
void cache_trial_step(struct cache_trial *trial);
/* Stops the cache and destroys it: all that is there leaves. */
void cache_trial_end(struct cache_trial *trial);

#endif
