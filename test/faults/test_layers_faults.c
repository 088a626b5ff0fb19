/* SPDX-License-Identifier: MIT */
/*
 * Each allocation of a module fails once: the module reports it, or works without, and loses
 * nothing. Leaks are found by the address sanitizer's run. The library's allocations are
 * linked to come here first.
 */
#include "support/test.h"

#include "faults/faults.h"

#include "base/slab.h"
#include "wheel/timer_index.h"

TEST(once, slab_without_memory_gives_what_it_has_and_goes_on_when_there_is_more)
{
	enum { HELD = 20000 };
	static void *held[HELD];
	size_t count = 0;
	struct slab slab;
	struct slab_bin bin = {0};

	slab_init(&slab, 128, NULL);
	held[count++] = slab_take(&slab);
	assert_non_null(held[0]);
	fail_allocation(1, true);
	while ((held[count] = slab_take(&slab)))
		assert_in_range(++count, 1, HELD - 2);
	assert_null(slab_take(&slab));
	assert_true(end_faults());
	held[count] = slab_take(&slab);
	assert_non_null(held[count]);
	for (size_t i = 0; i <= count; i++)
		slab_give(&slab, &bin, held[i]);
	slab_flush(&slab, &bin);
	slab_destroy(&slab);
}

TEST(once, blocks_given_back_can_be_taken_without_memory)
{
	void *held[10];
	struct slab slab;
	struct slab_bin bin = {0};

	if (SANITIZER_ADDRESS)
		TEST_SKIP("the address sanitizer changes what is allocated");
	slab_init(&slab, 128, NULL);
	for (int i = 0; i < 10; i++)
		held[i] = slab_take(&slab);
	for (int i = 0; i < 10; i++)
		slab_give(&slab, &bin, held[i]);
	slab_flush(&slab, &bin);
	fail_allocation(1, true);
	for (int i = 0; i < 10; i++)
		assert_non_null(slab_take(&slab));
	end_faults();
	slab_destroy(&slab);
}

/* These are keys 0 … size - 1, whose timers are created while there is memory. */
struct keys {
	struct timer_index index;
	struct timer_store store;
	size_t size;
	size_t count;
	struct keyed_timer **timers;
};

static uint32_t hash_of(size_t number)
{
	return (uint32_t)((uint64_t)number * 0x9e3779b97f4a7c15u >> 32);
}

static void keys_open(struct keys *keys, size_t size)
{
	*keys = (struct keys){.size = size};
	timer_store_init(&keys->store);
	keys->timers = calloc(size, sizeof(struct keyed_timer *));
	assert_non_null(keys->timers);
	for (size_t i = 0; i < size; i++) {
		keys->timers[i] = timer_new(&keys->store, &i, sizeof(i), hash_of(i));
		assert_non_null(keys->timers[i]);
	}
	assert_true(timer_index_init(&keys->index));
}

static void keys_close(struct keys *keys)
{
	struct timer_bin bin = {0};

	for (size_t i = 0; i < keys->size; i++)
		timer_free(&keys->store, &bin, keys->timers[i]);
	timer_store_flush(&keys->store, &bin);
	timer_store_destroy(&keys->store);
	timer_index_destroy(&keys->index);
	free(keys->timers);
}

static void add_up_to(struct keys *keys, size_t count)
{
	while (keys->count < count)
		timer_index_add(&keys->index, keys->timers[keys->count++]);
}

static void remove_down_to(struct keys *keys, size_t count)
{
	while (keys->count > count)
		timer_index_remove(&keys->index, keys->timers[--keys->count]);
}

static void assert_none_is_lost(struct keys *keys)
{
	assert_int_equal(keys->index.count, keys->count);
	for (size_t i = 0; i < keys->size; i++) {
		struct keyed_timer *found =
			timer_index_find(&keys->index, &i, sizeof(i), hash_of(i));

		assert_ptr_equal(found, i < keys->count ? keys->timers[i] : NULL);
	}
}

/* Adds keys, the last ones without memory, and continues with it. */
static void grow_without_memory(size_t with_memory, size_t without)
{
	enum { MORE = 10000 };
	struct keys keys;
	uint32_t buckets;

	keys_open(&keys, without + MORE);
	add_up_to(&keys, with_memory);
	fail_allocation(1, true);
	add_up_to(&keys, without);
	assert_true(end_faults());
	buckets = keys.index.buckets;
	assert_true(buckets < without);
	assert_none_is_lost(&keys);
	fail_allocation(1, true);
	remove_down_to(&keys, without - 100);
	assert_none_is_lost(&keys);
	add_up_to(&keys, without);
	assert_true(end_faults());
	assert_none_is_lost(&keys);
	add_up_to(&keys, without + MORE);
	assert_true(keys.index.buckets > buckets + MORE / 2);
	assert_none_is_lost(&keys);
	keys_close(&keys);
}

TEST(once, index_without_memory_for_a_segment_refuses_nothing_and_grows_later)
{
	grow_without_memory(1000, 262144 + 10000);
	grow_without_memory(262144, 262144 + 1000);
}

TEST(once, index_without_memory_for_its_directory_refuses_nothing_and_grows_later)
{
	grow_without_memory(524288, 525000);
}

TEST(once, index_whose_growth_fails_now_and_then_loses_nothing)
{
	struct random random = random_from(seed_choose(), 1);
	struct keys keys;

	keys_open(&keys, 600000);
	while (keys.count < keys.size) {
		size_t count = keys.count + 1 + (size_t)random_below(&random, 3000);

		fail_allocation(random_between(&random, 1, 2), false);
		add_up_to(&keys, count < keys.size ? count : keys.size);
		end_faults();
	}
	assert_none_is_lost(&keys);
	/* One insertion a failure is allowed. */
	assert_true(keys.index.buckets > keys.size - 100);
	keys_close(&keys);
}
