/* SPDX-License-Identifier: MIT */
/* The threads of a cache that are made for loads, and the loads that wait for them, in order. */
#ifndef CACHE_LOADERS_H
#define CACHE_LOADERS_H

#include <pthread.h>
#include <stdbool.h>

#include <timingwheel/cache.h>

#include "base/thread.h"
#include "loading.h"

struct loader {
	struct loaders *loaders; /* constant */
	struct thread thread;    /* under the lock */
};

struct loaders {
	/* Constant once open. */
	void (*run)(struct tw_cache *cache, struct tw_cache_loading *loading);
	struct tw_cache *cache;
	char name[16]; /* for its threads */
	struct thread_setup setup;
	struct loader *threads; /* or NULL: then nothing may be added */
	unsigned count;         /* 0 once they are stopped */
	unsigned reloading_most;
	/* Any thread, under the lock, which is taken inside those of shards. */
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct list misses;
	struct list reloads;
	unsigned reloading; /* threads with a load from `reloads` */
	bool is_closing;
};

/* TW_OK; TW_NO_MEMORY; TW_SYSTEM. On failure there is still something to close. `run` may end its
 * thread, which is replaced then. */
enum tw_status loaders_open(struct loaders *loaders, unsigned count, const char *name,
			    void (*run)(struct tw_cache *cache, struct tw_cache_loading *loading),
			    struct tw_cache *cache);
/* Takes over a reference to the load. Any thread, until loaders_close(). */
void loaders_add(struct loaders *loaders, struct tw_cache_loading *loading);
/* Moves a reload, if it is or will be queued, to the loads that are waited for. Any thread, until
 * loaders_close(). */
void loaders_prefer(struct loaders *loaders, struct tw_cache_loading *loading);
/* Waits for what runs: nothing else will. Also of one that was never opened, zeroed. */
void loaders_stop(struct loaders *loaders);
/* Stops them, and lets go of what waits. */
void loaders_close(struct loaders *loaders);

#endif
