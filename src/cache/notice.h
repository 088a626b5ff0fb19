/* SPDX-License-Identifier: MIT */
/* Tells on_remove, on the wheel's pool, of entries that have left. Any thread. */
#ifndef CACHE_NOTICE_H
#define CACHE_NOTICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/cache.h>

#include "domain.h"

struct notices {
	/* Constant. */
	tw_cache_remove_fn *on_remove; /* NULL: nobody is told */
	void *context;
	struct domain *domain;
	/* Any thread, under the lock, which is taken inside those of shards. */
	pthread_mutex_t lock;
	pthread_cond_t progress;
	struct tw_cache_entry *first;
	struct tw_cache_entry *last;
	uint64_t added;
	_Atomic uint64_t told; /* read by any thread */
	bool is_awake;         /* the alarm is set, or runs and will look again */
	struct tw_alarm *alarm;
};

/* Entries that left, of one shard, in order; each with a reference for this. */
struct notice_list {
	struct tw_cache_entry *first;
	struct tw_cache_entry *last;
	uint64_t count;
};

enum tw_status notices_open(struct notices *notices, struct domain *domain,
			    const struct tw_cache_options *options);
void notices_close(struct notices *notices);
/* Under the shard's lock that guards the list. */
void notice_list_add(struct notice_list *list, struct tw_cache_entry *entry);
/* Under the same lock, at last: empties the list, which is not empty. */
void notices_add(struct notices *notices, struct notice_list *list);
/*
 * Waits until all that were added are told; `later`: also those that listeners make leave
 * meanwhile. TW_CLOSED: the wheel was stopped, and nothing tells them; TW_INVALID: the wheel can't
 * be waited for from here.
 */
enum tw_status notices_wait(struct notices *notices, bool later);
/* Tells all that are left; the alarm does no more. */
void notices_tell_here(struct notices *notices);

#endif
