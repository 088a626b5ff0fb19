/* SPDX-License-Identifier: MIT */
/*
 * A lookup enters an era, finds the entry in the shard's table, judges its deadline, and copies or
 * pins it; it takes no lock and writes to nothing that is shared but the entry's bits of use, and
 * the deadline where that slides. What it loads it follows only if the era has not moved by then
 * (epoch.c); otherwise it enters again. So it does where it finds the entry past its deadline, or
 * moves that, and the entry has lost its slot: another may be there, as good or better (compact.c).
 *
 * Linearization: the load of the slot; of what has expired, the last load of its deadline.
 */
#include "lookup.h"
#include "pins.h"
#include "load_queue.h"

#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/*
 * Judges an entry that seems past its deadline, or whose deadline slides. Returns it as a hit, or
 * NULL if it may not be read. The guard is lost if the entry has lost its slot. A hit moves the
 * deadline, at most to the entry's end. A touch that runs beside it sets the end first and then the
 * deadline, so whoever reads that deadline sees that end.
 */
static __attribute__((noinline)) struct tw_cache_entry *cache_judge(const struct tw_cache *cache,
								    struct era_guard *guard,
								    struct tw_cache_entry *entry,
								    tw_duration coarse, bool is_use)
{
	tw_duration later =
		deadline_after(time_add(coarse, cache->shared.coarse_step), cache->options.idle);
	tw_duration deadline = entry_deadline(entry);
	bool is_past = false;

	for (;;) {
		tw_duration present;
		tw_duration wanted;
		tw_duration end;

		if (shared_is_past(&cache->shared, deadline, coarse)) {
			present = entry_deadline(entry);
			is_past = present == deadline;
			if (is_past)
				break;
			/* A touch came before the clock was read. */
			deadline = present;
			continue;
		}
		if (cache->options.idle == 0)
			return entry;
		end = time_load(&entry_extension(entry)->end);
		wanted = is_use ? later : deadline;
		wanted = wanted < end ? wanted : end;
		if (deadline >= wanted && deadline <= end)
			break;
		/* Looks again then: a touch may have come to the very deadline that was there. */
		if (entry_move_deadline(entry, &deadline, wanted))
			deadline = wanted;
	}
	guard->is_lost = !entry_is_linked(entry);
	return is_past ? NULL : entry;
}

/*
 * Does what cache_find() does, at a coarse time that was read in this call: an entry that outlives
 * it, and is found, was there at that time, or came later in the call with its lifetime before it.
 */
static ALWAYS_INLINE struct tw_cache_entry *cache_find_at(struct tw_cache *cache,
							  struct reader *reader, tw_duration coarse,
							  uint64_t hash, const void *key,
							  size_t key_size, bool is_use)
{
	struct shard *shard = cache_shard(cache, hash);
	struct epochs *epochs = &cache->shared.epochs;
	struct era_guard guard = {.epochs = epochs};
	struct tw_cache_entry *entry;

	do {
		const struct table *table;
		_Atomic uint64_t *slot;
		tw_duration deadline;

		guard.era = reader_enter(reader, epochs);
		table = shard_table(shard);
		entry = NULL;
		if (era_guard_holds(&guard))
			entry = table_seek(table, hash, key, key_size, &slot, &guard);
		if (!entry)
			continue;
		deadline = entry_deadline(entry);
		if (deadline != TW_FOREVER &&
		    (cache->options.idle > 0 || shared_is_past(&cache->shared, deadline, coarse))) {
			const struct tw_cache_entry *found = entry;

			entry = cache_judge(cache, &guard, entry, coarse, is_use);
			/* A move stores the slot before it unlinks what was there. */
			guard.is_lost |= !entry && slot_entry(slot_load(slot)) != found;
		}
	} while (__builtin_expect(guard.is_lost, 0));
	if (is_use && entry)
		policy_use(&shard->policy, entry);
	return entry;
}

struct tw_cache_entry *cache_find(struct tw_cache *cache, struct reader *reader, uint64_t hash,
				  const void *key, size_t key_size)
{
	return cache_find_at(cache, reader, shared_coarse_now(&cache->shared), hash, key, key_size,
			     true);
}

/* ---- One key ---- */

/* Copies `copied` bytes and leaves. A large value is pinned meanwhile, so that a buffer that is not
 * there yet holds up no memory. */
static void cache_copy_and_leave(struct reader *reader, struct tw_cache_entry *entry, void *buffer,
				 const void *value, size_t copied)
{
	enum { LARGE = 1024 };

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

/* Inside an era or not. value_size may be NULL. */
static __attribute__((noinline)) enum tw_status cache_get_hashed(
	struct tw_cache *cache, struct reader *reader, tw_duration coarse, uint64_t hash,
	const void *key, size_t key_size, void *buffer, size_t capacity, size_t *value_size)
{
	struct tw_cache_entry *entry =
		cache_find_at(cache, reader, coarse, hash, key, key_size, true);
	enum tw_status status = reader_count_find(reader, entry);
	bool is_old = entry && entry_wants_refresh(entry, coarse);
	const void *value;
	size_t size = 0;
	size_t copied;

	/* This comes before the copy: callers may have the key and the buffer in one place. */
	if (is_old)
		cache_refresh(cache, hash, key, key_size);
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

/* tw_cache_get, whatever it is asked. */
static __attribute__((noinline)) enum tw_status cache_get_any(struct tw_cache *cache,
							      const void *key, size_t key_size,
							      void *buffer, size_t capacity,
							      size_t *value_size)
{
	enum tw_status status = TW_INVALID;
	struct reader *reader;

	if (cache && key_is_valid(key, key_size) && (buffer || capacity == 0)) {
		status = cache_admit(cache, &reader);
		if (status == TW_OK)
			return cache_get_hashed(cache, reader, shared_coarse_now(&cache->shared),
						key_hash_wide(&cache->shared.seed, key, key_size),
						key, key_size, buffer, capacity, value_size);
	}
	/* Not before the key was read: callers may have both in one place. */
	if (value_size)
		*value_size = 0;
	return status;
}

enum tw_status tw_cache_get(struct tw_cache *cache, const void *key, size_t key_size, void *buffer,
			    size_t capacity, size_t *value_size)
{
	struct glance glance;
	const unsigned char *value;
	size_t size;

	if (__builtin_expect(!buffer, 0))
		return cache_get_any(cache, key, key_size, buffer, capacity, value_size);
	switch (cache_glance(cache, key, key_size, &glance)) {
	case GLANCE_HIT:
		size = glance.entry->value_size;
		if (__builtin_expect(size > capacity, 0))
			break;
		glance_count_hit(&glance);
		value = glance.entry->bytes + entry_padded_key_size(key_size);
		if (__builtin_expect(size - 16 <= 48, 1)) {
			bytes_copy(buffer, value, size);
			reader_leave(glance.reader);
		} else {
			cache_copy_and_leave(glance.reader, glance.entry, buffer, value, size);
		}
		if (value_size)
			*value_size = size;
		return TW_OK;
	case GLANCE_MISS:
		if (value_size)
			*value_size = 0;
		return glance_miss(&glance);
	case GLANCE_INSIDE:
		break;
	case GLANCE_NONE:
		return cache_get_any(cache, key, key_size, buffer, capacity, value_size);
	}
	return cache_get_hashed(cache, glance.reader,
				glance.margin_end - cache->shared.coarse_margin, glance.hash, key,
				key_size, buffer, capacity, value_size);
}

/* Does what tw_cache_acquire() does, whatever it is asked. */
static __attribute__((noinline)) enum tw_status cache_acquire_any(
	struct tw_cache *cache, const void *key, size_t key_size, unsigned flags,
	const struct tw_cache_entry **entry)
{
	bool is_use = !(flags & TW_CACHE_NO_USE);
	struct reader *reader;
	struct tw_cache_entry *found;
	enum tw_status status;
	tw_duration coarse;
	uint64_t hash;
	bool is_old;

	if (!entry)
		return TW_INVALID;
	*entry = NULL;
	if (!cache || !key_is_valid(key, key_size) || (flags & ~TW_CACHE_NO_USE))
		return TW_INVALID;
	status = cache_admit(cache, &reader);
	if (status != TW_OK)
		return status;
	hash = key_hash_wide(&cache->shared.seed, key, key_size);
	coarse = shared_coarse_now(&cache->shared);
	found = cache_find_at(cache, reader, coarse, hash, key, key_size, is_use);
	if (is_use)
		status = reader_count_find(reader, found);
	else if (!found || (found->kind & ENTRY_ABSENT))
		status = TW_NOT_FOUND;
	is_old = is_use && found && entry_wants_refresh(found, coarse);
	if (status == TW_OK) {
		entry_hold(found);
		*entry = found;
	}
	reader_leave(reader);
	if (is_old)
		cache_refresh(cache, hash, key, key_size);
	return status;
}

enum tw_status tw_cache_acquire(struct tw_cache *cache, const void *key, size_t key_size,
				unsigned flags, const struct tw_cache_entry **entry)
{
	struct glance glance;

	if (__builtin_expect(!entry || flags != 0, 0))
		return cache_acquire_any(cache, key, key_size, flags, entry);
	switch (cache_glance(cache, key, key_size, &glance)) {
	case GLANCE_HIT:
		*entry = glance_take(&glance);
		return TW_OK;
	case GLANCE_MISS:
		*entry = NULL;
		return glance_miss(&glance);
	case GLANCE_INSIDE:
		reader_leave(glance.reader);
		break;
	case GLANCE_NONE:
		break;
	}
	return cache_acquire_any(cache, key, key_size, flags, entry);
}

/* ---- Many ---- */

/* This many are looked up at a time, so that their cache misses overlap. */
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
	uint64_t era;

	/* What the lookups will touch is fetched, one kind after the other. */
	for (unsigned i = 0; i < n; i++) {
		hashes[i] = lookup_is_valid(&items[i])
				    ? key_hash_wide(&cache->shared.seed, items[i].key,
						    items[i].key_size)
				    : 0;
		shard_prefetch_bucket(cache_shard(cache, hashes[i]), hashes[i]);
	}
	/* Each table is looked at only if it may be: where the era moves, less is fetched. */
	era = reader_enter(reader, &cache->shared.epochs);
	for (unsigned i = 0; i < n; i++) {
		const struct table *table = shard_table(cache_shard(cache, hashes[i]));

		if (epochs_is_in(&cache->shared.epochs, era))
			entry_prefetch(table_guess(table, hashes[i]));
	}
	reader_leave(reader);
	for (unsigned i = 0; i < n; i++) {
		items[i].value_size = 0;
		items[i].status = TW_INVALID;
		if (lookup_is_valid(&items[i]))
			items[i].status = cache_get_hashed(
				cache, reader, shared_coarse_now(&cache->shared), hashes[i],
				items[i].key, items[i].key_size, items[i].buffer, items[i].capacity,
				&items[i].value_size);
		found += items[i].status == TW_OK || items[i].status == TW_TRUNCATED;
	}
	return found;
}

enum tw_status tw_cache_get_many(struct tw_cache *cache, struct tw_cache_lookup *items, size_t n,
				 size_t *found)
{
	struct reader *reader;
	enum tw_status status;
	size_t sum = 0;

	if (found)
		*found = 0;
	if (!cache || (!items && n > 0))
		return TW_INVALID;
	status = cache_admit(cache, &reader);
	if (status != TW_OK)
		return status;
	for (size_t i = 0; i < n; i += LOOKUPS)
		sum += cache_get_some(cache, reader, items + i,
				      n - i < LOOKUPS ? (unsigned)(n - i) : LOOKUPS);
	if (found)
		*found = sum;
	return TW_OK;
}

/* ---- Past its deadline ---- */

const struct tw_cache_entry *cache_pin_stale(struct tw_cache *cache, struct shard *shard,
					     uint64_t hash, const void *key, size_t key_size,
					     tw_duration now)
{
	struct tw_cache_entry *old;
	_Atomic uint64_t *slot;
	tw_duration deadline;

	if (cache->shared.stale == 0 || shared_is_closed(&cache->shared))
		return NULL;
	old = table_find(shard_table(shard), hash, key, key_size, &slot);
	if (!old || !entry_try_to_expire(old, now, &deadline) ||
	    !entry_is_stale(old, deadline, now, cache->shared.stale))
		return NULL;
	/* The use counts, also before the hash comes up. */
	shard_keep_stale(shard, old);
	policy_use(&shard->policy, old);
	return tw_cache_entry_pin(old);
}
