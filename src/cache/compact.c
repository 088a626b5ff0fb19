/* SPDX-License-Identifier: MIT */
/*
 * Compaction moves entries out of sparse pages. Values change their sizes, and many are removed at
 * once: then pages stay for a few entries each, in sizes that are no longer set. Where more cells
 * are free than should be, the sparsest pages of the class with most of them are emptied one by
 * one: the entries that are left in them go into free cells of other pages of their class. A thread
 * that takes pages for its sets empties as many and more, so that their number stays. Maintenance
 * does so, too, unless many entries leave just now (cache_open.c).
 *
 * A page's cells are free, or a thread's, or of entries that are being made, linked, pinned or
 * retired, each under another lock. A linked entry says so in its state, and an entry that says so
 * inside an era, made in it or before, is not freed in that era: its key may be read, which leads
 * to the shard. Under the shard's lock the slot that holds this very address, if there still is
 * one, shows that it is linked; it does not matter whether it is the same entry.
 *
 * A move is a replacement by an equal entry that is not reported to on_remove: it keeps its place
 * in the policy's order, and where its hash is filed. Lookups that have found the old one read it
 * in peace, because it is retired as any other; so do pins that come at the last moment. An entry
 * that is pinned already, or has an adopted value, stays; its page is used again some time later.
 *
 * Lookups that have found the old entry may move its deadline meanwhile, where lifetimes slide.
 * Such a hit is carried over once the new entry has the slot, or it sees that the old one has lost
 * it and looks again. So does a lookup that finds the old one expired. No thread waits.
 */
#include "cache.h"

#include "retire.h"

enum { CELLS_A_STEP = 32 };

/* A move has an entry found linked, which may be gone: it is read only under the shard's lock. */
struct move {
	const struct tw_cache_entry *entry;
	uint64_t hash;
};

/* Finds the linked entries in cells *first and up, up to `count`. Returns how many. */
static unsigned moves_find(struct tw_cache *cache, struct reader *reader, struct pool_page *page,
			   unsigned *first, unsigned count, struct move *moves)
{
	struct epochs *epochs = &cache->shared.epochs;
	unsigned found = 0;
	uint64_t era = reader_enter(reader, epochs);

	for (; *first < count && found < CELLS_A_STEP; ++*first) {
		struct tw_cache_entry *entry = page_cell(page, *first);
		/* seq_cst: after this reader has entered, as for a slot; acquires the entry, pairs
		 * with entry_set_state(). */
		unsigned state = atomic_load_explicit(&entry->block.state, memory_order_seq_cst);

		if (!(state & ENTRY_LINKED))
			continue;
		if (!epochs_is_in(epochs, era)) {
			era = reader_enter(reader, epochs);
			--*first;
			continue;
		}
		moves[found++] =
			(struct move){entry, key_hash_wide(&cache->shared.seed, entry_key(entry),
							   entry->key_size)};
	}
	reader_leave(reader);
	return found;
}

/* Moves an entry. Returns false if out of memory. The caller holds the shard's lock. */
static bool entry_move(struct tw_cache *cache, struct shard *shard, struct retiring_reader *thread,
		       struct tw_cache_entry *entry, _Atomic uint64_t *slot) HOLDS(shard->lock)
{
	void *block = spare_take(&thread->spare, cache->shared.pool, entry_size(entry));
	struct tw_cache_entry *copy = entry_copy(block, entry, epochs_era(&cache->shared.epochs));

	if (copy)
		shard_move(shard, slot, entry, copy);
	return copy;
}

/* Moves an entry if it is still linked, alone and not adopted. Returns false if out of memory. */
static bool move_do(struct tw_cache *cache, struct retiring_reader *thread, const struct move *move)
{
	struct shard *shard = cache_shard(cache, move->hash);
	_Atomic uint64_t *slot;
	bool is_done = true;

	shard_begin_in(shard, thread);
	slot = table_find_address(shard_table(shard), move->hash, move->entry);
	if (slot) {
		struct tw_cache_entry *entry = slot_entry(slot_load(slot));

		if (!(entry->kind & ENTRY_ADOPTED) && entry_is_alone(entry))
			is_done = entry_move(cache, shard, thread, entry, slot);
	}
	shard_end_move(shard);
	return is_done;
}

/* Moves the entries in the first `count` cells of a page. Returns false if out of memory. */
static bool cache_empty_page(struct tw_cache *cache, struct pool_page *page, unsigned count)
{
	struct shared_state *shared = &cache->shared;
	struct move moves[CELLS_A_STEP];
	unsigned first = 0;
	bool is_done = true;

	while (first < count && is_done) {
		struct retiring_reader *thread = retire_begin(shared);
		unsigned found = moves_find(cache, &thread->reader, page, &first, count, moves);

		for (unsigned i = 0; i < found; i++)
			shard_prefetch_bucket(cache_shard(cache, moves[i].hash), moves[i].hash);
		for (unsigned i = 0; i < found && is_done; i++)
			is_done = move_do(cache, thread, &moves[i]);
		retire_end(thread, shared);
	}
	return is_done;
}

bool cache_compact(struct tw_cache *cache, size_t bytes, bool at_rest)
{
	struct pool *pool = cache->shared.pool;
	size_t emptied = 0;

	while (emptied < bytes && pool_is_sparse(pool, at_rest)) {
		unsigned count;
		struct pool_page *page = pool_begin_leaving(pool, &count);
		bool is_done;

		if (!page)
			return false;
		emptied += page->cells * page->cell_size;
		is_done = cache_empty_page(cache, page, count);
		pool_end_leaving(pool, page);
		if (!is_done)
			return false;
	}
	return emptied >= bytes;
}
