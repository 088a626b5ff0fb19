/* SPDX-License-Identifier: MIT */
/*
 * A cache and a model of it, given the same random calls. The cache has one shard and no jitter,
 * and lives on a wheel that the caller drives, on the manual clock: so every answer is known, every
 * removal with its cause, and what is left. Where a limit is reached the model follows the cache,
 * and judges: nothing left that could have stayed, and with LRU the entry used last stays longest.
 * Main thread; it asserts as cmocka does.
 */
#ifndef SUPPORT_CACHE_TRIAL_H
#define SUPPORT_CACHE_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/cache.h>

#include "seed.h"

enum { CACHE_TRIAL_KEYS = 24, CACHE_TRIAL_PINS = 4 };

/* An entry that came in and has not left, by its number, which its value begins with. */
struct cache_trial_entry {
	uint32_t number; /* 0: none */
	uint32_t key;
	size_t size;
	uint64_t weight;
	tw_duration end;      /* of its lifetime */
	tw_duration deadline; /* the end, or sooner where it is idle */
	uint64_t used;        /* when, in the order of uses */
	bool gone;            /* a call has taken it out: on_remove is to be told */
	enum tw_cache_cause cause;
};

/* Some of its fields are those of the call under way. */
struct cache_trial {
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	struct tw_cache_options options;
	tw_duration expire; /* the cache's own */
	struct random random;
	tw_duration now;
	uint32_t numbers; /* given so far */
	uint64_t uses;

	struct cache_trial_entry entries[CACHE_TRIAL_KEYS]; /* by key: those that are there */
	tw_duration absent[CACHE_TRIAL_KEYS];               /* remembered until then; 0: not */
	struct cache_trial_entry leaving[CACHE_TRIAL_KEYS * 4];
	size_t leaving_count;

	/* Of the call under way. */
	uint32_t newest;      /* number of what it set last */
	uint64_t heaviest;    /* weight of what it has put out */
	uint64_t oldest_left; /* the latest use of what it has put out */
	unsigned evicted;
	bool of_many; /* of several keys: some of them may have had to leave before others came */
	uint32_t load_key;
	enum tw_status load_answer;
	bool load_sets; /* the loader sets the key itself */
	struct cache_trial_entry loaded;

	struct {
		const struct tw_cache_entry *entry; /* NULL: none */
		uint32_t number;
		uint32_t key;
		size_t size;
	} pins[CACHE_TRIAL_PINS];

	/* What the statistics must tell. */
	uint64_t hits;
	uint64_t misses;
	uint64_t absences;
	uint64_t inserts;
	uint64_t removed[TW_CACHE_CAUSES];
	bool was_without_limit; /* then the order of uses was not kept */
	bool ending;
};

/* Makes wheel and cache, with options by random numbers. */
void cache_trial_begin(struct cache_trial *trial, struct random random);
/* A random call, what it causes, and sometimes some time. */
void cache_trial_step(struct cache_trial *trial);
/* Stops the cache and destroys it: all that is there leaves. */
void cache_trial_end(struct cache_trial *trial);

#endif
