/* SPDX-License-Identifier: MIT */
/*
 * Many keys set or deleted, a batch at a time: first what the calls will touch is fetched for all,
 * then each shard's are changed under one lock, in their order. A lock is let go after a few, for
 * what a change owes (growth, filing again) is done a step at its end.
 */
#include "change.h"

enum { BATCH = 64, AT_A_LOCK = 16 };

/* A part of the items. */
struct batch {
	struct tw_cache *cache;
	unsigned count;
	uint64_t hashes[BATCH];
	bool is_left[BATCH];    /* to be changed */
	uint8_t follows[BATCH]; /* the next that may lie in the same shard; BATCH: none */
};

/* Finds those of the same shard, by the lower bits of its number: there may be more than BATCH. */
static void batch_link(struct batch *batch)
{
	uint8_t first[BATCH];

	memset(first, BATCH, sizeof(first));
	for (unsigned i = batch->count; i-- > 0;) {
		const struct shard *shard = cache_shard(batch->cache, batch->hashes[i]);
		uint8_t *place = &first[(size_t)(shard - batch->cache->shards) % BATCH];

		batch->follows[i] = *place;
		*place = (uint8_t)i;
	}
}

/* Fetches what the changes will touch. */
static void batch_begin(struct batch *batch, struct reader *reader)
{
	struct epochs *epochs = &batch->cache->shared.epochs;
	uint64_t era;

	batch_link(batch);
	for (unsigned i = 0; i < batch->count; i++) {
		struct shard *shard = cache_shard(batch->cache, batch->hashes[i]);

		shard_prefetch_bucket(shard, batch->hashes[i]);
		__builtin_prefetch(&shard->lock, 1);
	}
	/* Each table is looked at only if it may be: where the era moves, less is fetched. */
	era = reader_enter(reader, epochs);
	for (unsigned i = 0; i < batch->count; i++) {
		const struct table *table =
			shard_table(cache_shard(batch->cache, batch->hashes[i]));

		if (epochs_is_in(epochs, era))
			__builtin_prefetch(table_guess(table, batch->hashes[i]), 1);
	}
	reader_leave(reader);
}

/* Moves *next to the next one that is left and lies in this shard. Returns false if there is none.
 */
static bool batch_next(struct batch *batch, const struct shard *shard, unsigned *next)
{
	for (; *next < BATCH; *next = batch->follows[*next])
		if (batch->is_left[*next] &&
		    cache_shard(batch->cache, batch->hashes[*next]) == shard) {
			batch->is_left[*next] = false;
			return true;
		}
	return false;
}

/* Whether a call with many may begin, and with what reader. */
static enum tw_status many_begin(struct tw_cache *cache, const void *items, size_t n, size_t *done,
				 struct reader **reader)
{
	if (done)
		*done = 0;
	if (!cache || (!items && n > 0))
		return TW_INVALID;
	return cache_admit(cache, reader);
}

/* ---- Set ---- */

struct set_batch {
	struct batch batch;
	struct reader *reader;
	struct tw_cache_item *items;
	struct entry_plan plans[BATCH];
	struct tw_cache_entry *entries[BATCH];
	uint64_t weight; /* what came in weighs this */
	const struct tw_cache_entry *last;
};

static bool item_is_valid(const struct tw_cache_item *item)
{
	return key_is_valid(item->key, item->key_size) && (item->value || item->value_size == 0) &&
	       item->value_size <= UINT32_MAX && item->expire >= 0;
}

/* Makes plans; calls the user's function. */
static void set_batch_plan(struct set_batch *set)
{
	struct tw_cache *cache = set->batch.cache;

	for (unsigned i = 0; i < set->batch.count; i++) {
		struct tw_cache_item *item = &set->items[i];

		set->batch.hashes[i] = 0;
		set->batch.is_left[i] = item_is_valid(item);
		item->status = TW_INVALID;
		if (!set->batch.is_left[i])
			continue;
		set->batch.hashes[i] =
			key_hash_wide(&cache->shared.seed, item->key, item->key_size);
		set->plans[i] = (struct entry_plan){.key = item->key,
						    .key_size = item->key_size,
						    .hash = set->batch.hashes[i],
						    .value = item->value,
						    .value_size = item->value_size};
		cache_plan(cache, &set->plans[i]);
	}
}

static void set_batch_make(struct set_batch *set, struct retiring_reader *thread)
{
	for (unsigned i = 0; i < set->batch.count; i++) {
		if (!set->batch.is_left[i])
			continue;
		set->entries[i] = entry_from(thread, &set->batch.cache->shared, &set->plans[i]);
		set->batch.is_left[i] = set->entries[i] != NULL;
		set->items[i].status = TW_NO_MEMORY;
	}
}

/* Between begin and end. */
static void set_batch_put(struct set_batch *set, struct retiring_reader *thread,
			  struct shard *shard, unsigned i) HOLDS(shard->lock)
{
	struct tw_cache *cache = set->batch.cache;
	struct tw_cache_item *item = &set->items[i];
	tw_duration expire = item->expire != 0 ? item->expire : cache->expire;

	item->status = cache_put_new(cache, shard, set->batch.hashes[i], set->entries[i], PUT_SET,
				     cache_lifetime(cache, set->reader, expire));
	if (item->status == TW_OK) {
		set->weight += set->plans[i].weight;
		set->last = set->entries[i];
	} else {
		entry_let_go_to_spare(set->entries[i], &thread->spare);
	}
}

static size_t set_batch_run(struct set_batch *set)
{
	struct batch *batch = &set->batch;
	struct retiring_reader *thread;
	size_t done = 0;

	set->weight = 0;
	set_batch_plan(set);
	batch_begin(batch, set->reader);
	thread = retire_begin(&batch->cache->shared);
	set_batch_make(set, thread);
	for (unsigned i = 0; i < batch->count; i++)
		while (batch->is_left[i]) {
			struct shard *shard = cache_shard(batch->cache, batch->hashes[i]);
			unsigned next = i;

			shard_begin_in(shard, thread);
			for (int k = 0; k < AT_A_LOCK && batch_next(batch, shard, &next); k++)
				set_batch_put(set, thread, shard, next);
			shard_end_in(shard);
		}
	cache_end_sets(batch->cache, thread, set->weight, set->last);
	for (unsigned i = 0; i < batch->count; i++)
		done += set->items[i].status == TW_OK;
	return done;
}

enum tw_status tw_cache_set_many(struct tw_cache *cache, struct tw_cache_item *items, size_t n,
				 size_t *set)
{
	struct set_batch batch = {.batch.cache = cache};
	enum tw_status status = many_begin(cache, items, n, set, &batch.reader);
	size_t done = 0;

	for (size_t i = 0; i < n && status == TW_OK; i += BATCH) {
		batch.items = items + i;
		batch.batch.count = n - i < BATCH ? (unsigned)(n - i) : BATCH;
		done += set_batch_run(&batch);
	}
	if (set)
		*set = done;
	return status;
}

/* ---- Delete ---- */

static size_t delete_batch_run(struct batch *batch, struct tw_cache_key *keys,
			       struct reader *reader)
{
	struct tw_cache *cache = batch->cache;
	struct retiring_reader *thread;
	size_t done = 0;

	for (unsigned i = 0; i < batch->count; i++) {
		batch->is_left[i] = key_is_valid(keys[i].key, keys[i].key_size);
		batch->hashes[i] = batch->is_left[i] ? key_hash_wide(&cache->shared.seed,
								     keys[i].key, keys[i].key_size)
						     : 0;
		keys[i].status = TW_INVALID;
	}
	batch_begin(batch, reader);
	thread = retire_begin(&cache->shared);
	for (unsigned i = 0; i < batch->count; i++)
		while (batch->is_left[i]) {
			struct change change = {.shard = cache_shard(cache, batch->hashes[i])};
			unsigned next = i;

			shard_begin_in(change.shard, thread);
			for (int k = 0; k < AT_A_LOCK && batch_next(batch, change.shard, &next);
			     k++) {
				struct tw_cache_key *key = &keys[next];
				bool is_there;

				change.hash = batch->hashes[next];
				is_there = change_find(&change, cache, key->key, key->key_size);
				is_there =
					change_delete(&change, is_there, key->key, key->key_size);
				key->status = is_there ? TW_OK : TW_NOT_FOUND;
				done += is_there;
			}
			shard_end_in(change.shard);
		}
	retire_end(thread, &cache->shared);
	return done;
}

enum tw_status tw_cache_delete_many(struct tw_cache *cache, struct tw_cache_key *keys, size_t n,
				    size_t *deleted)
{
	struct batch batch = {.cache = cache};
	struct reader *reader = NULL;
	enum tw_status status = many_begin(cache, keys, n, deleted, &reader);
	size_t done = 0;

	for (size_t i = 0; i < n && status == TW_OK; i += BATCH) {
		batch.count = n - i < BATCH ? (unsigned)(n - i) : BATCH;
		done += delete_batch_run(&batch, keys + i, reader);
	}
	if (deleted)
		*deleted = done;
	return status;
}
