/* SPDX-License-Identifier: MIT */
/*
 * A lookup enters an epoch, finds the entry in the shard's table, judges its deadline, and copies
 * or pins it; it takes no lock and writes to nothing that is shared but the entry's bits of use,
 * and the deadline once it is past.
 *
 * Judgements. A lookup that finds an entry past its deadline has the deadline say so. A touch
 * changes the same word; of the two one comes first, and the other sees it. A replacement that
 * needs the old entry to be there (PUT_REPLACE) has two words to change: first the deadline, after
 * which lookups go on from the entry to the shard's successor; then the slot. A lookup that may not
 * read what it found looks once more at the slot: if that has changed, what was judged was not the
 * key's any more, and it looks again.
 *
 * Linearization: the load of the slot; of what has expired, the last one; of a successor that is
 * not in its slot yet, the change of the deadline.
 */
#include "cache.h"

#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A hit moves the deadline, to the entry's end at most; false: it had passed meanwhile. A touch
 * that runs beside it sets the end first, and then the deadline, which tells us of that end. */
static __attribute__((noinline)) bool cache_slide(const struct tw_cache *cache,
						  struct tw_cache_entry *entry,
						  tw_duration deadline, tw_duration coarse)
{
	tw_duration later =
		deadline_after(time_add(coarse, cache->domain.coarse_step), cache->idle);

	while (deadline >= 0) {
		tw_duration end = entry_end(entry);
		tw_duration moved = later < end ? later : end;

		if (deadline >= moved)
			return true;
		if (!entry_move_deadline(entry, &deadline, moved))
			continue;
		/* A touch may have come to the very deadline that was there before. */
		end = entry_end(entry);
		if (end < moved)
			entry_move_deadline(entry, &moved, end);
		return true;
	}
	return false;
}

/* Whether the entry may be read, given a coarse time. A hit. */
static ALWAYS_INLINE bool cache_may_read(const struct tw_cache *cache, struct tw_cache_entry *entry,
					 tw_duration coarse)
{
	tw_duration deadline = entry_deadline(entry);

	return deadline == TW_FOREVER ||
	       (!cache_finds_past(cache, entry, coarse) &&
		(cache->idle == 0 || cache_slide(cache, entry, deadline, coarse)));
}

/* Whether the table that lookups use has the entry in the slot where it was found. */
static bool entry_is_in_place(const struct shard *shard, const struct table *table,
			      const _Atomic uint64_t *slot, const struct tw_cache_entry *entry)
{
	return shard_table(shard) == table && slot_entry(slot_load(slot)) == entry;
}

/* As cache_find_at(), of a key whose entry could not be read at first sight. */
static __attribute__((noinline)) struct tw_cache_entry *cache_find_other(
	struct tw_cache *cache, tw_duration coarse, uint64_t hash, const void *key, size_t key_size)
{
	const struct shard *shard = cache_shard(cache, hash);

	for (;;) {
		const struct table *table = shard_table(shard);
		_Atomic uint64_t *slot;
		struct tw_cache_entry *entry = table_find(table, hash, key, key_size, &slot);
		struct tw_cache_entry *successor;

		if (!entry || cache_may_read(cache, entry, coarse))
			return entry;
		successor = shard_successor_of(shard, entry);
		if (successor && entry_is_in_place(shard, table, slot, entry)) {
			if (cache_may_read(cache, successor, coarse))
				return successor;
			/* Then the slot is seen to have changed. */
			if (shard_successor_of(shard, successor))
				continue;
		}
		/* Else what was judged was not the key's any more. */
		if (entry_is_in_place(shard, table, slot, entry))
			return NULL;
	}
}

/*
 * As cache_find(), at a coarse time that was read in this call: an entry that outlives it, and is
 * found, was there at that time, or came later in the call with its lifetime before it.
 */
static ALWAYS_INLINE struct tw_cache_entry *cache_find_at(struct tw_cache *cache,
							  tw_duration coarse, uint64_t hash,
							  const void *key, size_t key_size)
{
	struct shard *shard = cache_shard(cache, hash);
	_Atomic uint64_t *slot;
	struct tw_cache_entry *entry = table_find(shard_table(shard), hash, key, key_size, &slot);

	if (entry && !cache_may_read(cache, entry, coarse))
		entry = cache_find_other(cache, coarse, hash, key, key_size);
	if (!entry)
		return NULL;
	if (domain_counts_uses(&cache->domain) && policy_use(&shard->policy, entry))
		shard_try_settle(shard);
	return entry;
}

struct tw_cache_entry *cache_find(struct tw_cache *cache, uint64_t hash, const void *key,
				  size_t key_size)
{
	return cache_find_at(cache, domain_coarse_now(&cache->domain), hash, key, key_size);
}

/* ---- One key ---- */

/* What a lookup's end counts as, and answers. */
static ALWAYS_INLINE enum tw_status reader_count_find(struct reader *reader,
						      const struct tw_cache_entry *entry)
{
	if (!entry) {
		reader_count(reader, COUNT_MISSES, 1);
		return TW_NOT_FOUND;
	}
	if (entry->kind & ENTRY_ABSENT) {
		reader_count(reader, COUNT_ABSENT, 1);
		return TW_NOT_FOUND;
	}
	reader_count(reader, COUNT_HITS, 1);
	return TW_OK;
}

/* Copies `copied` bytes and leaves the epoch. A large value is pinned meanwhile, so that it holds
 * up nobody's memory. */
static void cache_copy_and_leave(struct reader *reader, struct tw_cache_entry *entry, void *buffer,
				 const void *value, size_t copied)
{
	enum { LARGE = 16384 };

	if (copied <= LARGE) {
		if (copied > 0)
			bytes_copy(buffer, value, copied);
		reader_leave(reader);
	} else {
		entry_pin(entry);
		reader_leave(reader);
		memcpy(buffer, value, copied);
		tw_cache_entry_release(entry);
	}
}

/* Inside an epoch, which it leaves. value_size may be NULL. */
static __attribute__((noinline)) enum tw_status cache_get_inside(
	struct tw_cache *cache, struct reader *reader, tw_duration coarse, uint64_t hash,
	const void *key, size_t key_size, void *buffer, size_t capacity, size_t *value_size)
{
	struct tw_cache_entry *entry = cache_find_at(cache, coarse, hash, key, key_size);
	enum tw_status status = reader_count_find(reader, entry);
	const void *value;
	size_t size = 0;
	size_t copied;

	if (status == TW_OK) {
		value = entry_value(entry, &size);
		copied = size < capacity ? size : capacity;
		status = copied < size ? TW_TRUNCATED : TW_OK;
		cache_copy_and_leave(reader, entry, buffer, value, copied);
	} else {
		reader_leave(reader);
	}
	if (value_size)
		*value_size = size;
	return status;
}

/* Not inside an epoch. value_size may be NULL. */
static enum tw_status cache_get_hashed(struct tw_cache *cache, struct reader *reader, uint64_t hash,
				       const void *key, size_t key_size, void *buffer,
				       size_t capacity, size_t *value_size)
{
	tw_duration coarse = domain_coarse_now(&cache->domain);

	reader_enter(reader, &cache->domain.epochs);
	return cache_get_inside(cache, reader, coarse, hash, key, key_size, buffer, capacity,
				value_size);
}

/* tw_cache_get, whatever it is asked. */
static __attribute__((noinline)) enum tw_status cache_get_any(struct tw_cache *cache,
							      const void *key, size_t key_size,
							      void *buffer, size_t capacity,
							      size_t *value_size)
{
	enum tw_status status = TW_INVALID;

	if (cache && key_is_valid(key, key_size) && (buffer || capacity == 0)) {
		struct reader *reader = epochs_reader(&cache->domain.epochs);
		bool is_closed = domain_is_closed(&cache->domain);

		if (reader && !is_closed)
			return cache_get_hashed(cache, reader,
						key_hash_wide(&cache->domain.seed, key, key_size),
						key, key_size, buffer, capacity, value_size);
		status = is_closed ? TW_CLOSED : TW_NO_MEMORY;
	}
	/* Not before the key was read: callers may have both in one place. */
	if (value_size)
		*value_size = 0;
	return status;
}

/*
 * While a lookup waits for memory, the processor goes on, into the next lookup and to what that one
 * will wait for: as far as its queues reach (320 operations on Zen 4, 64 stores, and 96 that wait
 * for what is still to come). So what counts is how little is done, and above all how little of it
 * depends on what was fetched. Here is what suffices for most: a short key, found as the first of
 * its bucket with its tag, in an entry with nothing special, whose deadline is far, and a value
 * that fits. All else is left to others.
 */
enum tw_status tw_cache_get(struct tw_cache *cache, const void *key, size_t key_size, void *buffer,
			    size_t capacity, size_t *value_size)
{
	struct tw_cache_entry *entry;
	const unsigned char *value;
	struct reader *reader;
	struct shard *shard;
	tw_duration margin_end;
	uintptr_t place;
	uint64_t hash;
	size_t size;

	/* relaxed: a call that begins after the stop has it from there. */
	if (__builtin_expect(!cache ||
				     !atomic_load_explicit(&cache->lookups_are_plain,
							   memory_order_relaxed) ||
				     !key || !key_is_short(key_size) || !buffer,
			     0))
		goto any;
	hash = key_hash_short(&cache->domain.seed, key, key_size);
	shard = cache_shard(cache, hash);
	place = shard_prefetch_bucket(shard, hash);
	margin_end = domain_coarse_now(&cache->domain) + cache->domain.coarse_margin;
	if (__builtin_expect(reader_memo.id != cache->domain.epochs.id, 0))
		goto any;
	reader = reader_memo.reader;

	reader_enter(reader, &cache->domain.epochs);
	if (__builtin_expect(shard_place(shard) != place, 0))
		goto inside;
	entry = bucket_guess(place_bucket(place, hash), hash);
	if (__builtin_expect(!entry || entry->key_size != key_size || entry->kind != 0 ||
				     !short_keys_are_equal(entry->bytes, key, key_size) ||
				     entry_deadline(entry) <= margin_end,
			     0))
		goto inside;
	size = entry->value_size;
	if (__builtin_expect(size > capacity, 0))
		goto inside;
	if (domain_counts_uses(&cache->domain) && policy_use(&shard->policy, entry))
		shard_try_settle(shard);
	reader_count(reader, COUNT_HITS, 1);
	value = entry->bytes + entry_padded_key_size(key_size);
	if (__builtin_expect(size - 16 <= 48, 1)) {
		bytes_copy(buffer, value, size);
		reader_leave(reader);
	} else {
		cache_copy_and_leave(reader, entry, buffer, value, size);
	}
	if (value_size)
		*value_size = size;
	return TW_OK;
inside:
	return cache_get_inside(cache, reader, margin_end - cache->domain.coarse_margin, hash, key,
				key_size, buffer, capacity, value_size);
any:
	return cache_get_any(cache, key, key_size, buffer, capacity, value_size);
}

enum tw_status tw_cache_acquire(struct tw_cache *cache, const void *key, size_t key_size,
				const struct tw_cache_entry **entry)
{
	struct reader *reader;
	struct tw_cache_entry *found;
	enum tw_status status;

	if (!entry)
		return TW_INVALID;
	*entry = NULL;
	if (!cache || !key_is_valid(key, key_size))
		return TW_INVALID;
	if (domain_is_closed(&cache->domain))
		return TW_CLOSED;
	reader = epochs_reader(&cache->domain.epochs);
	if (!reader)
		return TW_NO_MEMORY;
	reader_enter(reader, &cache->domain.epochs);
	found = cache_find(cache, key_hash_wide(&cache->domain.seed, key, key_size), key, key_size);
	status = reader_count_find(reader, found);
	if (status == TW_OK) {
		entry_pin(found);
		*entry = found;
	}
	reader_leave(reader);
	return status;
}

/* ---- Many ---- */

/* So many at a time: their cache misses overlap. */
enum { LOOKUPS = 16 };

static bool lookup_is_valid(const struct tw_cache_lookup *item)
{
	return key_is_valid(item->key, item->key_size) && (item->buffer || item->capacity == 0);
}

static size_t cache_get_some(struct tw_cache *cache, struct reader *reader,
			     struct tw_cache_lookup *items, unsigned n)
{
	uint64_t hashes[LOOKUPS];
	size_t found = 0;

	/* What the lookups will touch is fetched, one kind after the other. */
	for (unsigned i = 0; i < n; i++) {
		hashes[i] = lookup_is_valid(&items[i])
				    ? key_hash_wide(&cache->domain.seed, items[i].key,
						    items[i].key_size)
				    : 0;
		shard_prefetch_bucket(cache_shard(cache, hashes[i]), hashes[i]);
	}
	reader_enter(reader, &cache->domain.epochs);
	for (unsigned i = 0; i < n; i++)
		entry_prefetch(table_guess(shard_table(cache_shard(cache, hashes[i])), hashes[i]));
	reader_leave(reader);
	for (unsigned i = 0; i < n; i++) {
		items[i].value_size = 0;
		items[i].status = TW_INVALID;
		if (lookup_is_valid(&items[i]))
			items[i].status = cache_get_hashed(cache, reader, hashes[i], items[i].key,
							   items[i].key_size, items[i].buffer,
							   items[i].capacity, &items[i].value_size);
		found += items[i].status == TW_OK || items[i].status == TW_TRUNCATED;
	}
	return found;
}

enum tw_status tw_cache_get_many(struct tw_cache *cache, struct tw_cache_lookup *items, size_t n,
				 size_t *found)
{
	struct reader *reader;
	size_t sum = 0;

	if (found)
		*found = 0;
	if (!cache || (!items && n > 0))
		return TW_INVALID;
	if (domain_is_closed(&cache->domain))
		return TW_CLOSED;
	reader = epochs_reader(&cache->domain.epochs);
	if (!reader)
		return TW_NO_MEMORY;
	for (size_t i = 0; i < n; i += LOOKUPS)
		sum += cache_get_some(cache, reader, items + i,
				      n - i < LOOKUPS ? (unsigned)(n - i) : LOOKUPS);
	if (found)
		*found = sum;
	return TW_OK;
}
