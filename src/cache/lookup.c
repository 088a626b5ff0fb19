/* SPDX-License-Identifier: MIT */
/*
 * A lookup finds the entry in the shard's table, judges its deadline, and copies or pins it. It
 * takes no lock and writes to nothing that is shared but the entry's bits of use, and a pin where
 * it needs one: for values that are large or adopted, where a deadline is near, and where it
 * slides.
 *
 * Readers leave no trace, so an entry's cell may be free, or another entry's, while a lookup reads
 * it. Memory keeps its type (pool.h, table.h): whatever a slot has named may be read at any time,
 * by relaxed loads of words, and a cell's count of references is one. What was read counts if after
 * it, in this order, the shard's number of tables, the slot and the number of the cell's life are
 * still what they were (look_holds). Three releases make it so: the fence before a cell is written
 * or reads as zero, the store of the life's number, and the store of the slot. A look that fails is
 * made again; then another thread has made progress.
 *
 * A pin is the same with a compare-and-swap of the count between the two looks. It may have come to
 * another entry, and then it is given up. A copy is made to the caller's buffer only when it holds,
 * or the key is kept: callers may have the key and the buffer in one place.
 *
 * Linearization: the load of the slot; of what has expired, the last load of its deadline.
 */
#include "lookup.h"

#include <string.h>

/* Values of at most COPY_MOST bytes are copied without a pin. */
enum { COPY_MOST = 1024 };

/* ---- Looks ---- */

/* Returns whether what the look is at has the key, by what it is at this moment. */
static bool look_has_key(const struct look *look, const void *key, size_t key_size)
{
	const struct tw_cache_entry *entry = look->entry;
	const unsigned char *place = entry->bytes + kind_size(peek(entry->kind));
	const unsigned char *source = key;
	uint64_t word;

	if (peek(entry->key_size) != key_size ||
	    entry_padded_key_size(key_size) > pool_bytes_behind(place))
		return false;
	for (; key_size > sizeof(word); key_size -= sizeof(word)) {
		memcpy(&word, source, sizeof(word));
		if (word_load(place) != word)
			return false;
		source += sizeof(word);
		place += sizeof(word);
	}
	word = 0;
	memcpy(&word, source, key_size);
	return word_load(place) == word;
}

enum look_result { LOOK_FOUND, LOOK_MISSED, LOOK_AGAIN };

static enum look_result look_once(struct look *look, const void *key, size_t key_size)
{
	uint32_t mask = (uint32_t)(((uint64_t)1 << (look->place & 63)) - 1);

	for (uint32_t n = 0; n <= mask; n++) {
		const struct bucket *bucket = place_bucket(look->place, look->hash + n);
		bool was_passed = bucket_was_passed(bucket);
		unsigned matches = bucket_matches(bucket, look->hash);

		for (; matches != 0; matches &= matches - 1) {
			if (!look_at(look, &bucket->slots[__builtin_ctz(matches)]))
				continue;
			if (look_has_key(look, key, key_size))
				return LOOK_FOUND;
			if (!look_holds(look))
				return LOOK_AGAIN;
		}
		if (!was_passed)
			break;
	}
	return look_has_table(look) ? LOOK_MISSED : LOOK_AGAIN;
}

/* Looks for the key. Returns true if it seems to be there, as far as look_holds(), or false if it
 * is not. */
static bool look_seek(struct look *look, const void *key, size_t key_size)
{
	enum look_result result;

	do {
		look_begin(look);
		result = look_once(look, key, key_size);
	} while (__builtin_expect(result == LOOK_AGAIN, 0));
	return result == LOOK_FOUND;
}

/* ---- Deadlines ---- */

/*
 * Judges a pinned entry that seems past its deadline, or whose deadline slides. Returns whether it
 * may be read. A hit moves the deadline, at most to the entry's end. A touch that runs beside it
 * sets the end first and then the deadline, so a thread that reads it sees that end.
 */
static __attribute__((noinline)) bool cache_judge(const struct tw_cache *cache,
						  struct tw_cache_entry *entry, tw_duration coarse,
						  bool is_use)
{
	tw_duration later =
		deadline_after(time_add(coarse, cache->shared.coarse_step), cache->options.idle);
	tw_duration deadline = entry_deadline(entry);

	for (;;) {
		tw_duration present;
		tw_duration wanted;
		tw_duration end;

		if (shared_is_past(&cache->shared, deadline, coarse)) {
			present = entry_deadline(entry);
			if (present == deadline)
				return false;
			/* A touch came before the clock was read. */
			deadline = present;
			continue;
		}
		if (cache->options.idle == 0)
			return true;
		end = time_load(&entry_extension(entry)->end);
		wanted = is_use ? later : deadline;
		wanted = wanted < end ? wanted : end;
		if (deadline >= wanted && deadline <= end)
			return true;
		/* Looks again then: a touch may have come to the very deadline that was there. */
		if (entry_move_deadline(entry, &deadline, wanted))
			deadline = wanted;
	}
}

/*
 * Returns the key's entry, pinned, or NULL if it has none that may be read, at a coarse time that
 * was read in this call: an entry that outlives it, and is found, was there at that time, or came
 * later in the call with its lifetime before it. An entry that has lost its slot while it was
 * judged may have another in its place, as good or better (compact.c).
 */
static struct tw_cache_entry *cache_find_at(struct tw_cache *cache, struct look *look,
					    tw_duration coarse, const void *key, size_t key_size,
					    bool is_use)
{
	while (look_seek(look, key, key_size)) {
		struct tw_cache_entry *entry = look->entry;
		bool is_readable = true;
		bool holds;

		if (!entry_try_pin(entry))
			continue;
		holds = look_holds(look);
		if (holds && (cache->options.idle > 0 ||
			      shared_is_past(&cache->shared, entry_deadline(entry), coarse))) {
			is_readable = cache_judge(cache, entry, coarse, is_use);
			holds = look_holds(look);
		}
		if (holds && is_readable) {
			if (is_use)
				policy_use(&look->shard->policy, entry);
			return entry;
		}
		tw_cache_entry_release(entry);
		if (holds)
			break;
	}
	return NULL;
}

/*
 * Looks a key up by a pin, at a coarse time that was read in this call. Sets *value to its value,
 * pinned, or to NULL. Returns whether there is an entry, which is an absence if it has no value. A
 * use counts what is found, and loads it again if it is old.
 */
static bool cache_find_value(struct tw_cache *cache, struct caller *caller, struct look *look,
			     tw_duration coarse, const void *key, size_t key_size, bool is_use,
			     const struct tw_cache_entry **value)
{
	struct tw_cache_entry *entry = cache_find_at(cache, look, coarse, key, key_size, is_use);

	*value = entry;
	if (!entry)
		return false;
	if (is_use)
		(void)caller_count_find(caller, true, entry->kind);
	if (is_use && entry_wants_refresh(entry, coarse))
		cache_refresh(cache, look->hash, key, key_size);
	if (entry->kind & ENTRY_ABSENT) {
		tw_cache_entry_release(entry);
		*value = NULL;
	}
	return true;
}

bool cache_find(struct tw_cache *cache, struct caller *caller, uint64_t hash, const void *key,
		size_t key_size, const struct tw_cache_entry **value)
{
	struct look look = {.shard = cache_shard(cache, hash), .hash = hash};

	return cache_find_value(cache, caller, &look, shared_coarse_now(&cache->shared), key,
				key_size, true, value);
}

/* ---- One key ---- */

/* A get asks for one key, and fills in what it found. */
struct get {
	struct tw_cache *cache;
	struct caller *caller;
	tw_duration coarse;
	const void *key;
	size_t key_size;
	void *buffer;
	size_t capacity;
	size_t size; /* the value's; 0 if there is none */
};

/* Returns how many bytes of the value are copied. */
static size_t get_copied(const struct get *get)
{
	return get->size < get->capacity ? get->size : get->capacity;
}

/* Gets a value by a pin. */
static __attribute__((noinline)) enum tw_status get_pinned(struct get *get, struct look *look)
{
	const struct tw_cache_entry *entry;
	const void *value;

	get->size = 0;
	if (!cache_find_value(get->cache, get->caller, look, get->coarse, get->key, get->key_size,
			      true, &entry))
		return caller_count_find(get->caller, false, 0);
	if (!entry)
		return TW_NOT_FOUND;
	value = entry_value(entry, &get->size);
	if (get_copied(get) > 0)
		memcpy(get->buffer, value, get_copied(get));
	tw_cache_entry_release(entry);
	return get->size > get->capacity ? TW_TRUNCATED : TW_OK;
}

/* Tries to copy what the look is at, a plain value far from its deadline, to `copy`. Returns false
 * if it has to be pinned. *holds says whether the copy holds. */
static bool get_try_copy(struct get *get, const struct look *look, unsigned *kind, bool *is_old,
			 unsigned char *copy, bool *holds)
{
	const struct tw_cache_entry *entry = look->entry;
	size_t before = sizeof(*entry) + entry_padded_key_size(get->key_size);

	*kind = peek(entry->kind);
	before += kind_size(*kind);
	get->size = peek(entry->value_size);
	if (get->size > COPY_MOST || (*kind & ENTRY_ADOPTED) || get->cache->options.idle > 0 ||
	    entry_deadline(entry) <= get->coarse + get->cache->shared.coarse_margin)
		return false;
	*is_old = (*kind & ENTRY_AGING) &&
		  time_load(&((struct entry_age *)(void *)(entry->bytes +
							   kind_size(*kind & ENTRY_EXTENDED)))
				     ->refresh_at) <= get->coarse;
	*holds = before + get->size <= pool_bytes_behind(entry);
	if (*holds)
		words_load(copy, (const unsigned char *)entry + before, get_copied(get));
	*holds = *holds && look_holds(look);
	return true;
}

/* Gets a key whose hash is known. */
static __attribute__((noinline)) enum tw_status get_hashed(struct get *get, uint64_t hash)
{
	struct look look = {.shard = cache_shard(get->cache, hash), .hash = hash};
	unsigned char copy[COPY_MOST];

	while (look_seek(&look, get->key, get->key_size)) {
		enum tw_status status;
		unsigned kind;
		bool is_old;
		bool holds;

		if (!get_try_copy(get, &look, &kind, &is_old, copy, &holds))
			return get_pinned(get, &look);
		if (!holds)
			continue;
		policy_use(&look.shard->policy, look.entry);
		status = caller_count_find(get->caller, true, kind);
		if (is_old)
			cache_refresh(get->cache, hash, get->key, get->key_size);
		if (get_copied(get) > 0)
			memcpy(get->buffer, copy, get_copied(get));
		return get->size > get->capacity ? TW_TRUNCATED : status;
	}
	get->size = 0;
	return caller_count_find(get->caller, false, 0);
}

/* Gets a key, whatever is asked. `glance` has not found it, or is NULL. After a glance the buffer
 * may be written already, in the key's place. */
static __attribute__((noinline)) enum tw_status get_any(struct tw_cache *cache,
							const struct glance *glance,
							const void *key, size_t key_size,
							void *buffer, size_t capacity,
							size_t *value_size)
{
	unsigned char copy[16];
	struct get get = {.cache = cache,
			  .key = key,
			  .key_size = key_size,
			  .buffer = buffer,
			  .capacity = capacity};
	enum tw_status status = TW_INVALID;
	uint64_t hash = 0;

	if (glance) {
		memcpy(copy, &glance->key[0], 8);
		memcpy(copy + key_size - 8, &glance->key[1], 8);
		get.key = copy;
		get.caller = glance->caller;
		hash = glance->look.hash;
		status = TW_OK;
	} else if (cache && key_is_valid(key, key_size) && (buffer || capacity == 0)) {
		status = cache_admit(cache, &get.caller);
		hash = key_hash_wide(&cache->shared.seed, key, key_size);
	}
	if (status == TW_OK) {
		get.coarse = shared_coarse_now(&cache->shared);
		status = get_hashed(&get, hash);
	}
	/* Not before the key was read: callers may have both in one place. */
	if (value_size)
		*value_size = get.size;
	return status;
}

/* Copies the value of a hit. Returns whether it holds. */
static inline __attribute__((always_inline)) bool glance_copy(const struct glance *glance,
							      size_t key_size, void *buffer,
							      size_t capacity, size_t *size)
{
	const struct tw_cache_entry *entry = glance->look.entry;

	*size = peek(entry->value_size);
	if (__builtin_expect(*size > capacity || *size > COPY_MOST, 0))
		return false;
	words_load(buffer, entry->bytes + entry_padded_key_size(key_size), *size);
	return look_holds(&glance->look);
}

/* Gets a key that a glance has looked for, with that result. */
static inline __attribute__((always_inline)) enum tw_status get_glanced(
	struct tw_cache *cache, enum glance_result result, const struct glance *glance,
	const void *key, size_t key_size, void *buffer, size_t capacity, size_t *value_size)
{
	/* What is passed on lies in memory; the glance itself can be in registers. */
	struct glance passed;
	size_t size = 0;

	if (result == GLANCE_NONE)
		return get_any(cache, NULL, key, key_size, buffer, capacity, value_size);
	if (result == GLANCE_UNKNOWN ||
	    (result == GLANCE_HIT &&
	     __builtin_expect(!glance_copy(glance, key_size, buffer, capacity, &size), 0))) {
		passed = *glance;
		return get_any(cache, &passed, key, key_size, buffer, capacity, value_size);
	}
	if (value_size)
		*value_size = size;
	if (result == GLANCE_MISS)
		return caller_count_find(glance->caller, false, 0);
	glance_count_hit(glance);
	return TW_OK;
}

enum tw_status tw_cache_get(struct tw_cache *cache, const void *key, size_t key_size, void *buffer,
			    size_t capacity, size_t *value_size)
{
	struct glance glance;

	return get_glanced(cache,
			   __builtin_expect(buffer != NULL, 1)
				   ? cache_glance(cache, key, key_size, &glance)
				   : GLANCE_NONE,
			   &glance, key, key_size, buffer, capacity, value_size);
}

/* Does what tw_cache_acquire() does, whatever it is asked. */
static __attribute__((noinline)) enum tw_status cache_acquire_any(
	struct tw_cache *cache, const void *key, size_t key_size, unsigned flags,
	const struct tw_cache_entry **entry)
{
	bool is_use = !(flags & TW_CACHE_NO_USE);
	struct caller *caller;
	enum tw_status status;
	struct look look;

	if (!entry)
		return TW_INVALID;
	*entry = NULL;
	if (!cache || !key_is_valid(key, key_size) || (flags & ~TW_CACHE_NO_USE))
		return TW_INVALID;
	status = cache_admit(cache, &caller);
	if (status != TW_OK)
		return status;
	look.hash = key_hash_wide(&cache->shared.seed, key, key_size);
	look.shard = cache_shard(cache, look.hash);
	if (!cache_find_value(cache, caller, &look, shared_coarse_now(&cache->shared), key,
			      key_size, is_use, entry) &&
	    is_use)
		(void)caller_count_find(caller, false, 0);
	return *entry ? TW_OK : TW_NOT_FOUND;
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
		if (__builtin_expect(*entry != NULL, 1))
			return TW_OK;
		break;
	case GLANCE_MISS:
		*entry = NULL;
		return caller_count_find(glance.caller, false, 0);
	case GLANCE_UNKNOWN:
	case GLANCE_NONE:
		break;
	}
	return cache_acquire_any(cache, key, key_size, flags, entry);
}

/* ---- Many ---- */

/* This many are looked up at a time, so that their cache misses overlap. */
enum { LOOKUPS = 16 };

/* Gets up to LOOKUPS keys. What the lookups will touch is fetched first, one kind after the
 * other. Returns how many were found. */
static size_t cache_get_some(struct tw_cache *cache, struct tw_cache_lookup *items, unsigned n)
{
	uint64_t hashes[LOOKUPS];
	size_t found = 0;

	for (unsigned i = 0; i < n; i++) {
		hashes[i] = key_is_valid(items[i].key, items[i].key_size)
				    ? key_hash_wide(&cache->shared.seed, items[i].key,
						    items[i].key_size)
				    : 0;
		shard_prefetch_bucket(cache_shard(cache, hashes[i]), hashes[i]);
	}
	for (unsigned i = 0; i < n; i++)
		shard_prefetch_guess(cache_shard(cache, hashes[i]), hashes[i]);
	for (unsigned i = 0; i < n; i++) {
		struct tw_cache_lookup *item = &items[i];
		enum glance_result result = GLANCE_NONE;
		struct glance glance;

		if (item->buffer && cache_may_glance(cache, item->key, item->key_size))
			result = cache_glance_hashed(cache, item->key, item->key_size, hashes[i],
						     &glance);
		item->status = get_glanced(cache, result, &glance, item->key, item->key_size,
					   item->buffer, item->capacity, &item->value_size);
		found += item->status == TW_OK || item->status == TW_TRUNCATED;
	}
	return found;
}

enum tw_status tw_cache_get_many(struct tw_cache *cache, struct tw_cache_lookup *items, size_t n,
				 size_t *found)
{
	struct caller *caller;
	enum tw_status status;
	size_t sum = 0;

	if (found)
		*found = 0;
	if (!cache || (!items && n > 0))
		return TW_INVALID;
	status = cache_admit(cache, &caller);
	if (status != TW_OK)
		return status;
	for (size_t i = 0; i < n; i += LOOKUPS)
		sum += cache_get_some(cache, items + i,
				      n - i < LOOKUPS ? (unsigned)(n - i) : LOOKUPS);
	if (found)
		*found = sum;
	return TW_OK;
}
