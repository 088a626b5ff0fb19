/* SPDX-License-Identifier: MIT */
/*
 * Steps of a walk are tested alone, so small that hardly one ends where a bucket of a larger or a
 * smaller index does. test_walks.c tests the calls.
 */
#include "support/test.h"

#include "runtime/walk.h"

/* Rocks are keys that stay, and water comes and goes all at once: the index grows and shrinks by
 * several times, and visited keys share buckets with others. */
enum { ROCKS = TEST_SHARE_OF(300), WATER = 20 * ROCKS, KEYS = ROCKS + WATER };
enum { FEW = 2 }; /* timers a step has room for, unless a bucket has more */

struct shore {
	struct pending pending; /* only its index is used */
	struct handle_table handles;
	struct timer_store store;
	struct timer_bin bin;
	struct random random;
	bool is_high;
	struct keyed_timer *timers[KEYS];
	unsigned char visits[KEYS];
};

static void shore_add(struct shore *shore, uint32_t first, uint32_t end)
{
	for (uint32_t key = first; key < end; key++) {
		uint32_t hash = (uint32_t)random_next(&shore->random);

		shore->timers[key] = timer_new(&shore->store, &key, sizeof(key), hash);
		assert_non_null(shore->timers[key]);
		shore->timers[key]->timer.value = VALUE(key);
		shore->timers[key]->timer.deadline = key;
		shore->timers[key]->timer.epoch = shore->pending.epoch;
		timer_index_add(&shore->pending.index, shore->timers[key]);
	}
}

static void shore_remove(struct shore *shore, uint32_t first, uint32_t end)
{
	for (uint32_t key = first; key < end; key++) {
		timer_index_remove(&shore->pending.index, shore->timers[key]);
		timer_free(&shore->store, &shore->bin, shore->timers[key]);
	}
}

static struct shore *shore_open(void)
{
	struct shore *shore = calloc(1, sizeof(*shore));

	assert_non_null(shore);
	assert_true(timer_index_init(&shore->pending.index));
	assert_true(handle_table_init(&shore->handles));
	timer_store_init(&shore->store);
	shore->random = random_from(seed_choose(), 1);
	shore_add(shore, 0, ROCKS);
	return shore;
}

static void shore_close(struct shore *shore)
{
	shore_remove(shore, 0, shore->is_high ? KEYS : ROCKS);
	timer_store_flush(&shore->store, &shore->bin);
	timer_index_destroy(&shore->pending.index);
	timer_store_destroy(&shore->store);
	handle_table_destroy(&shore->handles);
	free(shore);
}

static void tide_turns(struct shore *shore)
{
	shore->is_high = !shore->is_high;
	if (shore->is_high)
		shore_add(shore, ROCKS, KEYS);
	else
		shore_remove(shore, ROCKS, KEYS);
}

static void shore_step(struct shore *shore, struct walk *walk)
{
	uint64_t before = walk->position;

	walk_step(walk, &shore->pending, &shore->handles);
	assert_true(walk->position > before || walk->room_needed > walk->room);
	for (size_t i = 0; i < walk->count; i++) {
		const struct tw_pending_timer *timer = &walk->timers[i];
		uint32_t key;

		assert_int_equal(timer->key_size, sizeof(key));
		memcpy(&key, timer->key, sizeof(key));
		assert_true(key < KEYS && timer->value == VALUE(key) && timer->deadline == key);
		/* Water that comes again has another hash here. */
		assert_true(++shore->visits[key] == 1 || key >= ROCKS);
	}
	if (walk->count > 0)
		walk->room = walk->room_needed = FEW;
	assert_true(walk_grow(walk));
}

TEST(once, keys_that_stay_are_visited_once_while_the_index_grows_and_shrinks)
{
	struct shore *shore = shore_open();
	struct walk walk;
	size_t steps = 0;

	assert_true(walk_init(&walk));
	walk.room = walk.room_needed = FEW;
	for (; walk.position != WALK_END; steps++) {
		shore_step(shore, &walk);
		tide_turns(shore);
	}
	walk_destroy(&walk);
	for (size_t key = 0; key < ROCKS; key++)
		assert_int_equal(shore->visits[key], 1);
	assert_true(steps > ROCKS / 4);
	shore_close(shore);
}

TEST(once, walk_of_nothing_ends_soon)
{
	struct shore *shore = shore_open();
	struct walk walk;

	shore_remove(shore, 0, ROCKS);
	assert_true(walk_init(&walk));
	walk_step(&walk, &shore->pending, &shore->handles);
	assert_int_equal(walk.count, 0);
	for (int steps = 0; walk.position != WALK_END; steps++) {
		walk_step(&walk, &shore->pending, &shore->handles);
		assert_int_equal(walk.count, 0);
		assert_true(steps < 10);
	}
	walk_destroy(&walk);
	shore_add(shore, 0, ROCKS);
	shore_close(shore);
}

/* Every second bucket is empty, and these come together in the order of a walk. */
TEST(once, step_looks_at_no_more_than_some_empty_buckets)
{
	enum { TIMERS = 4096, LOOKS_MOST = TIMERS / 4 };
	static struct keyed_timer *timers[TIMERS];
	struct shore *shore = shore_open();
	struct walk walk;
	size_t visits = 0;
	int empty_steps = 0;

	shore_remove(shore, 0, ROCKS);
	for (uint32_t i = 0; i < TIMERS; i++) {
		timers[i] = timer_new(&shore->store, &i, sizeof(i), 2 * i);
		assert_non_null(timers[i]);
		timers[i]->timer.epoch = shore->pending.epoch;
		timer_index_add(&shore->pending.index, timers[i]);
	}
	assert_true(walk_init(&walk));
	while (walk.position != WALK_END) {
		walk_step(&walk, &shore->pending, &shore->handles);
		assert_true(walk_grow(&walk));
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
	shore_add(shore, 0, ROCKS);
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
	struct walk walk;
	size_t steps = 0;

	*visits = 0;
	assert_true(walk_init(&walk));
	for (; walk.position != WALK_END; steps++) {
		walk_step(&walk, &shore->pending, &shore->handles);
		assert_true(walk_grow(&walk));
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

	shore_remove(shore, 0, ROCKS);
	shore_add_handles(shore, handles, 1);
	assert_int_equal(shore_walk(shore, &visits), 1);
	assert_int_equal(visits, 1);
	shore_add_handles(shore, handles + 1, HANDLES - 1);
	assert_true(shore_walk(shore, &visits) > 100);
	assert_int_equal(visits, HANDLES);
	shore_forget_handles(shore, handles, 1, HANDLES - 1);
	assert_int_equal(shore_walk(shore, &visits), 1);
	assert_int_equal(visits, 2);
	shore_add(shore, 0, ROCKS);
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
