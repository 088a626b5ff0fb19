/* SPDX-License-Identifier: MIT */
/*
 * tw_cache_compute: the user's function runs under the shard's lock, on the entry that is there,
 * and what it wants is done before the lock is let go. The entry is judged by the time of the look:
 * a lookup may find it expired while the function runs, without the lock.
 */
#include "change.h"

#include "callback.h"

/* A program fills this in. If it was built with a later header, its struct is longer, but not
 * longer than this: the size is the same in all libraries. */
enum { COMPUTED_WORDS = 5, COMPUTED_KNOWN = sizeof(struct tw_cache_computed) / sizeof(uint64_t) };

struct computed_fields {
	struct tw_cache_computed known;
	uint64_t unknown[COMPUTED_WORDS - COMPUTED_KNOWN];
};

/* Returns whether the program asks for what the library does not know. */
static bool computed_has_more(const struct computed_fields *fields)
{
	for (int i = 0; i < COMPUTED_WORDS - COMPUTED_KNOWN; i++)
		if (fields->unknown[i] != 0)
			return true;
	return false;
}

struct compute {
	struct tw_cache *cache;
	struct reader *reader;
	const void *key;
	size_t key_size;
	tw_cache_compute_fn *function;
	void *context;
	struct change change;
	uint64_t weight; /* what came in weighs this, or 0 */
	const struct tw_cache_entry *entry;
};

/* Between begin and end. */
static enum tw_status compute_replace(struct compute *compute, struct retiring_reader *thread,
				      const struct tw_cache_computed *computed)
	HOLDS(compute->change.shard->lock)
{
	struct tw_cache *cache = compute->cache;
	struct entry_plan plan = {.key = compute->key,
				  .key_size = compute->key_size,
				  .hash = compute->change.hash,
				  .value = computed->value,
				  .value_size = computed->value_size};
	tw_duration expire = computed->expire != 0 ? computed->expire : cache->expire;
	struct tw_cache_entry *entry;
	enum tw_status status;

	if ((!computed->value && computed->value_size > 0) || computed->value_size > UINT32_MAX ||
	    computed->expire < 0)
		return TW_INVALID;
	cache_plan(cache, &plan);
	entry = entry_from(thread, &cache->shared, &plan);
	if (!entry)
		return TW_NO_MEMORY;
	status = cache_put_new(cache, compute->change.shard, compute->change.hash, entry, PUT_SET,
			       cache_lifetime(cache, compute->reader, expire));
	if (status == TW_OK) {
		compute->weight = plan.weight;
		compute->entry = entry;
	} else {
		entry_let_go_to_spare(entry, &thread->spare);
	}
	return status;
}

static enum tw_cache_verdict compute_call(const struct compute *compute, bool is_there,
					  struct tw_cache_computed *computed)
{
	struct callback callback
		__attribute__((cleanup(callback_end))) = {.shared = &compute->cache->shared};
	enum tw_cache_verdict verdict;

	verdict = compute->function(compute->context, is_there ? compute->change.entry : NULL,
				    computed);
	callback.has_returned = true;
	return verdict;
}

/* Between begin and end. */
static enum tw_status compute_once(struct compute *compute, struct retiring_reader *thread)
	HOLDS(compute->change.shard->lock)
{
	struct computed_fields fields = {.unknown = {0}};
	bool is_there =
		change_find(&compute->change, compute->cache, compute->key, compute->key_size);

	if (shared_is_closed(&compute->cache->shared))
		return TW_CLOSED;
	switch (compute_call(compute, is_there, &fields.known)) {
	case TW_CACHE_KEEP:
		return TW_OK;
	case TW_CACHE_REPLACE:
		if (computed_has_more(&fields))
			return TW_INVALID;
		return compute_replace(compute, thread, &fields.known);
	case TW_CACHE_DELETE:
		(void)change_delete(&compute->change, is_there, compute->key, compute->key_size);
		return TW_OK;
	}
	return TW_INVALID;
}

static enum tw_status compute_run(struct compute *compute)
{
	struct retiring_reader *thread = retire_begin(&compute->cache->shared);
	enum tw_status status;

	shard_begin_in(compute->change.shard, thread);
	status = compute_once(compute, thread);
	shard_end_in(compute->change.shard);
	cache_end_sets(compute->cache, thread, compute->weight, compute->entry);
	return status;
}

enum tw_status tw_cache_compute(struct tw_cache *cache, const void *key, size_t key_size,
				tw_cache_compute_fn *function, void *context)
{
	struct compute compute = {.cache = cache,
				  .key = key,
				  .key_size = key_size,
				  .function = function,
				  .context = context};
	enum tw_status status;

	if (!cache || !key_is_valid(key, key_size) || !function)
		return TW_INVALID;
	status = cache_admit(cache, &compute.reader);
	if (status != TW_OK)
		return status;
	compute.change.hash = key_hash_wide(&cache->shared.seed, key, key_size);
	compute.change.shard = cache_shard(cache, compute.change.hash);
	return compute_run(&compute);
}
