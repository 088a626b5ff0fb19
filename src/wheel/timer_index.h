/* SPDX-License-Identifier: MIT */
/*
 * A timer index finds the timer of a key. Adding never fails and never takes long: the table grows
 * and shrinks by a few buckets at a time. Only the owner may call these functions.
 */
#ifndef TIMER_INDEX_H
#define TIMER_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "timer.h"

struct timer_index {
	struct UT_hash_table table; /* the offset of the handles, for uthash */
	UT_hash_handle ***segments; /* a bucket is its first timer's handle, or NULL */
	size_t segment_room;        /* segments that fit into the directory */
	size_t segment_count;
	uint32_t buckets; /* buckets in use */
	uint32_t mask;  /* for hashes: 2 * 2^level - 1, where 2^level ≤ buckets < 2^(level + 1) */
	size_t touched; /* buckets from this number on are zero and have no memory */
	size_t count;   /* timers */
	uint64_t removals; /* total number of removals */
};

/* Initializes an empty index. Returns false if out of memory. */
bool timer_index_init(struct timer_index *index);
/* Frees the table. It touches no timer. */
void timer_index_destroy(struct timer_index *index);
/* Returns the bytes that the index has from the system, as far as it knows. */
static inline size_t timer_index_memory(const struct timer_index *index)
{
	return index->touched * sizeof(UT_hash_handle *) +
	       index->segment_room * sizeof(UT_hash_handle **);
}

/* Returns the timer with that key, or NULL. */
struct keyed_timer *timer_index_find(const struct timer_index *index, const void *key,
				     size_t key_size, uint32_t hash);

/* Returns the next timer of the bucket that has the timer's key, or NULL. */
struct keyed_timer *timer_index_find_next(const struct timer_index *index,
					  const struct keyed_timer *timer);

enum { TIMER_INDEX_BATCH = 64 }; /* keys at a time */

/* A guess is the timer that a key probably has, or NULL. These were made together. */
struct timer_guesses {
	struct keyed_timer *timers[TIMER_INDEX_BATCH];
	uint64_t removals; /* the index's removals then */
};

/* Returns whether a guess that was made is right; `removals` is what was noted with it. */
bool timer_index_confirms(const struct timer_index *index, const void *key, size_t key_size,
			  uint32_t hash, const struct keyed_timer *guess, uint64_t removals);
/*
 * Returns the first timer of the hash's bucket, or NULL. Sets *bits to a number of low bits of the
 * hash: the bucket has all timers whose hashes have the same low bits, and no others.
 */
struct keyed_timer *timer_index_bucket(const struct timer_index *index, uint32_t hash,
				       unsigned *bits);
/* Returns the next timer of the bucket, in no order, or NULL. */
struct keyed_timer *timer_index_next_in_bucket(const struct keyed_timer *timer);

/* Returns the first timer of a bucket in use, by its number, or NULL. */
struct keyed_timer *timer_index_first(const struct timer_index *index, uint32_t bucket);

void timer_index_add(struct timer_index *index, struct keyed_timer *timer);
void timer_index_remove(struct timer_index *index, struct keyed_timer *timer);

/*
 * Prefetches what finding, adding or removing the keys of `count` ≤ TIMER_INDEX_BATCH hashes will
 * touch, overlapping the cache misses. Writes a guess for each. It touches only the handles of the
 * timers guessed.
 */
void timer_index_prefetch(const struct timer_index *index, const uint32_t *hashes, size_t count,
			  struct timer_guesses *guesses);

/* Prefetches what removing the timer will touch of the next timer in its chain. */
static inline void timer_index_prefetch_neighbour(const struct keyed_timer *timer)
{
	if (timer->hh.hh_next)
		prefetch_to_write(&timer->hh.hh_next->hh_prev);
}

#endif
