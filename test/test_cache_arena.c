/* SPDX-License-Identifier: MIT */
/* Spans of a cache's arena: none overlaps another, buddies become one again, memory goes back. */
#include "support/test.h"

#include "support/memory.h"
#include "support/seed.h"

#include "cache/arena.h"

#include <stdint.h>
#include <string.h>

enum { SPANS = 300, STEPS = 20000 };

struct held_span {
	unsigned char *memory;
	size_t size;
	unsigned char mark;
};

static void take(struct arena *arena, struct held_span *held, size_t size, unsigned char mark)
{
	held->memory = arena_take(arena, size);
	held->size = size;
	assert_non_null(held->memory);
	assert_true(arena_span_size(size) >= size);
	assert_int_equal((uintptr_t)held->memory % 64, 0);
	if (size >= ARENA_LEAF && size <= ARENA_SPAN_MOST && (size & (size - 1)) == 0)
		assert_int_equal((uintptr_t)held->memory % size, 0);
	if (size >= ARENA_LEAF)
		assert_ptr_equal(arena_of(held->memory), arena);
	held->mark = mark;
	memset(held->memory, held->mark, held->size);
}

static void give(struct arena *arena, struct held_span *held)
{
	for (size_t i = 0; i < held->size; i += 61)
		assert_int_equal(held->memory[i], held->mark);
	arena_give(arena, held->memory, held->size);
	held->memory = NULL;
}

static size_t random_size(struct random *random)
{
	size_t size = (size_t)1 << random_below(random, random_once_in(random, 50) ? 23 : 17);

	return random_once_in(random, 2) ? size : 1 + random_below(random, 2 * size);
}

static void spans_of_all_sizes_never_overlap(void **state)
{
	struct arena arena;
	struct held_span held[SPANS] = {0};
	struct random random = random_from(seed_choose(), 0);

	(void)state;
	arena_init(&arena);
	for (int step = 0; step < STEPS / (TEST_HAS_SANITIZER ? 10 : 1); step++) {
		struct held_span *one = &held[random_below(&random, SPANS)];

		if (one->memory)
			give(&arena, one);
		else
			take(&arena, one, random_size(&random), (unsigned char)step);
		if (random_once_in(&random, 200))
			arena_set_tight(&arena, random_once_in(&random, 2));
	}
	for (int i = 0; i < SPANS; i++)
		if (held[i].memory)
			give(&arena, &held[i]);
	assert_true(arena.used <= ARENA_LEAF);
	assert_true(arena.region_count <= 1);
	arena_destroy(&arena);
}

static void small_spans_that_came_back_make_room_for_a_large_one(void **state)
{
	enum { LEAVES = ARENA_REGION / ARENA_LEAF - 1 };
	struct held_span leaves[LEAVES];
	struct held_span large;
	struct arena arena;

	(void)state;
	arena_init(&arena);
	for (int i = 0; i < LEAVES; i++)
		take(&arena, &leaves[i], ARENA_LEAF, (unsigned char)i);
	assert_int_equal(arena.region_count, 1);
	for (int i = 0; i < LEAVES; i++)
		give(&arena, &leaves[i * 5 % LEAVES]);
	take(&arena, &large, ARENA_SPAN_MOST, 1);
	assert_int_equal(arena.region_count, 1);
	give(&arena, &large);
	arena_destroy(&arena);
}

/* Every other leaf stays: no region comes back, but what is idle does. */
static void leaves_that_came_back_are_not_resident(void **state)
{
	enum { LEAVES = 4 * (ARENA_REGION / ARENA_LEAF - 1) };
	static struct held_span leaves[LEAVES];
	struct arena arena;
	long before = resident_memory();

	(void)state;
	arena_init(&arena);
	arena_set_tight(&arena, true);
	for (int i = 0; i < LEAVES; i++)
		take(&arena, &leaves[i], ARENA_LEAF, (unsigned char)i);
	for (int i = 0; i < LEAVES; i += 2)
		give(&arena, &leaves[i]);
	while (arena_trim(&arena))
		continue;
	assert_int_equal(arena.region_count, 4);
	assert_true(arena.idle < 600 << 10);
	if (!TEST_HAS_SANITIZER)
		assert_true(resident_memory() < before + (5L << 20));
	for (int i = 1; i < LEAVES; i += 2)
		give(&arena, &leaves[i]);
	assert_int_equal(arena.region_count, 1);
	arena_destroy(&arena);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(spans_of_all_sizes_never_overlap),
	cmocka_unit_test(small_spans_that_came_back_make_room_for_a_large_one),
	cmocka_unit_test(leaves_that_came_back_are_not_resident),
};

TEST_PROGRAM(tests)
