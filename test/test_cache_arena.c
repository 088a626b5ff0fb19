/* SPDX-License-Identifier: MIT */
/* Spans of a cache's arena: none overlaps another, buddies become one again, memory goes back. */
#include "support/test.h"

#include "support/seed.h"

#include "cache/arena.h"

#include <stdint.h>
#include <string.h>

enum { SPANS = 300, STEPS = 20000 };

struct held_span {
	struct arena_span span;
	unsigned char mark;
};

static void take(struct arena *arena, struct held_span *held, size_t size, unsigned char mark)
{
	held->span = arena_take(arena, size);
	assert_non_null(held->span.memory);
	assert_true(held->span.size >= size);
	assert_int_equal((uintptr_t)held->span.memory % 64, 0);
	held->mark = mark;
	memset(held->span.memory, held->mark, held->span.size);
}

static void give(struct arena *arena, struct held_span *held)
{
	const unsigned char *bytes = held->span.memory;

	for (size_t i = 0; i < held->span.size; i += 61)
		assert_int_equal(bytes[i], held->mark);
	arena_give(arena, &held->span);
	held->span.memory = NULL;
}

static void spans_of_all_sizes_never_overlap(void **state)
{
	struct arena *arena = arena_create();
	struct held_span held[SPANS] = {0};
	struct random random = random_from(seed_choose(), 0);

	(void)state;
	for (int step = 0; step < STEPS / (TEST_HAS_SANITIZER ? 10 : 1); step++) {
		struct held_span *one = &held[random_below(&random, SPANS)];

		if (one->span.memory)
			give(arena, one);
		else
			take(arena, one,
			     (size_t)1 << random_below(&random,
						       random_once_in(&random, 50) ? 23 : 17),
			     (unsigned char)step);
	}
	for (int i = 0; i < SPANS; i++)
		if (held[i].span.memory)
			give(arena, &held[i]);
	arena_release(arena);
}

static void small_spans_that_came_back_make_room_for_a_large_one(void **state)
{
	enum { LEAVES = ARENA_SPAN_MOST / ARENA_SPAN_LEAST };
	struct arena *arena = arena_create();
	struct arena_span leaves[LEAVES];
	struct arena_span whole;

	(void)state;
	for (int i = 0; i < LEAVES; i++) {
		leaves[i] = arena_take(arena, ARENA_SPAN_LEAST);
		assert_non_null(leaves[i].memory);
		assert_ptr_equal(leaves[i].region, leaves[0].region);
	}
	for (int i = 0; i < LEAVES; i++)
		arena_give(arena, &leaves[i * 7 % LEAVES]);
	whole = arena_take(arena, ARENA_SPAN_MOST);
	assert_non_null(whole.memory);
	if (whole.region)
		assert_ptr_equal(whole.region, leaves[0].region);
	arena_give(arena, &whole);
	arena_release(arena);
}

static void arena_lives_until_its_last_owner_lets_go(void **state)
{
	struct arena *arena = arena_create();
	struct held_span held;

	(void)state;
	arena_acquire(arena);
	take(arena, &held, 65536, 7);
	arena_release(arena);
	give(arena, &held);
	arena_release(arena);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(spans_of_all_sizes_never_overlap),
	cmocka_unit_test(small_spans_that_came_back_make_room_for_a_large_one),
	cmocka_unit_test(arena_lives_until_its_last_owner_lets_go),
};

TEST_PROGRAM(tests)
