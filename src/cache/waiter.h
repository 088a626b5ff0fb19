/* SPDX-License-Identifier: MIT */
/*
 * Waiters are takes without a thread: their functions are called with the result. A waiter is in
 * the list of its load, under the shard's lock, or in a list of those that are about to be called.
 */
#ifndef CACHE_WAITER_H
#define CACHE_WAITER_H

#include "cache.h"

/* Calls on_value of each waiter in the list, and frees them. With no lock held. */
void waiters_call(struct tw_cache *cache, struct list *waiters);
/* Calls on_value of one, and frees it. The pin of the entry passes to the call. */
void waiter_call(struct tw_cache *cache, struct waiter *waiter, enum tw_status status,
		 const struct tw_cache_entry *entry);

#endif
