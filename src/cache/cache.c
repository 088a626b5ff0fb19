/* SPDX-License-Identifier: MIT */
/*
 * The public calls for one key. A lookup enters an epoch, finds the entry in the shard's table,
 * judges its deadline, and copies or pins it; it takes no lock and writes to nothing that is shared
 * but the entry's bits of use. A change makes the new entry first, and then goes through the
 * shard's lock.
 */
#include "cache.h"

#include <string.h>

#include "base/xorshift.h"
#include "stash.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* ---- Lifetimes ---- */

tw_duration cache_lifetime(const struct tw_cache *cache, struct reader *reader, tw_duration expire)
{
	/* 53 bits, as many as a double has: -1 to 1. */
	double part;
	double lifetime;

	if (cache->jitter == 0 || expire == TW_FOREVER)
		return expire;
	part = (double)(xorshift_next(&reader->random) >> 11) / (double)((uint64_t)1 << 52) - 1;
	lifetime = (double)expire * (1 + cache->jitter * part);
	if (lifetime >= (double)TW_FOREVER)
		return TW_FOREVER;
	return lifetime < 1 ? 1 : (tw_duration)lifetime;
}

void cache_start_life(const struct tw_cache *cache, struct tw_cache_entry *entry, tw_duration now,
		      tw_duration lifetime)
{
	tw_duration deadline = time_add(now, lifetime);

	if (cache->idle > 0) {
		entry_set_end(entry, deadline);
		if (deadline > time_add(now, cache->idle))
			deadline = time_add(now, cache->idle);
	}
	/* relaxed: published with the entry. */
	atomic_store_explicit(&entry->deadline, deadline, memory_order_relaxed);
}

/* A hit moves the deadline, to the entry's end at most; false: it had passed meanwhile. A touch
 * that runs beside it sets the end first, and then the deadline, which tells us of that end. */
static __attribute__((noinline)) bool cache_slide(const struct tw_cache *cache,
						  struct tw_cache_entry *entry,
						  tw_duration deadline, tw_duration coarse)
{
	tw_duration later = time_add(time_add(coarse, cache->domain.coarse_step), cache->idle);

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

/* ---- Lookups ---- */

/*
 * As cache_find(), at a coarse time that was read in this call: an entry that outlives it, and is
 * found, was there at that time, or came later in the call with its lifetime before it.
 */
static ALWAYS_INLINE struct tw_cache_entry *cache_find_at(struct tw_cache *cache,
							  tw_duration coarse, uint64_t hash,
							  const void *key, size_t key_size)
{
	struct shard *shard = cache_shard(cache, hash);
	struct tw_cache_entry *entry = table_find(shard_table(shard), hash, key, key_size);
	tw_duration deadline;

	if (!entry)
		return NULL;
	deadline = entry_deadline(entry);
	if (deadline != TW_FOREVER) {
		if (domain_is_past(&cache->domain, deadline, coarse))
			return NULL;
		if (cache->idle > 0 && !cache_slide(cache, entry, deadline, coarse))
			return NULL;
	}
	if (domain_counts_uses(&cache->domain) && policy_use(&shard->policy, entry))
		shard_try_settle(shard);
	return entry;
}

struct tw_cache_entry *cache_find(struct tw_cache *cache, uint64_t hash, const void *key,
				  size_t key_size)
{
	return cache_find_at(cache, domain_coarse_now(&cache->domain), hash, key, key_size);
}

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

enum tw_status cache_get_hashed(struct tw_cache *cache, struct reader *reader, uint64_t hash,
				const void *key, size_t key_size, void *buffer, size_t capacity,
				size_t *value_size)
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

		if (reader)
			return cache_get_hashed(cache, reader,
						key_hash_wide(&cache->domain.seed, key, key_size),
						key, key_size, buffer, capacity, value_size);
		status = TW_NO_MEMORY;
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

	if (__builtin_expect(!cache || !cache->lookups_are_plain || !key ||
				     !key_is_short(key_size) || !buffer,
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

/* ---- Changes ---- */

void cache_plan(struct tw_cache *cache, struct entry_plan *plan)
{
	const struct entry_adopted *adopted = plan->adopted;

	if (plan->is_absent)
		plan->weight = plan->key_size;
	else if (plan->weight == 0 && cache->weigh)
		plan->weight = cache->weigh(cache->context, plan->key, plan->key_size,
					    adopted ? adopted->value : plan->value,
					    adopted ? adopted->value_size : plan->value_size);
	else if (plan->weight == 0)
		plan->weight = plan->key_size + (adopted ? adopted->value_size : plan->value_size);
	else
		plan->is_extended = true;
	if (plan->weight > TW_CACHE_WEIGHT_MAX) {
		plan->weight = TW_CACHE_WEIGHT_MAX;
		plan->is_extended = true;
	}
	plan->is_extended = plan->is_extended || cache->weigh || cache->idle > 0;
}

static bool entry_is_there(const struct tw_cache_entry *entry, tw_duration now)
{
	return entry && !(entry->kind & ENTRY_ABSENT) && entry_deadline(entry) > now;
}

/* Whether `entry` may stand in for `old` without going over max_bytes. */
static bool cache_has_bytes_for(struct tw_cache *cache, const struct tw_cache_entry *old,
				const struct tw_cache_entry *entry)
{
	uint64_t most = counter_read(&cache->domain.max_bytes);
	uint64_t weight;
	uint64_t old_weight;

	if (most == 0)
		return true;
	weight = entry_weight(entry);
	old_weight = entry_weight(old);
	return weight <= old_weight ||
	       counter_read(&cache->domain.bytes) + (weight - old_weight) <= most;
}

enum tw_status cache_put(struct tw_cache *cache, struct shard *shard, uint64_t hash,
			 struct tw_cache_entry *entry, enum put_mode mode, tw_duration now)
{
	const void *key = entry_key(entry);
	struct tw_cache_entry *old;
	_Atomic uint64_t *slot =
		table_find_slot(shard_table(shard), hash, key, entry->key_size, &old);
	uint64_t most = counter_read(&cache->domain.max_bytes);

	if (domain_is_closed(&cache->domain))
		return TW_CLOSED;
	if (mode == PUT_ADD && entry_is_there(old, now))
		return TW_EXISTS;
	if (mode == PUT_REPLACE && !entry_is_there(old, now))
		return TW_NOT_FOUND;
	if (most > 0 && entry_weight(entry) > most)
		return TW_FULL;
	if ((!old && !shard_reserve(shard)) ||
	    !shard_watch(shard, hash, entry, old ? entry_filed(old) : 0, entry_deadline(entry)))
		return TW_NO_MEMORY;
	if (mode != PUT_LOADED && shard->flights)
		flights_override(shard->flights, hash, key, entry->key_size);
	if (old && cache_has_bytes_for(cache, old, entry)) {
		shard_replace(shard, slot, old, entry, now);
		return TW_OK;
	}
	if (old)
		shard_unlink(shard, old, TW_CAUSE_REPLACED, now);
	shard_link(shard, hash, entry, now);
	return TW_OK;
}

/* Between begin and end, where the entry is made if it needs the pool. */
static enum tw_status cache_put_planned(struct tw_cache *cache, struct shard *shard,
					const struct entry_plan *plan,
					struct tw_cache_entry **entry, enum put_mode mode,
					tw_duration lifetime)
{
	enum tw_status status;
	tw_duration now;

	/* Not before the lock: what is judged by it is judged as it is now. */
	now = tw_now(cache->domain.wheel);
	if (!*entry)
		*entry = entry_new(shard->pool, plan);
	if (!*entry)
		return TW_NO_MEMORY;
	cache_start_life(cache, *entry, now, lifetime);
	status = cache_put(cache, shard, plan->hash, *entry, mode, now);
	if (status != TW_OK)
		entry_discard(*entry);
	return status;
}

/* Makes it without the shard's lock if it can. False: out of memory. */
static bool cache_make_entry(struct stash *stash, const struct entry_plan *plan,
			     struct tw_cache_entry **entry)
{
	*entry = NULL;
	if (!plan_needs_pool(plan))
		return (*entry = entry_new(NULL, plan));
	if (stash)
		*entry = entry_new_in_spare(&stash->spare, plan);
	return true;
}

/*
 * Two things have to come from memory, one after the other: the key's bucket, and the entry in it.
 * What else is to be done lies in between, so that no caller waits for them with the lock held.
 */
static enum tw_status cache_set_planned(struct tw_cache *cache, struct entry_plan *plan,
					enum put_mode mode, tw_duration expire)
{
	struct reader *reader = epochs_reader(&cache->domain.epochs);
	struct stash *stash = NULL;
	struct tw_cache_entry *entry;
	struct shard *shard;
	enum tw_status status = TW_NO_MEMORY;
	tw_duration lifetime;

	if (!reader)
		return status;
	plan->hash = key_hash_wide(&cache->domain.seed, plan->key, plan->key_size);
	shard = cache_shard(cache, plan->hash);
	shard_prefetch_bucket(shard, plan->hash);
	shard_prefetch_lock(shard);
	lifetime = cache_lifetime(cache, reader, expire);
	cache_plan(cache, plan);
	/* Whoever calls us from here on, from a user's function, goes without it. */
	if (stash_begin(reader_stash(reader), cache))
		stash = reader_stash(reader);
	if (cache_make_entry(stash, plan, &entry)) {
		reader_enter(reader, &cache->domain.epochs);
		shard_prefetch(shard, plan->hash);
		reader_leave(reader);
		shard_begin(shard);
		shard->unlinks_to = stash ? &stash->limbo : NULL;
		status = cache_put_planned(cache, shard, plan, &entry, mode, lifetime);
		shard_end(shard);
	}
	if (stash)
		stash_end(stash, cache);
	if (status == TW_OK && domain_is_over_limit(&cache->domain))
		cache_evict(cache, entry);
	return status;
}

static enum tw_status cache_set_copied(struct tw_cache *cache, const void *key, size_t key_size,
				       const void *value, size_t value_size, enum put_mode mode,
				       tw_duration expire)
{
	struct entry_plan plan = {
		.key = key, .key_size = key_size, .value = value, .value_size = value_size};

	if (!cache || !key_is_valid(key, key_size) || (!value && value_size > 0) ||
	    value_size > UINT32_MAX || expire <= 0)
		return TW_INVALID;
	return cache_set_planned(cache, &plan, mode, expire);
}

enum tw_status tw_cache_set(struct tw_cache *cache, const void *key, size_t key_size,
			    const void *value, size_t value_size)
{
	return cache_set_copied(cache, key, key_size, value, value_size, PUT_SET,
				cache ? cache->expire : 1);
}

enum tw_status tw_cache_set_with_expire(struct tw_cache *cache, const void *key, size_t key_size,
					const void *value, size_t value_size, tw_duration expire)
{
	return cache_set_copied(cache, key, key_size, value, value_size, PUT_SET, expire);
}

enum tw_status tw_cache_add(struct tw_cache *cache, const void *key, size_t key_size,
			    const void *value, size_t value_size, tw_duration expire)
{
	return cache_set_copied(cache, key, key_size, value, value_size, PUT_ADD, expire);
}

enum tw_status tw_cache_replace(struct tw_cache *cache, const void *key, size_t key_size,
				const void *value, size_t value_size, tw_duration expire)
{
	return cache_set_copied(cache, key, key_size, value, value_size, PUT_REPLACE, expire);
}

enum tw_status tw_cache_adopt(struct tw_cache *cache, const void *key, size_t key_size, void *value,
			      size_t value_size, uint64_t weight,
			      void (*free_value)(void *value, size_t value_size, void *context),
			      void *context, tw_duration expire)
{
	struct entry_adopted adopted = {value, value_size, free_value, context};
	struct entry_plan plan = {
		.key = key, .key_size = key_size, .adopted = &adopted, .weight = weight};

	if (!cache || !key_is_valid(key, key_size) || expire <= 0)
		return TW_INVALID;
	return cache_set_planned(cache, &plan, PUT_SET, expire);
}

enum tw_status tw_cache_delete(struct tw_cache *cache, const void *key, size_t key_size)
{
	struct tw_cache_entry *entry;
	struct shard *shard;
	enum tw_status status = TW_NOT_FOUND;
	uint64_t hash;
	tw_duration now;

	if (!cache || !key_is_valid(key, key_size))
		return TW_INVALID;
	hash = key_hash_wide(&cache->domain.seed, key, key_size);
	shard = cache_shard(cache, hash);
	shard_begin(shard);
	now = tw_now(cache->domain.wheel);
	entry = table_find(shard_table(shard), hash, key, key_size);
	if (entry_is_there(entry, now))
		status = TW_OK;
	if (entry)
		shard_unlink(shard, entry, TW_CAUSE_EXPLICIT, now);
	flights_override(shard->flights, hash, key, key_size);
	shard_end(shard);
	return status;
}

/* Between begin and end, of an entry that is there. */
static enum tw_status cache_touch_entry(struct tw_cache *cache, struct shard *shard, uint64_t hash,
					struct tw_cache_entry *entry, tw_duration lifetime,
					tw_duration now)
{
	tw_duration end = time_add(now, lifetime);
	tw_duration deadline = end;

	if (cache->idle > 0 && deadline > time_add(now, cache->idle))
		deadline = time_add(now, cache->idle);
	if (!shard_watch(shard, hash, entry, entry_filed(entry), deadline))
		return TW_NO_MEMORY;
	if (cache->idle > 0)
		entry_set_end(entry, end);
	/* acq_rel: after the entry's end was set; pairs with entry_move_deadline(). */
	atomic_exchange_explicit(&entry->deadline, deadline, memory_order_acq_rel);
	if (policy_use(&shard->policy, entry))
		policy_settle(&shard->policy);
	return TW_OK;
}

enum tw_status tw_cache_touch(struct tw_cache *cache, const void *key, size_t key_size,
			      tw_duration expire)
{
	struct reader *reader;
	struct tw_cache_entry *entry;
	struct shard *shard;
	enum tw_status status = TW_NOT_FOUND;
	uint64_t hash;
	tw_duration now;

	if (!cache || !key_is_valid(key, key_size) || expire <= 0)
		return TW_INVALID;
	reader = epochs_reader(&cache->domain.epochs);
	if (!reader)
		return TW_NO_MEMORY;
	hash = key_hash_wide(&cache->domain.seed, key, key_size);
	shard = cache_shard(cache, hash);
	shard_begin(shard);
	now = tw_now(cache->domain.wheel);
	entry = table_find(shard_table(shard), hash, key, key_size);
	if (entry_is_there(entry, now))
		status = cache_touch_entry(cache, shard, hash, entry,
					   cache_lifetime(cache, reader, expire), now);
	shard_end(shard);
	return status;
}
