/* SPDX-License-Identifier: MIT */
/*
 * The cache that a C programmer writes in an afternoon, as a baseline: uthash behind one mutex, no
 * expiry, no limit. 16-byte keys, 64-byte values, copied in and out. Any thread.
 */
#ifndef BENCH_SUPPORT_SIMPLE_CACHE_H
#define BENCH_SUPPORT_SIMPLE_CACHE_H

#include "keys.h"

#include <stdbool.h>

struct simple_value {
	uint64_t words[8];
};

struct simple_cache;

/* Ends the program when memory is out; so does the set. */
struct simple_cache *simple_cache_create(void);
void simple_cache_destroy(struct simple_cache *cache);
void simple_cache_set(struct simple_cache *cache, const struct random_key *key,
		      const struct simple_value *value);
bool simple_cache_get(struct simple_cache *cache, const struct random_key *key,
		      struct simple_value *value);

#endif
