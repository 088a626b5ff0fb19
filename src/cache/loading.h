/* SPDX-License-Identifier: MIT */
/*
 * Loads that run or are about to, and the takes that wait for them. A shard's loads are a list,
 * under its lock, which is held in all calls but those that say otherwise.
 */
#ifndef CACHE_LOADING_H
#define CACHE_LOADING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared.h"
#include "entry.h"

struct shard;

/* A take that is told by a call of its function. */
struct waiter {
	struct waiter *next;
	tw_cache_value_fn *on_value;
	void *context;
	bool is_late; /* its take began after the key was set or deleted: it looks again */
};

/* What the loader knows as its loading. */
struct tw_cache_loading {
	/* Constant. */
	uint64_t hash;
	size_t key_size;
	struct shard *shard;
	bool is_refresh; /* of a value that may still be read */
	/* Each thread that waits, the queue, the list, and a loader that keeps it have one. */
	atomic_uint references;
	/* Under the shard's lock. */
	struct tw_cache_loading *next;
	struct waiter *waiters;
	bool is_queued; /* no thread has begun to load yet */
	bool is_overridden;
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned, or NULL */
	pthread_cond_t ended;
	/* Written under both the shard's lock and that of the waits. */
	bool is_over;
	/* Under the lock of the waits: the thread that loads; NULL: none does. */
	struct reader *loader;
	/* Of the loaders (loaders.h). */
	struct tw_cache_loading *queue_next;
	bool is_kept; /* by its loader; constant then */
	/* Of the load; once it is kept under its own lock, which is taken outside of shards'. */
	pthread_mutex_t lock;
	struct tw_cache *cache;       /* NULL: a thread ends it, or has */
	tw_duration began;            /* real time; 0: not */
	tw_duration expire;           /* of what was given */
	struct tw_cache_entry *given; /* by the loader, or NULL; one reference */
	/* Constant. */
	unsigned char key[];
};

/* NULL: no load of the key runs. */
struct tw_cache_loading *loadings_find(struct tw_cache_loading *loadings, uint64_t hash,
				       const void *key, size_t key_size);
/* The key was set or deleted: what is being loaded will not be kept. */
void loadings_override(struct tw_cache_loading *loadings, uint64_t hash, const void *key,
		       size_t key_size);
void loadings_override_all(struct tw_cache_loading *loadings);
/* Asserts that the loads are the shard's, not over, and of different keys, for the first 64. */
void loadings_check(struct tw_cache_loading *loadings, const struct shard *shard);
/* Wakes the threads that wait, to look whether the cache is closed, and takes out all waiters, to
 * be put before those in the list. */
void loadings_wake(struct tw_cache_loading *loadings, struct waiter **waiters);

/* A new one for the key, by the loader's thread, or, if that is NULL, queued; not listed yet, with
 * one reference. NULL: out of memory. No lock is needed. */
struct tw_cache_loading *loading_new(struct tw_cache *cache, struct shard *shard,
				     struct reader *loader, uint64_t hash, const void *key,
				     size_t key_size);
/* Lists it; the reference is the list's. */
void loading_list(struct tw_cache_loading *loading, struct tw_cache_loading **loadings);
/* The reader's thread begins to load; NULL: no thread does any more. */
void loading_set_loader(struct tw_cache_loading *loading, struct shared_state *shared,
			struct reader *loader);
/* Takes it out of the list, whose reference is the caller's then, and tells the threads that wait.
 */
void loading_unlist(struct tw_cache_loading *loading, struct tw_cache_loading **loadings,
		    struct shared_state *shared);
/* The two below need no lock. */
static inline struct tw_cache_loading *loading_hold(struct tw_cache_loading *loading)
{
	/* relaxed: the caller has one, or the list has under the lock. */
	atomic_fetch_add_explicit(&loading->references, 1, memory_order_relaxed);
	return loading;
}
/* NULL is fine. With no lock held: may free an adopted value. */
void loading_let_go(struct tw_cache_loading *loading);
/* Of a load that is over: its entry, with a pin for the caller, who then lets the load go; or NULL.
 * The pin is the load's if nobody else has a reference. */
const struct tw_cache_entry *loading_pin_entry(struct tw_cache_loading *loading);

/* False: the reader would wait for itself. Else it is noted as waiting: loading_wait() has to
 * follow. */
bool loading_may_wait(const struct tw_cache_loading *loading, struct shared_state *shared,
		      struct reader *reader);
/* Waits until the real time `until`; 0: not at all. TW_OK: the load is over; TW_TIMED_OUT;
 * TW_CLOSED. */
enum tw_status loading_wait(struct tw_cache_loading *loading, struct shared_state *shared,
			    struct reader *reader, pthread_mutex_t *lock, tw_duration until);

#endif
