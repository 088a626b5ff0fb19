/* SPDX-License-Identifier: MIT */
/*
 * A flight lives until all have let go of it, and holds a pin on the entry that it brought. It may
 * outlive the cache, with a loader that keeps it.
 *
 * No thread waits for itself: before a thread waits, it follows the chain from the flight to its
 * loader's thread, to the flight which that one waits for, and so on. Arriving at itself it gives
 * up. The links of the chain, and the ends of flights, are under one lock of the cache, taken
 * inside a shard's. A flight that no thread loads, queued or kept, ends the chain.
 */
#include "flight.h"

#include <stdlib.h>

#include "base/key.h"
#include "base/thread.h"

struct tw_cache_loading *flights_find(struct tw_cache_loading *flights, uint64_t hash,
				      const void *key, size_t key_size)
{
	while (flights && (flights->hash != hash || flights->key_size != key_size ||
			   !keys_are_equal(flights->key, key, key_size)))
		flights = flights->next;
	return flights;
}

void flights_override(struct tw_cache_loading *flights, uint64_t hash, const void *key,
		      size_t key_size)
{
	struct tw_cache_loading *flight = flights_find(flights, hash, key, key_size);

	if (flight)
		flight->is_overridden = true;
}

void flights_override_all(struct tw_cache_loading *flights)
{
	for (; flights; flights = flights->next)
		flights->is_overridden = true;
}

void flights_wake(struct tw_cache_loading *flights, struct waiter **waiters)
{
	for (; flights; flights = flights->next) {
		struct waiter **end = &flights->waiters;

		pthread_cond_broadcast(&flights->ended);
		while (*end)
			end = &(*end)->next;
		*end = *waiters;
		*waiters = flights->waiters;
		flights->waiters = NULL;
	}
}

struct tw_cache_loading *flight_new(struct tw_cache *cache, struct shard *shard, uint64_t hash,
				    const void *key, size_t key_size)
{
	struct tw_cache_loading *flight = calloc(1, sizeof(*flight) + key_size);

	if (!flight)
		return NULL;
	flight->cache = cache;
	flight->shard = shard;
	flight->hash = hash;
	flight->key_size = key_size;
	memcpy(flight->key, key, key_size);
	atomic_init(&flight->references, 1);
	flight->is_queued = true;
	condition_init(&flight->ended);
	pthread_mutex_init(&flight->lock, NULL);
	return flight;
}

void flight_list(struct tw_cache_loading *flight, struct tw_cache_loading **flights)
{
	flight->next = *flights;
	*flights = flight;
}

void flight_set_loader(struct tw_cache_loading *flight, struct domain *domain,
		       struct reader *loader)
{
	flight->is_queued = false;
	pthread_mutex_lock(&domain->waits_lock);
	flight->loader = loader;
	pthread_mutex_unlock(&domain->waits_lock);
}

void flight_end(struct tw_cache_loading *flight, struct tw_cache_loading **flights,
		struct domain *domain)
{
	while (*flights != flight)
		flights = &(*flights)->next;
	*flights = flight->next;
	flight->is_queued = false;
	pthread_mutex_lock(&domain->waits_lock);
	flight->is_over = true;
	pthread_mutex_unlock(&domain->waits_lock);
	pthread_cond_broadcast(&flight->ended);
}

void flight_let_go(struct tw_cache_loading *flight)
{
	/* acq_rel: all others are done with it before the last one frees it; pairs with itself. */
	if (!flight || atomic_fetch_sub_explicit(&flight->references, 1, memory_order_acq_rel) > 1)
		return;
	tw_cache_entry_release(flight->entry);
	pthread_cond_destroy(&flight->ended);
	pthread_mutex_destroy(&flight->lock);
	free(flight);
}

bool flight_may_wait(const struct tw_cache_loading *flight, struct domain *domain,
		     struct reader *reader)
{
	const struct tw_cache_loading *next = flight;
	bool may_wait;

	pthread_mutex_lock(&domain->waits_lock);
	while (next && !next->is_over && next->loader != reader)
		next = next->loader ? next->loader->waits_for : NULL;
	may_wait = !next || next->is_over;
	if (may_wait)
		reader->waits_for = flight;
	pthread_mutex_unlock(&domain->waits_lock);
	return may_wait;
}

enum tw_status flight_wait(struct tw_cache_loading *flight, struct domain *domain,
			   struct reader *reader, pthread_mutex_t *lock, tw_duration until)
{
	bool has_time = until > 0;

	while (!flight->is_over && has_time && !domain_is_closed(domain))
		has_time = condition_wait(&flight->ended, lock, until);
	pthread_mutex_lock(&domain->waits_lock);
	reader->waits_for = NULL;
	pthread_mutex_unlock(&domain->waits_lock);
	if (flight->is_over)
		return TW_OK;
	return domain_is_closed(domain) ? TW_CLOSED : TW_TIMED_OUT;
}
