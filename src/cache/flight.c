/* SPDX-License-Identifier: MIT */
/*
 * A flight lives until its loader and all threads that wait have let go of it, and holds a pin on
 * the entry that it brought.
 *
 * No thread waits for itself: before a thread waits, it follows the chain from the flight to its
 * loader's thread, to the flight which that one waits for, and so on. Arriving at itself it gives
 * up. The links of the chain, and the ends of flights, are under one lock of the cache, taken
 * inside a shard's.
 */
#include "flight.h"

#include <stdlib.h>

#include "base/key.h"
#include "base/thread.h"

struct flight *flights_find(struct flight *flights, uint64_t hash, const void *key, size_t key_size)
{
	while (flights && (flights->hash != hash || flights->key_size != key_size ||
			   !keys_are_equal(flights->key, key, key_size)))
		flights = flights->next;
	return flights;
}

void flights_override(struct flight *flights, uint64_t hash, const void *key, size_t key_size)
{
	struct flight *flight = flights_find(flights, hash, key, key_size);

	if (flight)
		flight->is_overridden = true;
}

void flights_override_all(struct flight *flights)
{
	for (; flights; flights = flights->next)
		flights->is_overridden = true;
}

void flights_wake(struct flight *flights)
{
	for (; flights; flights = flights->next)
		pthread_cond_broadcast(&flights->ended);
}

struct flight *flight_begin(struct flight **flights, struct reader *loader, uint64_t hash,
			    const void *key, size_t key_size)
{
	struct flight *flight = calloc(1, sizeof(*flight));

	if (!flight)
		return NULL;
	flight->hash = hash;
	flight->key = key;
	flight->key_size = key_size;
	flight->loader = loader;
	flight->references = 1;
	condition_init(&flight->ended);
	flight->next = *flights;
	*flights = flight;
	return flight;
}

void flight_end(struct flight *flight, struct flight **flights, struct domain *domain)
{
	while (*flights != flight)
		flights = &(*flights)->next;
	*flights = flight->next;
	pthread_mutex_lock(&domain->waits_lock);
	flight->is_over = true;
	pthread_mutex_unlock(&domain->waits_lock);
	pthread_cond_broadcast(&flight->ended);
}

const struct tw_cache_entry *flight_let_go(struct flight *flight)
{
	const struct tw_cache_entry *entry = flight->entry;

	if (--flight->references > 0)
		return NULL;
	pthread_cond_destroy(&flight->ended);
	free(flight);
	return entry;
}

bool flight_may_wait(const struct flight *flight, struct domain *domain, struct reader *reader)
{
	const struct flight *next = flight;
	bool may_wait;

	pthread_mutex_lock(&domain->waits_lock);
	while (next && !next->is_over && next->loader != reader)
		next = next->loader->waits_for;
	may_wait = !next || next->is_over;
	if (may_wait)
		reader->waits_for = flight;
	pthread_mutex_unlock(&domain->waits_lock);
	return may_wait;
}

enum tw_status flight_wait(struct flight *flight, struct domain *domain, struct reader *reader,
			   pthread_mutex_t *lock, tw_duration until)
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
