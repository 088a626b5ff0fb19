/* SPDX-License-Identifier: MIT */
/*
 * tw_cache_take. A load is a flight: a thread that finds no entry and no flight of the key begins
 * one, and runs the loader without any lock; others that find the flight wait for its end. Begin,
 * end, and the look that finds neither are under the shard's lock, so there is one flight of a key
 * at a time, and what it brought is in the table before the flight is gone. A set or delete of the
 * key marks its flights under the same lock: then what was loaded is given to the threads that wait
 * already, and not kept. A thread that comes later waits for the end of such a flight, and then
 * looks anew.
 *
 * A loader that ends its thread is noticed by a cleanup handler.
 */
#include "change.h"
#include "cache.h"

/* One call of tw_cache_take; its loader, if it runs one, gives the value to it. */
struct tw_cache_loading {
	struct tw_cache *cache;
	struct shard *shard;
	struct reader *reader;
	uint64_t hash;
	const void *key;
	size_t key_size;
	tw_cache_load *load;
	void *argument;
	tw_duration until; /* real time; 0: it does not wait */
	bool has_waited;
	bool is_counted; /* as a hit, a miss or an absence */
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned for the caller, or NULL */
	/* Of its own load. */
	struct flight *flight;
	struct tw_cache_entry *given; /* by the loader, or NULL; one reference */
	tw_duration expire;           /* of what was given */
};

/* ---- Loading ---- */

static enum tw_status loading_give(struct tw_cache_loading *loading, struct entry_plan *plan,
				   tw_duration expire)
{
	struct domain *domain = &loading->cache->domain;
	struct thread_cache *thread;
	struct tw_cache_entry *entry;

	plan->key = loading->key;
	plan->key_size = loading->key_size;
	plan->hash = loading->hash;
	cache_plan(loading->cache, plan);
	thread = thread_begin(domain);
	entry = entry_from(thread, domain, plan);
	thread_end(thread, domain);
	if (!entry)
		return TW_NO_MEMORY;
	entry_let_go(loading->given);
	loading->given = entry;
	loading->expire = expire > 0 ? expire : loading->cache->expire;
	return TW_OK;
}

enum tw_status tw_cache_load_copy(struct tw_cache_loading *loading, const void *value,
				  size_t value_size, tw_duration expire)
{
	struct entry_plan plan = {.value = value, .value_size = value_size};

	if (!loading || (!value && value_size > 0) || value_size > UINT32_MAX || expire < 0)
		return TW_INVALID;
	return loading_give(loading, &plan, expire);
}

enum tw_status tw_cache_load_adopt(struct tw_cache_loading *loading, void *value, size_t value_size,
				   uint64_t weight,
				   void (*free_value)(void *value, size_t value_size,
						      void *context),
				   void *context, tw_duration expire)
{
	struct entry_adopted adopted = {value, value_size, free_value, context};
	struct entry_plan plan = {.adopted = &adopted, .weight = weight};

	if (!loading || expire < 0)
		return TW_INVALID;
	return loading_give(loading, &plan, expire);
}

/* Makes the loader's answer and what it gave agree. */
static void loading_judge(struct tw_cache_loading *loading)
{
	struct tw_cache *cache = loading->cache;
	struct entry_plan plan = {.is_absent = true};

	if (loading->status == TW_OK && !loading->given)
		loading->status = TW_LOAD_FAILED;
	if (loading->status == TW_OK)
		return;
	reader_count(loading->reader, COUNT_LOAD_ERRORS, 1);
	entry_let_go(loading->given);
	loading->given = NULL;
	/* Without memory the absence is told, and not kept. */
	if (loading->status == TW_NOT_FOUND && cache->negative_expire > 0)
		(void)loading_give(loading, &plan, cache->negative_expire);
}

/* Between begin and end: keeps what was loaded, and ends the flight. */
static void loading_land(struct tw_cache_loading *loading, tw_duration now)
{
	struct tw_cache *cache = loading->cache;
	struct shard *shard = loading->shard;
	struct flight *flight = loading->flight;

	if (loading->status == TW_OK) {
		loading->entry = tw_cache_entry_pin(loading->given);
		flight->entry = tw_cache_entry_pin(loading->given);
	}
	if (loading->given && !flight->is_overridden &&
	    cache_put(cache, shard, loading->hash, loading->given, PUT_LOADED, now) == TW_OK)
		loading->given = NULL;
	flight->status = loading->status;
	flight_end(flight, &shard->flights, &cache->domain);
}

static void cache_count_take(struct tw_cache *cache, int difference)
{
	pthread_mutex_lock(&cache->takes_lock);
	cache->takes += (unsigned)difference;
	if (cache->takes == 0)
		pthread_cond_broadcast(&cache->takes_are_over);
	pthread_mutex_unlock(&cache->takes_lock);
}

/* The loader has answered. Its lifetime counts from now on. */
static void loading_end(struct tw_cache_loading *loading)
{
	struct tw_cache *cache = loading->cache;
	const struct tw_cache_entry *unpinned;
	const struct tw_cache_entry *given;
	uint64_t weight;
	tw_duration now;

	loading->reader->callbacks--;
	loading_judge(loading);
	given = loading->given;
	weight = given ? entry_weight(given) : 0;
	shard_begin(loading->shard);
	now = tw_now(cache->domain.wheel);
	if (loading->given)
		cache_start_life(cache, loading->given, now,
				 cache_lifetime(cache, loading->reader, loading->expire));
	loading_land(loading, now);
	unpinned = flight_let_go(loading->flight);
	shard_end(loading->shard);
	tw_cache_entry_release(unpinned);
	entry_let_go(loading->given);
	cache_evict(cache, weight, given);
}

/* The thread ends in its loader. */
static void loading_abandon(void *argument)
{
	struct tw_cache_loading *loading = argument;

	loading->status = TW_LOAD_FAILED;
	loading_end(loading);
	tw_cache_entry_release(loading->entry);
	cache_count_take(loading->cache, -1);
}

/* With its flight begun. */
static void loading_run(struct tw_cache_loading *loading)
{
	loading->reader->callbacks++;
	reader_count(loading->reader, COUNT_LOADS, 1);
	pthread_cleanup_push(loading_abandon, loading);
	loading->status =
		loading->load(loading->argument, loading->key, loading->key_size, loading);
	pthread_cleanup_pop(0);
	loading_end(loading);
}

/* ---- Take ---- */

static void take_count(struct tw_cache_loading *take, enum reader_count outcome)
{
	if (!take->is_counted)
		reader_count(take->reader, outcome, 1);
	take->is_counted = true;
}

/* Looks the key up, and counts what it finds; false: it is to be loaded. */
static bool take_look(struct tw_cache_loading *take)
{
	struct tw_cache_entry *there;

	there = cache_find(take->cache, take->reader, take->hash, take->key, take->key_size);
	if (there && (there->kind & ENTRY_ABSENT)) {
		take_count(take, COUNT_ABSENT);
		take->status = TW_NOT_FOUND;
	} else if (there) {
		take_count(take, COUNT_HITS);
		take->entry = tw_cache_entry_pin(there);
		take->status = TW_OK;
	}
	reader_leave(take->reader);
	return there != NULL;
}

/* Between begin and end, with a reference to the flight. TW_OK: it is over. */
static enum tw_status take_wait(struct tw_cache_loading *take, struct flight *flight)
{
	struct domain *domain = &take->cache->domain;
	enum tw_status status;

	if (!flight_may_wait(flight, domain, take->reader))
		return TW_INVALID;
	if (!take->has_waited)
		reader_count(take->reader, COUNT_LOAD_WAITS, 1);
	take->has_waited = true;
	status = flight_wait(flight, domain, take->reader, &take->shard->lock, take->until);
	if (status == TW_TIMED_OUT)
		reader_count(take->reader, COUNT_WAIT_TIMEOUTS, 1);
	return status;
}

/* Likewise, and takes a pin of what it brought. True: its load had begun before the key was set or
 * deleted, and is over now. */
static bool take_join(struct tw_cache_loading *take, struct flight *flight)
{
	bool is_old = flight->is_overridden;

	take->status = take_wait(take, flight);
	if (take->status != TW_OK || is_old)
		return take->status == TW_OK;
	take->status = flight->status;
	if (flight->status == TW_OK)
		take->entry = tw_cache_entry_pin(flight->entry);
	return false;
}

/* Not found at a glance: once more under the lock, then as one that waits or loads. True: is to be
 * called again. */
static bool take_slowly(struct tw_cache_loading *take)
{
	const struct tw_cache_entry *unpinned = NULL;
	struct flight *flight;
	bool begins;
	bool again = false;

	shard_begin(take->shard);
	if (take_look(take)) {
		shard_end(take->shard);
		return false;
	}
	flight = flights_find(take->shard->flights, take->hash, take->key, take->key_size);
	/* tw_cache_destroy waits for loads: no other begins after one that it has waited for. */
	begins = !flight && !domain_is_closed(&take->cache->domain);
	take->status = begins ? TW_NO_MEMORY : TW_CLOSED;
	if (flight || begins)
		take_count(take, COUNT_MISSES);
	if (flight) {
		flight->references++;
		again = take_join(take, flight);
		unpinned = flight_let_go(flight);
	}
	if (begins)
		take->flight = flight_begin(&take->shard->flights, take->reader, take->hash,
					    take->key, take->key_size);
	shard_end(take->shard);
	tw_cache_entry_release(unpinned);
	if (take->flight)
		loading_run(take);
	return again;
}

enum tw_status tw_cache_take(struct tw_cache *cache, const void *key, size_t key_size,
			     tw_cache_load *load, void *argument, tw_duration wait,
			     const struct tw_cache_entry **entry)
{
	struct tw_cache_loading take = {.cache = cache,
					.key = key,
					.key_size = key_size,
					.load = load,
					.argument = argument};

	if (!entry)
		return TW_INVALID;
	*entry = NULL;
	if (!cache || !key_is_valid(key, key_size) || !load)
		return TW_INVALID;
	if (domain_is_closed(&cache->domain))
		return TW_CLOSED;
	take.reader = epochs_reader(&cache->domain.epochs);
	if (!take.reader)
		return TW_NO_MEMORY;
	take.hash = key_hash_wide(&cache->domain.seed, key, key_size);
	take.shard = cache_shard(cache, take.hash);
	if (!take_look(&take)) {
		if (wait > 0)
			take.until = time_add(clock_read_real(CLOCK_MONOTONIC), wait);
		cache_count_take(cache, 1);
		while (take_slowly(&take))
			continue;
		cache_count_take(cache, -1);
	}
	*entry = take.entry;
	return take.status;
}
