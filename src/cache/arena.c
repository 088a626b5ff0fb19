/* SPDX-License-Identifier: MIT */
/*
 * An arena has memory from the system in regions of 2 MiB at multiples of 2 MiB.
 *
 * Invariants:
 *   a leaf of a region is in at most one span
 *   a leaf in a span is resident; another is idle if it is resident
 *
 * Within a region spans are handed out as buddies: `longest` is a binary tree over the 512 leaves
 * of 4 KiB. Each node has the order of the largest free span below it: 0 if there is none, 1 for a
 * leaf. Node 1 is the root, and node n has the children 2n and 2n + 1. Below a node that is free or
 * taken as a whole, the nodes describe a whole free span. So a span of any number of leaves takes,
 * of the next power of two, the pieces that its number has as bits, largest first.
 *
 * The first leaf of a region holds its head, so an address leads to its arena. A span that no
 * region has room for is a mapping by itself, with such a leaf before it.
 *
 * Memory is resident from its first use on. What is given back stays resident for its next use, up
 * to a share of what is used. The rest goes back to the system, by the leaf, and so does a region
 * that is wholly free: at once where there is a limit, otherwise by maintenance. Regions have small
 * pages: the system would fill a large one for one byte. Large pages for regions that were full
 * brought nothing that could be measured, at a million and at ten million entries.
 *
 * All calls may run together, except arena_init() and arena_destroy(). There is one lock, which is
 * taken inside those of the shards and of the pool.
 */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

enum {
	LINE = 64,
	LEAVES = ARENA_REGION / ARENA_LEAF,
	ROOT_ORDER = 10,
	WORD = 64,
	WORDS = LEAVES / WORD
};

_Static_assert(1 << (ROOT_ORDER - 1) == LEAVES, "a leaf is of order 1");

/* A caller unmaps at most this many leaves at once, which takes about 25 us. */
enum { UNMAPPED_MOST = 128 };

/* At most a share of what is used, and some more bytes, may be idle. With a limit in bytes that is
 * little, and at rest least, because many caches may be at rest. */
enum { IDLE_SHARE = 32, IDLE_SHARE_TIGHT = 64 };
enum { IDLE_LEAST = 1 << 20, IDLE_LEAST_TIGHT = 1 << 18, IDLE_LEAST_AT_REST = 1 << 16 };

struct arena_region {
	struct arena *arena; /* constant */
	/* Under the lock. */
	struct list link; /* in the arena's `regions` */
	/* Bytes of a mapping; both are 0 in a region. */
	size_t mapped;
	size_t released; /* from its end on */
	unsigned used_count;
	unsigned idle_count;
	uint64_t idle[WORDS]; /* a bit for each leaf */
	uint8_t longest[2 * LEAVES];
};

_Static_assert(sizeof(struct arena_region) <= ARENA_LEAF, "the head fits into a leaf");

void arena_init(struct arena *arena)
{
	memset(arena, 0, sizeof(*arena));
	turn_lock_init(&arena->lock, &arena->sleep);
	list_init(&arena->regions);
}

void arena_set_tight(struct arena *arena, bool is_tight)
{
	turn_lock_take(&arena->lock);
	arena->is_tight = is_tight;
	turn_lock_let_go(&arena->lock);
}

static struct arena_region *region_of(const void *memory)
{
	return (struct arena_region *)((uintptr_t)memory & ~(uintptr_t)(ARENA_REGION - 1));
}

struct arena *arena_of(const void *memory)
{
	return region_of(memory)->arena;
}

/* Returns whether more is idle than may be. The caller holds the lock. */
static bool arena_idles(const struct arena *arena, bool at_rest)
{
	unsigned share = at_rest || arena->is_tight ? IDLE_SHARE_TIGHT : IDLE_SHARE;
	unsigned least = arena->is_tight ? IDLE_LEAST_TIGHT : IDLE_LEAST;

	return arena->idle > arena->used / share + (at_rest ? IDLE_LEAST_AT_REST : least);
}

/* ---- A region's tree ---- */

/* Sets each node above to what its children amount to: two that are whole are one. */
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

/* Returns the first leaf of a free span of that order, which the region must have. */
static unsigned region_seek(const struct arena_region *region, unsigned order)
{
	unsigned node = 1;

	for (unsigned at = ROOT_ORDER; at > order; at--) {
		/* The tighter fit keeps large spans whole. */
		unsigned left = region->longest[2 * node];
		unsigned right = region->longest[2 * node + 1];

		node = 2 * node + (left < order || (right >= order && right < left));
	}
	return (node << (order - 1)) - LEAVES;
}

/* Returns the order of the least power of two that is not less than `leaves`. */
static unsigned order_of(unsigned leaves)
{
	return leaves == 1 ? 1 : 33 - (unsigned)__builtin_clz(leaves - 1);
}

/* Takes the pieces of a span, or gives them back. */
static void region_mark(struct arena_region *region, unsigned leaf, unsigned leaves, bool is_taken)
{
	while (leaves > 0) {
		unsigned order = 32 - (unsigned)__builtin_clz(leaves);
		unsigned node = (leaf + LEAVES) >> (order - 1);

		region->longest[node] = is_taken ? 0 : (uint8_t)order;
		region_sum_above(region, node, order);
		leaf += 1u << (order - 1);
		leaves -= 1u << (order - 1);
	}
}

/* ---- Regions ---- */

static bool region_is_idle(const struct arena_region *region, unsigned leaf)
{
	return region->idle[leaf / WORD] >> leaf % WORD & 1;
}

/* Marks leaves as idle or not. The caller holds the lock. */
static void region_set_idle(struct arena_region *region, unsigned leaf, unsigned leaves,
			    bool is_idle)
{
	unsigned before = region->idle_count;

	for (unsigned i = leaf; i < leaf + leaves; i++)
		if (region_is_idle(region, i) != is_idle) {
			region->idle[i / WORD] ^= (uint64_t)1 << i % WORD;
			region->idle_count += is_idle ? 1 : -1u;
		}
	region->arena->idle += ((uint64_t)region->idle_count - before) * ARENA_LEAF;
}

/* Counts a span's leaves as used. The caller holds the lock. */
static void region_use(struct arena_region *region, unsigned leaf, unsigned leaves)
{
	region_set_idle(region, leaf, leaves, false);
	region->used_count += leaves;
	region->arena->used += (uint64_t)leaves * ARENA_LEAF;
}

/* Gives the memory of idle leaves back to the system. The caller holds the lock. */
static void region_purge(struct arena_region *region, unsigned leaf, unsigned leaves)
{
	(void)pages_release((char *)region + (size_t)leaf * ARENA_LEAF,
			    (size_t)leaves * ARENA_LEAF);
	region_set_idle(region, leaf, leaves, false);
}

/* Purges up to `most` idle leaves. Returns how many. */
static unsigned region_trim(struct arena_region *region, unsigned most)
{
	unsigned leaf = 1;
	unsigned count = 0;

	while (region->idle_count > 0 && leaf < LEAVES && count < most) {
		unsigned end = leaf;

		while (end < LEAVES && count + end - leaf < most && region_is_idle(region, end))
			end++;
		if (end > leaf)
			region_purge(region, leaf, end - leaf);
		count += end - leaf;
		leaf = end + 1;
	}
	return count;
}

/* Maps a region. Returns NULL if the system has no memory. The caller holds the lock. */
static struct arena_region *region_new(struct arena *arena)
{
	struct arena_region *region = pages_map_aligned(ARENA_REGION, ARENA_REGION);
	unsigned order = ROOT_ORDER;

	if (!region)
		return NULL;
	pages_use_huge(region, ARENA_REGION, false);
	region->arena = arena;
	for (unsigned node = 1; node < 2 * LEAVES; node++) {
		if (node >> (ROOT_ORDER - order + 1))
			order--;
		region->longest[node] = (uint8_t)order;
	}
	/* The head takes the first leaf. */
	region_mark(region, 0, 1, true);
	region_use(region, 0, 1);
	arena->region_count++;
	list_append(arena->regions.next, &region->link);
	return region;
}

/* Returns whether the region may be unmapped now. The caller holds the lock. */
static bool region_is_free(const struct arena_region *region)
{
	return region->used_count == 1 && region->idle_count < UNMAPPED_MOST &&
	       region->arena->region_count > 1;
}

/* Unmaps a region whose spans are all back. The caller holds the lock. */
static void region_free(struct arena_region *region)
{
	struct arena *arena = region->arena;

	list_remove(&region->link);
	arena->region_count--;
	arena->used -= ARENA_LEAF;
	arena->idle -= (uint64_t)region->idle_count * ARENA_LEAF;
	pages_unmap_aligned(region, ARENA_REGION);
}

/* ---- Under the lock ---- */

/* Returns a region with a free span of that order, or NULL if there is no memory for one. */
static struct arena_region *arena_find(struct arena *arena, unsigned order)
{
	for (struct list *link = arena->regions.next; link != &arena->regions; link = link->next) {
		struct arena_region *region = list_entry(link, struct arena_region, link);

		if (region->longest[1] >= order)
			return region;
	}
	return region_new(arena);
}

static void *arena_take_leaves(struct arena *arena, unsigned leaves)
{
	struct arena_region *region = arena_find(arena, order_of(leaves));
	unsigned leaf;

	if (!region)
		return NULL;
	leaf = region_seek(region, order_of(leaves));
	region_mark(region, leaf, leaves, true);
	region_use(region, leaf, leaves);
	if (region->longest[1] == 0)
		list_remove(&region->link);
	return (char *)region + (size_t)leaf * ARENA_LEAF;
}

static void arena_give_leaves(struct arena *arena, void *memory, unsigned leaves)
{
	struct arena_region *region = region_of(memory);
	unsigned leaf = (unsigned)((uintptr_t)memory % ARENA_REGION / ARENA_LEAF);

	if (region->longest[1] == 0)
		list_append(arena->regions.next, &region->link);
	region_mark(region, leaf, leaves, false);
	region_set_idle(region, leaf, leaves, true);
	region->used_count -= leaves;
	arena->used -= (uint64_t)leaves * ARENA_LEAF;
	if (region_is_free(region))
		region_free(region);
	else if (arena->is_tight && arena_idles(arena, false))
		region_purge(region, leaf, leaves);
}

/* ---- Spans ---- */

static unsigned leaves_of(size_t size)
{
	return (unsigned)((size + ARENA_LEAF - 1) / ARENA_LEAF);
}

size_t arena_span_size(size_t size)
{
	if (size < ARENA_LEAF)
		return (size + LINE - 1) / LINE * LINE;
	return (leaves_of(size) + (size_t)(size > ARENA_SPAN_MOST)) * ARENA_LEAF;
}

static void arena_count(struct arena *arena, int64_t used)
{
	turn_lock_take(&arena->lock);
	arena->used += (uint64_t)used;
	turn_lock_let_go(&arena->lock);
}

/* Maps a large span, with a leaf before it for its head. */
static void *mapping_take(struct arena *arena, size_t size)
{
	struct arena_region *head = pages_map_aligned(ARENA_REGION, arena_span_size(size));

	if (!head)
		return NULL;
	pages_use_huge(head, arena_span_size(size), false);
	head->arena = arena;
	head->mapped = arena_span_size(size);
	arena_count(arena, (int64_t)head->mapped);
	return (char *)head + ARENA_LEAF;
}

bool arena_give_some(struct arena *arena, void *memory, size_t size)
{
	enum { STEP = 1 << 18 };
	struct arena_region *head = region_of(memory);
	bool is_rest;

	if (size <= ARENA_SPAN_MOST)
		return true;
	turn_lock_take(&arena->lock);
	is_rest = head->mapped - head->released <= 2 * STEP;
	if (!is_rest) {
		head->released += STEP;
		arena->used -= STEP;
		(void)pages_release((char *)head + head->mapped - head->released, STEP);
	}
	turn_lock_let_go(&arena->lock);
	return is_rest;
}

void *arena_take(struct arena *arena, size_t size)
{
	void *memory;

	if (size < ARENA_LEAF) {
		memory = aligned_alloc(LINE, arena_span_size(size));
		if (memory)
			arena_count(arena, (int64_t)arena_span_size(size));
	} else if (size > ARENA_SPAN_MOST) {
		memory = mapping_take(arena, size);
	} else {
		turn_lock_take(&arena->lock);
		memory = arena_take_leaves(arena, leaves_of(size));
		turn_lock_let_go(&arena->lock);
	}
	return memory;
}

void arena_give(struct arena *arena, void *memory, size_t size)
{
	if (size < ARENA_LEAF) {
		free(memory);
		arena_count(arena, -(int64_t)arena_span_size(size));
	} else if (size > ARENA_SPAN_MOST) {
		struct arena_region *head = region_of(memory);

		arena_count(arena, -(int64_t)(head->mapped - head->released));
		pages_unmap_aligned(head, head->mapped);
	} else {
		turn_lock_take(&arena->lock);
		arena_give_leaves(arena, memory, leaves_of(size));
		turn_lock_let_go(&arena->lock);
	}
}

/* ---- Upkeep ---- */

/* Does what region_trim() does with all regions in turn. The caller holds the lock. */
static unsigned arena_trim_some(struct arena *arena, unsigned most)
{
	unsigned count = 0;

	for (unsigned i = 0; i < arena->region_count && count < most; i++) {
		struct list *link = list_take_first(&arena->regions);
		struct arena_region *region;

		if (!link)
			break;
		list_append(&arena->regions, link);
		region = list_entry(link, struct arena_region, link);
		count += region_trim(region, most - count);
		if (region_is_free(region))
			region_free(region);
	}
	return count;
}

bool arena_trim(struct arena *arena, size_t most)
{
	size_t left = most / ARENA_LEAF;
	unsigned count = 1;
	bool is_at_rest;
	bool goes_on;

	turn_lock_take(&arena->lock);
	is_at_rest = arena->used == arena->used_before;
	arena->used_before = arena->used;
	while (left > 0 && count > 0 && arena_idles(arena, is_at_rest)) {
		count = arena_trim_some(arena,
					left < UNMAPPED_MOST ? (unsigned)left : UNMAPPED_MOST);
		left -= count;
		turn_lock_let_go(&arena->lock);
		turn_lock_give_way(&arena->lock);
		turn_lock_take(&arena->lock);
	}
	goes_on = left == 0 || (!is_at_rest && arena_idles(arena, true));
	turn_lock_let_go(&arena->lock);
	return goes_on;
}

void arena_destroy(struct arena *arena)
{
	struct list *link;

	while ((link = list_take_first(&arena->regions)))
		pages_unmap_aligned(list_entry(link, struct arena_region, link), ARENA_REGION);
	turn_lock_destroy(&arena->lock);
}
