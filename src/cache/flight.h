/* SPDX-License-Identifier: MIT */
/*
 * Loads that run, and the threads that wait for them. A shard's flights are a list, under its lock,
 * which is held in all calls.
 */
#ifndef CACHE_FLIGHT_H
#define CACHE_FLIGHT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain.h"
#include "entry.h"

struct flight {
	/* Constant. */
	uint64_t hash;
	const void *key; /* of the loading thread; only while the flight is listed */
	size_t key_size;
	struct reader *loader;
	/* Under the shard's lock. */
	struct flight *next;
	unsigned references;
	bool is_overridden;
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned, or NULL */
	pthread_cond_t ended;
	/* Written under both the shard's lock and that of the waits. */
	bool is_over;
};

/* NULL: no load of the key runs. */
struct flight *flights_find(struct flight *flights, uint64_t hash, const void *key,
			    size_t key_size);
/* The key was set or deleted: what is being loaded will not be kept. */
void flights_override(struct flight *flights, uint64_t hash, const void *key, size_t key_size);
void flights_override_all(struct flight *flights);
/* Wakes the threads that wait, to look whether the cache is closed. */
void flights_wake(struct flight *flights);

/* Lists a new one, with one reference; NULL: out of memory. */
struct flight *flight_begin(struct flight **flights, struct reader *loader, uint64_t hash,
			    const void *key, size_t key_size);
/* Takes it out of the list, and tells the threads that wait. */
void flight_end(struct flight *flight, struct flight **flights, struct domain *domain);
/* Returns the entry to release when the lock is let go, or NULL. */
const struct tw_cache_entry *flight_let_go(struct flight *flight);

/* False: the reader would wait for itself. Else it is noted as waiting: flight_wait() has to
 * follow. */
bool flight_may_wait(const struct flight *flight, struct domain *domain, struct reader *reader);
/* Waits until the real time `until`; 0: not at all. TW_OK: the flight is over; TW_TIMED_OUT;
 * TW_CLOSED. */
enum tw_status flight_wait(struct flight *flight, struct domain *domain, struct reader *reader,
			   pthread_mutex_t *lock, tw_duration until);

#endif
