/* SPDX-License-Identifier: MIT */
/*
 * One thread alone makes random calls to a cache beside its model (cache_model.h). The cache has
 * one shard and no jitter, on a wheel that the caller drives, with the manual clock: every answer
 * is known, every removal with its cause, and the remaining contents. It runs in the main thread,
 * and asserts as cmocka does.
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

/* Returns the number of failed allocations so far. NULL means that none fail. */
extern uint64_t (*cache_trial_refusals)(void);

/* Makes the wheel and the cache, with random options. There is one trial at a time. */
void cache_trial_begin(struct cache_trial *trial, struct random random);
/* Makes them with these options and a loader of the cache's own: takes may have a callback. */
void cache_trial_begin_with(struct cache_trial *trial, struct random random,
			    const struct tw_cache_options *options, unsigned keys);
/* Makes a random call and checks its effects, or lets some time pass. */
void cache_trial_step(struct cache_trial *trial);
/* Stops the cache and destroys it: all values leave. */
void cache_trial_end(struct cache_trial *trial);

#endif
