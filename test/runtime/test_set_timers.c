/* SPDX-License-Identifier: MIT */
/* tw_set_timers does what single calls of tw_set_timer would, up to the first that fails. */
#include "support/test.h"

#include "support/ledger.h"
#include "support/recorder.h"
#include "support/seed.h"
#include "support/stats.h"
#include "support/wait.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ask.h"

#define ITEM(key, value, delay)                           \
	{                                                 \
		key, sizeof(key) - 1, VALUE(value), delay \
	}

/* Sets n items; the test fails unless `count` are accepted. */
#define assert_accepts(recorder, items, n, status, count)                                      \
	do {                                                                                   \
		size_t accepted_ = 7777;                                                       \
                                                                                               \
		assert_status(tw_set_timers((recorder)->wheel, items, n, &accepted_), status); \
		assert_int_equal(accepted_, count);                                            \
	} while (0)

enum { MANY = 1000 };

/* `count` items with the keys and values first, first + 1, and so on. */
struct numbered {
	int keys[MANY];
	struct tw_set items[MANY];
};

static const struct tw_set *number_items(struct numbered *numbered, int first, int count,
					 tw_duration delay)
{
	for (int i = 0; i < count; i++) {
		numbered->keys[i] = first + i;
		numbered->items[i] =
			(struct tw_set){&numbered->keys[i], sizeof(int), VALUE(first + i), delay};
	}
	return numbered->items;
}

static void timers_run_in_the_order_of_the_items(void **state)
{
	static const struct tw_set items[] = {
		ITEM("a", 1, INTERVAL * 5), ITEM("b", 2, INTERVAL * 5),
		ITEM("c", 3, INTERVAL * 3), ITEM("d", 4, INTERVAL * 50),
		ITEM("e", 5, INTERVAL * 5), ITEM("f", 6, INTERVAL * 50)};
	struct recorder *recorder = recorder_open(*state, 10);

	set_timer(recorder, "before", 7, INTERVAL * 5);
	assert_accepts(recorder, items, 6, TW_OK, 6);
	set_timer(recorder, "after", 8, INTERVAL * 5);
	advance(recorder, INTERVAL * 100);
	assert_order(recorder, 3, 7, 1, 2, 5, 8, 4, 6);
	recorder_close(recorder);
}

static void timers_are_set_as_one_by_one(void **state)
{
	static const struct tw_set items[] = {ITEM("nanosecond", 1, 1),
					      ITEM("nearly a tick", 2, INTERVAL - 1),
					      ITEM("a tick", 3, INTERVAL),
					      ITEM("more", 4, INTERVAL + 1),
					      ITEM("far", 5, INTERVAL * 1234 + 5),
					      ITEM("never", 6, TW_FOREVER)};
	struct recorder *recorder = recorder_open(*state, 10);

	advance(recorder, INTERVAL / 2);
	assert_accepts(recorder, items, 6, TW_OK, 6);
	advance(recorder, INTERVAL / 2);
	assert_int_equal(event_count(recorder), 0);
	pass_ticks(recorder, 1300);
	for (uintptr_t i = 1; i <= 3; i++)
		assert_executed_at(recorder, i, INTERVAL * 2);
	assert_executed_at(recorder, 4, INTERVAL * 2);
	assert_executed_at(recorder, 5, INTERVAL * 1235);
	assert_int_equal(event_of(recorder, 1).deadline, INTERVAL * 3 / 2);
	assert_int_equal(event_of(recorder, 1).lateness, INTERVAL / 2);
	assert_int_equal(event_of(recorder, 5).deadline, INTERVAL * 2469 / 2 + 5);
	assert_memory_equal(event_of(recorder, 2).key, "nearly a tick", 13);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	recorder_close(recorder);
}

static void existing_keys_are_replaced_also_by_a_later_item(void **state)
{
	static const struct tw_set items[] = {
		ITEM("a", 2, INTERVAL * 9), ITEM("b", 3, INTERVAL * 2), ITEM("a", 4, INTERVAL * 3),
		ITEM("c", 5, INTERVAL * 2), ITEM("a", 6, INTERVAL * 4)};
	struct recorder *recorder = recorder_open(*state, 10);

	set_timer(recorder, "a", 1, INTERVAL * 2);
	assert_accepts(recorder, items, 5, TW_OK, 5);
	pass_ticks(recorder, 20);
	assert_released(recorder, 1, TW_REPLACED);
	assert_released(recorder, 2, TW_REPLACED);
	assert_released(recorder, 4, TW_REPLACED);
	assert_executed_at(recorder, 3, INTERVAL * 2);
	assert_executed_at(recorder, 5, INTERVAL * 2);
	assert_executed_at(recorder, 6, INTERVAL * 4);
	assert_int_equal(event_count(recorder), 6);
	recorder_close(recorder);
}

static void commands_before_and_behind_keep_their_order(void **state)
{
	static const struct tw_set items[] = {
		ITEM("a", 2, INTERVAL * 9), ITEM("b", 3, INTERVAL * 9), ITEM("c", 4, INTERVAL * 9)};
	struct recorder *recorder = recorder_open(*state, 10);

	set_timer(recorder, "a", 1, INTERVAL * 9);
	remove_timer(recorder, "a");
	remove_timer(recorder, "b");
	assert_accepts(recorder, items, 3, TW_OK, 3);
	move_timer(recorder, "c", INTERVAL * 2);
	remove_timer(recorder, "b");
	pass_ticks(recorder, 20);
	assert_released(recorder, 1, TW_REMOVED);
	assert_executed_at(recorder, 2, INTERVAL * 9);
	assert_released(recorder, 3, TW_REMOVED);
	assert_executed_at(recorder, 4, INTERVAL * 2);
	recorder_close(recorder);
}

static void keys_and_items_are_copied(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	char keys[3][100];
	struct tw_set items[3];

	for (size_t i = 0; i < 3; i++) {
		memset(keys[i], 'a' + (int)i, sizeof(keys[i]));
		items[i] = (struct tw_set){keys[i], i == 0 ? 3 : 30 * i, VALUE(i), INTERVAL * 2};
	}
	assert_accepts(recorder, items, 3, TW_OK, 3);
	memset(keys, 'x', sizeof(keys));
	memset(items, 0, sizeof(items));
	pass_ticks(recorder, 2);
	for (uintptr_t i = 0; i < 3; i++) {
		assert_executed_at(recorder, i, INTERVAL * 2);
		assert_int_equal(event_of(recorder, i).key_size, i == 0 ? 3 : 30 * i);
		assert_int_equal(event_of(recorder, i).key[2], 'a' + i);
	}
	recorder_close(recorder);
}

/* These are around the largest key that fits in a cell, and the largest of the smallest timers. */
static void keys_of_sizes_at_the_borders_go_in(void **state)
{
	enum { FIRST = 20, LAST = 40, ITEMS = LAST - FIRST + 1 };
	struct recorder *recorder = recorder_open(*state, 10);
	char keys[ITEMS][LAST];
	struct tw_set items[ITEMS];

	for (size_t i = 0; i < ITEMS; i++) {
		memset(keys[i], 'a' + (int)i, LAST);
		items[i] = (struct tw_set){keys[i], FIRST + i, VALUE(FIRST + i), INTERVAL * 2};
	}
	assert_accepts(recorder, items, ITEMS, TW_OK, ITEMS);
	pass_ticks(recorder, 2);
	for (uintptr_t size = FIRST; size <= LAST; size++) {
		assert_executed_at(recorder, size, INTERVAL * 2);
		assert_int_equal(event_of(recorder, size).key_size, size);
		assert_memory_equal(event_of(recorder, size).key, keys[size - FIRST], FIRST);
	}
	recorder_close(recorder);
}

static void many_items_go_in_at_once(void **state)
{
	enum { ITEMS = 50000 };
	struct recorder *recorder = recorder_open(*state, 10);
	struct tw_set *items = calloc(ITEMS, sizeof(items[0]));
	uint32_t *keys = calloc(ITEMS, sizeof(keys[0]));

	for (uint32_t i = 0; i < ITEMS; i++) {
		keys[i] = i;
		items[i] = (struct tw_set){&keys[i], sizeof(keys[i]), VALUE(i),
					   INTERVAL * (1 + i % 7)};
	}
	assert_accepts(recorder, items, ITEMS, TW_OK, ITEMS);
	flush_wheel(recorder);
	assert_int_equal(tw_pending(recorder->wheel), ITEMS);
	pass_ticks(recorder, 7);
	assert_int_equal(event_count(recorder), ITEMS);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	free(items);
	free(keys);
	recorder_close(recorder);
}

static void no_items_are_fine_and_accept_nothing(void **state)
{
	static const struct tw_set items[] = {ITEM("a", 1, INTERVAL)};
	struct recorder *recorder = recorder_open(*state, 10);

	assert_accepts(recorder, items, 0, TW_OK, 0);
	assert_accepts(recorder, NULL, 0, TW_OK, 0);
	assert_status(tw_set_timers(recorder->wheel, items, 0, NULL), TW_OK);
	pass_ticks(recorder, 2);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void missing_wheel_or_items_are_invalid(void **state)
{
	static const struct tw_set items[] = {ITEM("a", 1, INTERVAL)};
	struct recorder *recorder = recorder_open(*state, 10);
	size_t accepted = 7777;

	assert_status(tw_set_timers(NULL, items, 1, &accepted), TW_INVALID);
	assert_int_equal(accepted, 0);
	assert_accepts(recorder, NULL, 1, TW_INVALID, 0);
	assert_status(tw_set_timers(recorder->wheel, NULL, 1, NULL), TW_INVALID);
	assert_status(tw_set_timers(NULL, NULL, 0, NULL), TW_INVALID);
	pass_ticks(recorder, 2);
	assert_int_equal(event_count(recorder), 0);
	recorder_close(recorder);
}

static void accepted_need_not_be_asked_for(void **state)
{
	static const struct tw_set items[] = {ITEM("a", 1, INTERVAL), ITEM("b", 2, 0)};
	struct recorder *recorder = recorder_open(*state, 10);

	assert_status(tw_set_timers(recorder->wheel, items, 1, NULL), TW_OK);
	assert_status(tw_set_timers(recorder->wheel, items + 1, 1, NULL), TW_INVALID);
	pass_ticks(recorder, 2);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_int_equal(event_count(recorder), 1);
	recorder_close(recorder);
}

/* Sets `bad` between good ones. */
static void assert_stops_at(struct recorder *recorder, struct tw_set bad)
{
	struct tw_set items[] = {ITEM("a", 1, INTERVAL), ITEM("b", 2, INTERVAL), bad,
				 ITEM("d", 4, INTERVAL)};
	size_t before = event_count(recorder);

	assert_accepts(recorder, items, 4, TW_INVALID, 2);
	pass_ticks(recorder, 2);
	assert_int_equal(event_count(recorder), before + 2);
	assert_accepts(recorder, items + 2, 2, TW_INVALID, 0);
	assert_accepts(recorder, items + 1, 2, TW_INVALID, 1);
	pass_ticks(recorder, 2);
	assert_int_equal(event_count(recorder), before + 3);
}

static void bad_item_stops_the_rest_and_leaves_those_before_it(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	char *long_key = calloc(1, TW_KEY_SIZE_MAX + 1);

	assert_stops_at(recorder, (struct tw_set){NULL, 1, VALUE(3), INTERVAL});
	assert_stops_at(recorder, (struct tw_set){NULL, 0, VALUE(3), INTERVAL});
	assert_stops_at(recorder, (struct tw_set){"c", 0, VALUE(3), INTERVAL});
	assert_stops_at(recorder,
			(struct tw_set){long_key, TW_KEY_SIZE_MAX + 1, VALUE(3), INTERVAL});
	assert_stops_at(recorder, (struct tw_set){"c", 1, VALUE(3), 0});
	assert_stops_at(recorder, (struct tw_set){"c", 1, VALUE(3), -1});
	assert_stops_at(recorder, (struct tw_set){"c", 1, VALUE(3), INT64_MIN});
	assert_int_equal(times_returned(recorder, 1), 7);
	assert_int_equal(times_returned(recorder, 2), 14);
	assert_not_returned(recorder, 3);
	assert_not_returned(recorder, 4);
	free(long_key);
	recorder_close(recorder);
}

static void longest_keys_go_in(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	char *long_key = calloc(1, TW_KEY_SIZE_MAX);
	struct tw_set items[] = {ITEM("a", 1, INTERVAL),
				 {long_key, TW_KEY_SIZE_MAX, VALUE(2), INTERVAL},
				 {long_key, TW_KEY_SIZE_MAX - 1, VALUE(3), INTERVAL},
				 ITEM("b", 4, INTERVAL)};

	assert_accepts(recorder, items, 4, TW_OK, 4);
	free(long_key);
	pass_ticks(recorder, 1);
	for (uintptr_t i = 1; i <= 4; i++)
		assert_executed_at(recorder, i, INTERVAL);
	assert_int_equal(event_of(recorder, 2).key_size, TW_KEY_SIZE_MAX);
	recorder_close(recorder);
}

static void stopped_wheel_accepts_nothing(void **state)
{
	static const struct tw_set items[] = {ITEM("a", 1, INTERVAL), ITEM("b", 2, INTERVAL)};
	struct recorder *recorder = recorder_open(*state, 10);

	assert_accepts(recorder, items, 1, TW_OK, 1);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	assert_accepts(recorder, items, 2, TW_CLOSED, 0);
	assert_accepts(recorder, NULL, 1, TW_CLOSED, 0);
	settle(recorder);
	assert_released(recorder, 1, TW_STOPPED);
	assert_int_equal(event_count(recorder), 1);
	recorder_close(recorder);
}

static struct recorder *open_with_queue_of_16(const struct variant *variant)
{
	return recorder_open_with(
		variant, 10,
		(struct tw_options){.queue_capacity = 16, .when_full = TW_WHEN_FULL_FAIL});
}

static void full_queue_stops_the_rest(void **state)
{
	static struct numbered numbered;
	struct recorder *recorder = open_with_queue_of_16(*state);
	const struct tw_set *items = number_items(&numbered, 1, 40, INTERVAL);

	assert_accepts(recorder, items, 40, TW_FULL, 16);
	assert_accepts(recorder, items + 16, 24, TW_FULL, 0);
	assert_int_equal(stats_of_wheel(recorder->wheel).refused, 2);
	flush_wheel(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 16);
	set_timer(recorder, "one", 41, INTERVAL);
	assert_accepts(recorder, items + 16, 24, TW_FULL, 15);
	pass_ticks(recorder, 1);
	for (uintptr_t i = 1; i <= 31; i++)
		assert_executed_at(recorder, i, INTERVAL);
	assert_executed_at(recorder, 41, INTERVAL);
	assert_int_equal(event_count(recorder), 32);
	recorder_close(recorder);
}

static void bad_item_counts_before_a_full_queue(void **state)
{
	static struct numbered numbered;
	struct recorder *recorder = open_with_queue_of_16(*state);

	number_items(&numbered, 1, 40, INTERVAL);
	numbered.items[20].delay = 0;
	assert_accepts(recorder, numbered.items, 40, TW_FULL, 16);
	numbered.items[5].delay = 0;
	flush_wheel(recorder);
	assert_accepts(recorder, numbered.items, 40, TW_INVALID, 5);
	pass_ticks(recorder, 1);
	assert_int_equal(event_count_of_kind(recorder, EVENT_EXECUTE), 16);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), 5);
	recorder_close(recorder);
}

/* The caller owns the wheel: it marks its owner as napping, and returns whether a batch ended
 * that. */
static bool batch_ends_a_nap(struct recorder *recorder, size_t count)
{
	static struct numbered numbered;
	const struct tw_set *items = number_items(&numbered, 1, (int)count, INTERVAL);
	atomic_int *state = &recorder->wheel->owner.event.state;
	bool is_awake;

	atomic_store(state, EVENT_COUNT_NAPPING);
	assert_accepts(recorder, items, count, TW_OK, count);
	is_awake = atomic_load(state) == EVENT_COUNT_AWAKE;
	atomic_store(state, EVENT_COUNT_AWAKE);
	flush_wheel(recorder);
	return is_awake;
}

/* One of the cells that it fills must begin a half of the ring. */
static void batch_ends_a_nap_where_it_reaches_half_of_the_queue(void **state)
{
	struct recorder *recorder = open_with_queue_of_16(*state);
	uint64_t position = 0;

	for (int turn = 0; turn < 20; turn++)
		for (size_t count = 1; count <= 16; count++) {
			bool reaches = (position + 7) / 8 * 8 < position + count;

			assert_int_equal(command_queue_tail(&recorder->wheel->owner.queue),
					 position);
			assert_int_equal(batch_ends_a_nap(recorder, count), reaches);
			position += count;
		}
	recorder_close(recorder);
}

static void batches_larger_than_the_queue_go_in_where_the_caller_may_wait(void **state)
{
	static const size_t capacities[] = {2, 8, 16, 64, 1000};
	static struct numbered numbered;
	const struct tw_set *items = number_items(&numbered, 1, MANY, INTERVAL * 2);

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		struct recorder *recorder = recorder_open_with(
			*state, 10, (struct tw_options){.queue_capacity = capacities[i]});

		assert_accepts(recorder, items, MANY, TW_OK, MANY);
		pass_ticks(recorder, 2);
		assert_int_equal(event_count(recorder), MANY);
		for (uintptr_t value = 1; value <= MANY; value += 111)
			assert_executed_at(recorder, value, INTERVAL * 2);
		recorder_close(recorder);
	}
}

struct from_task {
	const struct tw_set *items;
	size_t count;
	size_t accepted;
	enum tw_status status;
};

static void set_many_from_task(struct recorder *recorder, const struct tw_task *task)
{
	struct from_task *from_task = recorder->argument;

	if (task->value == VALUE(5000))
		from_task->status = tw_set_timers(recorder->wheel, from_task->items,
						  from_task->count, &from_task->accepted);
}

static void task_may_set_more_than_the_queue_holds(void **state)
{
	static struct numbered numbered;
	struct recorder *recorder =
		recorder_open_with(*state, 10, (struct tw_options){.queue_capacity = 8});
	struct from_task from_task = {number_items(&numbered, 1, MANY, INTERVAL), MANY, 0,
				      TW_INVALID};

	recorder->on_execute = set_many_from_task;
	recorder->argument = &from_task;
	set_timer(recorder, "any", 5000, INTERVAL);
	pass_ticks(recorder, 2);
	assert_status(from_task.status, TW_OK);
	assert_int_equal(from_task.accepted, MANY);
	assert_int_equal(event_count(recorder), MANY + 1);
	assert_executed_at(recorder, 1, INTERVAL * 2);
	assert_executed_at(recorder, MANY, INTERVAL * 2);
	recorder_close(recorder);
}

static void limit_of_pending_timers_stops_the_rest(void **state)
{
	static struct numbered numbered;
	struct recorder *recorder = recorder_open_with(
		*state, 10, (struct tw_options){.max_pending = 3, .when_full = TW_WHEN_FULL_FAIL});
	const struct tw_set *items = number_items(&numbered, 1, 9, INTERVAL);

	assert_accepts(recorder, items, 2, TW_OK, 2);
	assert_accepts(recorder, items + 2, 7, TW_FULL, 1);
	assert_accepts(recorder, items + 3, 6, TW_FULL, 0);
	pass_ticks(recorder, 1);
	for (uintptr_t i = 1; i <= 3; i++)
		assert_executed_at(recorder, i, INTERVAL);
	assert_accepts(recorder, items + 3, 6, TW_FULL, 3);
	pass_ticks(recorder, 1);
	assert_int_equal(event_count(recorder), 6);
	recorder_close(recorder);
}

static void existing_keys_meet_no_limit(void **state)
{
	static const struct tw_set items[] = {
		ITEM("a", 1, INTERVAL * 2), ITEM("b", 2, INTERVAL * 2), ITEM("a", 3, INTERVAL * 3),
		ITEM("b", 4, INTERVAL * 3), ITEM("c", 5, INTERVAL * 3), ITEM("a", 6, INTERVAL * 3)};
	struct recorder *recorder = recorder_open_with(
		*state, 10, (struct tw_options){.max_pending = 2, .when_full = TW_WHEN_FULL_FAIL});

	assert_accepts(recorder, items, 6, TW_FULL, 4);
	assert_accepts(recorder, items + 5, 1, TW_OK, 1);
	pass_ticks(recorder, 9);
	assert_released(recorder, 1, TW_REPLACED);
	assert_released(recorder, 2, TW_REPLACED);
	assert_released(recorder, 3, TW_REPLACED);
	assert_executed_at(recorder, 4, INTERVAL * 3);
	assert_executed_at(recorder, 6, INTERVAL * 3);
	assert_not_returned(recorder, 5);
	recorder_close(recorder);
}

static void full_wheel_refuses_the_rest_where_waiting_could_not_end(void **state)
{
	static struct numbered numbered;
	struct recorder *recorder =
		recorder_open_with(*state, 10, (struct tw_options){.max_pending = 3});

	assert_accepts(recorder, number_items(&numbered, 1, 9, INTERVAL), 9, TW_FULL, 3);
	pass_ticks(recorder, 1);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

/* A thread's batch may have to wait. */
struct setter {
	struct tw_wheel *wheel;
	const struct tw_set *items;
	size_t count;
	size_t accepted;
	enum tw_status status;
	atomic_bool ended;
	pthread_t thread;
};

static void *set_all(void *argument)
{
	struct setter *setter = argument;

	setter->status =
		tw_set_timers(setter->wheel, setter->items, setter->count, &setter->accepted);
	atomic_store(&setter->ended, true);
	return NULL;
}

static void setter_start(struct setter *setter, struct recorder *recorder,
			 const struct tw_set *items, size_t count)
{
	*setter = (struct setter){recorder->wheel, items, count, 7777, TW_INVALID, false, 0};
	assert_int_equal(pthread_create(&setter->thread, NULL, set_all, setter), 0);
}

/* A thread sets ten timers, numbered from 1, where three may be pending. */
static struct recorder *open_with_batch(const struct variant *variant, struct setter *setter)
{
	static struct numbered numbered;
	struct recorder *recorder =
		recorder_open_with(variant, 10, (struct tw_options){.max_pending = 3});

	setter_start(setter, recorder, number_items(&numbered, 1, 10, INTERVAL), 10);
	return recorder;
}

static void batch_waits_for_places_and_goes_in_as_timers_leave(void **state)
{
	struct setter setter;
	struct recorder *recorder = open_with_batch(*state, &setter);

	WAIT_UNTIL((pass_ticks(recorder, 1), event_count(recorder) == 10));
	pthread_join(setter.thread, NULL);
	assert_status(setter.status, TW_OK);
	assert_int_equal(setter.accepted, 10);
	for (uintptr_t i = 1; i <= 10; i++)
		assert_int_equal(times_returned(recorder, i), 1);
	recorder_close(recorder);
}

static void batch_that_waits_is_sent_home_by_stop_with_its_count(void **state)
{
	struct setter setter;
	struct recorder *recorder = open_with_batch(*state, &setter);

	WAIT_UNTIL((tw_flush(recorder->wheel), tw_pending(recorder->wheel) == 3));
	wait_for(5 * TW_MILLISECOND);
	assert_false(atomic_load(&setter.ended));
	assert_status(tw_stop(recorder->wheel), TW_OK);
	pthread_join(setter.thread, NULL);
	assert_status(setter.status, TW_CLOSED);
	assert_int_equal(setter.accepted, 3);
	settle(recorder);
	for (uintptr_t i = 1; i <= 3; i++)
		assert_released(recorder, i, TW_STOPPED);
	assert_int_equal(event_count(recorder), 3);
	recorder_close(recorder);
}

enum { KEYS = 40, BATCH = 50, ROUNDS = TEST_SHARE_OF(2000) };

/* Two wheels get the same commands: the first in batches, the second one by one. */
struct twins {
	struct recorder *batched;
	struct recorder *single;
	struct random random;
	uintptr_t values;
	size_t compared;
};

/* Keys 0 to 9 are long ones. */
static size_t random_item(struct twins *twins, struct tw_set *item, char key[64])
{
	uint64_t number = random_below(&twins->random, KEYS);

	snprintf(key, 64, number < 10 ? "a key too long for a cell of the queue %d" : "%d",
		 (int)number);
	*item = (struct tw_set){key, strlen(key), VALUE(++twins->values),
				random_between(&twins->random, 1, 90 * INTERVAL)};
	if (random_once_in(&twins->random, 100))
		item->delay = -item->delay;
	return item->key_size;
}

/* Returns how many a loop of tw_set_timer accepts. */
static size_t set_one_by_one(struct tw_wheel *wheel, const struct tw_set *items, size_t count,
			     enum tw_status *status)
{
	size_t accepted = 0;

	*status = TW_OK;
	while (accepted < count) {
		const struct tw_set *item = &items[accepted];

		*status = tw_set_timer(wheel, item->key, item->key_size, item->value, item->delay);
		if (*status != TW_OK)
			break;
		accepted++;
	}
	return accepted;
}

static void set_twice(struct twins *twins)
{
	static char keys[BATCH][64];
	struct tw_set items[BATCH];
	size_t count = (size_t)random_between(&twins->random, 1, BATCH);
	enum tw_status status;
	size_t accepted;

	for (size_t i = 0; i < count; i++)
		random_item(twins, &items[i], keys[i]);
	accepted = set_one_by_one(twins->single->wheel, items, count, &status);
	assert_accepts(twins->batched, items, count, status, accepted);
}

static void move_or_remove_twice(struct twins *twins)
{
	char key[64];
	struct tw_set item;

	random_item(twins, &item, key);
	if (item.delay > 0 && random_once_in(&twins->random, 2)) {
		move_timer(twins->batched, key, item.delay);
		move_timer(twins->single, key, item.delay);
	} else {
		remove_timer(twins->batched, key);
		remove_timer(twins->single, key);
	}
}

static void compare(struct twins *twins)
{
	size_t count = event_count(twins->single);

	assert_int_equal(event_count(twins->batched), count);
	for (; twins->compared < count; twins->compared++) {
		struct event batched = event_at(twins->batched, twins->compared);
		struct event single = event_at(twins->single, twins->compared);

		assert_ptr_equal(batched.value, single.value);
		assert_int_equal(batched.kind, single.kind);
		assert_int_equal(batched.reason, single.reason);
		assert_int_equal(batched.now, single.now);
		assert_int_equal(batched.deadline, single.deadline);
		assert_int_equal(batched.key_size, single.key_size);
		assert_memory_equal(batched.key, single.key, sizeof(single.key));
	}
}

static void assert_batches_do_what_single_sets_do(const struct variant *variant, size_t max_pending)
{
	struct tw_options few = {.queue_capacity = 32, .max_pending = max_pending};
	struct twins twins = {.batched = recorder_open_with(variant, 10, few),
			      .single = recorder_open_with(variant, 10, few)};

	twins.random = random_from(seed_choose(), 1);
	for (int round = 0; round < ROUNDS / 2; round++) {
		tw_duration by = random_between(&twins.random, 0, 20 * INTERVAL);

		set_twice(&twins);
		move_or_remove_twice(&twins);
		if (random_once_in(&twins.random, 3))
			set_twice(&twins);
		advance(twins.batched, by);
		advance(twins.single, by);
		compare(&twins);
		assert_int_equal(tw_pending(twins.batched->wheel), tw_pending(twins.single->wheel));
	}
	recorder_close(twins.batched);
	recorder_close(twins.single);
}

/* Without a limit they are claimed together. */
static void random_batches_do_what_single_sets_do(void **state)
{
	assert_batches_do_what_single_sets_do(*state, 30);
	assert_batches_do_what_single_sets_do(*state, 0);
}

enum { CROWD = 4, CROWD_BATCHES = TEST_SHARE_OF(1000), CROWD_VALUES = CROWD_BATCHES * BATCH };

/* Threads set batches on keys that they share, until all have been given. */
struct crowd_setter {
	struct tw_wheel *wheel;
	struct ledger *ledger;
	int number;
	int wrong;
	pthread_t thread;
};

static void set_crowd_batch(struct crowd_setter *setter, struct random *random, size_t first)
{
	struct tw_set items[BATCH];
	uint64_t keys[BATCH];
	size_t accepted;
	enum tw_status status;

	for (size_t i = 0; i < BATCH; i++) {
		keys[i] = random_below(random, 300);
		items[i] = (struct tw_set){&keys[i], sizeof(keys[i]), VALUE(first + i),
					   random_between(random, 1, 5 * INTERVAL)};
		ledger_accept(setter->ledger, first + i);
	}
	status = tw_set_timers(setter->wheel, items, BATCH, &accepted);
	if ((status != TW_OK && status != TW_CLOSED) || (status == TW_OK) != (accepted == BATCH) ||
	    accepted > BATCH)
		setter->wrong++;
	for (size_t i = accepted; i < BATCH; i++)
		ledger_refuse(setter->ledger, first + i);
}

static void *set_in_crowd(void *argument)
{
	struct crowd_setter *setter = argument;
	struct random random = random_from(seed_choose(), 10 + (uint64_t)setter->number);

	for (size_t i = 0; i < CROWD_BATCHES; i++)
		set_crowd_batch(setter, &random,
				1 + (size_t)setter->number * CROWD_VALUES + i * BATCH);
	return NULL;
}

/* The clock moves meanwhile; with `stops` the wheel is stopped on the way. */
static void run_crowd(struct tw_wheel *wheel, struct ledger *ledger, bool stops)
{
	struct crowd_setter setters[CROWD];

	for (int i = 0; i < CROWD; i++) {
		setters[i] = (struct crowd_setter){wheel, ledger, i, 0, 0};
		pthread_create(&setters[i].thread, NULL, set_in_crowd, &setters[i]);
	}
	for (int tick = 0; tick < 100; tick++) {
		if (tick == 50)
			assert_status(tw_drain(wheel, ledger_drain, ledger), TW_OK);
		assert_status(tw_advance(wheel, INTERVAL), TW_OK);
		wait_for(TW_MILLISECOND / 10);
	}
	if (stops)
		assert_status(tw_stop(wheel), TW_OK);
	for (int i = 0; i < CROWD; i++) {
		pthread_join(setters[i].thread, NULL);
		assert_int_equal(setters[i].wrong, 0);
	}
}

static void batches_of_several_threads_give_each_value_back_once(void **state)
{
	const struct variant *variant = *state;

	for (int stops = 0; stops < 2; stops++) {
		struct tw_options options = {.layout = variant->layout,
					     .clock = TW_CLOCK_MANUAL,
					     .drive = variant->drive,
					     .workers = variant->workers,
					     .queue_capacity = 256,
					     .release = ledger_release};
		struct ledger *ledger = ledger_create(CROWD * CROWD_VALUES);
		struct tw_wheel *wheel;

		options.context = ledger;
		assert_status(tw_create(&wheel, INTERVAL, 64, ledger_execute, &options), TW_OK);
		run_crowd(wheel, ledger, stops);
		tw_destroy(wheel);
		ledger_assert_balanced(ledger);
		if (!stops)
			assert_int_equal(ledger_accepted(ledger), CROWD * CROWD_VALUES);
		ledger_destroy(ledger);
	}
}

static const struct CMUnitTest tests[] = {
	TEST_INLINE(timers_run_in_the_order_of_the_items),
	TEST_EVERYWHERE(timers_are_set_as_one_by_one),
	TEST_EVERYWHERE(existing_keys_are_replaced_also_by_a_later_item),
	TEST_EVERYWHERE(commands_before_and_behind_keep_their_order),
	TEST_EVERYWHERE(keys_and_items_are_copied),
	TEST_EVERYWHERE(keys_of_sizes_at_the_borders_go_in),
	TEST_EVERYWHERE(many_items_go_in_at_once),
	TEST_EVERYWHERE(no_items_are_fine_and_accept_nothing),
	TEST_EVERYWHERE(missing_wheel_or_items_are_invalid),
	TEST_EVERYWHERE(accepted_need_not_be_asked_for),
	TEST_EVERYWHERE(bad_item_stops_the_rest_and_leaves_those_before_it),
	TEST_EVERYWHERE(longest_keys_go_in),
	TEST_EVERYWHERE(stopped_wheel_accepts_nothing),
	TEST_BOTH(inline, full_queue_stops_the_rest),
	TEST_BOTH(workers, full_queue_stops_the_rest),
	TEST_BOTH(inline, bad_item_counts_before_a_full_queue),
	TEST_BOTH(inline, batch_ends_a_nap_where_it_reaches_half_of_the_queue),
	TEST_EVERYWHERE(batches_larger_than_the_queue_go_in_where_the_caller_may_wait),
	TEST_EVERYWHERE(task_may_set_more_than_the_queue_holds),
	TEST_EVERYWHERE(limit_of_pending_timers_stops_the_rest),
	TEST_EVERYWHERE(existing_keys_meet_no_limit),
	TEST_BOTH(inline, full_wheel_refuses_the_rest_where_waiting_could_not_end),
	TEST_BOTH(workers, full_wheel_refuses_the_rest_where_waiting_could_not_end),
	TEST_BOTH(owner, batch_waits_for_places_and_goes_in_as_timers_leave),
	TEST_BOTH(threads, batch_waits_for_places_and_goes_in_as_timers_leave),
	TEST_BOTH(owner, batch_that_waits_is_sent_home_by_stop_with_its_count),
	TEST_BOTH(threads, batch_that_waits_is_sent_home_by_stop_with_its_count),
	TEST_ALONE(random_batches_do_what_single_sets_do),
	TEST_SHARED(batches_of_several_threads_give_each_value_back_once),
};

TEST_PROGRAM(tests)
