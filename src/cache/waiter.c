/* SPDX-License-Identifier: MIT */
#include "waiter.h"

#include <stdlib.h>

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
