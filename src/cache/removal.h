/* SPDX-License-Identifier: MIT */
/* Removals report entries that have left to on_remove, on the wheel's pool. Any thread. */
#ifndef CACHE_REMOVAL_H
#define CACHE_REMOVAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/cache.h>

#include "shared.h"

struct removals {
	/* Constant. */
	tw_cache_remove_fn *on_remove; /* NULL if none is called */
	void *context;
	struct shared_state *shared;
	/* Any thread, under the lock, which is taken inside those of shards. */
	pthread_mutex_t lock;
	pthread_cond_t progress;
	struct tw_cache_entry *first;
	struct tw_cache_entry *last;
	_Atomic uint64_t added; /* read by any thread */
	bool is_awake;          /* the alarm is set, or runs and will look again */
	uint64_t crowds;        /* crowds reported */
	struct tw_alarm alarm;
	/* Written by the thread that reports; read by any. */
	_Atomic uint64_t reported;
};

enum tw_status removals_open(struct removals *removals, struct shared_state *shared,
			     const struct tw_cache_options *options);
void removals_close(struct removals *removals);
/* Returns the number of removals that on_remove has not returned from. */
static inline uint64_t removals_waiting(const struct removals *removals)
{
	uint64_t reported = counter_read_ordered(&removals->reported);

	return counter_read(&removals->added) - reported;
}

/* Queues an entry that has left its shard, with a reference for this. Under the shard's lock. */
void removals_add(struct removals *removals, struct tw_cache_entry *entry);
/* Waits until all that were added before are reported. Returns TW_CLOSED if the wheel was stopped,
 * and nothing reports them, or TW_INVALID if the wheel can't be waited for from here. */
enum tw_status removals_wait(struct removals *removals);
/* Reports all that are left, also those that listeners make leave meanwhile. The alarm does no
 * more. */
void removals_tell_here(struct removals *removals);

#endif
