/* SPDX-License-Identifier: MIT */
/*
 * A glance is the part of a lookup that suffices for most keys.
 *
 * While a lookup waits for memory, the processor continues into the next lookup and to what that
 * one will wait for: as far as its queues reach (320 operations on Zen 4, 64 stores, and 96 that
 * wait for what is still to come). So what counts is how little is done, and above all how little
 * of it depends on what was fetched. A glance knows a short key, found as the first of its bucket
 * with its tag, in an entry with nothing special, whose deadline is far; or a miss, where no slot
 * of the bucket has the tag, and no key has passed the bucket. All else is left to cache_find().
 *
 * A miss follows nothing that it has loaded, so it needs no second look at the era; nor an order of
 * its loads. A key that is there all the time is in one slot all the time: if that is one of the
 * bucket's, the load of it has the tag; else the bucket counts the key as passed, in its first
 * slot.
 */
#ifndef CACHE_LOOKUP_H
#define CACHE_LOOKUP_H

#include "cache.h"
#include "pins.h"

enum glance_result {
	GLANCE_HIT,    /* inside an era, which the caller leaves */
	GLANCE_MISS,   /* inside an era, which the caller leaves */
	GLANCE_INSIDE, /* not known yet; inside an era */
	GLANCE_NONE    /* nothing has begun */
};

/* What a glance has found out. Its reader, shard and hash are set except by GLANCE_NONE. */
struct glance {
	struct reader *reader;
	struct shard *shard;
	uint64_t hash;
	tw_duration margin_end;       /* the coarse time and shared_state.coarse_margin */
	struct tw_cache_entry *entry; /* GLANCE_HIT: may be read; its use does not count yet */
};

/* Looks a key up. The arguments need not be valid. */
static inline __attribute__((always_inline)) enum glance_result cache_glance(struct tw_cache *cache,
									     const void *key,
									     size_t key_size,
									     struct glance *glance)
{
	struct tw_cache_entry *entry;
	const struct bucket *bucket;
	unsigned matches;
	uintptr_t place;
	uint64_t era;

	/* relaxed: a call that begins after the stop has it from there. */
	if (__builtin_expect(!cache ||
				     !atomic_load_explicit(&cache->lookups_are_plain,
							   memory_order_relaxed) ||
				     !key || !key_is_short(key_size),
			     0))
		return GLANCE_NONE;
	glance->hash = key_hash_short(&cache->shared.seed, key, key_size);
	glance->shard = cache_shard(cache, glance->hash);
	place = shard_prefetch_bucket(glance->shard, glance->hash);
	glance->margin_end = shared_coarse_now(&cache->shared) + cache->shared.coarse_margin;
	glance->reader = epochs_reader(&cache->shared.epochs);
	if (__builtin_expect(!glance->reader, 0))
		return GLANCE_NONE;

	era = reader_enter(glance->reader, &cache->shared.epochs);
	if (__builtin_expect(shard_place(glance->shard) != place, 0) ||
	    !epochs_is_in(&cache->shared.epochs, era))
		return GLANCE_INSIDE;
	bucket = place_bucket(place, glance->hash);
	matches = bucket_matches(bucket, glance->hash);
	if (__builtin_expect(matches == 0, 0))
		return bucket_was_passed(bucket) ? GLANCE_INSIDE : GLANCE_MISS;
	entry = bucket_first(bucket, matches);
	if (!epochs_is_in(&cache->shared.epochs, era))
		return GLANCE_INSIDE;
	if (__builtin_expect(!entry || entry->key_size != key_size || entry->kind != 0 ||
				     !short_keys_are_equal(entry->bytes, key, key_size) ||
				     entry_deadline(entry) <= glance->margin_end,
			     0))
		return GLANCE_INSIDE;
	glance->entry = entry;
	return GLANCE_HIT;
}

/* Counts what a lookup has found, an entry or NULL. Returns TW_OK for a value, or TW_NOT_FOUND. */
static inline __attribute__((always_inline)) enum tw_status reader_count_find(
	struct reader *reader, const struct tw_cache_entry *entry)
{
	bool is_value = entry && !(entry->kind & ENTRY_ABSENT);

	reader_count(reader, is_value ? COUNT_HITS : entry ? COUNT_ABSENT : COUNT_MISSES, 1);
	return is_value ? TW_OK : TW_NOT_FOUND;
}

/* Counts a hit and a use. */
static inline void glance_count_hit(const struct glance *glance)
{
	policy_use(&glance->shard->policy, glance->entry);
	reader_count(glance->reader, COUNT_HITS, 1);
}

/* Counts a hit, pins the entry, leaves the era and returns the entry. */
static inline struct tw_cache_entry *glance_take(const struct glance *glance)
{
	glance_count_hit(glance);
	entry_hold(glance->entry);
	reader_leave(glance->reader);
	return glance->entry;
}

/* Counts a miss and leaves the era. Returns TW_NOT_FOUND. */
static inline enum tw_status glance_miss(const struct glance *glance)
{
	reader_count(glance->reader, COUNT_MISSES, 1);
	reader_leave(glance->reader);
	return TW_NOT_FOUND;
}

#endif
