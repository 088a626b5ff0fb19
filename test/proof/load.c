/* SPDX-License-Identifier: MIT */
/*
 * This harness has a thread that takes, one that ends a load which it has kept, and a third that
 * stops and destroys the cache. What the cache has is not atomic, so GenMC reports a take or an end
 * that uses it while it is destroyed, and a load that is freed early or twice.
 */
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdlib.h>

#include "cache/flight.c"
#include "cache/cache.h"
#include "proof_threads.h"

static pthread_mutex_t shard_lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_closed;
static struct flights flights; /* the kept load is listed at first */
static struct tw_cache cache;
static unsigned taken_of_cache;
static unsigned ended_of_cache;
static struct tw_cache_loading *kept;

/* Goes on when the lock is free: in other orders it only waits longer. */
void thread_back_off(unsigned *tries)
{
	(void)tries;
	__VERIFIER_assume(false);
}

void tw_cache_entry_release(const struct tw_cache_entry *entry)
{
	(void)entry;
}

const struct tw_cache_entry *tw_cache_entry_pin(const struct tw_cache_entry *entry)
{
	return entry;
}

static void *take_run(void *argument)
{
	bool may_load;

	pthread_mutex_lock(&shard_lock);
	may_load = !is_closed;
	flights.entered += may_load;
	pthread_mutex_unlock(&shard_lock);
	if (may_load) {
		taken_of_cache++;
		load_leave(&cache);
	}
	return argument;
}

/* Has found the load's cache, and taken it away. */
static void *end_run(void *argument)
{
	pthread_mutex_lock(&shard_lock);
	list_remove(&kept->of_shard);
	flights.entered++;
	pthread_mutex_unlock(&shard_lock);
	ended_of_cache++;
	load_leave(&cache);
	flight_let_go(kept);
	return argument;
}

static void *destroy_run(void *argument)
{
	bool was_listed;
	uint64_t entered;

	pthread_mutex_lock(&shard_lock);
	is_closed = true;
	was_listed = !list_is_empty(&flights.all);
	if (was_listed)
		(void)flight_hold(kept);
	pthread_mutex_unlock(&shard_lock);
	if (was_listed) {
		assert(kept->key_size == 1);
		flight_let_go(kept);
	}
	pthread_mutex_lock(&shard_lock);
	__VERIFIER_assume(list_is_empty(&flights.all));
	entered = flights.entered;
	pthread_mutex_unlock(&shard_lock);
	__VERIFIER_assume(loads_have_left(&cache, entered));
	taken_of_cache = 0;
	ended_of_cache = 0;
	return argument;
}

int main(void)
{
	void *(*const runs[])(void *) = {take_run, end_run, destroy_run};

	kept = malloc(sizeof(*kept));
	kept->key_size = 1;
	kept->entry = NULL;
	kept->is_awaited = false;
	atomic_init(&kept->references, 1);
	flights_init(&flights);
	list_append(&flights.all, &kept->of_shard);
	proof_run(runs, 3);
	assert(taken_of_cache == 0 && ended_of_cache == 0);
	return 0;
}
