/* SPDX-License-Identifier: MIT */
/*
 * Loads that run or are about to, and the takes that wait for them. A shard's loads are under its
 * lock, which is held in all calls but those that say otherwise.
 */
#ifndef CACHE_LOADING_H
#define CACHE_LOADING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/turn_lock.h"
#include "shared.h"
#include "entry.h"

struct shard;

/* A take whose result its function receives (waiter.h). */
struct waiter {
	/* The shard's lock guards these, except for waiters that are about to be called. */
	struct list of_load;
	/* The result. */
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned, or NULL */
	/* Constant. */
	tw_cache_value_fn *on_value;
	void *context;
};

struct loading_slot {
	uint64_t hash;
	struct tw_cache_loading *loading; /* or NULL in a free slot */
};

/* A shard's loads. */
struct loadings {
	/* The loads that other takes of the key may join, by hash, one for a key. */
	struct loading_slot *slots; /* a power of two */
	uint32_t mask;
	uint32_t current; /* slots used */
	struct list all;  /* the oldest first */
	uint32_t count;
	uint32_t queued;            /* no thread has begun to load these yet */
	uint64_t clears;            /* how often all keys were cleared */
	struct loading_slot few[8]; /* the slots while they suffice */
};

/* What the loader knows as its loading. */
struct tw_cache_loading {
	/* Constant. */
	uint64_t hash;
	struct shard *shard;
	tw_duration listed; /* when, as a real time */
	uint16_t key_size;
	bool is_refresh; /* its value may still be read */
	bool is_kept;    /* by its loader; constant then */
	/* Each thread that waits, the queue, the list, and a loader that keeps it have one. */
	atomic_uint references;
	/* Under the shard's lock. */
	struct list of_shard;
	struct list waiters;
	/* Those of the shard when it began; UINT64_MAX: the key was set or deleted since then. */
	uint64_t clears;
	const struct tw_cache_entry *entry; /* pinned, or NULL */
	enum tw_status status;
	bool is_queued;            /* no thread has begun to load yet */
	struct turn_lock *awaited; /* the lock of its shard once `ended` is there, or NULL */
	bool is_over;
	struct reader *loader; /* the thread that loads, or NULL */
	/* The loaders' lock guards these (loaders.h). */
	bool is_in_queue;
	bool is_preferred; /* a reload that somebody waits for */
	struct list of_queue;
	/* These belong to the load; once it is kept, they are under its own lock, which is taken
	 * outside of shards'. */
	struct tw_cache *cache;       /* or NULL: a thread ends it, or has */
	tw_duration began;            /* real time, or 0 */
	tw_duration life;             /* the given value's, as in its plan */
	struct tw_cache_entry *given; /* by the loader, or NULL; one reference */
	/* Made when they are needed. */
	pthread_mutex_t lock; /* once it is kept */
	pthread_cond_t ended; /* with the shard's lock, once a thread waits */
	/* Constant. */
	unsigned char key[];
};

void loadings_init(struct loadings *loadings);
void loadings_close(struct loadings *loadings);
/* Returns the load of the key that a take may join, or NULL if there is none. */
struct tw_cache_loading *loadings_find(const struct loadings *loadings, uint64_t hash,
				       const void *key, size_t key_size);
/* The key was set or deleted: what is being loaded goes to those that wait for it already, and is
 * not stored. */
void loadings_override(struct loadings *loadings, uint64_t hash, const void *key, size_t key_size);
void loadings_override_all(struct loadings *loadings);
/* Whether what it loads will be stored: its key was neither set nor deleted. */
static inline bool loading_is_current(const struct tw_cache_loading *loading,
				      const struct loadings *loadings)
{
	return loading->clears == loadings->clears;
}
/* Wakes the threads that wait, to look whether the cache is closed, and moves all waiters to the
 * end of that list, with the status TW_CLOSED. */
void loadings_wake(struct loadings *loadings, struct list *waiters);

/* Returns a new load of the key, by the loader's thread or, if that is NULL, queued, at the real
 * time `now`. It is not listed yet, and has one reference. Returns NULL if out of memory. No lock
 * is needed. */
struct tw_cache_loading *loading_new(struct tw_cache *cache, struct shard *shard,
				     struct reader *loader, uint64_t hash, const void *key,
				     size_t key_size, tw_duration now);
/* Lists the load, with the reference for the list. Returns false if it is out of memory.
 * shard_begin_load() calls it. */
bool loading_list(struct tw_cache_loading *loading, struct loadings *loadings);
/* The reader's thread begins to load what was queued. */
void loading_claim(struct tw_cache_loading *loading, struct loadings *loadings,
		   struct reader *loader);
/* Takes it out of the list, whose reference is the caller's then, and wakes the threads that wait.
 * Through shard_unlist_load(). */
void loading_unlist(struct tw_cache_loading *loading, struct loadings *loadings);
void loading_add_waiter(struct tw_cache_loading *loading, struct waiter *waiter);
/* Moves some waiters to the end of that list, with the result: that status, and the load's entry.
 * Returns whether there are more. */
bool loading_take_waiters(struct tw_cache_loading *loading, enum tw_status status,
			  struct list *waiters);
/* The two below need no lock. */
static inline struct tw_cache_loading *loading_hold(struct tw_cache_loading *loading)
{
	/* relaxed: the caller has one, or the list has under the lock. */
	atomic_fetch_add_explicit(&loading->references, 1, memory_order_relaxed);
	return loading;
}
/* Holds and returns the oldest load, or returns NULL if there is none. Under the shard's lock. */
static inline struct tw_cache_loading *loadings_hold_first(struct loadings *loadings)
{
	struct list *first = loadings->all.next;

	return first == &loadings->all
		       ? NULL
		       : loading_hold(list_entry(first, struct tw_cache_loading, of_shard));
}
/* When the oldest load was listed, as a real time; TW_FOREVER: there is none. Under the shard's
 * lock. */
static inline tw_duration loadings_oldest(const struct loadings *loadings)
{
	return loadings->count == 0
		       ? TW_FOREVER
		       : list_entry(loadings->all.next, struct tw_cache_loading, of_shard)->listed;
}
/* NULL is fine. With no lock held: may free an adopted value. */
void loading_let_go(struct tw_cache_loading *loading);
/* Returns the entry of a load that is over, with a pin for the caller, which then lets the load go;
 * or NULL. The pin is the load's if nobody else has a reference. */
const struct tw_cache_entry *loading_pin_entry(struct tw_cache_loading *loading);

/* Waits until that real time. Returns TW_OK if the load is over, TW_TIMED_OUT or TW_CLOSED. Under
 * the shard's lock. */
enum tw_status loading_wait(struct tw_cache_loading *loading, struct shared_state *shared,
			    struct turn_lock *lock, tw_duration until) HOLDS(*lock);

#endif
