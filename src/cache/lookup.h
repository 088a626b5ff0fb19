/* SPDX-License-Identifier: MIT */
/* The public calls that look keys up, and what they share with tw_cache_take. */
#ifndef CACHE_LOOKUP_H
#define CACHE_LOOKUP_H

#include "cache.h"

/* Inside an epoch: the key's entry if it may be read, absences too; NULL: none. Counts as a use. */
struct tw_cache_entry *cache_find(struct tw_cache *cache, uint64_t hash, const void *key,
				  size_t key_size);

#endif
