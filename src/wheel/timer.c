/* SPDX-License-Identifier: MIT */
/*
 * The timer store is one slab for each size class, and malloc for larger timers. A key of up to 24
 * bytes makes a timer of two cache lines, up to 88 bytes one of three, up to 920 bytes one of at
 * most sixteen. Slabs recycle these timers and give memory back to the system. Timers with longer
 * keys come from malloc.
 */
#include "timer.h"

#include <stdlib.h>

#include "base/key.h"

static const size_t class_sizes[TIMER_SIZE_CLASSES] = {128, 192, 256, 384, 512, 768, 1024};

_Static_assert(offsetof(struct keyed_timer, timer.link) == CACHE_LINE,
	       "a find and a move to later must not touch the second line");

_Static_assert(sizeof(struct keyed_timer) <= 2 * CACHE_LINE, "a small key takes no more lines");

void timer_store_init(struct timer_store *store)
{
	for (int i = 0; i < TIMER_SIZE_CLASSES; i++)
		slab_init(&store->slabs[i], class_sizes[i], NULL);
}

void timer_store_destroy(struct timer_store *store)
{
	for (int i = 0; i < TIMER_SIZE_CLASSES; i++)
		slab_destroy(&store->slabs[i]);
}

void timer_store_flush(struct timer_store *store, struct timer_bin *bin)
{
	for (int i = 0; i < TIMER_SIZE_CLASSES; i++)
		slab_flush(&store->slabs[i], &bin->bins[i]);
}

static uint8_t timer_size_class(size_t size)
{
	uint8_t size_class = 0;

	while (size_class < TIMER_SIZE_CLASSES && class_sizes[size_class] < size)
		size_class++;
	return size_class;
}

void timer_make(struct keyed_timer *timer, const void *key, size_t key_size, uint32_t hash)
{
	unsigned char *place = key_size <= TIMER_SMALL_KEY ? timer->small_key : timer->large_key;

	timer->timer.class = 0;
	timer->timer.is_for_now = false;
	timer->hh.key = place;
	timer->hh.keylen = (unsigned)key_size;
	timer->hh.hashv = hash;
	key_copy(place, key, key_size);
}

struct keyed_timer *timer_new(struct timer_store *store, const void *key, size_t key_size,
			      uint32_t hash)
{
	size_t size = sizeof(struct keyed_timer) + (key_size <= TIMER_SMALL_KEY ? 0 : key_size);
	uint8_t size_class = timer_size_class(size);
	struct keyed_timer *timer;

	if (size_class < TIMER_SIZE_CLASSES)
		timer = slab_take(&store->slabs[size_class]);
	else
		timer = malloc(size);
	if (!timer)
		return NULL;
	timer_make(timer, key, key_size, hash);
	timer->timer.class = size_class;
	return timer;
}

void timer_free(struct timer_store *store, struct timer_bin *bin, struct keyed_timer *timer)
{
	uint8_t size_class = timer->timer.class;

	if (size_class < TIMER_SIZE_CLASSES)
		slab_give(&store->slabs[size_class], &bin->bins[size_class], timer);
	else
		free(timer);
}

void *timer_take_memory(struct timer_store *store)
{
	return slab_take(&store->slabs[0]);
}

void timer_give_memory(struct timer_store *store, struct timer_bin *bin, void *memory)
{
	slab_give(&store->slabs[0], &bin->bins[0], memory);
}
