/* SPDX-License-Identifier: MIT */
/*
 * A lookup in a large cache misses the processor's cache of page addresses twice as well, for the
 * bucket and for the entry, and under a hypervisor that costs about as much as the memory itself.
 * So memory comes in regions of 2 MiB at multiples of 2 MiB, which the system is asked to back with
 * one large page each. All shards share them: a cache with few entries holds one region, which is
 * left in small pages, of which only those in use are resident.
 *
 * Within a region spans are handed out as buddies: `longest` is a binary tree over its 512 leaves
 * of 4 KiB, and tells for each node the order of the largest free span below it (0: none; a leaf
 * is of order 1). Node 1 is the root, and node n has the children 2n and 2n + 1.
 *
 * A region that is wholly free goes back to the system, but for the last one. Where there is no
 * region to be had, and for what is smaller or larger, the C library is asked.
 *
 * May run together: all but the last arena_release. One lock, inside those of the shards.
 */
#include "arena.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/list.h"
#include "base/sanitizer.h"

#define REGION_SIZE ((size_t)ARENA_SPAN_MOST)

/* The address sanitizer looks for leaks in memory that it knows. */
#define REGIONS_ARE_USED (!SANITIZER_ADDRESS)

enum { LINE = 64, LEAVES = ARENA_SPAN_MOST / ARENA_SPAN_LEAST, ROOT_ORDER = 10 };

_Static_assert(1 << (ROOT_ORDER - 1) == LEAVES, "a leaf is of order 1");

struct arena_region {
	unsigned char *memory; /* constant */
	/* Under the lock. */
	struct list link; /* of those with something free */
	uint8_t longest[2 * LEAVES];
};

struct arena {
	pthread_mutex_t lock;
	/* Under it. */
	unsigned owners;
	unsigned regions;
	struct list free_regions; /* with something free */
};

struct arena *arena_create(void)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return NULL;
	pthread_mutex_init(&arena->lock, NULL);
	list_init(&arena->free_regions);
	arena->owners = 1;
	return arena;
}

void arena_acquire(struct arena *arena)
{
	pthread_mutex_lock(&arena->lock);
	arena->owners++;
	pthread_mutex_unlock(&arena->lock);
}

/* ---- Regions ---- */

/* At a multiple of its size; NULL: the system has none. */
static unsigned char *region_map(void)
{
	unsigned char *memory = mmap(NULL, 2 * REGION_SIZE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (memory == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)memory & (REGION_SIZE - 1);
	if (before > 0)
		munmap(memory, before);
	memory += before;
	munmap(memory + REGION_SIZE, REGION_SIZE - before);
	return memory;
}

static struct arena_region *region_new(bool is_large_page)
{
	struct arena_region *region = malloc(sizeof(*region));
	unsigned order = ROOT_ORDER;

	if (!region)
		return NULL;
	region->memory = region_map();
	if (!region->memory) {
		free(region);
		return NULL;
	}
	/* One that refuses has small pages. */
	if (is_large_page)
		(void)madvise(region->memory, REGION_SIZE, MADV_HUGEPAGE);
	for (unsigned node = 1; node < 2 * LEAVES; node++) {
		if (node >> (ROOT_ORDER - order + 1))
			order--;
		region->longest[node] = (uint8_t)order;
	}
	return region;
}

static void region_free(struct arena_region *region)
{
	munmap(region->memory, REGION_SIZE);
	free(region);
}

/* What the children of each node above amount to: two that are whole are one. */
static void region_sum_above(struct arena_region *region, unsigned node, unsigned order)
{
	for (; node > 1; node /= 2, order++) {
		uint8_t one = region->longest[node];
		uint8_t other = region->longest[node ^ 1];

		if (one == order && other == order)
			one = (uint8_t)(order + 1);
		region->longest[node / 2] = one > other ? one : other;
	}
}

/* Of a region that has it. */
static void *region_take(struct arena_region *region, unsigned order)
{
	unsigned node = 1;

	for (unsigned at = ROOT_ORDER; at > order; at--) {
		/* The tighter fit keeps large spans whole. */
		unsigned left = region->longest[2 * node];
		unsigned right = region->longest[2 * node + 1];

		node = 2 * node + (left < order || (right >= order && right < left));
	}
	region->longest[node] = 0;
	region_sum_above(region, node, order);
	return region->memory + (((size_t)node << (order - 1)) - LEAVES) * ARENA_SPAN_LEAST;
}

static void region_give(struct arena_region *region, const void *memory, unsigned order)
{
	size_t leaf = (size_t)((const unsigned char *)memory - region->memory) / ARENA_SPAN_LEAST;
	unsigned node = (unsigned)(leaf + LEAVES) >> (order - 1);

	region->longest[node] = (uint8_t)order;
	region_sum_above(region, node, order);
}

/* ---- Under the lock ---- */

/* In front of the others. */
static void arena_list(struct arena *arena, struct arena_region *region)
{
	list_append(arena->free_regions.next, &region->link);
}

/* NULL: there is none to be had. */
static struct arena_region *arena_find(struct arena *arena, unsigned order)
{
	struct arena_region *region;

	for (struct list *link = arena->free_regions.next; link != &arena->free_regions;
	     link = link->next) {
		region = list_entry(link, struct arena_region, link);
		if (region->longest[1] >= order)
			return region;
	}
	region = region_new(arena->regions > 0);
	if (region) {
		arena->regions++;
		arena_list(arena, region);
	}
	return region;
}

/* ---- Spans ---- */

static void *library_take(size_t size)
{
	void *memory = aligned_alloc(size > REGION_SIZE ? REGION_SIZE : LINE, size);

	/* As for regions; one that refuses has small pages. */
	if (memory && size > REGION_SIZE)
		(void)madvise(memory, size, MADV_HUGEPAGE);
	return memory;
}

static unsigned order_of(size_t size)
{
	return (unsigned)__builtin_ctzll(size / ARENA_SPAN_LEAST) + 1;
}

struct arena_span arena_take(struct arena *arena, size_t size)
{
	struct arena_span span = {NULL, NULL, LINE};

	while (span.size < size)
		span.size *= 2;
	if (REGIONS_ARE_USED && span.size >= ARENA_SPAN_LEAST && span.size <= ARENA_SPAN_MOST) {
		pthread_mutex_lock(&arena->lock);
		span.region = arena_find(arena, order_of(span.size));
		if (span.region) {
			span.memory = region_take(span.region, order_of(span.size));
			if (span.region->longest[1] == 0)
				list_remove(&span.region->link);
		}
		pthread_mutex_unlock(&arena->lock);
	}
	if (!span.memory)
		span.memory = library_take(span.size);
	return span;
}

void arena_give(struct arena *arena, const struct arena_span *span)
{
	struct arena_region *region = span->region;
	bool is_free = false;

	if (!region) {
		free(span->memory);
		return;
	}
	pthread_mutex_lock(&arena->lock);
	if (region->longest[1] == 0)
		arena_list(arena, region);
	region_give(region, span->memory, order_of(span->size));
	if (region->longest[1] == ROOT_ORDER && arena->regions > 1) {
		list_remove(&region->link);
		arena->regions--;
		is_free = true;
	}
	pthread_mutex_unlock(&arena->lock);
	if (is_free)
		region_free(region);
}

void arena_release(struct arena *arena)
{
	struct list *link;
	unsigned owners;

	pthread_mutex_lock(&arena->lock);
	owners = --arena->owners;
	pthread_mutex_unlock(&arena->lock);
	if (owners > 0)
		return;
	while ((link = list_take_first(&arena->free_regions)))
		region_free(list_entry(link, struct arena_region, link));
	pthread_mutex_destroy(&arena->lock);
	free(arena);
}
