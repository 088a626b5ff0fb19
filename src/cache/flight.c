/* SPDX-License-Identifier: MIT */
/*
 * A flight begins queued or running, in the list of all and in the chain of its key's hash. At its
 * end it leaves both, and its result is there for those that wait. A flight that has failed may
 * stay in the chain as a pause: takes of the key get its status until retry_at. The load that
 * begins after that takes its place and its number of failures; if none has until forget_at, twice
 * as long, the pause is forgotten. A set or delete takes a flight out of its chain at once: so a
 * source that hangs holds up no take of the key after that.
 *
 * Invariants:
 *   a chain has at most one flight of a key
 *   a queued or running flight is in `all`, a paused one in `paused`, and one that is over in none
 *   a flight is in its chain if and only if it is in a list and its clears are the shard's
 *   there are at most FLIGHTS_PAUSED pauses, and none is forgotten before `forget_at`
 *
 * A flight lives until all have let go of it. It may outlive the cache, with a loader that keeps
 * it.
 */
#include "flight.h"

#include <stdlib.h>
#include <string.h>

#include "base/key.h"
#include "base/thread.h"

#include "entry.h"

void flights_init(struct flights *flights)
{
	list_init(&flights->all);
	list_init(&flights->paused);
	flights->forget_at = TW_FOREVER;
}

/* ---- Chains ---- */

static inline struct tw_cache_loading **flights_chain(const struct flights *flights, uint64_t hash)
{
	return &flights->chains[hash & (flights->chain_count - 1)];
}

static void flight_enter_chain(struct tw_cache_loading *flight, struct flights *flights)
{
	struct tw_cache_loading **place = flights_chain(flights, flight->hash);

	flight->next = *place;
	*place = flight;
	flights->chained++;
}

/* Makes four times as many chains. Returns false if there are none, for want of memory. */
static bool flights_grow(struct flights *flights)
{
	enum { FIRST = 64, TIMES = 4 };
	struct flights before = *flights;
	size_t count = before.chain_count > 0 ? before.chain_count * TIMES : FIRST;

	flights->chains = calloc(count, sizeof(struct tw_cache_loading *));
	if (!flights->chains) {
		flights->chains = before.chains;
		return before.chains;
	}
	flights->chain_count = (uint32_t)count;
	flights->chained = 0;
	for (uint32_t i = 0; i < before.chain_count; i++)
		while (before.chains[i]) {
			struct tw_cache_loading *flight = before.chains[i];

			before.chains[i] = flight->next;
			flight_enter_chain(flight, flights);
		}
	free(before.chains);
	return true;
}

struct tw_cache_loading *flights_find(const struct flights *flights, uint64_t hash, const void *key,
				      size_t key_size)
{
	struct tw_cache_loading *flight =
		flights->chained > 0 ? *flights_chain(flights, hash) : NULL;

	while (flight && (flight->hash != hash || flight->key_size != key_size ||
			  !keys_are_equal(flight->key, key, key_size)))
		flight = flight->next;
	return flight;
}

static void flight_leave_chain(struct tw_cache_loading *flight, struct flights *flights)
{
	struct tw_cache_loading **place = flights_chain(flights, flight->hash);

	while (*place != flight)
		place = &(*place)->next;
	*place = flight->next;
	flights->chained--;
}

/* ---- Pauses ---- */

static void pause_forget(struct tw_cache_loading *flight, struct flights *flights)
{
	(void)flight_unlist(flight, flights);
	flight_let_go(flight);
}

static void flights_forget_first(struct flights *flights)
{
	pause_forget(list_entry(flights->paused.next, struct tw_cache_loading, of_shard), flights);
}

void flight_pause(struct tw_cache_loading *flight, struct flights *flights)
{
	if (flights->pauses == FLIGHTS_PAUSED)
		flights_forget_first(flights);
	flight->state = FLIGHT_PAUSED;
	flight_enter_chain(flight_hold(flight), flights);
	list_append(&flights->paused, &flight->of_shard);
	flights->pauses++;
	if (flight->forget_at < flights->forget_at)
		flights->forget_at = flight->forget_at;
}

void flights_forget(struct flights *flights, tw_duration now)
{
	struct list *link = flights->paused.next;

	if (flights->forget_at > now)
		return;
	flights->forget_at = TW_FOREVER;
	while (link != &flights->paused) {
		struct tw_cache_loading *flight =
			list_entry(link, struct tw_cache_loading, of_shard);

		link = link->next;
		if (flight->forget_at <= now)
			pause_forget(flight, flights);
		else if (flight->forget_at < flights->forget_at)
			flights->forget_at = flight->forget_at;
	}
}

void flights_close(struct flights *flights)
{
	flights_override_all(flights);
	free(flights->chains);
}

/* ---- What a set or delete overrides ---- */

void flights_override(struct flights *flights, uint64_t hash, const void *key, size_t key_size)
{
	struct tw_cache_loading *flight = flights_find(flights, hash, key, key_size);

	if (flight && flight->state == FLIGHT_PAUSED) {
		pause_forget(flight, flights);
	} else if (flight) {
		flight_leave_chain(flight, flights);
		flight->clears = UINT64_MAX;
	}
}

void flights_override_all(struct flights *flights)
{
	if (flights->chained == 0)
		return;
	flights->clears++;
	free(flights->chains);
	flights->chains = NULL;
	flights->chain_count = 0;
	flights->chained = 0;
	while (flights->pauses > 0)
		flights_forget_first(flights);
}

/* ---- One flight ---- */

/* Returns a flight that is in no list, with a reference. */
static struct tw_cache_loading *flight_new(uint64_t hash, const void *key, size_t key_size)
{
	/* glibc's calloc knows no cache of the thread's. */
	struct tw_cache_loading *flight = malloc(sizeof(*flight) + key_size);

	if (!flight)
		return NULL;
	memset(flight, 0, offsetof(struct tw_cache_loading, life));
	flight->hash = hash;
	flight->key_size = (uint16_t)key_size;
	key_copy(flight->key, key, key_size);
	atomic_init(&flight->references, 1);
	list_init(&flight->askers);
	list_init(&flight->of_queue);
	return flight;
}

struct tw_cache_loading *flights_add(struct flights *flights, uint64_t hash, const void *key,
				     size_t key_size, struct caller *loader)
{
	struct tw_cache_loading *paused =
		flights->pauses > 0 ? flights_find(flights, hash, key, key_size) : NULL;
	struct tw_cache_loading *flight = NULL;

	if (flights->chained < flights->chain_count || flights_grow(flights))
		flight = flight_new(hash, key, key_size);
	if (!flight)
		return NULL;
	if (paused) {
		flight->failures = paused->failures;
		pause_forget(paused, flights);
	}
	flight_enter_chain(flight, flights);
	list_append(&flights->all, &flight->of_shard);
	flights->count++;
	flight->clears = flights->clears;
	flight->loader = loader;
	flight->state = loader ? FLIGHT_RUNNING : FLIGHT_QUEUED;
	flights->queued += !loader;
	return flight;
}

void flight_begin(struct tw_cache_loading *flight, struct flights *flights, struct caller *loader)
{
	flights->queued -= flight->state == FLIGHT_QUEUED;
	flight->state = FLIGHT_RUNNING;
	flight->loader = loader;
}

bool flight_unlist(struct tw_cache_loading *flight, struct flights *flights)
{
	bool is_current = flight_is_current(flight, flights);

	if (is_current)
		flight_leave_chain(flight, flights);
	list_remove(&flight->of_shard);
	flights->pauses -= flight->state == FLIGHT_PAUSED;
	flights->count -= flight->state != FLIGHT_PAUSED;
	flights->queued -= flight->state == FLIGHT_QUEUED;
	flight->state = FLIGHT_OVER;
	return is_current;
}

/* ---- Its end ---- */

bool flight_wait(struct tw_cache_loading *flight, struct turn_lock *lock, tw_duration until)
{
	if (!flight->is_awaited)
		condition_init(&flight->over);
	flight->is_awaited = true;
	return turn_lock_wait_for(lock, &flight->over, until);
}

void flight_wake(struct tw_cache_loading *flight, struct turn_lock *lock)
{
	if (flight->is_awaited)
		turn_lock_broadcast(lock, &flight->over);
}

/* Returns whether the caller's reference is the only one. */
static bool flight_is_own(struct tw_cache_loading *flight)
{
	/* acquire: the others have let go, and no list has it; pairs with the exchange below. */
	return atomic_load_explicit(&flight->references, memory_order_acquire) == 1;
}

void flight_let_go(struct tw_cache_loading *flight)
{
	/* acq_rel: all others are done with it before the last one frees it; pairs with itself. */
	if (!flight_is_own(flight) &&
	    atomic_fetch_sub_explicit(&flight->references, 1, memory_order_acq_rel) > 1)
		return;
	if (flight->entry)
		tw_cache_entry_release(flight->entry);
	if (flight->is_awaited)
		pthread_cond_destroy(&flight->over);
	free(flight);
}

const struct tw_cache_entry *flight_take_entry(struct tw_cache_loading *flight)
{
	const struct tw_cache_entry *entry = flight->entry;

	if (!entry || !flight_is_own(flight))
		return entry ? tw_cache_entry_pin(entry) : NULL;
	flight->entry = NULL;
	return entry;
}
