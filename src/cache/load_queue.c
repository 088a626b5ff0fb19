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
 * Invariants:
 *   a load is in one of the two lists if and only if it is_in_queue
 *   as many runners are awake as loads may run, or none is idle, unless the wheel was stopped
 */
#include "load_queue.h"

#include <stdlib.h>

/* Under the lock: takes out a load that may run now, or returns NULL. */
static struct tw_cache_loading *load_queue_pick(struct load_queue *queue,
						struct load_runner *runner)
{
	struct tw_cache_loading *loading;
	struct list *link = list_take_first(&queue->misses);

	if (!link && queue->reloading < queue->reloading_most) {
		link = list_take_first(&queue->reloads);
		runner->is_reloading = link;
		queue->reloading += runner->is_reloading;
	}
	if (!link)
		return NULL;
	loading = list_entry(link, struct tw_cache_loading, of_queue);
	loading->is_in_queue = false;
	return loading;
}

static bool load_queue_has_work(const struct load_queue *queue)
{
	return !list_is_empty(&queue->misses) ||
	       (!list_is_empty(&queue->reloads) && queue->reloading < queue->reloading_most);
}

/* Under the lock: sets the alarm of an idle runner, or of the first one, which shows whether the
 * wheel goes on. Returns false if the wheel is stopped. */
static bool load_queue_wake(struct load_queue *queue)
{
	struct list *link = list_take_first(&queue->idle);
	struct load_runner *runner =
		link ? list_entry(link, struct load_runner, link) : &queue->runners[0];

	runner->is_idle = false;
	return tw_alarm_set(&runner->alarm, 0) == TW_OK;
}

static void runner_rest(struct load_runner *runner)
{
	runner->is_idle = true;
	list_append(&runner->queue->idle, &runner->link);
}

/* Takes the runner's next load, or NULL. */
static struct tw_cache_loading *runner_begin(struct load_runner *runner)
{
	struct load_queue *queue = runner->queue;
	struct tw_cache_loading *loading;

	pthread_mutex_lock(&queue->lock);
	if (runner->is_idle)
		list_remove(&runner->link);
	runner->is_idle = false;
	loading = load_queue_pick(queue, runner);
	if (!loading)
		runner_rest(runner);
	pthread_mutex_unlock(&queue->lock);
	return loading;
}

static void runner_run(void *argument)
{
	struct load_runner *runner = argument;
	struct load_queue *queue = runner->queue;
	struct tw_cache_loading *loading = runner_begin(runner);
	bool goes_on = true;

	if (!loading)
		return;
	queue->run(queue->cache, loading, false);
	pthread_mutex_lock(&queue->lock);
	queue->reloading -= runner->is_reloading;
	runner->is_reloading = false;
	if (load_queue_has_work(queue))
		goes_on = tw_alarm_set(&runner->alarm, 0) == TW_OK;
	else
		runner_rest(runner);
	pthread_mutex_unlock(&queue->lock);
	if (!goes_on)
		load_queue_refuse(queue);
}

enum tw_status load_queue_open(struct load_queue *queue, struct tw_wheel *wheel, unsigned count,
			       void (*run)(struct tw_cache *cache, struct tw_cache_loading *loading,
					   bool is_refused),
			       struct tw_cache *cache)
{
	enum tw_status status = TW_OK;

	queue->run = run;
	queue->cache = cache;
	queue->runners = calloc(count, sizeof(*queue->runners));
	if (!queue->runners)
		return TW_NO_MEMORY;
	queue->count = count;
	queue->reloading_most = count > 1 ? count - 1 : 1;
	pthread_mutex_init(&queue->lock, NULL);
	list_init(&queue->misses);
	list_init(&queue->reloads);
	list_init(&queue->idle);
	for (unsigned i = 0; i < count && status == TW_OK; i++) {
		struct load_runner *runner = &queue->runners[i];

		runner->queue = queue;
		runner_rest(runner);
		status = tw_alarm_init(wheel, &runner->alarm, runner_run, runner);
	}
	return status;
}

bool load_queue_add(struct load_queue *queue, struct tw_cache_loading *loading)
{
	bool is_open;

	pthread_mutex_lock(&queue->lock);
	loading->is_in_queue = true;
	list_append(loading->is_refresh ? &queue->reloads : &queue->misses, &loading->of_queue);
	is_open = load_queue_wake(queue);
	pthread_mutex_unlock(&queue->lock);
	return is_open;
}

void load_queue_refuse(struct load_queue *queue)
{
	struct list *link;

	do {
		pthread_mutex_lock(&queue->lock);
		link = list_take_first(&queue->misses);
		if (!link)
			link = list_take_first(&queue->reloads);
		if (link)
			list_entry(link, struct tw_cache_loading, of_queue)->is_in_queue = false;
		pthread_mutex_unlock(&queue->lock);
		if (link)
			queue->run(queue->cache,
				   list_entry(link, struct tw_cache_loading, of_queue), true);
	} while (link);
}

bool load_queue_prefer(struct load_queue *queue, struct tw_cache_loading *loading)
{
	bool is_open = true;

	pthread_mutex_lock(&queue->lock);
	/* Once: takes that come later do not put it behind others. */
	if (loading->is_in_queue && !loading->is_preferred) {
		loading->is_preferred = true;
		list_remove(&loading->of_queue);
		list_append(&queue->misses, &loading->of_queue);
		is_open = load_queue_wake(queue);
	}
	pthread_mutex_unlock(&queue->lock);
	return is_open;
}

bool load_queue_take(struct load_queue *queue, struct tw_cache_loading *loading)
{
	bool was_there;

	pthread_mutex_lock(&queue->lock);
	was_there = loading->is_in_queue;
	if (was_there)
		list_remove(&loading->of_queue);
	loading->is_in_queue = false;
	pthread_mutex_unlock(&queue->lock);
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
