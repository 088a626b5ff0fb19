/* SPDX-License-Identifier: MIT */
/* The checks of a shard's invariants, for TW_DEBUG. */
#ifndef CACHE_SHARD_CHECK_H
#define CACHE_SHARD_CHECK_H

#include "shard_filing.h"

/* Asserts the invariants by examining all of the shard, under its lock. Returns the sum of the
 * entries' weights. */
uint64_t shard_check(struct shard *shard) HOLDS(shard->lock);
/* Checks the shard once in as many changes as it has slots, so that a change costs as much in a
 * large shard as in a small one. */
void shard_check_sometimes(struct shard *shard) HOLDS(shard->lock);

#endif
