/* SPDX-License-Identifier: MIT */
#include "waiter.h"

#include <stdlib.h>

#include "callback.h"

void waiters_call(struct tw_cache *cache, struct list *waiters)
{
	struct callback callback
		__attribute__((cleanup(callback_end))) = {.shared = &cache->shared};
	/* NULL if out of memory. */
	struct reader *reader = epochs_reader(&cache->shared.epochs);
	struct list *link;

	if (reader)
		reader->callbacks++;
	while ((link = list_take_first(waiters))) {
		struct waiter *waiter = list_entry(link, struct waiter, of_load);

		if (reader)
			reader_count(reader, COUNT_STALE, waiter->status == TW_STALE);
		waiter->on_value(waiter->context, waiter->status, waiter->entry);
		tw_cache_entry_release(waiter->entry);
		free(waiter);
	}
	if (reader)
		reader->callbacks--;
	callback.has_returned = true;
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
