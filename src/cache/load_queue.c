/* SPDX-License-Identifier: MIT */
/*
 * Each runner is an alarm. A load that is added wakes an idle runner. A run takes one load and
 * then, if there is more to do, sets its alarm again, so that other tasks of the pool come in
 * between. Loads that nobody waits for, reloads of values that may still be read, run when no other
 * load waits, and leave one runner free for those, if there are several.
 *
 * Only the thread that has taken a load out of the queue begins it. That is a runner, or a take
 * that came before it.
 *
 * An entry knows when it is to be loaded again. The first lookup that meets it later, and finds the
 * shard's lock free, queues a load, and has the entry say "never", so that no other tries. A load
 * that brings a value replaces the entry, which is then new; one that brings none has it say when
 * to try again. The time is written under the shard's lock alone.
 *
 * Invariant: as many runners are awake as loads may run, or none is idle. One that is awake runs or
 * its alarm is set, unless the wheel was stopped.
 */
#include "load_queue.h"

#include <stdlib.h>

/* Runs one load of the queue at a time on the wheel's pool. */
struct load_runner {
	struct tw_cache *cache; /* constant */
	struct tw_alarm alarm;
	/* Under the lock of the queue. */
	bool is_idle;
	struct load_runner *next_idle;
};

/* ---- Runners; under the lock of the queue ---- */

/* Returns the list that has the load to run next, or NULL if none may run. */
static struct list *load_queue_next(struct load_queue *queue)
{
	if (!list_is_empty(&queue->misses))
		return &queue->misses;
	return !list_is_empty(&queue->reloads) && queue->reloading < queue->reloading_most
		       ? &queue->reloads
		       : NULL;
}

/* Takes the first load out of a list that has one. */
static struct tw_cache_loading *take_first_load(struct list *list)
{
	struct list *link = list_take_first(list);

	list_init(link);
	return list_entry(link, struct tw_cache_loading, of_queue);
}

static void runner_rest(struct load_runner *runner, struct load_queue *queue)
{
	if (runner->is_idle)
		return;
	runner->is_idle = true;
	runner->next_idle = queue->idle;
	queue->idle = runner;
}

/* Wakes an idle runner. Sets the alarm of another if none is idle, which shows whether the wheel
 * goes on. Returns false if the wheel is stopped. */
static bool load_queue_wake(struct load_queue *queue)
{
	struct load_runner *runner = queue->idle ? queue->idle : queue->runners;

	if (runner->is_idle)
		queue->idle = runner->next_idle;
	runner->is_idle = false;
	return tw_alarm_set(&runner->alarm, 0) == TW_OK;
}

static void runner_run(void *argument)
{
	struct load_runner *runner = argument;
	struct load_queue *queue = &runner->cache->loads;
	struct tw_cache_loading *loading = NULL;
	bool is_reload;
	struct list *list;

	pthread_mutex_lock(&queue->lock);
	/* One that is idle rested after it was woken: another has the load. */
	list = runner->is_idle ? NULL : load_queue_next(queue);
	is_reload = list == &queue->reloads;
	queue->reloading += is_reload;
	if (list)
		loading = take_first_load(list);
	else
		runner_rest(runner, queue);
	pthread_mutex_unlock(&queue->lock);
	if (!loading)
		return;
	queue->run(runner->cache, loading, false);
	pthread_mutex_lock(&queue->lock);
	queue->reloading -= is_reload;
	if (load_queue_next(queue))
		(void)tw_alarm_set(&runner->alarm, 0);
	else
		runner_rest(runner, queue);
	pthread_mutex_unlock(&queue->lock);
}

/* ---- The queue ---- */

enum tw_status load_queue_open(struct tw_cache *cache, unsigned count,
			       void (*run)(struct tw_cache *cache, struct tw_cache_loading *loading,
					   bool is_refused))
{
	struct load_queue *queue = &cache->loads;
	enum tw_status status = TW_OK;

	queue->run = run;
	queue->runners = calloc(count, sizeof(*queue->runners));
	if (!queue->runners)
		return TW_NO_MEMORY;
	queue->count = count;
	queue->reloading_most = count > 1 ? count - 1 : 1;
	pthread_mutex_init(&queue->lock, NULL);
	list_init(&queue->misses);
	list_init(&queue->reloads);
	for (unsigned i = 0; i < count && status == TW_OK; i++) {
		struct load_runner *runner = &queue->runners[i];

		runner->cache = cache;
		runner_rest(runner, queue);
		status = tw_alarm_init(cache->shared.wheel, &runner->alarm, runner_run, runner);
	}
	return status;
}

bool load_queue_add(struct load_queue *queue, struct tw_cache_loading *loading)
{
	bool is_open;

	pthread_mutex_lock(&queue->lock);
	list_append(loading->is_refresh ? &queue->reloads : &queue->misses, &loading->of_queue);
	is_open = load_queue_wake(queue);
	pthread_mutex_unlock(&queue->lock);
	return is_open;
}

void load_queue_refuse(struct tw_cache *cache)
{
	struct load_queue *queue = &cache->loads;
	struct tw_cache_loading *loading;

	do {
		pthread_mutex_lock(&queue->lock);
		list_append_all(&queue->misses, &queue->reloads);
		loading = list_is_empty(&queue->misses) ? NULL : take_first_load(&queue->misses);
		pthread_mutex_unlock(&queue->lock);
		if (loading)
			queue->run(cache, loading, true);
	} while (loading);
}

bool load_queue_take(struct tw_cache *cache, struct tw_cache_loading *loading)
{
	struct load_queue *queue = &cache->loads;
	bool was_there;

	pthread_mutex_lock(&queue->lock);
	was_there = !list_is_empty(&loading->of_queue);
	list_remove(&loading->of_queue);
	list_init(&loading->of_queue);
	pthread_mutex_unlock(&queue->lock);
	if (was_there && loading->is_refresh) {
		limit_give(&cache->refreshing);
		loading->is_refresh = false;
	}
	return was_there;
}

void load_queue_stop(struct load_queue *queue)
{
	for (unsigned i = 0; i < queue->count; i++)
		(void)tw_alarm_destroy(&queue->runners[i].alarm);
}

void load_queue_close(struct load_queue *queue)
{
	if (!queue->runners)
		return;
	load_queue_stop(queue);
	pthread_mutex_destroy(&queue->lock);
	free(queue->runners);
}

/* ---- Reloads ---- */

/* Returns the key's entry if it is to be loaded again now, or NULL. */
static struct tw_cache_entry *refresh_find(struct tw_cache *cache, struct shard *shard,
					   uint64_t hash, const void *key, size_t key_size)
	HOLDS(shard->lock)
{
	tw_duration now = tw_now(cache->shared.wheel);
	const struct tw_cache_loading *loading = flights_find(&shard->flights, hash, key, key_size);
	_Atomic uint64_t *slot;
	struct tw_cache_entry *entry = table_find(shard_table(shard), hash, key, key_size, &slot);

	if (!entry || !entry_wants_refresh(entry, now) || entry_deadline(entry) <= now ||
	    shared_is_closed(&cache->shared) || (loading && loading->state != FLIGHT_PAUSED))
		return NULL;
	return entry;
}

void cache_refresh(struct tw_cache *cache, uint64_t hash, const void *key, size_t key_size)
{
	struct shard *shard = cache_shard(cache, hash);
	struct tw_cache_loading *loading = NULL;
	struct tw_cache_entry *entry;

	if (limit_taken(&cache->refreshing) >= cache->refreshing.most ||
	    !turn_lock_try(&shard->lock))
		return;
	entry = refresh_find(cache, shard, hash, key, key_size);
	if (entry && limit_take(&cache->refreshing)) {
		loading = cache_list_load(cache, shard, NULL, hash, key, key_size,
					  clock_read_real(CLOCK_MONOTONIC));
		if (!loading)
			limit_give(&cache->refreshing);
	}
	if (loading) {
		loading->is_refresh = true;
		time_store(&entry_age(entry)->refresh_at, TW_FOREVER);
		if (!load_queue_add(&cache->loads, loading) && load_queue_take(cache, loading)) {
			/* The wheel is stopped. No take has found the load, so it does not end. */
			(void)flight_unlist(loading, &shard->flights);
			flight_let_go(loading);
		}
	}
	turn_lock_let_go(&shard->lock);
}
