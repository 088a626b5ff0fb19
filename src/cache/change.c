/* SPDX-License-Identifier: MIT */
/*
 * The public calls that change one key, under its shard's lock. What is known of the new entry
 * before that is planned before.
 */
#include "cache.h"

#include "base/xorshift.h"

/* ---- Lifetimes ---- */

/* Calls of these would be up to 30 instructions of each set. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
/* Functions of cache.h are inlined here, too. clang warns of what C allows: they are declared
 * without `inline`, so these are no inline definitions. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wstatic-in-inline"
#endif

ALWAYS_INLINE tw_duration cache_lifetime(const struct tw_cache *cache, struct caller *caller,
					 tw_duration life)
{
	/* 53 bits, as many as a double has: 0 to 1, never 1. */
	double part;

	if (cache->options.jitter <= 0 || life < 0 || life == TW_FOREVER)
		return life;
	/* It begins as in no other thread, cache or process. */
	if (caller->random == 0)
		caller->random = key_hash_wide(&cache->shared.seed, &caller, sizeof(caller)) | 1;
	part = (double)(xorshift_next(&caller->random) >> 11) / (double)((uint64_t)1 << 53);
	return life - (tw_duration)((double)life * cache->options.jitter * part);
}

/* Returns when an entry that is set now is to be loaded again. */
static tw_duration cache_refresh_time(const struct tw_cache *cache, uint32_t hash, tw_duration now)
{
	/* A key's own part of the jitter: -1 to 1. */
	double part = (double)hash / (double)(1u << 31) - 1;
	double after = (double)cache->options.refresh_after * (1 + cache->options.jitter * part);

	return cache->options.refresh_after == 0 || after >= (double)DEADLINE_LAST
		       ? TW_FOREVER
		       : deadline_after(now, (tw_duration)after);
}

/* Returns the deadline of an entry that is used now and ends at `end`. */
static tw_duration cache_deadline(const struct tw_cache *cache, tw_duration now, tw_duration end)
{
	tw_duration idle_end;

	if (cache->options.idle == 0)
		return end;
	idle_end = deadline_after(now, cache->options.idle);
	return idle_end < end ? idle_end : end;
}

/* Returns when a life that begins at `now` ends. */
static tw_duration life_end(tw_duration now, tw_duration life)
{
	return life > 0 ? deadline_after(now, life) : deadline_after(0, -life);
}

ALWAYS_INLINE void cache_start_life(const struct tw_cache *cache, struct tw_cache_entry *entry,
				    tw_duration now, tw_duration life)
{
	tw_duration end = life_end(now, life);

	if (cache->options.idle > 0)
		time_store(&entry_extension(entry)->end, end);
	if (entry->kind & ENTRY_AGING)
		time_store(&entry_age(entry)->refresh_at,
			   cache_refresh_time(cache, entry->hash, now));
	time_store(&entry->deadline, cache_deadline(cache, now, end));
}

/* ---- Values ---- */

/* Plans of entries larger than LARGE bytes are made with more care. */
enum { LARGE = 65536 };

bool value_is_valid(const struct tw_cache_value *value)
{
	return value && (value->data || value->size == 0) &&
	       (value->free_value || value->size <= UINT32_MAX) && value->expire >= 0 &&
	       value->deadline >= 0 && (value->expire == 0 || value->deadline == 0) &&
	       (value->reserved[0] | value->reserved[1]) == 0;
}

/* Returns the life that a value gives, as a plan has it. */
static tw_duration value_life(const struct tw_cache *cache, const struct tw_cache_value *value)
{
	if (value->deadline > 0)
		return -value->deadline;
	return value->expire > 0 ? value->expire : cache->expire;
}

void cache_plan_value(const struct tw_cache *cache, struct entry_plan *plan,
		      const struct tw_cache_value *value)
{
	if (value->free_value) {
		plan->adopted = (struct entry_adopted){(void *)value->data, value->size,
						       value->free_value, value->context};
		plan->kind = ENTRY_ADOPTED;
	} else {
		plan->value = value->data;
		plan->value_size = value->size;
	}
	if (value->weight > 0) {
		plan->weight = value->weight;
		plan->kind |= ENTRY_EXTENDED;
	}
	plan->life = value_life(cache, value);
}

static uint64_t cache_weigh(const struct tw_cache *cache, const struct entry_plan *plan)
{
	struct callback callback
		__attribute__((cleanup(callback_end))) = {.shared = &cache->shared};
	bool is_adopted = plan->kind & ENTRY_ADOPTED;
	uint64_t weight;

	weight = cache->options.weigh(cache->options.context, plan->key, plan->key_size,
				      is_adopted ? plan->adopted.value : plan->value,
				      is_adopted ? plan->adopted.value_size : plan->value_size);
	callback.has_returned = true;
	return weight;
}

/* Sets the size of the entry, and its weight in memory. */
static void plan_size(struct entry_plan *plan)
{
	plan->size = sizeof(struct tw_cache_entry) + kind_size(plan->kind) +
		     entry_padded_key_size(plan->key_size) + plan->value_size;
}

/* Returns the size of an adopted value, such that a sum with it does not overflow. */
static uint64_t plan_adopted_size(const struct entry_plan *plan)
{
	if (!(plan->kind & ENTRY_ADOPTED))
		return 0;
	return plan->adopted.value_size < TW_CACHE_WEIGHT_MAX ? plan->adopted.value_size
							      : TW_CACHE_WEIGHT_MAX;
}

static __attribute__((noinline)) bool plan_any(struct tw_cache *cache, struct entry_plan *plan)
{
	bool is_absent = plan->kind & ENTRY_ABSENT;

	if (cache->options.refresh_after > 0 && !is_absent)
		plan->kind |= ENTRY_AGING;
	/* Other entries weigh what they take. */
	if (cache->options.weigh || cache->options.idle > 0)
		plan->kind |= ENTRY_EXTENDED;
	if (cache->options.weigh && is_absent)
		plan->weight = 1;
	else if (cache->options.weigh && plan->weight == 0)
		plan->weight = cache_weigh(cache, plan);
	plan_size(plan);
	if (plan->size + sizeof(struct entry_extension) > POOL_MOST) {
		if (!entry_plan_map(plan, cache->shared.pool))
			return false;
		plan_size(plan);
	}
	if (plan->weight == 0 && !cache->options.weigh)
		plan->weight = ENTRY_SHARE + pool_cell_size(plan->size) + plan_adopted_size(plan);
	if (plan->weight == 0)
		plan->weight = 1;
	if (plan->weight > TW_CACHE_WEIGHT_MAX) {
		plan->weight = TW_CACHE_WEIGHT_MAX;
		plan->kind |= ENTRY_EXTENDED;
		plan_size(plan);
	}
	return true;
}

ALWAYS_INLINE bool cache_plan(struct tw_cache *cache, struct entry_plan *plan)
{
	plan_size(plan);
	if (__builtin_expect(!cache->has_plain_entries || plan->kind != 0 || plan->size > LARGE, 0))
		return plan_any(cache, plan);
	plan->weight = ENTRY_SHARE + pool_cell_size(plan->size);
	return true;
}

/* ---- Changes ---- */

ALWAYS_INLINE bool change_make(struct change *change, const struct entry_plan *plan)
{
	change->made = shard_make(change->shard, plan);
	change->weight = plan->weight;
	if (!change->made)
		entry_plan_unmap(plan, change->cache->shared.pool);
	return change->made;
}

ALWAYS_INLINE bool change_find(struct change *change, const void *key, size_t key_size)
{
	/* A change whose address nothing has can be in registers. */
	_Atomic uint64_t *slot = NULL;

	shard_expire_late(change->shard, change->now);
	change->entry = table_find(change->shard->table, change->hash, key, key_size, &slot);
	change->slot = slot;
	return change->entry && !(change->entry->kind & ENTRY_ABSENT) &&
	       entry_deadline(change->entry) > change->now;
}

ALWAYS_INLINE enum tw_status change_put(struct change *change, bool overrides)
{
	struct tw_cache_entry *old = change->entry;
	struct tw_cache_entry *made = change->made;
	uint64_t most = counter_read(&change->cache->shared.max_bytes);

	if (most > 0 && change->weight > most) {
		change->shard->refused++;
		return TW_FULL;
	}
	if ((!old && !shard_reserve(change->shard)) ||
	    !shard_watch(change->shard, change->hash, made, old ? entry_filed(old) : 0,
			 entry_deadline(made)))
		return TW_NO_MEMORY;
	if (change->shard->has_flights && overrides)
		flights_override(&change->shard->flights, change->hash, entry_key(made),
				 made->key_size);
	if (old)
		shard_replace(change->shard, change->slot, old, made, change->now);
	else
		shard_link(change->shard, change->hash, made, change->now);
	change->is_put = true;
	return TW_OK;
}

ALWAYS_INLINE void change_end(struct change *change, bool frees_value)
{
	struct tw_cache *cache = change->cache;
	size_t taken = shard_end(change->shard);

	if (!change->is_put)
		entry_let_go(change->made, frees_value);
	/* It frees as much as was taken, and as much again to catch up. */
	if (__builtin_expect(taken > 0, 0))
		(void)cache_compact(cache, 2 * taken, false);
	if (change->is_put && __builtin_expect(shared_is_over_limit(&cache->shared), 0))
		cache_evict(cache, change->weight, change->made);
}

/* Removes what was found, and has loads not be kept. */
static void change_delete(const struct change *change, const void *key, size_t key_size)
	HOLDS(change->shard->lock)
{
	if (change->entry)
		shard_unlink(change->shard, change->slot, TW_CAUSE_EXPLICIT, change->now);
	if (change->shard->has_flights)
		flights_override(&change->shard->flights, change->hash, key, key_size);
}

/* Gives the entry, which is there, the life that the value says. Returns TW_OK or TW_NO_MEMORY. */
static enum tw_status change_touch(const struct change *change, const struct tw_cache_value *value)
	HOLDS(change->shard->lock)
{
	struct tw_cache *cache = change->cache;
	struct tw_cache_entry *entry = change->entry;
	tw_duration life = cache_lifetime(cache, change->caller, value_life(cache, value));
	tw_duration end = life_end(change->now, life);
	tw_duration deadline = cache_deadline(cache, change->now, end);

	if (!shard_watch(change->shard, change->hash, entry, entry_filed(entry), deadline))
		return TW_NO_MEMORY;
	if (cache->options.idle > 0)
		time_store(&entry_extension(entry)->end, end);
	/* release: after the entry's end was set; pairs with entry_move_deadline(). */
	atomic_store_explicit(&entry->deadline, deadline, memory_order_release);
	policy_use(&change->shard->policy, entry);
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
	old = table_find(shard->table, hash, key, key_size, &slot);
	if (!old || !entry_try_to_expire(old, now, &deadline) ||
	    !entry_is_stale(old, deadline, now, cache->shared.stale))
		return NULL;
	policy_use(&shard->policy, old);
	return tw_cache_entry_pin(old);
}

/* ---- Set and delete ---- */

static ALWAYS_INLINE enum tw_status change_put_in_mode(struct change *change,
						       enum tw_cache_put_mode mode)
	HOLDS(change->shard->lock)
{
	bool is_there;

	if (shared_is_closed(&change->cache->shared))
		return TW_CLOSED;
	is_there = change_find(change, entry_key(change->made), change->made->key_size);
	if (mode == TW_CACHE_PUT_ADD && is_there)
		return TW_EXISTS;
	if (mode == TW_CACHE_PUT_REPLACE && !is_there)
		return TW_NOT_FOUND;
	return change_put(change, true);
}

/*
 * Two things have to come from memory, one after the other: the key's bucket, and the entry in it.
 * What else is to be done lies in between, so that no caller waits for them with the lock held.
 */
static enum tw_status cache_set_planned(struct tw_cache *cache, struct entry_plan *plan,
					enum tw_cache_put_mode mode)
{
	struct change change = {.cache = cache};
	enum tw_status status = cache_admit(cache, &change.caller);
	tw_duration life;

	if (status != TW_OK)
		return status;
	change.hash = plan->hash = key_hash_wide(&cache->shared.seed, plan->key, plan->key_size);
	change.shard = cache_shard(cache, plan->hash);
	shard_prefetch_bucket(change.shard, plan->hash);
	__builtin_prefetch(&change.shard->lock, 1);
	life = cache_lifetime(cache, change.caller, plan->life);
	if (!cache_plan(cache, plan))
		return TW_NO_MEMORY;
	shard_prefetch_guess(change.shard, plan->hash);
	shard_begin(change.shard);
	status = TW_NO_MEMORY;
	if (change_make(&change, plan)) {
		/* Not before the lock: what is judged by it is judged as it is now. */
		change.now = tw_now(cache->shared.wheel);
		cache_start_life(cache, change.made, change.now, life);
		status = change_put_in_mode(&change, mode);
	}
	change_end(&change, false);
	return status;
}

static enum tw_status cache_set_copied(struct tw_cache *cache, const void *key, size_t key_size,
				       const void *value, size_t value_size, tw_duration expire)
{
	/* To zero the rest, too, would be a fiftieth of a set. */
	struct entry_plan plan;

	plan.key = key;
	plan.key_size = key_size;
	plan.value = value;
	plan.value_size = value_size;
	plan.life = expire;
	plan.kind = 0;
	plan.weight = 0;
	if (!cache || !key_is_valid(key, key_size) || (!value && value_size > 0) ||
	    value_size > UINT32_MAX || expire <= 0)
		return TW_INVALID;
	return cache_set_planned(cache, &plan, TW_CACHE_PUT_SET);
}

enum tw_status tw_cache_set(struct tw_cache *cache, const void *key, size_t key_size,
			    const void *value, size_t value_size)
{
	return cache_set_copied(cache, key, key_size, value, value_size, cache ? cache->expire : 1);
}

enum tw_status tw_cache_set_with_expire(struct tw_cache *cache, const void *key, size_t key_size,
					const void *value, size_t value_size, tw_duration expire)
{
	return cache_set_copied(cache, key, key_size, value, value_size, expire);
}

enum tw_status tw_cache_put(struct tw_cache *cache, const void *key, size_t key_size,
			    const struct tw_cache_value *value, enum tw_cache_put_mode mode)
{
	struct entry_plan plan = {.key = key, .key_size = key_size};

	if (!cache || !key_is_valid(key, key_size) || !value_is_valid(value) ||
	    (unsigned)mode > TW_CACHE_PUT_REPLACE)
		return TW_INVALID;
	cache_plan_value(cache, &plan, value);
	return cache_set_planned(cache, &plan, mode);
}

enum tw_status tw_cache_delete(struct tw_cache *cache, const void *key, size_t key_size)
{
	struct change change = {.cache = cache};
	bool is_there;

	if (!cache || !key_is_valid(key, key_size))
		return TW_INVALID;
	if (caller_computes == cache->shared.callers.id)
		return TW_INVALID;
	if (shared_is_closed(&cache->shared))
		return TW_CLOSED;
	change.hash = key_hash_wide(&cache->shared.seed, key, key_size);
	change.shard = cache_shard(cache, change.hash);
	shard_begin(change.shard);
	change.now = tw_now(cache->shared.wheel);
	is_there = change_find(&change, key, key_size);
	change_delete(&change, key, key_size);
	(void)shard_end(change.shard);
	return is_there ? TW_OK : TW_NOT_FOUND;
}

/*
 * ---- Compute ----
 *
 * The user's function runs under the shard's lock, on the entry that is there, and what it wants is
 * done before the lock is let go. The entry is judged by the time of the look: a lookup without the
 * lock may find it expired while the function runs.
 */

struct compute {
	const void *key;
	size_t key_size;
	tw_cache_compute_fn *function;
	void *context;
};

/* Puts a valid value. */
static enum tw_status compute_replace(const struct compute *compute, struct change *change,
				      const struct tw_cache_value *value) HOLDS(change->shard->lock)
{
	struct tw_cache *cache = change->cache;
	struct entry_plan plan = {
		.key = compute->key, .key_size = compute->key_size, .hash = change->hash};

	cache_plan_value(cache, &plan, value);
	if (!cache_plan(cache, &plan) || !change_make(change, &plan))
		return TW_NO_MEMORY;
	cache_start_life(cache, change->made, change->now,
			 cache_lifetime(cache, change->caller, plan.life));
	return change_put(change, true);
}

/* Calls the program's function. */
static enum tw_cache_verdict compute_call(const struct compute *compute,
					  const struct shared_state *shared,
					  const struct tw_cache_entry *entry,
					  struct tw_cache_value *value)
{
	struct callback callback __attribute__((cleanup(callback_end))) = {.shared = shared};
	struct caller_memo memo = caller_memo;
	uint64_t outer = caller_computes;
	enum tw_cache_verdict verdict;

	caller_computes = shared->callers.id;
	caller_memo.id = 0;
	verdict = compute->function(compute->context, entry, value);
	caller_computes = outer;
	caller_memo = memo;
	callback.has_returned = true;
	return verdict;
}

/* Does what the program's function wants. */
static enum tw_status compute_between(const struct compute *compute, struct change *change)
	HOLDS(change->shard->lock)
{
	struct tw_cache_value value = {.data = NULL};
	bool is_there;

	change->now = tw_now(change->cache->shared.wheel);
	is_there = change_find(change, compute->key, compute->key_size);
	switch (compute_call(compute, &change->cache->shared, is_there ? change->entry : NULL,
			     &value)) {
	case TW_CACHE_KEEP:
		return TW_OK;
	case TW_CACHE_REPLACE:
		return value_is_valid(&value) ? compute_replace(compute, change, &value)
					      : TW_INVALID;
	case TW_CACHE_TOUCH:
		if (!value_is_valid(&value))
			return TW_INVALID;
		return is_there ? change_touch(change, &value) : TW_NOT_FOUND;
	case TW_CACHE_DELETE:
		change_delete(change, compute->key, compute->key_size);
		return TW_OK;
	}
	return TW_INVALID;
}

enum tw_status tw_cache_compute(struct tw_cache *cache, const void *key, size_t key_size,
				tw_cache_compute_fn *function, void *context)
{
	const struct compute compute = {key, key_size, function, context};
	struct change change = {.cache = cache};
	enum tw_status status;

	if (!cache || !key_is_valid(key, key_size) || !function)
		return TW_INVALID;
	status = cache_admit(cache, &change.caller);
	if (status != TW_OK)
		return status;
	change.hash = key_hash_wide(&cache->shared.seed, key, key_size);
	change.shard = cache_shard(cache, change.hash);
	shard_begin(change.shard);
	status = shared_is_closed(&cache->shared) ? TW_CLOSED : compute_between(&compute, &change);
	change_end(&change, false);
	return status;
}
