/* SPDX-License-Identifier: MIT */
/*
 * The baseline is the cache that a C programmer writes in an afternoon: uthash behind one mutex, no
 * expiry, no limit. It copies 16-byte keys and 64-byte values in and out. Any thread may call it.
 */
#ifndef BENCH_SUPPORT_SIMPLE_CACHE_H
#define BENCH_SUPPORT_SIMPLE_CACHE_H

#include "keys.h"

#include <stdbool.h>

struct simple_value {
	uint64_t words[8];
};

struct simple_cache;

/* Creates a cache. Like a set, it ends the program when memory is out. */
struct simple_cache *simple_cache_create(void);
void simple_cache_destroy(struct simple_cache *cache);
void simple_cache_set(struct simple_cache *cache, const struct random_key *key,
		      const struct simple_value *value);
bool simple_cache_get(struct simple_cache *cache, const struct random_key *key,
		      struct simple_value *value);

#endif
