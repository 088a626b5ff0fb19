/* SPDX-License-Identifier: MIT */
/*
 * A load lives until all have let go of it, and holds a pin on the entry that it brought. It may
 * outlive the cache, with a loader that keeps it.
 *
 * No thread waits for itself: before a thread waits, it follows the chain from the load to its
 * loader's thread, to the load which that one waits for, and so on. Arriving at itself it gives
 * up. The links of the chain, and the ends of loads, are under one lock of the cache, taken
 * inside a shard's. A load that no thread loads, queued or kept, ends the chain.
 *
 * Invariants: a shard's list has one load of a key at most. A load is over if and only if it has
 * left the list; then its status and entry stay as they are. No chain of waits leads back to
 * itself.
 */
#include "loading.h"

#include <assert.h>
#include <stdlib.h>

#include "base/key.h"
#include "base/thread.h"

struct tw_cache_loading *loadings_find(struct tw_cache_loading *loadings, uint64_t hash,
				       const void *key, size_t key_size)
{
	while (loadings && (loadings->hash != hash || loadings->key_size != key_size ||
			    !keys_are_equal(loadings->key, key, key_size)))
		loadings = loadings->next;
	return loadings;
}

void loadings_check(struct tw_cache_loading *loadings, const struct shard *shard)
{
	enum { MOST = 64 }; /* each is compared with all behind it */

	for (int i = 0; loadings && i < MOST; i++, loadings = loadings->next) {
		assert(loadings->shard == shard && !loadings->is_over);
		assert(!loadings_find(loadings->next, loadings->hash, loadings->key,
				      loadings->key_size));
	}
	(void)shard;
}

void loadings_override(struct tw_cache_loading *loadings, uint64_t hash, const void *key,
		       size_t key_size)
{
	struct tw_cache_loading *loading = loadings_find(loadings, hash, key, key_size);

	if (loading)
		loading->is_overridden = true;
}

void loadings_override_all(struct tw_cache_loading *loadings)
{
	for (; loadings; loadings = loadings->next)
		loadings->is_overridden = true;
}

void loadings_wake(struct tw_cache_loading *loadings, struct waiter **waiters)
{
	for (; loadings; loadings = loadings->next) {
		struct waiter **end = &loadings->waiters;

		pthread_cond_broadcast(&loadings->ended);
		while (*end)
			end = &(*end)->next;
		*end = *waiters;
		*waiters = loadings->waiters;
		loadings->waiters = NULL;
	}
}

struct tw_cache_loading *loading_new(struct tw_cache *cache, struct shard *shard,
				     struct reader *loader, uint64_t hash, const void *key,
				     size_t key_size)
{
	/* glibc's calloc knows no cache of the thread's. */
	struct tw_cache_loading *loading = malloc(sizeof(*loading) + key_size);

	if (!loading)
		return NULL;
	memset(loading, 0, sizeof(*loading));
	loading->cache = cache;
	loading->shard = shard;
	loading->hash = hash;
	loading->key_size = key_size;
	memcpy(loading->key, key, key_size);
	atomic_init(&loading->references, 1);
	loading->is_queued = !loader;
	/* Without the lock of the waits: what goes by this has found the load in the list. */
	loading->loader = loader;
	condition_init(&loading->ended);
	pthread_mutex_init(&loading->lock, NULL);
	return loading;
}

void loading_list(struct tw_cache_loading *loading, struct tw_cache_loading **loadings)
{
	loading->next = *loadings;
	*loadings = loading;
}

void loading_set_loader(struct tw_cache_loading *loading, struct shared_state *shared,
			struct reader *loader)
{
	loading->is_queued = false;
	pthread_mutex_lock(&shared->waits_lock);
	loading->loader = loader;
	pthread_mutex_unlock(&shared->waits_lock);
}

void loading_unlist(struct tw_cache_loading *loading, struct tw_cache_loading **loadings,
		    struct shared_state *shared)
{
	while (*loadings != loading)
		loadings = &(*loadings)->next;
	*loadings = loading->next;
	loading->is_queued = false;
	pthread_mutex_lock(&shared->waits_lock);
	loading->is_over = true;
	pthread_mutex_unlock(&shared->waits_lock);
	pthread_cond_broadcast(&loading->ended);
}

const struct tw_cache_entry *loading_pin_entry(struct tw_cache_loading *loading)
{
	const struct tw_cache_entry *entry = loading->entry;

	/* acquire: others have had what they wanted of it; pairs with loading_let_go(). */
	if (atomic_load_explicit(&loading->references, memory_order_acquire) == 1)
		loading->entry = NULL;
	else if (entry)
		(void)tw_cache_entry_pin(entry);
	return entry;
}

void loading_let_go(struct tw_cache_loading *loading)
{
	/* acq_rel: all others are done with it before the last one frees it; pairs with itself. */
	if (!loading ||
	    atomic_fetch_sub_explicit(&loading->references, 1, memory_order_acq_rel) > 1)
		return;
	tw_cache_entry_release(loading->entry);
	pthread_cond_destroy(&loading->ended);
	pthread_mutex_destroy(&loading->lock);
	free(loading);
}

bool loading_may_wait(const struct tw_cache_loading *loading, struct shared_state *shared,
		      struct reader *reader)
{
	const struct tw_cache_loading *next = loading;
	bool may_wait;

	pthread_mutex_lock(&shared->waits_lock);
	while (next && !next->is_over && next->loader != reader)
		next = next->loader ? next->loader->waits_for : NULL;
	may_wait = !next || next->is_over;
	if (may_wait)
		reader->waits_for = loading;
	pthread_mutex_unlock(&shared->waits_lock);
	return may_wait;
}

enum tw_status loading_wait(struct tw_cache_loading *loading, struct shared_state *shared,
			    struct reader *reader, pthread_mutex_t *lock, tw_duration until)
{
	bool has_time = until > 0;

	while (!loading->is_over && has_time && !shared_is_closed(shared))
		has_time = condition_wait(&loading->ended, lock, until);
	pthread_mutex_lock(&shared->waits_lock);
	reader->waits_for = NULL;
	pthread_mutex_unlock(&shared->waits_lock);
	if (loading->is_over)
		return TW_OK;
	return shared_is_closed(shared) ? TW_CLOSED : TW_TIMED_OUT;
}
