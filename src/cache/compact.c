/* SPDX-License-Identifier: MIT */
/*
 * Compaction moves entries out of sparse pages. Values change their sizes, and many are removed at
 * once: then pages stay for a few entries each, in sizes that are no longer set. Where more cells
 * are free than should be, the sparsest pages of the class with most of them are emptied one by
 * one: the entries that are left in them go into free cells of other pages of their class. A thread
 * that takes pages for its sets empties as many and more, so that their number stays. Maintenance
 * does so, too, unless many entries leave just now (cache_open.c).
 *
 * A page's cells are free, or spare, or of entries that are being made, linked or pinned. An entry
 * that can be pinned may be read, and its key leads to the shard. Under the shard's lock the slot
 * that holds this very address, if there is one, shows that it is linked.
 *
 * A move is a replacement by an equal entry that is not reported to on_remove: it keeps its place
 * in the policy's order, and where its hash is filed. Lookups that have found the old one read or
 * pin it in peace. An entry that others have pinned, or with an adopted value, stays, and its page
 * is used again.
 *
 * Lookups that have found the old entry may move its deadline meanwhile, where lifetimes slide.
 * Such a hit is carried over once the new entry has the slot, or it sees that the old one has lost
 * it and looks again. So does a lookup that finds the old one expired. No thread waits.
 */
#include "cache.h"

/* Moves a pinned entry if it may be moved, and unpins it. Returns false if out of memory. */
static bool cache_move(struct tw_cache *cache, struct tw_cache_entry *entry)
{
	uint64_t hash = key_hash_wide(&cache->shared.seed, entry_key(entry), entry->key_size);
	struct shard *shard = cache_shard(cache, hash);
	bool is_done;

	shard_prefetch_bucket(shard, hash);
	shard_begin(shard);
	is_done = shard_move(shard, entry);
	(void)shard_end(shard);
	tw_cache_entry_release(entry);
	return is_done;
}

/* Moves the entries in the cells of a page whose bits are set. Returns false if out of memory. */
static bool cache_empty_page(struct tw_cache *cache, const struct pool_page *page,
			     uint64_t cells[POOL_WORDS])
{
	for (unsigned word = 0; word < POOL_WORDS; word++)
		for (; cells[word] != 0; cells[word] &= cells[word] - 1) {
			unsigned bit = (unsigned)__builtin_ctzll(cells[word]);
			struct tw_cache_entry *entry = page_cell(page, word * 64 + bit);

			if (entry_try_pin(entry) && !cache_move(cache, entry))
				return false;
		}
	return true;
}

bool cache_compact(struct tw_cache *cache, size_t bytes, bool at_rest)
{
	struct pool *pool = cache->shared.pool;
	struct pool_page *page;
	uint64_t cells[POOL_WORDS];
	size_t emptied = 0;
	struct list pages;

	list_init(&pages);
	do {
		page = pool_begin_emptying(pool, at_rest, &pages, cells);
		if (page && !cache_empty_page(cache, page, cells))
			page = NULL;
		emptied += page ? page_bytes(page) : 0;
	} while (page && emptied < bytes);
	pool_end_emptying(pool, &pages);
	return page != NULL;
}
