/* SPDX-License-Identifier: MIT */
/*
 * A flight is the one load of a key that is queued or runs, or a pause of the key after a load that
 * failed. Programs know it as struct tw_cache_loading. All calls are made under the lock of the
 * flight's shard, except those that say otherwise.
 */
#ifndef CACHE_FLIGHT_H
#define CACHE_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/cache.h>

#include "base/list.h"
#include "base/own_lock.h"

struct reader;
struct shard;

/* A take that waits for a flight. */
struct waiter {
	/* In the list of its flight; then in a list of waiters that are about to be called. */
	struct list link;
	bool is_listed; /* in the list of its flight */
	bool sleeps;    /* constant: a thread waits */
	/* The result. */
	enum tw_status status;
	const struct tw_cache_entry *entry; /* pinned, or NULL */
	/* Constant. Is called once with the result, with no lock held, and ends the waiter. */
	void (*done)(struct waiter *waiter, struct tw_cache *cache);
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
	tw_duration listed; /* when, as a real time */
	uint16_t key_size;
	bool is_refresh; /* its value may still be read; constant once it runs */
	bool is_kept;    /* by its loader; constant once another thread knows the flight */
	/* The thread that runs it, a loader that keeps it, and the list of pauses have one each. */
	atomic_uint references;
	/* Under the shard's lock. */
	uint16_t failures; /* loads of the key that failed, in a row */
	enum flight_state state;
	struct tw_cache_loading *next; /* in its chain */
	struct list of_shard;          /* in `all` or `paused` */
	struct list waiters;
	uint64_t clears;      /* those of the shard when it began; UINT64_MAX once overridden */
	tw_duration retry_at; /* when its pause ends, on the wheel's clock */
	tw_duration forget_at;
	struct reader *loader;              /* the thread that loads, or NULL */
	enum tw_status status;              /* what the load has ended with */
	bool is_taken;                      /* the thread that loads gets the entry from here */
	const struct tw_cache_entry *entry; /* for that thread, pinned, or NULL */
	/* Under the lock of the queue (load_queue.h). */
	bool is_in_queue;
	bool is_preferred; /* a reload that somebody waits for */
	struct list of_queue;
	/* The loader's; under `lock`, which is taken outside of shards', once it is kept. */
	struct own_lock lock;
	struct tw_cache *cache;       /* NULL once a thread ends it */
	tw_duration began;            /* real time, or 0 */
	tw_duration life;             /* the given value's, as in its plan */
	struct tw_cache_entry *given; /* by the loader, or NULL; one reference */
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
/* Forgets the pauses whose time is over. */
void flights_forget(struct flights *flights, tw_duration now);

/* Adds a flight of the key, in the place of the key's pause if there is one. It has one reference,
 * the caller's, and is queued, or runs in the loader's thread if that is not NULL. Returns NULL if
 * out of memory. */
struct tw_cache_loading *flights_add(struct flights *flights, uint64_t hash, const void *key,
				     size_t key_size, struct reader *loader);
/* The loader's thread begins to load what was queued. */
void flight_begin(struct tw_cache_loading *flight, struct flights *flights, struct reader *loader);
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

/* Threads come first: they do not wait for the functions of others. */
void flight_add_waiter(struct tw_cache_loading *flight, struct waiter *waiter);
/* Moves some waiters to the end of that list, with that status and a pin of the entry, or NULL.
 * Returns whether there are more. */
bool flight_take_waiters(struct tw_cache_loading *flight, enum tw_status status,
			 const struct tw_cache_entry *entry, struct list *waiters);
/* Calls the waiters in the list. No lock may be held. */
void waiters_call(struct tw_cache *cache, struct list *waiters);

/* The two below need no lock. */
static inline struct tw_cache_loading *flight_hold(struct tw_cache_loading *flight)
{
	/* relaxed: the caller has one, or a list has under the lock. */
	atomic_fetch_add_explicit(&flight->references, 1, memory_order_relaxed);
	return flight;
}
void flight_let_go(struct tw_cache_loading *flight);

#endif
