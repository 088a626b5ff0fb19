/* SPDX-License-Identifier: MIT */
/* Calls of the cache whose parameters stand in structs, for tests that vary a few of them. */
#ifndef SUPPORT_CACHE_CALLS_H
#define SUPPORT_CACHE_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include <timingwheel/cache.h>

/* Adds a copied value. */
static inline enum tw_status put_added(struct tw_cache *cache, const void *key, size_t key_size,
				       const void *value, size_t size, tw_duration expire)
{
	const struct tw_cache_value added = {.data = value, .size = size, .expire = expire};

	return tw_cache_put(cache, key, key_size, &added, TW_CACHE_PUT_ADD);
}

/* Replaces a value by a copied one. */
static inline enum tw_status put_replaced(struct tw_cache *cache, const void *key, size_t key_size,
					  const void *value, size_t size, tw_duration expire)
{
	const struct tw_cache_value replacing = {.data = value, .size = size, .expire = expire};

	return tw_cache_put(cache, key, key_size, &replacing, TW_CACHE_PUT_REPLACE);
}

/* Is the free function of a value that outlives the cache. */
static inline void leave_value(void *value, size_t value_size, void *context)
{
	(void)value;
	(void)value_size;
	(void)context;
}

/* Sets an adopted value. If free_value is NULL, it outlives the cache. */
static inline enum tw_status put_adopted(struct tw_cache *cache, const void *key, size_t key_size,
					 const void *value, size_t size, uint64_t weight,
					 tw_cache_free_fn *free_value, void *context,
					 tw_duration expire)
{
	const struct tw_cache_value adopted = {.data = value,
					       .size = size,
					       .expire = expire,
					       .weight = weight,
					       .free_value = free_value ? free_value : leave_value,
					       .context = context};

	return tw_cache_put(cache, key, key_size, &adopted, TW_CACHE_PUT_SET);
}

/* Returns the deadline of the key's entry, or 0 if it has none. The entry is not used. */
static inline tw_duration deadline_of(struct tw_cache *cache, const void *key, size_t key_size)
{
	const struct tw_cache_entry *entry;
	tw_duration deadline = 0;

	if (tw_cache_acquire(cache, key, key_size, TW_CACHE_NO_USE, &entry) == TW_OK) {
		deadline = tw_cache_entry_deadline(entry);
		tw_cache_entry_release(entry);
	}
	return deadline;
}

/* Gives a load a copied value. */
static inline enum tw_status give_copied(struct tw_cache_loading *loading, const void *value,
					 size_t size, tw_duration expire)
{
	const struct tw_cache_value copied = {.data = value, .size = size, .expire = expire};

	return tw_cache_load_give(loading, &copied);
}

/* Gives a load an adopted value. If free_value is NULL, it outlives the cache. */
static inline enum tw_status give_adopted(struct tw_cache_loading *loading, const void *value,
					  size_t size, uint64_t weight,
					  tw_cache_free_fn *free_value, void *context,
					  tw_duration expire)
{
	const struct tw_cache_value adopted = {.data = value,
					       .size = size,
					       .expire = expire,
					       .weight = weight,
					       .free_value = free_value ? free_value : leave_value,
					       .context = context};

	return tw_cache_load_give(loading, &adopted);
}

static inline enum tw_cache_verdict compute_touch(void *expire, const struct tw_cache_entry *entry,
						  struct tw_cache_value *value)
{
	(void)entry;
	value->expire = *(const tw_duration *)expire;
	return TW_CACHE_TOUCH;
}

/* Gives the key's entry another lifetime. */
static inline enum tw_status touch_key(struct tw_cache *cache, const void *key, size_t key_size,
				       tw_duration expire)
{
	return tw_cache_compute(cache, key, key_size, compute_touch, &expire);
}

static inline enum tw_cache_verdict compute_pop(void *popped, const struct tw_cache_entry *entry,
						struct tw_cache_value *value)
{
	(void)value;
	if (entry)
		*(const struct tw_cache_entry **)popped = tw_cache_entry_pin(entry);
	return TW_CACHE_DELETE;
}

/* Deletes the key, and sets *popped to its entry, pinned, or to NULL. */
static inline enum tw_status pop_key(struct tw_cache *cache, const void *key, size_t key_size,
				     const struct tw_cache_entry **popped)
{
	enum tw_status status;

	*popped = NULL;
	status = tw_cache_compute(cache, key, key_size, compute_pop, popped);
	return status == TW_OK && !*popped ? TW_NOT_FOUND : status;
}

#endif
