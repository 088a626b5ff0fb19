/* SPDX-License-Identifier: MIT */
/*
 * A load lives until all have let go of it, and holds a pin on the entry that it brought. It may
 * outlive the cache, with a loader that keeps it.
 *
 * The loads of a shard that others may join stand in slots by their hashes, by open addressing with
 * linear probing: a look touches no load but the one that it seeks. What was set or deleted loses
 * its load's slot at once, so a source that hangs holds up nobody who takes the key after that.
 *
 * Invariants: the slots have one load of a key at most, and a free slot. A load is over if and only
 * if it has left the list; then its status and entry stay as they are. A load has a slot if and
 * only if it is in the list and its clears are the shard's.
 */
#include "loading.h"

#include <stdlib.h>

#include "base/key.h"
#include "base/thread.h"

/* ---- Slots ---- */

static void loadings_use_few(struct loadings *loadings)
{
	memset(loadings->few, 0, sizeof(loadings->few));
	loadings->slots = loadings->few;
	loadings->mask = sizeof(loadings->few) / sizeof(loadings->few[0]) - 1;
	loadings->current = 0;
}

static void slots_free(const struct loadings *loadings, struct loading_slot *slots)
{
	if (slots != loadings->few)
		free(slots);
}

void loadings_init(struct loadings *loadings)
{
	loadings->clears = 0;
	list_init(&loadings->all);
	loadings_use_few(loadings);
}

void loadings_close(struct loadings *loadings)
{
	slots_free(loadings, loadings->slots);
}

/* Returns the load's slot, or for NULL the free one where a load with that hash belongs. */
static size_t slot_of(const struct loadings *loadings, uint64_t hash,
		      const struct tw_cache_loading *loading)
{
	size_t place = hash & loadings->mask;

	while (loadings->slots[place].loading != loading)
		place = (place + 1) & loadings->mask;
	return place;
}

static void slot_fill(struct loadings *loadings, uint64_t hash, struct tw_cache_loading *loading)
{
	loadings->slots[slot_of(loadings, hash, NULL)] = (struct loading_slot){hash, loading};
}

/* Returns false if it is out of memory. */
static bool loadings_grow(struct loadings *loadings)
{
	enum { TIMES = 4 };
	struct loading_slot *before = loadings->slots;
	size_t count = loadings->mask + 1;

	loadings->slots = calloc(count * TIMES, sizeof(*before));
	if (!loadings->slots) {
		loadings->slots = before;
		return false;
	}
	loadings->mask = (uint32_t)(count * TIMES - 1);
	for (size_t i = 0; i < count; i++)
		if (before[i].loading)
			slot_fill(loadings, before[i].hash, before[i].loading);
	slots_free(loadings, before);
	return true;
}

/* Takes it out of its slot. Those behind it that it was in the way of come forward. */
static void slot_free(struct loadings *loadings, const struct tw_cache_loading *loading)
{
	struct loading_slot *slots = loadings->slots;
	size_t mask = loadings->mask;
	size_t free_place = slot_of(loadings, loading->hash, loading);

	for (size_t place = (free_place + 1) & mask; slots[place].loading;
	     place = (place + 1) & mask) {
		/* It may not come before the place where it belongs. */
		if (((place - slots[place].hash) & mask) < ((place - free_place) & mask))
			continue;
		slots[free_place] = slots[place];
		free_place = place;
	}
	slots[free_place].loading = NULL;
	loadings->current--;
	if (loadings->current == 0 && slots != loadings->few) {
		slots_free(loadings, slots);
		loadings_use_few(loadings);
	}
}

struct tw_cache_loading *loadings_find(const struct loadings *loadings, uint64_t hash,
				       const void *key, size_t key_size)
{
	size_t place = hash & loadings->mask;
	struct tw_cache_loading *loading;

	for (; (loading = loadings->slots[place].loading); place = (place + 1) & loadings->mask)
		if (loadings->slots[place].hash == hash && loading->key_size == key_size &&
		    keys_are_equal(loading->key, key, key_size))
			break;
	return loading;
}

/* ---- A shard's loads ---- */

void loadings_override(struct loadings *loadings, uint64_t hash, const void *key, size_t key_size)
{
	struct tw_cache_loading *loading = loadings_find(loadings, hash, key, key_size);

	if (!loading)
		return;
	slot_free(loadings, loading);
	loading->clears = UINT64_MAX;
}

void loadings_override_all(struct loadings *loadings)
{
	if (loadings->current == 0)
		return;
	loadings->clears++;
	slots_free(loadings, loadings->slots);
	loadings_use_few(loadings);
}

static void loading_wake(struct tw_cache_loading *loading) IS_NOT_FOLLOWED
{
	if (loading->awaited)
		turn_lock_broadcast(loading->awaited, &loading->ended);
}

void loadings_wake(struct loadings *loadings, struct list *waiters)
{
	for (struct list *link = loadings->all.next; link != &loadings->all; link = link->next) {
		struct tw_cache_loading *loading =
			list_entry(link, struct tw_cache_loading, of_shard);

		loading_wake(loading);
		while (loading_take_waiters(loading, TW_CLOSED, waiters)) {
		}
	}
}

/* ---- One load ---- */

struct tw_cache_loading *loading_new(struct tw_cache *cache, struct shard *shard,
				     struct reader *loader, uint64_t hash, const void *key,
				     size_t key_size, tw_duration now)
{
	/* glibc's calloc knows no cache of the thread's. */
	struct tw_cache_loading *loading = malloc(sizeof(*loading) + key_size);

	if (!loading)
		return NULL;
	memset(loading, 0, offsetof(struct tw_cache_loading, lock));
	loading->cache = cache;
	loading->shard = shard;
	loading->hash = hash;
	loading->key_size = (uint16_t)key_size;
	memcpy(loading->key, key, key_size);
	atomic_init(&loading->references, 1);
	list_init(&loading->waiters);
	loading->is_queued = !loader;
	loading->listed = now;
	loading->loader = loader;
	return loading;
}

bool loading_list(struct tw_cache_loading *loading, struct loadings *loadings)
{
	/* Three in four slots are used at most, or without memory for more all but one. */
	if (loadings->current + 1 > (loadings->mask + 1) / 4 * 3 && !loadings_grow(loadings) &&
	    loadings->current == loadings->mask)
		return false;
	slot_fill(loadings, loading->hash, loading);
	loadings->current++;
	loading->clears = loadings->clears;
	list_append(&loadings->all, &loading->of_shard);
	loadings->count++;
	loadings->queued += loading->is_queued;
	return true;
}

/* No thread begins it any more. */
static void loading_leave_queue(struct tw_cache_loading *loading, struct loadings *loadings)
{
	loadings->queued -= loading->is_queued;
	loading->is_queued = false;
}

void loading_claim(struct tw_cache_loading *loading, struct loadings *loadings,
		   struct reader *loader)
{
	loading_leave_queue(loading, loadings);
	loading->loader = loader;
}

void loading_unlist(struct tw_cache_loading *loading, struct loadings *loadings)
{
	if (loading_is_current(loading, loadings))
		slot_free(loadings, loading);
	list_remove(&loading->of_shard);
	loadings->count--;
	loading_leave_queue(loading, loadings);
	loading->is_over = true;
	loading_wake(loading);
}

void loading_add_waiter(struct tw_cache_loading *loading, struct waiter *waiter)
{
	list_append(&loading->waiters, &waiter->of_load);
}

bool loading_take_waiters(struct tw_cache_loading *loading, enum tw_status status,
			  struct list *waiters)
{
	enum { MOST = 64 };
	struct list *link;

	for (int i = 0; i < MOST && (link = list_take_first(&loading->waiters)); i++) {
		struct waiter *waiter = list_entry(link, struct waiter, of_load);

		waiter->status = status;
		waiter->entry = loading->entry ? tw_cache_entry_pin(loading->entry) : NULL;
		list_append(waiters, link);
	}
	return !list_is_empty(&loading->waiters);
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
	if (loading->awaited)
		pthread_cond_destroy(&loading->ended);
	if (loading->is_kept)
		pthread_mutex_destroy(&loading->lock);
	free(loading);
}

enum tw_status loading_wait(struct tw_cache_loading *loading, struct shared_state *shared,
			    struct turn_lock *lock, tw_duration until)
{
	bool has_time = true;

	if (!loading->awaited) {
		condition_init(&loading->ended);
		loading->awaited = lock;
	}
	while (!loading->is_over && has_time && !shared_is_closed(shared))
		has_time = turn_lock_wait_for(lock, &loading->ended, until);
	if (loading->is_over)
		return TW_OK;
	return shared_is_closed(shared) ? TW_CLOSED : TW_TIMED_OUT;
}
