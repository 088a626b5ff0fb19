/* SPDX-License-Identifier: MIT */
/* The generations of a handle's memory make no id come twice, also where they run out. */
#include "support/test.h"

#include "support/recorder.h"

#include "runtime/handle.h"

enum { INDEX_BITS = 28, MANY = 50000, WORN = MANY / 4 };

static const uint64_t last_generation = (UINT64_C(1) << 36) - 1;
static const uint64_t last_forgotten = (UINT64_C(1) << 32) - 1;

static uint64_t generation_of(const struct alarm *handle)
{
	/* relaxed: there is one thread. */
	return atomic_load_explicit(&handle->word, memory_order_relaxed) >> ALARM_GENERATION_SHIFT;
}

/* Sets the handle's generation. */
static void handle_wear(struct alarm *handle, uint64_t generation)
{
	/* relaxed: there is one thread. */
	atomic_store_explicit(&handle->word, alarm_closed_word(generation), memory_order_relaxed);
}

static void handle_give(struct handle_table *table, struct alarm *handle)
{
	struct slab_bin bin = {0};

	handle_free(table, &bin, handle);
	slab_flush(&table->slab, &bin);
}

/* Makes timers until one has that memory, and says whether one has. Its id goes to *id. */
static bool handle_comes_again(struct handle_table *table, const struct alarm *worn, uint64_t *id)
{
	for (int i = 0; i < MANY; i++) {
		struct alarm *handle = handle_new(table, id);

		assert_non_null(handle);
		if (handle == worn)
			return true;
		assert_true(*id >> INDEX_BITS == 1);
	}
	return false;
}

TEST(once, handle_is_used_up_to_its_last_generation_and_not_again)
{
	struct handle_table table;
	struct alarm *worn;
	uint64_t last;
	uint64_t id;

	assert_true(handle_table_init(&table));
	worn = handle_new(&table, &id);
	assert_non_null(worn);
	worn->timer.class = TIMER_HANDLE;
	handle_wear(worn, last_generation - 2);
	handle_give(&table, worn);
	assert_true(handle_comes_again(&table, worn, &last));
	assert_true(last >> INDEX_BITS == last_generation - 1);
	handle_give(&table, worn);
	assert_false(handle_comes_again(&table, worn, &id));
	assert_true(generation_of(worn) == last_generation);
	handle_table_destroy(&table);
}

struct world {
	struct handle_table table;
	struct alarm *handles[MANY];
	uint64_t ids[MANY];
};

static void world_fill(struct world *world)
{
	for (int i = 0; i < MANY; i++) {
		world->handles[i] = handle_new(&world->table, &world->ids[i]);
		assert_non_null(world->handles[i]);
		world->handles[i]->timer.class = TIMER_HANDLE;
	}
}

static void world_empty(struct world *world)
{
	struct slab_bin bin = {0};

	for (int i = 0; i < MANY; i++)
		handle_free(&world->table, &bin, world->handles[i]);
	slab_flush(&world->table.slab, &bin);
}

/* Uses up many, one of them nearly; returns the state of the memory then. */
static struct world *world_wear_one(uint64_t generation)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	assert_true(handle_table_init(&world->table));
	world_fill(world);
	handle_wear(world->handles[WORN], generation - 1);
	world_empty(world);
	return world;
}

static void world_destroy(struct world *world)
{
	handle_table_destroy(&world->table);
	free(world);
}

TEST(once, memory_of_a_handle_with_very_many_generations_is_kept)
{
	struct world *world = world_wear_one(last_forgotten + 1);
	const struct alarm *worn = world->handles[WORN];
	int forgotten = 0;
	int found = 0;

	assert_true(generation_of(worn) == last_forgotten + 1);
	for (int i = 0; i < MANY; i++)
		forgotten += generation_of(world->handles[i]) == 0;
	assert_in_range(forgotten, MANY / 2, MANY - 1);
	world_fill(world);
	for (int i = 0; i < MANY; i++) {
		found += world->handles[i] == worn;
		/* Some have not been used before. */
		if (world->handles[i] == worn)
			assert_int_equal(world->ids[i] >> INDEX_BITS, last_forgotten + 1);
		else
			assert_in_range(world->ids[i] >> INDEX_BITS, 1, 2);
	}
	assert_int_equal(found, 1);
	world_destroy(world);
}

TEST(once, memory_with_fewer_is_given_back_and_its_generations_go_on)
{
	struct world *world = world_wear_one(last_forgotten);
	const struct alarm *worn = world->handles[WORN];
	int found = 0;

	assert_true(generation_of(worn) == 0);
	world_fill(world);
	for (int i = 0; i < MANY; i++) {
		if (world->handles[i] == worn)
			found++;
		/* Some have not been used before. */
		if (chunk_of(world->handles[i]) == chunk_of(worn))
			assert_int_equal(world->ids[i] >> INDEX_BITS, last_forgotten);
		else
			assert_in_range(world->ids[i] >> INDEX_BITS, 1, 2);
	}
	assert_int_equal(found, 1);
	world_destroy(world);
}

TEST(once, ids_of_no_memory_find_nothing)
{
	enum { PAGE_HANDLES = CHUNK_PAGE / sizeof(struct alarm) };
	struct handle_table table;
	size_t found = 0;
	uint64_t id;

	assert_true(handle_table_init(&table));
	assert_non_null(handle_new(&table, &id));
	for (uint64_t number = 0; number < 2 * CHUNK_NUMBERS; number++) {
		const char *handle =
			(char *)handle_find(&table, UINT64_C(1) << INDEX_BITS | number);
		size_t offset = (uintptr_t)handle & (CHUNK_SIZE - 1);

		assert_null(handle_find(&table, number));
		if (!handle)
			continue;
		assert_true(offset >= CHUNK_FIRST * CHUNK_PAGE);
		assert_int_equal(offset % CHUNK_PAGE % sizeof(struct alarm), 0);
		found++;
	}
	assert_int_equal(found, PAGE_HANDLES * (CHUNK_PAGES - CHUNK_FIRST));
	handle_table_destroy(&table);
}

/* What the end of an alarm that did not begin leaves to do decides how that is counted. */
TEST(once, end_of_a_handle_says_whether_it_was_stopped_or_is_set)
{
	struct handle_table table;
	static struct alarm_table alarms;
	struct limit places = {0};
	struct slab_bin bin = {0};

	assert_true(handle_table_init(&table));
	for (int stopped = 0; stopped < 2; stopped++) {
		uint64_t id;
		struct alarm *alarm = handle_new(&table, &id);
		bool changed;
		void *value;
		run_fn *run;

		alarm->timer.class = TIMER_HANDLE;
		alarm_begin_life(alarm, 1, false);
		assert_int_equal(alarm_apply_change(alarm, &changed), ALARM_FILE);
		assert_true(alarm_claim(alarm, 1, false));
		assert_status(alarm_set(&alarms, alarm, handle_generation(id), 9, false, &changed),
			      TW_OK);
		assert_false(alarm_begin(alarm, 8, &run));
		if (stopped)
			assert_status(alarm_end_life(&alarms, alarm, handle_generation(id), &value,
						     &changed),
				      TW_OK);
		assert_int_equal(alarm_end(&alarms, alarm, ALARM_NOT_RUN, &places),
				 stopped ? ALARM_GONE : ALARM_BACK);
		handle_free(&table, &bin, alarm);
	}
	slab_flush(&table.slab, &bin);
	handle_table_destroy(&table);
}

/* The owner may read a deadline while it changes: the claim passes on no time that is to come. */
TEST(once, alarm_that_was_claimed_for_now_does_not_begin_before_a_later_deadline)
{
	static struct alarm_table alarms = {.is_here = true}; /* one inbox has all */
	struct alarm alarm = {0};
	bool changed;
	run_fn *run;

	alarm_init(&alarm, NULL, NULL);
	assert_status(alarm_set(&alarms, &alarm, 0, 5, true, &changed), TW_OK);
	assert_true(inbox_take_oldest(alarms.inboxes) == &alarm.change);
	assert_int_equal(alarm_apply_change(&alarm, &changed), ALARM_FILE);
	alarm.timer.deadline = 100;
	assert_true(alarm_claim(&alarm, 5, false));
	assert_status(alarm_set(&alarms, &alarm, 0, 50, false, &changed), TW_OK);
	assert_false(alarm_begin(&alarm, 5, &run));
	assert_int_equal(alarm_end(&alarms, &alarm, ALARM_NOT_RUN, NULL), ALARM_BACK);
}
