/* SPDX-License-Identifier: MIT */
/*
 * A list under a lock, and threads that sleep until there is something in it. Loads take long, so
 * nothing here is worth more.
 *
 * A loader may end its thread, which starts another in its place then, if need be again and again
 * until the system can: so a queue is never left without threads.
 *
 * Invariant: each load in the list has a reference for it, and is begun by one thread of these, or
 * by none where a take began it first.
 */
#include "loaders.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

/* The next one; NULL: the cache is being closed. */
static struct tw_cache_loading *loaders_take(struct loaders *loaders)
{
	struct tw_cache_loading *loading = NULL;

	pthread_mutex_lock(&loaders->lock);
	while (!loaders->first && !loaders->is_closing)
		(void)condition_wait(&loaders->work, &loaders->lock, TW_FOREVER);
	if (!loaders->is_closing) {
		loading = loaders->first;
		loaders->first = loading->queue_next;
		if (!loaders->first)
			loaders->last = NULL;
	}
	pthread_mutex_unlock(&loaders->lock);
	return loading;
}

static void *loader_run(void *argument);

/* A thread's load of the moment. */
struct turn {
	struct loader *loader;
	struct tw_cache_loading *loading;
};

/* The thread ends in `run`. */
static void turn_abandon(void *argument)
{
	struct turn *turn = argument;
	struct loaders *loaders = turn->loader->loaders;
	unsigned tries = 0;
	bool is_done;

	loading_let_go(turn->loading);
	do {
		pthread_mutex_lock(&loaders->lock);
		is_done = loaders->is_closing;
		if (!is_done && thread_start(&turn->loader->thread, loader_run, turn->loader,
					     loaders->name, "load", &loaders->setup) == 0) {
			pthread_detach(pthread_self());
			is_done = true;
		}
		pthread_mutex_unlock(&loaders->lock);
		if (!is_done)
			thread_back_off(&tries);
	} while (!is_done);
}

static void *loader_run(void *argument)
{
	struct turn turn = {argument, NULL};
	struct loaders *loaders = turn.loader->loaders;

	thread_begin_calls(&loaders->setup, turn.loader->thread.name);
	pthread_cleanup_push(turn_abandon, &turn);
	while ((turn.loading = loaders_take(loaders))) {
		loaders->run(loaders->cache, turn.loading);
		loading_let_go(turn.loading);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

enum tw_status loaders_open(struct loaders *loaders, unsigned count, const char *name,
			    void (*run)(struct tw_cache *cache, struct tw_cache_loading *loading),
			    struct tw_cache *cache)
{
	loaders->run = run;
	snprintf(loaders->name, sizeof(loaders->name), "%s", name);
	loaders->cache = cache;
	thread_setup_init(&loaders->setup, NULL);
	loaders->threads = calloc(count, sizeof(struct loader));
	if (!loaders->threads)
		return TW_NO_MEMORY;
	pthread_mutex_init(&loaders->lock, NULL);
	condition_init(&loaders->work);
	for (; loaders->count < count; loaders->count++) {
		struct loader *loader = &loaders->threads[loaders->count];
		int error;

		loader->loaders = loaders;
		pthread_mutex_lock(&loaders->lock);
		error = thread_start(&loader->thread, loader_run, loader, loaders->name, "load",
				     &loaders->setup);
		pthread_mutex_unlock(&loaders->lock);
		if (error != 0)
			return TW_SYSTEM;
	}
	return TW_OK;
}

void loaders_add(struct loaders *loaders, struct tw_cache_loading *loading)
{
	pthread_mutex_lock(&loaders->lock);
	loading->queue_next = NULL;
	if (loaders->last)
		loaders->last->queue_next = loading;
	else
		loaders->first = loading;
	loaders->last = loading;
	pthread_cond_signal(&loaders->work);
	pthread_mutex_unlock(&loaders->lock);
}

void loaders_stop(struct loaders *loaders)
{
	if (!loaders->threads)
		return;
	pthread_mutex_lock(&loaders->lock);
	loaders->is_closing = true;
	pthread_cond_broadcast(&loaders->work);
	pthread_mutex_unlock(&loaders->lock);
	for (; loaders->count > 0; loaders->count--)
		pthread_join(loaders->threads[loaders->count - 1].thread.id, NULL);
}

void loaders_close(struct loaders *loaders)
{
	if (!loaders->threads)
		return;
	loaders_stop(loaders);
	while (loaders->first) {
		struct tw_cache_loading *next = loaders->first->queue_next;

		loading_let_go(loaders->first);
		loaders->first = next;
	}
	pthread_cond_destroy(&loaders->work);
	pthread_mutex_destroy(&loaders->lock);
	free(loaders->threads);
	loaders->threads = NULL;
}
