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
#include "cache/load.h"

static pthread_mutex_t shard_lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_closed;
static bool is_listed = true; /* the kept load */
static struct reader taker;
static struct reader ender;
static unsigned cache;
static struct tw_cache_loading *kept;

void tw_cache_entry_release(const struct tw_cache_entry *entry)
{
	(void)entry;
}

static void *take_run(void *argument)
{
	bool may_load;

	reader_begin_take(&taker);
	pthread_mutex_lock(&shard_lock);
	may_load = !is_closed;
	pthread_mutex_unlock(&shard_lock);
	if (may_load)
		cache++;
	reader_end_take(&taker);
	return argument;
}

/* Has found the load's cache, and taken it away. */
static void *end_run(void *argument)
{
	atomic_fetch_add_explicit(&ender.takes, 1, memory_order_relaxed);
	pthread_mutex_lock(&shard_lock);
	is_listed = false;
	pthread_mutex_unlock(&shard_lock);
	flight_let_go(kept);
	reader_end_end(&ender);
	return argument;
}

static void wait_for_takes(void)
{
	__VERIFIER_assume(atomic_load_explicit(&taker.takes, memory_order_acquire) == 0);
	__VERIFIER_assume(atomic_load_explicit(&ender.takes, memory_order_acquire) == 0);
}

static void *destroy_run(void *argument)
{
	bool was_listed;

	pthread_mutex_lock(&shard_lock);
	is_closed = true;
	if (is_listed)
		(void)flight_hold(kept);
	was_listed = is_listed;
	pthread_mutex_unlock(&shard_lock);
	if (was_listed) {
		assert(kept->key_size == 1);
		flight_let_go(kept);
	}
	pthread_mutex_lock(&shard_lock);
	__VERIFIER_assume(!is_listed);
	pthread_mutex_unlock(&shard_lock);
	wait_for_takes();
	cache = 0;
	return argument;
}

int main(void)
{
	void *(*const runs[])(void *) = {take_run, end_run, destroy_run};
	pthread_t threads[3];

	kept = malloc(sizeof(*kept));
	kept->key_size = 1;
	atomic_init(&kept->references, 1);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, runs[i], NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert(cache == 0);
	return 0;
}
