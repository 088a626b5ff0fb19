/* SPDX-License-Identifier: MIT */
/* What is done to a shard as a whole: in short steps, with the lock let go in between. */
#ifndef CACHE_SHARD_SWEEP_H
#define CACHE_SHARD_SWEEP_H

#include "shard.h"

/* Removes what is past its deadline: the alarm's run, too. */
void shard_expire(void *shard);
/* Removes all. */
void shard_clear(struct shard *shard, enum tw_cache_cause cause);
/* From now on the policy knows all entries. */
void shard_turn_policy_on(struct shard *shard);
/* Frees what can be freed. */
void shard_reclaim(struct shard *shard);

#endif
