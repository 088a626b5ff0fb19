/* SPDX-License-Identifier: MIT */
/*
 * All waiters of a cache have the same time-out, so each shard's list by time is in order, and one
 * alarm of the cache serves all shards: it is set for the first waiter of any of them, or earlier.
 * A run sets it again for the earliest that it leaves.
 */
#include "waiter.h"

#include <stdlib.h>

/* ---- Calls ---- */

/* A waiter whose function is being called, and those whose are called after it. */
struct calling {
	struct tw_cache *cache;
	struct list *rest;
	struct reader *reader; /* or NULL, if out of memory */
	struct waiter *waiter;
	int cancel_state;
};

static void calling_end(struct calling *calling)
{
	if (calling->reader)
		calling->reader->callbacks--;
	pthread_setcancelstate(calling->cancel_state, NULL);
	tw_cache_entry_release(calling->waiter->entry);
	free(calling->waiter);
}

/* An exception leaves the waiter's function. */
static void calling_abandon(void *argument)
{
	struct calling *calling = argument;

	calling_end(calling);
	waiters_call(calling->cache, calling->rest);
}

static void calling_do(struct calling *calling)
{
	struct waiter *waiter = calling->waiter;

	if (calling->reader) {
		reader_count(calling->reader, COUNT_STALE, waiter->status == TW_STALE);
		calling->reader->callbacks++;
	}
	/* A cancelled thread would leave the others waiting. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &calling->cancel_state);
	pthread_cleanup_push(calling_abandon, calling);
	waiter->on_value(waiter->context, waiter->status, waiter->entry);
	pthread_cleanup_pop(0);
	calling_end(calling);
}

void waiters_call(struct tw_cache *cache, struct list *waiters)
{
	struct calling calling = {.cache = cache, .rest = waiters};
	struct list *link;

	while ((link = list_take_first(waiters))) {
		calling.reader = epochs_reader(&cache->shared.epochs);
		calling.waiter = list_entry(link, struct waiter, of_load);
		calling_do(&calling);
	}
}

void waiter_call(struct tw_cache *cache, struct waiter *waiter, enum tw_status status,
		 const struct tw_cache_entry *entry)
{
	struct list waiters;

	waiter->status = status;
	waiter->entry = entry;
	list_init(&waiters);
	list_append(&waiters, &waiter->of_load);
	waiters_call(cache, &waiters);
}

/* ---- Time-outs ---- */

void waiters_watch(struct tw_cache *cache, tw_duration until)
{
	pthread_mutex_lock(&cache->takes_lock);
	if (until < cache->timeout_at) {
		cache->timeout_at = until;
		(void)tw_alarm_set_at(&cache->timeouts, until);
	}
	pthread_mutex_unlock(&cache->takes_lock);
}

/* Between begin and end: moves waiters whose time is over to that list, some at a time. Returns
 * when the next one's is; `now`: there are more. */
static tw_duration waiters_take_late(struct tw_cache *cache, struct shard *shard, tw_duration now,
				     struct list *late)
{
	enum { MOST = 64 };
	struct reader *reader = epochs_reader(&cache->shared.epochs);
	struct loadings *loads = &shard->loads;

	for (int i = 0; !list_is_empty(&loads->by_time); i++) {
		struct waiter *waiter = list_entry(loads->by_time.next, struct waiter, by_time);
		const struct tw_cache_loading *loading = waiter->loading;

		if (waiter->until > now)
			return waiter->until;
		if (i == MOST)
			return now;
		list_remove(&waiter->by_time);
		list_remove(&waiter->of_load);
		waiter->entry = cache_pin_stale(cache, shard, loading->hash, loading->key,
						loading->key_size, now);
		waiter->status = waiter->entry ? TW_STALE : TW_TIMED_OUT;
		if (reader && !waiter->entry)
			reader_count(reader, COUNT_WAIT_TIMEOUTS, 1);
		list_append(late, &waiter->of_load);
	}
	return TW_FOREVER;
}

void waiters_time_out(void *argument)
{
	struct tw_cache *cache = argument;
	tw_duration now = tw_now(cache->shared.wheel);
	tw_duration next = TW_FOREVER;
	struct list late;

	list_init(&late);
	/* Who waits from here on finds the list of a shard empty, or is one that is left. */
	pthread_mutex_lock(&cache->takes_lock);
	cache->timeout_at = TW_FOREVER;
	pthread_mutex_unlock(&cache->takes_lock);
	for (unsigned i = 0; i <= cache->shard_mask; i++) {
		tw_duration until;

		do {
			shard_begin(&cache->shards[i]);
			until = waiters_take_late(cache, &cache->shards[i], now, &late);
			shard_end_unchanged(&cache->shards[i]);
		} while (until == now);
		if (until < next)
			next = until;
	}
	if (next != TW_FOREVER)
		waiters_watch(cache, next);
	waiters_call(cache, &late);
}
