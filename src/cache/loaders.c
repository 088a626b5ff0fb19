/* SPDX-License-Identifier: MIT */
/*
 * Two lists are under a lock, and threads sleep until there is something in them. Loads take long,
 * so nothing here is worth more. Reloads of values that may still be read wait until no other load
 * waits, and leave one thread free for those, if there are several.
 *
 * Invariant: each load in the lists has a reference for it, and is begun by one thread of these, or
 * by none where a take began it first.
 */
#include "loaders.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

/* A thread's load of the moment. */
struct turn {
	struct loader *loader;
	struct tw_cache_loading *loading;
	bool is_reload; /* counts in `reloading` */
};

/* Under the lock: a load that may run now, or NULL. */
static struct list *loaders_pick(struct loaders *loaders, struct turn *turn)
{
	struct list *link = list_take_first(&loaders->misses);

	if (!link && loaders->reloading < loaders->reloading_most) {
		link = list_take_first(&loaders->reloads);
		turn->is_reload = link;
		loaders->reloading += turn->is_reload;
	}
	return link;
}

/* Sets the turn's next load, or NULL if the cache is being closed. */
static void loaders_take(struct loaders *loaders, struct turn *turn)
{
	struct list *link = NULL;

	pthread_mutex_lock(&loaders->lock);
	loaders->reloading -= turn->is_reload;
	turn->is_reload = false;
	while (!loaders->is_closing && !(link = loaders_pick(loaders, turn)))
		(void)condition_wait(&loaders->work, &loaders->lock, TW_FOREVER);
	turn->loading = link ? list_entry(link, struct tw_cache_loading, of_queue) : NULL;
	if (link)
		turn->loading->is_in_queue = false;
	pthread_mutex_unlock(&loaders->lock);
}

static void *loader_run(void *argument)
{
	struct turn turn = {.loader = argument};
	struct loaders *loaders = turn.loader->loaders;

	thread_begin_calls(&loaders->setup, turn.loader->thread.name);
	while (loaders_take(loaders, &turn), turn.loading) {
		loaders->run(loaders->cache, turn.loading);
		loading_let_go(turn.loading);
	}
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
	list_init(&loaders->misses);
	list_init(&loaders->reloads);
	loaders->reloading_most = count > 1 ? count - 1 : 1;
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
	loading->is_in_queue = true;
	list_append(loading->is_refresh && !loading->is_preferred ? &loaders->reloads
								  : &loaders->misses,
		    &loading->of_queue);
	pthread_cond_signal(&loaders->work);
	pthread_mutex_unlock(&loaders->lock);
}

void loaders_prefer(struct loaders *loaders, struct tw_cache_loading *loading)
{
	pthread_mutex_lock(&loaders->lock);
	/* Once: takes that come later do not put it behind others. */
	if (loading->is_in_queue && !loading->is_preferred) {
		list_remove(&loading->of_queue);
		list_append(&loaders->misses, &loading->of_queue);
		pthread_cond_signal(&loaders->work);
	}
	loading->is_preferred = true;
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
		thread_join(&loaders->threads[loaders->count - 1].thread);
}

void loaders_close(struct loaders *loaders)
{
	struct list *link;

	if (!loaders->threads)
		return;
	loaders_stop(loaders);
	list_append_all(&loaders->misses, &loaders->reloads);
	while ((link = list_take_first(&loaders->misses)))
		loading_let_go(list_entry(link, struct tw_cache_loading, of_queue));
	pthread_cond_destroy(&loaders->work);
	pthread_mutex_destroy(&loaders->lock);
	free(loaders->threads);
	loaders->threads = NULL;
}
