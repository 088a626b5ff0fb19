/* SPDX-License-Identifier: MIT */
/*
 * The loads of a cache's own loader that wait for the wheel's pool. Any thread may make these calls
 * between open and close. The queue's lock is taken inside those of shards.
 */
#ifndef CACHE_LOAD_QUEUE_H
#define CACHE_LOAD_QUEUE_H

#include <pthread.h>

#include "flight.h"

/* Runs one load of the queue at a time on the wheel's pool. */
struct load_runner {
	struct load_queue *queue; /* constant */
	struct tw_alarm alarm;
	/* Under the lock of the queue. */
	bool is_idle;
	struct list link;  /* in `idle` */
	bool is_reloading; /* it runs a load from `reloads` */
};

struct load_queue {
	/* Constant. */
	void (*run)(struct tw_cache *cache, struct tw_cache_loading *loading, bool is_refused);
	struct tw_cache *cache;
	struct load_runner *runners; /* NULL without a loader of the cache's own */
	unsigned count;
	unsigned reloading_most;
	/* Under the lock. */
	pthread_mutex_t lock;
	struct list misses;
	struct list reloads;
	struct list idle;   /* runners whose alarms are not set */
	unsigned reloading; /* runners with a load from `reloads` */
};

/* Opens a queue of `count` runners, which pass each load to run(cache, loading, false), or to
 * run(cache, loading, true) if the wheel is stopped. Returns TW_OK, TW_NO_MEMORY or TW_CLOSED. On
 * failure there is still something to close. */
enum tw_status load_queue_open(struct load_queue *queue, struct tw_wheel *wheel, unsigned count,
			       void (*run)(struct tw_cache *cache, struct tw_cache_loading *loading,
					   bool is_refused),
			       struct tw_cache *cache);
/* Queues the load. Returns false if the wheel is stopped: then load_queue_refuse() comes next, with
 * no lock held. */
bool load_queue_add(struct load_queue *queue, struct tw_cache_loading *loading);
/* Passes all that is queued to run(cache, loading, true). */
void load_queue_refuse(struct load_queue *queue);
/* Moves a reload that is queued to the loads that are waited for. Returns as load_queue_add(). */
bool load_queue_prefer(struct load_queue *queue, struct tw_cache_loading *loading);
/* Takes the load out of the queue. Returns false if it is not there: a runner has it. */
bool load_queue_take(struct load_queue *queue, struct tw_cache_loading *loading);
/* Waits for what runs: nothing else will. Also of a queue that was never opened, zeroed. */
void load_queue_stop(struct load_queue *queue);
/* Frees a queue that is stopped and empty. */
void load_queue_close(struct load_queue *queue);

#endif
