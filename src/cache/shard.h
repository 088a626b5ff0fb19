/* SPDX-License-Identifier: MIT */
/* The changes of a shard stand between a begin and an end. */
#ifndef CACHE_SHARD_H
#define CACHE_SHARD_H

#include "shard_filing.h"

/* Opens the shard. Returns a status of tw_alarm_init, or TW_NO_MEMORY. On failure, too, it is to be
 * closed. */
enum tw_status shard_open(struct shard *shard, struct shared_state *shared,
			  struct removals *removals);
/* Ends the alarm, which does not run any more on return. */
void shard_stop(struct shard *shard);
/* Frees the shard, which is empty. No thread may be inside an era. */
void shard_close(struct shard *shard);

/* Lets the lock go, after it queued the calls of on_remove and counted what came and went. */
void shard_end_in(struct shard *shard) LETS_GO(shard->lock);
/* Does what shard_end_in() does, where no key came or went. */
void shard_end_move(struct shard *shard) LETS_GO(shard->lock);
/* Takes the lock for changes, after the lock of the calling thread's retiring reader. */
static inline void shard_begin_change(struct shard *shard) TAKES(shard->lock)
{
	shard_begin_in(shard, retire_begin(shard->shared));
}

/* Takes both locks again after shard_end(), for work that is done in steps. */
void shard_begin_again(struct shard *shard) TAKES(shard->lock);
/* Ends what shard_begin_change() or shard_begin_again() began. */
static inline void shard_end(struct shard *shard) LETS_GO(shard->lock)
{
	struct retiring_reader *thread = shard->retiring;

	shard_end_in(shard);
	retire_end(thread, shard->shared);
}

/* Puts in the entry of a new key, which is watched, and makes room for it. What that leaves over
 * the limits is for cache_evict(), which lets the lock go in between. */
void shard_link(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, tw_duration now)
	HOLDS(shard->lock);
/* Puts the entry, which is watched, in the place of `old` of the same key, and then evicts others
 * to make room, as shard_link() does. */
void shard_replace(struct shard *shard, _Atomic uint64_t *slot, struct tw_cache_entry *old,
		   struct tw_cache_entry *entry, tw_duration now) HOLDS(shard->lock);

struct evicted {
	uint64_t entries;
	uint64_t weight;
};

/* Evicts up to `most` entries while the limits are exceeded, but not `spared` (or NULL). Expired
 * entries leave first, up to two blocks of the expiry, which come on top of `most`. For a limit by
 * weight it evicts no live entry if the shard has less than its share, unless `below_share`. */
struct evicted shard_evict(struct shard *shard, unsigned most, bool below_share,
			   const struct tw_cache_entry *spared, tw_duration now) HOLDS(shard->lock);

/* ---- As a whole: in short steps, with the lock let go in between ---- */

/* Removes the entries past their deadlines. The alarm runs this, too. */
void shard_expire(void *shard);
/* Removes all entries. */
void shard_clear(struct shard *shard, enum tw_cache_cause cause);
/* Does up to `steps` steps of what changes do a part of: examining hashes of no use, and another
 * table, smaller if few entries are left. Returns how many steps are left, or 0 if there is more to
 * do. */
size_t shard_tidy(struct shard *shard, size_t steps);

#endif
