/* SPDX-License-Identifier: MIT */
/*
 * tw_cache_compute: the user's function runs under the shard's lock, on the entry that is there,
 * and what it wants is done before the lock is let go. The entry is judged by the time of the look:
 * a lookup without the lock may find it expired while the function runs.
 */
#include "callback.h"
#include "change.h"

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

static enum tw_cache_verdict compute_call(const struct compute *compute, bool is_there,
					  struct tw_cache_value *value)
{
	struct callback callback
		__attribute__((cleanup(callback_end))) = {.shared = &compute->cache->shared};
	enum tw_cache_verdict verdict;

	verdict =
		compute->function(compute->context, is_there ? compute->change.entry : NULL, value);
	callback.has_returned = true;
	return verdict;
}

/* Between begin and end. */
static enum tw_status compute_replace(struct compute *compute, struct retiring_reader *thread,
				      const struct tw_cache_value *value)
	HOLDS(compute->change.shard->lock)
{
	struct tw_cache *cache = compute->cache;
	struct entry_plan plan = {
		.key = compute->key, .key_size = compute->key_size, .hash = compute->change.hash};
	struct tw_cache_entry *entry;
	enum tw_status status;

	cache_plan_value(cache, &plan, value);
	cache_plan(cache, &plan);
	entry = entry_from(thread, &cache->shared, &plan);
	if (!entry)
		return TW_NO_MEMORY;
	cache_start_life(cache, entry, compute->change.now,
			 cache_lifetime(cache, compute->reader, plan.life));
	status = change_put(&compute->change, cache, entry, true);
	if (status == TW_OK) {
		compute->weight = plan.weight;
		compute->entry = entry;
	} else {
		entry_let_go_to_spare(entry, &thread->spare);
	}
	return status;
}

/* Between begin and end. */
static enum tw_status compute_between(struct compute *compute, struct retiring_reader *thread)
	HOLDS(compute->change.shard->lock)
{
	struct tw_cache_value value = {.data = NULL};
	bool is_there;

	if (shared_is_closed(&compute->cache->shared))
		return TW_CLOSED;
	compute->change.now = tw_now(compute->cache->shared.wheel);
	is_there = change_find(&compute->change, compute->key, compute->key_size);
	switch (compute_call(compute, is_there, &value)) {
	case TW_CACHE_KEEP:
		return TW_OK;
	case TW_CACHE_REPLACE:
		return value_is_valid(&value) ? compute_replace(compute, thread, &value)
					      : TW_INVALID;
	case TW_CACHE_TOUCH:
		if (!value_is_valid(&value))
			return TW_INVALID;
		return is_there ? change_touch(&compute->change, compute->cache, compute->reader,
					       &value)
				: TW_NOT_FOUND;
	case TW_CACHE_DELETE:
		change_delete(&compute->change, compute->key, compute->key_size);
		return TW_OK;
	}
	return TW_INVALID;
}

enum tw_status tw_cache_compute(struct tw_cache *cache, const void *key, size_t key_size,
				tw_cache_compute_fn *function, void *context)
{
	struct compute compute = {.cache = cache,
				  .key = key,
				  .key_size = key_size,
				  .function = function,
				  .context = context};
	struct retiring_reader *thread;
	enum tw_status status;

	if (!cache || !key_is_valid(key, key_size) || !function)
		return TW_INVALID;
	status = cache_admit(cache, &compute.reader);
	if (status != TW_OK)
		return status;
	compute.change.hash = key_hash_wide(&cache->shared.seed, key, key_size);
	compute.change.shard = cache_shard(cache, compute.change.hash);
	thread = retire_begin(&cache->shared);
	shard_begin_in(compute.change.shard, thread);
	status = compute_between(&compute, thread);
	shard_end_in(compute.change.shard);
	cache_end_sets(cache, thread, compute.weight, compute.entry);
	return status;
}
