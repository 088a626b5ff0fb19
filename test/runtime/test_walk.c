/* SPDX-License-Identifier: MIT */
/* A walk takes few steps where little is pending, and a step looks at a bounded number of buckets
 * and handles. test_walks.c tests the calls. */
#include "support/test.h"

#include "runtime/pending.h"

struct shore {
	struct pending pending; /* only its index is used */
	struct handle_table handles;
	struct timer_store store;
	struct timer_bin bin;
};

static struct shore *shore_open(void)
{
	struct shore *shore = calloc(1, sizeof(*shore));

	assert_non_null(shore);
	assert_true(timer_index_init(&shore->pending.index));
	assert_true(handle_table_init(&shore->handles));
	timer_store_init(&shore->store);
	return shore;
}

static void shore_close(struct shore *shore)
{
	timer_store_flush(&shore->store, &shore->bin);
	timer_index_destroy(&shore->pending.index);
	timer_store_destroy(&shore->store);
	handle_table_destroy(&shore->handles);
	free(shore);
}

TEST(once, walk_copies_128_timers_at_a_time_and_takes_25_KiB)
{
	struct shore *shore = shore_open();
	struct walk walk = {0};

	assert_true(walk_step(&walk, &shore->pending, &shore->handles));
	assert_int_equal(walk.room, 128);
	assert_in_range(walk.room * sizeof(*walk.timers) + walk.bytes + sizeof(walk), 0, 25 << 10);
	walk_destroy(&walk);
	shore_close(shore);
}

/* Every second bucket is empty, and these come together in the order of a walk. */
TEST(once, step_looks_at_no_more_than_some_empty_buckets)
{
	enum { TIMERS = 4096, LOOKS_MOST = TIMERS / 4 };
	static struct keyed_timer *timers[TIMERS];
	struct shore *shore = shore_open();
	struct walk walk = {0};
	size_t visits = 0;
	int empty_steps = 0;

	for (uint32_t i = 0; i < TIMERS; i++) {
		timers[i] = timer_new(&shore->store, &i, sizeof(i), 2 * i);
		assert_non_null(timers[i]);
		timers[i]->timer.epoch = shore->pending.epoch;
		timer_index_add(&shore->pending.index, timers[i]);
	}
	while (walk.position != WALK_END) {
		assert_true(walk_step(&walk, &shore->pending, &shore->handles));
		visits += walk.count;
		empty_steps += walk.count == 0;
	}
	walk_destroy(&walk);
	assert_int_equal(visits, TIMERS);
	assert_true(empty_steps >= TIMERS / 2 / LOOKS_MOST);
	for (uint32_t i = 0; i < TIMERS; i++) {
		timer_index_remove(&shore->pending.index, timers[i]);
		timer_free(&shore->store, &shore->bin, timers[i]);
	}
	shore_close(shore);
}

/* Makes `count` handles that are pending. */
static void shore_add_handles(struct shore *shore, struct alarm **handles, size_t count)
{
	uint64_t id;

	for (size_t i = 0; i < count; i++) {
		handles[i] = handle_new(&shore->handles, &id);
		assert_non_null(handles[i]);
		handles[i]->timer.class = TIMER_HANDLE;
		handles[i]->function = NULL;
		alarm_begin_life(handles[i], 0, false);
		timer_set_place(&handles[i]->timer, TIMER_IN_WHEEL);
		handles[i]->timer.epoch = shore->pending.epoch;
		handles[i]->timer.value = VALUE(i);
	}
}

/* Frees the handles from `first` to end - 1 and gives their memory back to the system. */
static void shore_forget_handles(struct shore *shore, struct alarm **handles, size_t first,
				 size_t end)
{
	for (size_t i = first; i < end; i++)
		handle_free(&shore->handles, &shore->bin.handles, handles[i]);
	slab_flush(&shore->handles.slab, &shore->bin.handles);
}

/* Walks, and returns the number of steps. `*visits` becomes the number of handles visited. */
static size_t shore_walk(struct shore *shore, size_t *visits)
{
	struct walk walk = {0};
	size_t steps = 0;

	*visits = 0;
	for (; walk.position != WALK_END; steps++) {
		assert_true(walk_step(&walk, &shore->pending, &shore->handles));
		for (size_t i = 0; i < walk.count; i++)
			*visits += walk.timers[i].key == NULL;
	}
	walk_destroy(&walk);
	return steps;
}

enum { HANDLES = 150000 }; /* several chunks of memory */

TEST(once, walk_takes_no_step_for_handles_that_are_gone_and_trimmed)
{
	static struct alarm *handles[HANDLES];
	struct shore *shore = shore_open();
	size_t visits;

	shore_add_handles(shore, handles, 1);
	assert_int_equal(shore_walk(shore, &visits), 1);
	assert_int_equal(visits, 1);
	shore_add_handles(shore, handles + 1, HANDLES - 1);
	assert_true(shore_walk(shore, &visits) > 100);
	assert_int_equal(visits, HANDLES);
	shore_forget_handles(shore, handles, 1, HANDLES - 1);
	assert_int_equal(shore_walk(shore, &visits), 1);
	assert_int_equal(visits, 2);
	shore_close(shore);
}

TEST(once, step_looks_at_no_more_than_some_handles_that_are_stale)
{
	enum { LOOKS_MOST = 2200 };
	static struct alarm *handles[HANDLES];
	struct shore *shore = shore_open();
	size_t visits;

	shore_add_handles(shore, handles, HANDLES);
	shore->pending.epoch++;
	assert_true(shore_walk(shore, &visits) > HANDLES / LOOKS_MOST);
	assert_int_equal(visits, 0);
	shore_close(shore);
}

TEST(once, handles_are_visited_while_another_thread_has_the_lock_of_their_memory)
{
	static struct alarm *handles[HANDLES];
	struct shore *shore = shore_open();
	size_t visits;

	shore_add_handles(shore, handles, HANDLES);
	shore_forget_handles(shore, handles, 1, HANDLES - 1);
	pthread_mutex_lock(&shore->handles.slab.lock);
	(void)shore_walk(shore, &visits);
	pthread_mutex_unlock(&shore->handles.slab.lock);
	assert_int_equal(visits, 2);
	shore_close(shore);
}
