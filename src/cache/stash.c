/* SPDX-License-Identifier: MIT */
/*
 * A set unlinks an entry and makes another of the same size. If the shard takes the one and gives
 * memory for the other, that memory was last touched dozens of sets of this shard ago, which are
 * thousands of all, and it has to come from far. From a thread's own hands it is still near: sets
 * of 128 bytes are a tenth faster, and more where others use the machine's memory. And the shard's
 * lock is held for less.
 *
 * What stays here when the thread sets no more is small (some dozens of cells, of at most 1,024
 * bytes), but may keep large chunks from being given back. So the cache's upkeep, which runs in
 * the tick after a set, clears all stashes. A thread that finds one begun goes without it: none
 * waits.
 *
 * May run together: stash_begin() of any threads; the one that begins is alone until stash_end().
 */
#include "stash.h"

#include <sched.h>

/* Wait for so many before the readers are looked at, and the more where there are more readers:
 * more than in a shard's limbo, for they are still near, and a look at a reader takes its cache
 * line away from it. */
enum { FEW = 16, MANY = 32 };

/* So many are only there if a reader lost the processor inside an epoch: let it go on. */
enum { CROWD = 256 };

static bool stash_try(struct stash *stash)
{
	/* acquire: what the last one left; pairs with stash_let_go(). */
	return !atomic_exchange_explicit(&stash->is_begun, true, memory_order_acquire);
}

static void stash_let_go(struct stash *stash)
{
	/* release: pairs with stash_try(). */
	atomic_store_explicit(&stash->is_begun, false, memory_order_release);
}

/* Under LRU with a limit the ring of a shard's policy may hold what was unlinked (limbo.c). */
static bool cache_notes_touches(const struct tw_cache *cache)
{
	return cache->is_lru && domain_counts_uses(&cache->domain);
}

/* No reader sees it any more; but if one has noted it for the policy, the shard must know. */
static void stash_hand_over(struct tw_cache *cache, struct tw_cache_entry *entry)
{
	uint64_t hash = key_hash_wide(&cache->domain.seed, entry_key(entry), entry->key_size);
	struct shard *shard = cache_shard(cache, hash);

	shard_begin(shard);
	limbo_add(&shard->limbo, entry);
	shard_end(shard);
}

/*
 * domain_counts_uses() is looked at when the entries are out of every reader's sight. A reader that
 * noted a use of one outside the lock had seen it, before it left its epoch, and so it is seen
 * here; under the lock nothing meets what was unlinked.
 */
static void stash_free(struct stash *stash, struct tw_cache *cache, struct tw_cache_entry *entry)
{
	bool hands_over = cache_notes_touches(cache);
	struct tw_cache_entry *next;

	for (; entry; entry = next) {
		next = entry->limbo_next;
		if (hands_over)
			stash_hand_over(cache, entry);
		else
			entry_release_to_spare(&stash->spare, entry);
	}
}

bool stash_begin(struct stash *stash, const struct tw_cache *cache)
{
	return !cache_notes_touches(cache) && stash_try(stash);
}

void stash_end(struct stash *stash, struct tw_cache *cache)
{
	struct limbo *limbo = &stash->limbo;
	bool is_crowded;
	bool is_empty;
	bool goes_on;

	if (limbo->fresh_count >= MANY ||
	    (limbo->fresh_count >= FEW &&
	     limbo->fresh_count >= epochs_readers(&cache->domain.epochs)))
		stash_free(stash, cache, limbo_go_on(limbo, &cache->domain.epochs, &goes_on));
	is_crowded = limbo->fresh_count >= CROWD;
	is_empty = limbo_is_empty(limbo) && stash->spare.count == 0;
	stash_let_go(stash);
	if (!is_empty)
		domain_ask_upkeep(&cache->domain);
	if (is_crowded)
		sched_yield();
}

bool stash_clear(struct stash *stash, struct tw_cache *cache)
{
	bool goes_on = true;
	bool is_empty;

	if (!stash_try(stash))
		return false;
	while (goes_on && !limbo_is_empty(&stash->limbo))
		stash_free(stash, cache,
			   limbo_go_on(&stash->limbo, &cache->domain.epochs, &goes_on));
	spare_return(&stash->spare);
	is_empty = limbo_is_empty(&stash->limbo);
	stash_let_go(stash);
	return is_empty;
}

void stash_close(struct stash *stash)
{
	limbo_close(&stash->limbo);
	spare_return(&stash->spare);
}
