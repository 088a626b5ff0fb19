/* SPDX-License-Identifier: MIT */
#ifndef SUPPORT_CACHE_CHECK_H
#define SUPPORT_CACHE_CHECK_H

struct tw_cache;

/* Asserts the invariants of the cache by examining all of it. The caller has none of its locks. The
 * sums over shards are right only while no other thread has one of these. */
void cache_check(struct tw_cache *cache);

#endif
