/* SPDX-License-Identifier: MIT */
/* These tests allocate spans of a cache's arena: none overlap, buddies merge, memory is freed. */
#include "support/test.h"

#include "support/memory.h"

#include "cache/arena.h"

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

static void take_leaves(struct arena *arena, struct held_span *leaves, int count)
{
	for (int i = 0; i < count; i++)
		take(arena, &leaves[i], ARENA_LEAF, (unsigned char)i);
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

TEST(once, spans_of_all_sizes_never_overlap)
{
	struct arena arena;
	struct held_span held[SPANS] = {0};
	struct random random = random_from(seed_choose(), 0);

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
	(void)arena_trim(&arena, SIZE_MAX);
	assert_int_equal(arena.used, arena.region_count * (uint64_t)ARENA_LEAF);
	assert_true(arena.idle <= 2 << 20);
	arena_destroy(&arena);
}

TEST(once, small_spans_that_came_back_make_room_for_a_large_one)
{
	enum { LEAVES = ARENA_REGION / ARENA_LEAF - 1 };
	struct held_span leaves[LEAVES];
	struct held_span large;
	struct arena arena;

	arena_init(&arena);
	take_leaves(&arena, leaves, LEAVES);
	assert_int_equal(arena.region_count, 1);
	for (int i = 0; i < LEAVES; i++)
		give(&arena, &leaves[i * 5 % LEAVES]);
	take(&arena, &large, ARENA_SPAN_MOST, 1);
	assert_int_equal(arena.region_count, 1);
	give(&arena, &large);
	arena_destroy(&arena);
}

/* Every other leaf stays: no region is freed, but idle memory is released. */
TEST(once, leaves_that_came_back_are_not_resident)
{
	enum { LEAVES = 4 * (ARENA_REGION / ARENA_LEAF - 1) };
	static struct held_span leaves[LEAVES];
	struct arena arena;
	long before = resident_memory();

	arena_init(&arena);
	arena_set_tight(&arena, true);
	take_leaves(&arena, leaves, LEAVES);
	for (int i = 0; i < LEAVES; i += 2)
		give(&arena, &leaves[i]);
	(void)arena_trim(&arena, SIZE_MAX);
	assert_int_equal(arena.region_count, 4);
	assert_true(arena.idle < 600 << 10);
	if (!TEST_HAS_SANITIZER)
		assert_true(resident_memory() < before + (5L << 20));
	for (int i = 1; i < LEAVES; i += 2)
		give(&arena, &leaves[i]);
	assert_int_equal(arena.region_count, 1);
	arena_destroy(&arena);
}

/* ---- Threads ---- */

struct maintenance {
	struct arena *arena;
	atomic_bool is_over;
};

static void *keep_up(void *argument)
{
	struct maintenance *maintenance = argument;

	while (!atomic_load(&maintenance->is_over))
		(void)arena_trim(maintenance->arena, SIZE_MAX);
	return NULL;
}

/* Regions and mappings are filled, and freed while idle leaves are released to the system. */
TEST(once, spans_keep_their_bytes_while_idle_ones_go)
{
	enum { ROUNDS = TEST_HAS_SANITIZER ? 40 : 200, HELD = 64 };
	struct held_span held[HELD] = {0};
	struct random random = random_from(seed_choose(), 0);
	struct arena arena;
	struct maintenance maintenance = {.arena = &arena};
	pthread_t thread;

	arena_init(&arena);
	assert_int_equal(pthread_create(&thread, NULL, keep_up, &maintenance), 0);
	for (int round = 0; round < TEST_SHARE_OF(ROUNDS); round++) {
		for (int i = 0; i < HELD; i++)
			take(&arena, &held[i], (size_t)1 << (15 + random_below(&random, 7)),
			     (unsigned char)(round + i));
		for (int i = 0; i < HELD; i++) {
			struct held_span *one = &held[random_below(&random, HELD)];

			if (one->memory)
				give(&arena, one);
		}
		for (int i = 0; i < HELD; i++)
			if (held[i].memory)
				give(&arena, &held[i]);
	}
	atomic_store(&maintenance.is_over, true);
	pthread_join(thread, NULL);
	(void)arena_trim(&arena, SIZE_MAX);
	assert_int_equal(arena.used, arena.region_count * (uint64_t)ARENA_LEAF);
	assert_true(arena.idle <= 2 << 20);
	arena_destroy(&arena);
}

/* All of a mapping is idle except its beginning. */
TEST(once, large_span_comes_back_in_steps)
{
	enum { SIZE = 16 << 20, STEP = 1 << 18 };
	struct arena arena;
	struct held_span large;
	uint64_t used;
	int steps = 0;

	arena_init(&arena);
	take(&arena, &large, SIZE, 1);
	used = arena.used;
	while (!arena_give_some(&arena, large.memory, SIZE)) {
		assert_true(used - arena.used <= STEP);
		used = arena.used;
		steps++;
	}
	assert_true(steps >= SIZE / STEP - 2);
	arena_give(&arena, large.memory, SIZE);
	assert_int_equal(arena.used, 0);
	take(&arena, &large, ARENA_SPAN_MOST, 1);
	assert_true(arena_give_some(&arena, large.memory, ARENA_SPAN_MOST));
	give(&arena, &large);
	arena_destroy(&arena);
}
