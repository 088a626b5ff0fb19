/* SPDX-License-Identifier: MIT */
/*
 * A flight is the one load of a key that is queued or runs, or a pause of the key after a load that
 * failed. Programs know it as struct tw_cache_loading. All calls are made under the lock of the
 * flight's shard, except those that say otherwise.
 */
#ifndef CACHE_FLIGHT_H
#define CACHE_FLIGHT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/cache.h>

#include "base/list.h"
#include "base/own_lock.h"
#include "base/turn_lock.h"

struct caller;
struct shard;

/* A take whose function waits for the result of a flight. */
struct asker {
	struct list link;
	tw_cache_value_fn *on_value;
	void *context;
};

enum flight_state {
	FLIGHT_QUEUED, /* until a thread begins to load */
	FLIGHT_RUNNING,
	FLIGHT_PAUSED, /* it has failed, and the key is not loaded for a while */
	FLIGHT_OVER
};

struct tw_cache_loading {
	/* Constant. */
	uint64_t hash;
	struct shard *shard;
	uint16_t key_size;
	bool is_refresh; /* its value may still be read; constant once it runs */
	bool is_kept;    /* by its loader; constant once another thread knows the flight */
	/* The thread that runs it, a loader that keeps it, the list of pauses and each thread that
	 * waits have one. */
	atomic_uint references;
	/* Under the shard's lock. */
	struct tw_cache_loading *next; /* in its chain */
	struct list of_shard;          /* in `all` or `paused` */
	uint64_t clears;       /* those of the shard when it began; UINT64_MAX once overridden */
	struct caller *loader; /* the thread that loads, or NULL */
	struct list askers;    /* belongs to the thread that ends it, once it is over */
	uint16_t failures;     /* loads of the key that failed, in a row */
	bool is_awaited;       /* threads wait, or have waited */
	enum flight_state state;
	const struct tw_cache_entry *entry; /* with TW_OK: pinned, until the last one lets go */
	/* Under the lock of the queue (load.c): links to itself outside of the queue. */
	struct list of_queue;
	/* The loader's; under `lock`, which is taken outside of shards', once it is kept. */
	struct own_lock lock;
	struct tw_cache *cache;       /* NULL once a thread ends it */
	tw_duration began;            /* real time, or 0 */
	struct tw_cache_entry *given; /* by the loader, or NULL; one reference */
	/* What is above is 0 at first; what is below has a value once it is of use. */
	tw_duration life;      /* the given value's, as in its plan */
	enum tw_status status; /* what the load has ended with */
	pthread_cond_t over;   /* awaited under the shard's lock */
	tw_duration retry_at;  /* when its pause ends, on the wheel's clock */
	tw_duration forget_at;
	/* Constant. */
	unsigned char key[];
};

/* FLIGHTS_PAUSED is the most pauses of a shard: then the oldest is forgotten. */
enum { FLIGHTS_PAUSED = 256 };

/* A shard's flights. */
struct flights {
	/* The first line has what a load that is no pause touches. */
	struct tw_cache_loading **chains; /* by hash, one flight for a key; a power of two */
	uint32_t chain_count;             /* 0 before the first flight */
	uint32_t chained;                 /* flights in the chains */
	uint32_t queued;                  /* queued flights in `all` */
	uint32_t count;                   /* flights in `all` */
	struct list all;                  /* queued and running, the oldest first */
	uint64_t clears;                  /* how often all keys were cleared */
	uint64_t entered;                 /* calls that end with load_leave() */
	uint32_t pauses;                  /* flights in `paused` */
	struct list paused;
	tw_duration forget_at; /* no pause is to be forgotten before that; TW_FOREVER without any */
};

void flights_init(struct flights *flights);
/* Frees the pauses and the chains. */
void flights_close(struct flights *flights);
/* Returns the key's flight, or NULL. */
struct tw_cache_loading *flights_find(const struct flights *flights, uint64_t hash, const void *key,
				      size_t key_size);
/* The key was set or deleted: what is being loaded goes to those that wait for it already, and is
 * not stored; a pause ends. */
void flights_override(struct flights *flights, uint64_t hash, const void *key, size_t key_size);
void flights_override_all(struct flights *flights);
/* Forgets the pauses whose time is over, if there may be any. */
void flights_forget(struct flights *flights, tw_duration now);

/* Adds a flight of the key, in the place of the key's pause if there is one. It has one reference,
 * the caller's, and is queued, or runs in the loader's thread if that is not NULL. Returns NULL if
 * out of memory. */
struct tw_cache_loading *flights_add(struct flights *flights, uint64_t hash, const void *key,
				     size_t key_size, struct caller *loader);
/* The loader's thread begins to load what was queued. */
void flight_begin(struct tw_cache_loading *flight, struct flights *flights, struct caller *loader);
/* Takes it out of the lists. Returns whether its key was neither set nor deleted. */
bool flight_unlist(struct tw_cache_loading *flight, struct flights *flights);
/* What was just unlisted becomes a pause, with retry_at, forget_at and failures set. */
void flight_pause(struct tw_cache_loading *flight, struct flights *flights);
/* Returns whether what it loads will be stored: its key was neither set nor deleted. */
static inline bool flight_is_current(const struct tw_cache_loading *flight,
				     const struct flights *flights)
{
	return flight->clears == flights->clears;
}

/* Lets the lock of the flight's shard go, waits until flight_wake() or that real time, and takes it
 * again. Returns false on timeout. It may return for nothing. */
bool flight_wait(struct tw_cache_loading *flight, struct turn_lock *lock, tw_duration until)
	HOLDS(*lock);
/* Ends all these waits. */
void flight_wake(struct tw_cache_loading *flight, struct turn_lock *lock) HOLDS(*lock);

/* These need no lock. */
static inline struct tw_cache_loading *flight_hold(struct tw_cache_loading *flight)
{
	/* relaxed: the caller has one, or a list has under the lock. */
	atomic_fetch_add_explicit(&flight->references, 1, memory_order_relaxed);
	return flight;
}
void flight_let_go(struct tw_cache_loading *flight);
/* Returns a pin of the entry of a flight that is over, or NULL, before flight_let_go(). */
const struct tw_cache_entry *flight_take_entry(struct tw_cache_loading *flight);

#endif
