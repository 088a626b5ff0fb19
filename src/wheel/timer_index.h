/* SPDX-License-Identifier: MIT */
/*
 * Key to timer. Owner only. Adding never fails and never takes long: the table grows and shrinks by
 * a few buckets at a time.
 */
#ifndef TIMER_INDEX_H
#define TIMER_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prefetch.h"
#include "timer.h"

struct timer_index {
	struct UT_hash_table table; /* tells uthash where the handles lie */
	UT_hash_handle ***segments; /* of each bucket the first timer's handle, or NULL */
	size_t segment_room;        /* segments that the directory has room for */
	size_t segment_count;
	uint32_t buckets; /* buckets in use */
	uint32_t mask;  /* for hashes: 2 * 2^level - 1, where 2^level ≤ buckets < 2^(level + 1) */
	size_t touched; /* no bucket behind these many was in use since it was given back */
	size_t count;   /* timers */
	uint64_t removals; /* since ever */
};

/* False: out of memory. */
bool timer_index_init(struct timer_index *index);
/* Frees the table in steps: true when nothing is left. The timers are not touched. */
bool timer_index_discard(struct timer_index *index);
/*
 * Gives memory behind the buckets in use back to the system, a segment at most, which takes some
 * 100 us; no system call where nothing was used since the last. True: there is more to do.
 */
bool timer_index_trim(struct timer_index *index);
/* Bytes that it has from the system, as far as it knows; of these, what a trim gives back. */
size_t timer_index_memory(const struct timer_index *index);
size_t timer_index_surplus(const struct timer_index *index);

struct keyed_timer *timer_index_find(const struct timer_index *index, const void *key,
				     size_t key_size, uint32_t hash);
/* The timer that a key probably has. */
struct timer_guess {
	struct keyed_timer *timer; /* or NULL */
	uint64_t removals;         /* of the index, when it was made */
};
/* timer_index_find(), which a good guess makes cheaper. */
struct keyed_timer *timer_index_confirm(const struct timer_index *index, const void *key,
					size_t key_size, uint32_t hash,
					const struct timer_guess *guess);
/*
 * The first timer of the hash's bucket, or NULL, and in *bits, how many low bits of their hashes
 * all timers of the bucket have in common, and no others. Then those behind it, in no order.
 */
struct keyed_timer *timer_index_bucket(const struct timer_index *index, uint32_t hash,
				       unsigned *bits);
struct keyed_timer *timer_index_next_in_bucket(const struct keyed_timer *timer);

/* There must be none with its key. */
void timer_index_add(struct timer_index *index, struct keyed_timer *timer);
void timer_index_remove(struct timer_index *index, struct keyed_timer *timer);

enum { TIMER_INDEX_BATCH = 64 };

/*
 * Brings into the cache what finding, adding or removing these keys will touch, all at once, for
 * count ≤ TIMER_INDEX_BATCH hashes. Of the timers guessed it has not been touched but the handle.
 */
void timer_index_prefetch(const struct timer_index *index, const uint32_t *hashes, size_t count,
			  struct timer_guess *guesses);

/* The same for what taking the timer out will touch of the next in its chain. */
static inline void timer_index_prefetch_neighbour(const struct keyed_timer *timer)
{
	if (timer->hh.hh_next)
		prefetch_to_write(&timer->hh.hh_next->hh_prev);
}

#endif
