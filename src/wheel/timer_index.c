/* SPDX-License-Identifier: MIT */
/*
 * The timer index is uthash's buckets, chains and handles, grown by linear hashing (Litwin, 1980).
 *
 * Invariants:
 *   2^level ≤ buckets < 2^(level + 1), and mask = 2^(level + 1) - 1
 *   a hash belongs to bucket hash & mask if that is in use, else to bucket hash & mask / 2
 *   bucket b ≥ 2^level was split from bucket b - 2^level
 *   buckets ≤ touched ≤ the number of buckets in all segments
 *   a bucket not in use is zero
 *   after a removal, buckets ≤ 4 * count + 64
 *
 * uthash doubles its table in one step: 50 ms at a million keys, 800 ms at ten million. Here an
 * insertion that finds more timers than buckets splits the next bucket in turn, or two if growth is
 * behind, so the owner never stalls. A removal that finds more than four buckets a timer merges the
 * last ones back, up to four, so that shrinking keeps pace with removals.
 *
 * Buckets lie in segments of 2 MiB, a huge page each, found through a directory. Growth sometimes
 * maps a segment, or allocates a directory of twice the size. If that fails, chains grow longer,
 * nothing is refused, and the next insertion tries again. uthash's own expansion would reject the
 * insertion, so it is switched off, and only uthash's macros for one bucket are used. The others
 * keep a list in order of insertion, for two more cache misses a call. A bucket is the head of its
 * chain: uthash's count beside it serves only its expansion.
 *
 * Memory behind the buckets in use goes back to the system as the index shrinks: whole segments,
 * and 64 KiB at a time of the first, which has small pages.
 */
#include "timer_index.h"

#include <assert.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/key.h"
#include "base/pages.h"

#undef HASH_KEYCMP
#define HASH_KEYCMP(a, b, size) (!keys_are_equal(a, b, size))

/* With this, uthash never expands a bucket, and no handle needs a pointer to its table. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH UINT32_MAX

enum {
	SEGMENT_SHIFT = 18,
	SEGMENT_BUCKETS = 1 << SEGMENT_SHIFT,
	/* The granularity of giving back: 64 KiB of buckets are whole pages on all systems. */
	TRIM_BUCKETS = 8192,
	FEWEST_BUCKETS = 64,
	FIRST_ROOM = 2,
	MOST_SPLITS = 2,     /* in an insertion */
	MOST_MERGES = 4,     /* in a removal */
	SPLIT_PREFETCH = 8,  /* how many splits ahead */
	MERGE_PREFETCH = 16, /* how many merges ahead */
	MERGE_EXCESS = 4     /* buckets are merged while there are more than this a timer */
};

static const size_t segment_size = SEGMENT_BUCKETS * sizeof(UT_hash_handle *);

static inline UT_hash_handle **bucket_at(const struct timer_index *index, uint32_t number)
{
	return &index->segments[number >> SEGMENT_SHIFT][number & (SEGMENT_BUCKETS - 1)];
}

static inline UT_hash_handle **bucket_of(const struct timer_index *index, uint32_t hash)
{
	uint32_t number = hash & index->mask;

	return bucket_at(index, number < index->buckets ? number : number & index->mask / 2);
}

static inline void bucket_add(UT_hash_handle **first, UT_hash_handle *handle)
{
	UT_hash_bucket bucket = {.hh_head = *first};

	HASH_ADD_TO_BKT(bucket, hh, handle, (void)0);
	*first = bucket.hh_head;
}

static inline void bucket_remove(UT_hash_handle **first, UT_hash_handle *handle)
{
	UT_hash_bucket bucket = {.hh_head = *first};

	HASH_DEL_IN_BKT(bucket, handle);
	*first = bucket.hh_head;
}

static inline struct keyed_timer *timer_of_handle(UT_hash_handle *handle)
{
	return list_entry(handle, struct keyed_timer, hh);
}

/* Returns the number of buckets on the pages of the first `buckets`. */
static size_t buckets_touched_with(uint32_t buckets)
{
	return ((size_t)buckets + TRIM_BUCKETS - 1) / TRIM_BUCKETS * TRIM_BUCKETS;
}

static bool timer_index_add_segment(struct timer_index *index)
{
	UT_hash_handle **segment;

	if (index->segment_count == index->segment_room) {
		size_t room = index->segment_room ? 2 * index->segment_room : FIRST_ROOM;
		UT_hash_handle ***segments = realloc(index->segments, room * sizeof(*segments));

		if (!segments)
			return false;
		index->segments = segments;
		index->segment_room = room;
	}
	segment = pages_map_aligned(segment_size, segment_size);
	if (!segment)
		return false;
	index->segments[index->segment_count++] = segment;
	/* A small index touches only the used part of its first segment. A huge page is touched as
	 * a whole. */
	pages_use_huge(segment, segment_size, index->segment_count > 1);
	if (index->segment_count > 1)
		index->touched = index->segment_count * SEGMENT_BUCKETS;
	return true;
}

/* Unmaps the last segment, which must have no bucket in use. */
static void timer_index_drop_segment(struct timer_index *index)
{
	size_t left = --index->segment_count * SEGMENT_BUCKETS;

	assert(index->touched > left);
	pages_unmap_aligned(index->segments[index->segment_count], segment_size);
	index->touched = left;
}

bool timer_index_init(struct timer_index *index)
{
	*index = (struct timer_index){.buckets = FEWEST_BUCKETS,
				      .mask = 2 * FEWEST_BUCKETS - 1,
				      .touched = buckets_touched_with(FEWEST_BUCKETS)};
	index->table.hho = offsetof(struct keyed_timer, hh);
	if (timer_index_add_segment(index))
		return true;
	free(index->segments);
	return false;
}

void timer_index_destroy(struct timer_index *index)
{
	while (index->segment_count > 0)
		timer_index_drop_segment(index);
	free(index->segments);
}

struct keyed_timer *timer_index_find(const struct timer_index *index, const void *key,
				     size_t key_size, uint32_t hash)
{
	UT_hash_bucket bucket = {.hh_head = *bucket_of(index, hash)};
	struct keyed_timer *timer;

	HASH_FIND_IN_BKT(&index->table, hh, bucket, key, (unsigned)key_size, hash, timer);
	return timer;
}

struct keyed_timer *timer_index_find_next(const struct timer_index *index,
					  const struct keyed_timer *timer)
{
	UT_hash_bucket bucket = {.hh_head = timer->hh.hh_next};
	struct keyed_timer *next;

	HASH_FIND_IN_BKT(&index->table, hh, bucket, timer->hh.key, timer->hh.keylen,
			 timer->hh.hashv, next);
	return next;
}

/* The guessed timer is still in the index if no timer was removed since, or if it is the first of
 * its bucket. In any other case its memory may be in other use. */
bool timer_index_confirms(const struct timer_index *index, const void *key, size_t key_size,
			  uint32_t hash, const struct keyed_timer *guess, uint64_t removals)
{
	return (index->removals == removals || *bucket_of(index, hash) == &guess->hh) &&
	       guess->hh.keylen == key_size && keys_are_equal(guess->hh.key, key, key_size);
}

/* One more bit distinguishes a bucket that has been split from the one split from it. */
struct keyed_timer *timer_index_bucket(const struct timer_index *index, uint32_t hash,
				       unsigned *bits)
{
	UT_hash_handle *first = *bucket_of(index, hash);
	uint32_t low = hash & index->mask / 2;
	bool is_split = (uint64_t)low + index->mask / 2 + 1 < index->buckets;

	*bits = (unsigned)__builtin_popcount(index->mask) - !is_split;
	return first ? timer_of_handle(first) : NULL;
}

struct keyed_timer *timer_index_first(const struct timer_index *index, uint32_t bucket)
{
	UT_hash_handle *first = *bucket_at(index, bucket);

	return first ? timer_of_handle(first) : NULL;
}

struct keyed_timer *timer_index_next_in_bucket(const struct keyed_timer *timer)
{
	return timer->hh.hh_next ? timer_of_handle(timer->hh.hh_next) : NULL;
}

/* Moves the timers whose hash belongs to bucket `to` now from bucket `from` to it. */
static void timer_index_redistribute(struct timer_index *index, UT_hash_handle **from,
				     UT_hash_handle **to)
{
	UT_hash_handle *next;

	for (UT_hash_handle *handle = *from; handle; handle = next) {
		next = handle->hh_next;
		if (bucket_of(index, handle->hashv) != to)
			continue;
		bucket_remove(from, handle);
		bucket_add(to, handle);
	}
}

/* Prefetches for later splits, which happen in a known order: the first timer of one bucket, the
 * second timer of a nearer bucket. */
static void timer_index_prefetch_split(const struct timer_index *index, uint32_t from)
{
	uint32_t mask = index->mask / 2;
	const UT_hash_handle *first = *bucket_at(index, (from + 2 * SPLIT_PREFETCH) & mask);

	if (first)
		prefetch_to_write(&first->hh_prev);
	first = *bucket_at(index, (from + SPLIT_PREFETCH) & mask);
	if (first && first->hh_next)
		prefetch_to_write(&first->hh_next->hh_prev);
}

/* Splits the next bucket. Returns false if out of memory. */
static bool timer_index_split(struct timer_index *index)
{
	uint32_t to = index->buckets;
	uint32_t from = to & index->mask / 2;

	if (to == UINT32_MAX)
		return false;
	if (to >> SEGMENT_SHIFT == index->segment_count && !timer_index_add_segment(index))
		return false;
	timer_index_prefetch_split(index, from);
	index->buckets++;
	if (index->buckets > index->touched)
		index->touched += TRIM_BUCKETS;
	timer_index_redistribute(index, bucket_at(index, from), bucket_at(index, to));
	if (index->buckets > index->mask)
		index->mask = 2 * index->mask + 1;
	return true;
}

/* Prefetches for a later merge: the first timer of the bucket, and of the one it is merged into. */
static void timer_index_prefetch_merge(const struct timer_index *index, uint32_t from)
{
	uint32_t ahead = from > MERGE_PREFETCH ? from - MERGE_PREFETCH : 0;
	const UT_hash_handle *first = *bucket_at(index, ahead);

	if (!first)
		return;
	prefetch_to_write(&first->hh_prev);
	first = *bucket_at(index, ahead & index->mask / 2);
	if (first)
		prefetch_to_write(&first->hh_prev);
}

/* Gives memory behind the buckets in use back to the system: a segment, or a part of the first.
 * The index has to grow to four times its size to need it again. */
static void timer_index_give_back(struct timer_index *index)
{
	size_t kept = buckets_touched_with(index->buckets);

	if (index->segment_count > 1) {
		if (index->buckets <= (index->segment_count - 1) << SEGMENT_SHIFT)
			timer_index_drop_segment(index);
	} else if (index->touched > kept) {
		(void)pages_release(bucket_at(index, (uint32_t)kept),
				    (index->touched - kept) * sizeof(UT_hash_handle *));
		index->touched = kept;
	}
}

static void timer_index_merge(struct timer_index *index)
{
	uint32_t from = index->buckets - 1;
	UT_hash_handle **last = bucket_at(index, from);

	timer_index_prefetch_merge(index, from);
	if (from <= index->mask / 2)
		index->mask /= 2;
	index->buckets--;
	if (*last)
		timer_index_redistribute(index, last, bucket_of(index, from));
	timer_index_give_back(index);
}

static bool timer_index_is_sparse(const struct timer_index *index)
{
	return index->buckets > FEWEST_BUCKETS && index->count < index->buckets / MERGE_EXCESS;
}

void timer_index_add(struct timer_index *index, struct keyed_timer *timer)
{
	bucket_add(bucket_of(index, timer->hh.hashv), &timer->hh);
	index->count++;
	for (int i = 0; i < MOST_SPLITS && index->count > index->buckets; i++)
		if (!timer_index_split(index))
			break;
}

void timer_index_remove(struct timer_index *index, struct keyed_timer *timer)
{
	bucket_remove(bucket_of(index, timer->hh.hashv), &timer->hh);
	index->count--;
	index->removals++;
	for (int i = 0; i < MOST_MERGES && timer_index_is_sparse(index); i++)
		timer_index_merge(index);
}

/* Goes on to the next timer in the chains where bit i of `left` is set, unless that chain has ended
 * or its timer has the hash. Returns where it has gone on. */
static uint64_t chains_step(struct keyed_timer **timers, const uint32_t *hashes, uint64_t left)
{
	uint64_t gone_on = 0;

	for (; left != 0; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (!timers[i] || timers[i]->hh.hashv == hashes[i])
			continue;
		timers[i] = timer_index_next_in_bucket(timers[i]);
		if (timers[i])
			prefetch_to_write(&timers[i]->hh);
		gone_on |= left & -left;
	}
	return gone_on;
}

/* Works in steps, each needing only what the step before has fetched: see pending.c. */
void timer_index_prefetch(const struct timer_index *index, const uint32_t *hashes, size_t count,
			  struct timer_guesses *guesses)
{
	UT_hash_handle **buckets[TIMER_INDEX_BATCH];
	uint64_t left = count < 64 ? ((uint64_t)1 << count) - 1 : UINT64_MAX;

	_Static_assert(TIMER_INDEX_BATCH <= 64, "a bit for each");
	guesses->removals = index->removals;
	for (size_t i = 0; i < count; i++) {
		buckets[i] = bucket_of(index, hashes[i]);
		prefetch_to_write(buckets[i]);
	}
	for (size_t i = 0; i < count; i++) {
		UT_hash_handle *first = *buckets[i];

		guesses->timers[i] = first ? timer_of_handle(first) : NULL;
		if (first)
			prefetch_to_write(first);
	}
	while (left != 0)
		left = chains_step(guesses->timers, hashes, left);
}
