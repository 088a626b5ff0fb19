/* SPDX-License-Identifier: MIT */
/* When a worker looks at which shard. Main thread only. */
#ifndef REDIS_WORKER_WORKER_SHARDS_H
#define REDIS_WORKER_WORKER_SHARDS_H

#include "worker.h"

/* The shard is to be looked at in so long, or earlier if that is known already. */
void shard_look_in(struct worker_shard *shard, tw_duration wait);
/* While hints come and the server is no cluster: asks for all shards of the namespace at once, in
 * 10 s. */
void shards_look_later(struct source *source);
/* All are to be looked at now. */
void shards_look_now(struct source *source);
/* Its node does not answer: it is left alone for a while, longer each time. */
void shard_block(struct worker_shard *shard);

/* If dead letters are to end: has all shards swept now, and from now on every minute. TW_OK or
 * TW_NO_MEMORY. */
enum tw_status shards_sweep_start(struct source *source);
/* The shard has a letter more: sweeps it soon, if their number is limited. */
void shard_sweep(struct worker_shard *shard);

#endif
