/* SPDX-License-Identifier: MIT */
/* tw_move_timers and tw_remove_timers do what single calls would, up to the first that fails. */
#include "support/test.h"

#include "support/ledger.h"
#include "support/recorder.h"
#include "support/seed.h"
#include "support/stats.h"
#include "support/wait.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define SET(key, value, delay) {key, sizeof(key) - 1, VALUE(value), delay}
#define MOVE(key, delay) {key, sizeof(key) - 1, delay}
#define KEY(key) {key, sizeof(key) - 1}
/* clang-format on */

#define LONG_KEY "a key too long for a cell of the queue"

/* Makes a call with n items; the test fails unless `count` are accepted. */
#define assert_accepts(call, recorder, items, n, status, count)                       \
	do {                                                                          \
		size_t accepted_ = 7777;                                              \
                                                                                      \
		assert_status(call((recorder)->wheel, items, n, &accepted_), status); \
		assert_int_equal(accepted_, count);                                   \
	} while (0)
#define assert_sets(...) assert_accepts(tw_set_timers, __VA_ARGS__)
#define assert_moves(...) assert_accepts(tw_move_timers, __VA_ARGS__)
#define assert_removes(...) assert_accepts(tw_remove_timers, __VA_ARGS__)

enum { MANY = 1000 };

/* These are keys, and items that set, move and remove them; the values count from 1. */
struct numbered {
	uint32_t numbers[MANY];
	struct tw_set sets[MANY];
	struct tw_move moves[MANY];
	struct tw_key keys[MANY];
};

static struct numbered *number_items(tw_duration set_delay, tw_duration move_delay)
{
	static struct numbered numbered;

	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t *number = &numbered.numbers[i];

		*number = i;
		numbered.sets[i] =
			(struct tw_set){number, sizeof(*number), VALUE(i + 1), set_delay};
		numbered.moves[i] = (struct tw_move){number, sizeof(*number), move_delay};
		numbered.keys[i] = (struct tw_key){number, sizeof(*number)};
	}
	return &numbered;
}

static void timers_run_at_their_new_deadlines_in_the_order_of_the_moves(void **state)
{
	static const struct tw_move moves[] = {MOVE("d", INTERVAL * 3), MOVE("unknown", INTERVAL),
					       MOVE("b", INTERVAL * 3), MOVE("a", INTERVAL * 20),
					       MOVE("c", INTERVAL * 3)};
	struct recorder *recorder = recorder_open(*state, 10);

	set_letters_ms(recorder, 9, 9, 9, 9);
	assert_moves(recorder, moves, 5, TW_OK, 5);
	advance(recorder, INTERVAL * 30);
	assert_order(recorder, 4, 2, 3, 1);
	assert_int_equal(event_of(recorder, 1).deadline, INTERVAL * 20);
	assert_int_equal(event_of(recorder, 2).deadline, INTERVAL * 3);
	recorder_close(recorder);
}

static void timers_are_moved_as_one_by_one(void **state)
{
	static const struct tw_move moves[] = {MOVE("a", 1),
					       MOVE("b", INTERVAL - 1),
					       MOVE("c", INTERVAL),
					       MOVE("d", INTERVAL + 1),
					       MOVE("e", INTERVAL * 1234 + 5),
					       MOVE("f", TW_FOREVER),
					       MOVE("e", INTERVAL * 3)};
	struct recorder *recorder = recorder_open(*state, 10);

	set_letters_ms(recorder, 9, 9, 9, 9, 9, 9);
	advance(recorder, INTERVAL / 2);
	assert_moves(recorder, moves, 7, TW_OK, 7);
	settle(recorder);
	assert_executed_at(recorder, 1, INTERVAL / 2);
	assert_executed_at(recorder, 2, INTERVAL / 2);
	assert_int_equal(event_of(recorder, 1).deadline, INTERVAL / 2 + 1);
	assert_int_equal(event_of(recorder, 2).lateness, 0);
	assert_int_equal(event_count(recorder), 2);
	advance(recorder, INTERVAL / 2);
	pass_ticks(recorder, 1300);
	assert_executed_at(recorder, 3, INTERVAL * 2);
	assert_executed_at(recorder, 4, INTERVAL * 2);
	assert_executed_at(recorder, 5, INTERVAL * 4);
	assert_int_equal(event_of(recorder, 5).deadline, INTERVAL * 7 / 2);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	recorder_close(recorder);
}

static void removed_timers_are_released_in_the_order_of_the_keys(void **state)
{
	static const struct tw_key keys[] = {KEY("d"), KEY("unknown"), KEY("b"), KEY("d"),
					     KEY("c")};
	struct recorder *recorder = recorder_open(*state, 10);

	set_letters_ms(recorder, 9, 9, 9, 9);
	assert_removes(recorder, keys, 5, TW_OK, 5);
	advance(recorder, INTERVAL * 30);
	assert_order(recorder, 4, 2, 3, 1);
	for (uintptr_t value = 2; value <= 4; value++)
		assert_released(recorder, value, TW_REMOVED);
	assert_executed_at(recorder, 1, INTERVAL * 9);
	recorder_close(recorder);
}

static void batches_of_all_kinds_take_effect_in_their_order(void **state)
{
	static const struct tw_set sets[] = {SET("a", 1, INTERVAL * 9), SET("b", 2, INTERVAL * 9),
					     SET(LONG_KEY, 3, INTERVAL * 9)};
	static const struct tw_move moves[] = {MOVE("a", INTERVAL * 2), MOVE("b", INTERVAL * 2),
					       MOVE(LONG_KEY, INTERVAL * 2)};
	static const struct tw_key keys[] = {KEY("b"), KEY(LONG_KEY)};
	struct recorder *recorder = recorder_open(*state, 10);

	assert_moves(recorder, moves, 3, TW_OK, 3);
	assert_sets(recorder, sets, 3, TW_OK, 3);
	assert_moves(recorder, moves, 3, TW_OK, 3);
	assert_removes(recorder, keys, 2, TW_OK, 2);
	assert_sets(recorder, sets + 1, 1, TW_OK, 1);
	move_timer(recorder, "b", INTERVAL * 4);
	pass_ticks(recorder, 20);
	assert_executed_at(recorder, 1, INTERVAL * 2);
	assert_released(recorder, 3, TW_REMOVED);
	assert_int_equal(times_returned(recorder, 2), 2);
	assert_int_equal(event_at(recorder, event_count(recorder) - 1).now, INTERVAL * 4);
	recorder_close(recorder);
}

static void long_keys_stand_among_short_ones(void **state)
{
	static const char name[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	enum { LENGTHS = 36 };
	struct recorder *recorder = recorder_open(*state, 10);
	struct tw_set sets[LENGTHS];
	struct tw_move moves[LENGTHS];
	struct tw_key keys[LENGTHS];

	for (size_t i = 0; i < LENGTHS; i++) {
		/* The sizes are 1, 36, 2, 35 and so on. */
		size_t size = i % 2 ? LENGTHS - i / 2 : i / 2 + 1;

		sets[i] = (struct tw_set){name, size, VALUE(size), INTERVAL * 9};
		moves[i] = (struct tw_move){name, size, INTERVAL * (tw_duration)(1 + size)};
		keys[i] = (struct tw_key){name, size};
	}
	assert_sets(recorder, sets, LENGTHS, TW_OK, LENGTHS);
	assert_moves(recorder, moves, LENGTHS, TW_OK, LENGTHS);
	pass_ticks(recorder, 30);
	assert_removes(recorder, keys, LENGTHS, TW_OK, LENGTHS);
	settle(recorder);
	for (uintptr_t size = 1; size < 30; size++)
		assert_executed_at(recorder, size, INTERVAL * (tw_duration)(1 + size));
	for (uintptr_t size = 30; size <= LENGTHS; size++)
		assert_released(recorder, size, TW_REMOVED);
	recorder_close(recorder);
}

static void keys_are_copied(void **state)
{
	char names[2][64] = {"short", LONG_KEY};
	struct tw_move moves[2];
	struct recorder *recorder = recorder_open(*state, 10);

	set_timer(recorder, names[0], 1, INTERVAL * 9);
	set_timer(recorder, names[1], 2, INTERVAL * 9);
	for (size_t i = 0; i < 2; i++)
		moves[i] = (struct tw_move){names[i], strlen(names[i]), INTERVAL * 2};
	assert_moves(recorder, moves, 2, TW_OK, 2);
	memset(names, 'x', sizeof(names));
	memset(moves, 0, sizeof(moves));
	pass_ticks(recorder, 2);
	assert_executed_at(recorder, 1, INTERVAL * 2);
	assert_executed_at(recorder, 2, INTERVAL * 2);
	recorder_close(recorder);
}

static void no_items_are_fine(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	assert_moves(recorder, NULL, 0, TW_OK, 0);
	assert_removes(recorder, NULL, 0, TW_OK, 0);
	assert_status(tw_move_timers(recorder->wheel, NULL, 0, NULL), TW_OK);
	assert_status(tw_remove_timers(recorder->wheel, NULL, 0, NULL), TW_OK);
	recorder_close(recorder);
}

static void missing_wheel_or_items_are_invalid(void **state)
{
	static const struct tw_move moves[] = {MOVE("a", INTERVAL)};
	static const struct tw_key keys[] = {KEY("a")};
	struct recorder *recorder = recorder_open(*state, 10);
	struct recorder none = {.wheel = NULL};

	assert_moves(&none, moves, 1, TW_INVALID, 0);
	assert_removes(&none, keys, 1, TW_INVALID, 0);
	assert_moves(recorder, NULL, 1, TW_INVALID, 0);
	assert_removes(recorder, NULL, 1, TW_INVALID, 0);
	assert_status(tw_move_timers(recorder->wheel, NULL, 1, NULL), TW_INVALID);
	assert_status(tw_remove_timers(recorder->wheel, NULL, 1, NULL), TW_INVALID);
	recorder_close(recorder);
}

static void assert_moves_stop_at(struct recorder *recorder, struct tw_move bad)
{
	struct tw_move moves[] = {MOVE("a", INTERVAL * 2), MOVE("b", INTERVAL * 2), bad,
				  MOVE("d", INTERVAL * 2)};
	size_t before = event_count(recorder);

	set_letters_ms(recorder, 9, 9, 9, 9);
	assert_moves(recorder, moves, 4, TW_INVALID, 2);
	assert_moves(recorder, moves + 2, 2, TW_INVALID, 0);
	pass_ticks(recorder, 8);
	assert_int_equal(event_count(recorder), before + 2);
	assert_moves(recorder, moves + 3, 1, TW_OK, 1);
	pass_ticks(recorder, 1);
	assert_int_equal(event_count(recorder), before + 3);
	pass_ticks(recorder, 1);
	assert_int_equal(event_count(recorder), before + 4);
}

static void bad_move_stops_the_rest_and_leaves_those_before_it(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	char *long_key = calloc(1, TW_KEY_SIZE_MAX + 1);

	assert_moves_stop_at(recorder, (struct tw_move){NULL, 1, INTERVAL});
	assert_moves_stop_at(recorder, (struct tw_move){NULL, 0, INTERVAL});
	assert_moves_stop_at(recorder, (struct tw_move){"c", 0, INTERVAL});
	assert_moves_stop_at(recorder, (struct tw_move){long_key, TW_KEY_SIZE_MAX + 1, INTERVAL});
	assert_moves_stop_at(recorder, (struct tw_move){"c", 1, 0});
	assert_moves_stop_at(recorder, (struct tw_move){"c", 1, -1});
	assert_moves_stop_at(recorder, (struct tw_move){"c", 1, INT64_MIN});
	free(long_key);
	recorder_close(recorder);
}

static void assert_removes_stop_at(struct recorder *recorder, struct tw_key bad)
{
	struct tw_key keys[] = {KEY("a"), KEY("b"), bad, KEY("d")};
	size_t before = event_count_of_kind(recorder, EVENT_RELEASE);

	set_letters_ms(recorder, 2, 2, 2, 2);
	assert_removes(recorder, keys, 4, TW_INVALID, 2);
	assert_removes(recorder, keys + 2, 2, TW_INVALID, 0);
	pass_ticks(recorder, 1);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), before + 2);
	assert_removes(recorder, keys + 3, 1, TW_OK, 1);
	pass_ticks(recorder, 1);
	assert_int_equal(event_count_of_kind(recorder, EVENT_RELEASE), before + 3);
}

static void bad_key_stops_the_rest_and_leaves_those_before_it(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	char *long_key = calloc(1, TW_KEY_SIZE_MAX + 1);

	assert_removes_stop_at(recorder, (struct tw_key){NULL, 1});
	assert_removes_stop_at(recorder, (struct tw_key){NULL, 0});
	assert_removes_stop_at(recorder, (struct tw_key){"c", 0});
	assert_removes_stop_at(recorder, (struct tw_key){long_key, TW_KEY_SIZE_MAX + 1});
	assert_int_equal(event_count_of_kind(recorder, EVENT_EXECUTE), 4);
	free(long_key);
	recorder_close(recorder);
}

static void stopped_wheel_accepts_nothing(void **state)
{
	static const struct tw_move moves[] = {MOVE("a", 1), MOVE("b", 1)};
	static const struct tw_key keys[] = {KEY("a"), KEY("b")};
	struct recorder *recorder = recorder_open(*state, 10);

	set_letters_ms(recorder, 2, 2);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	assert_moves(recorder, moves, 2, TW_CLOSED, 0);
	assert_removes(recorder, keys, 2, TW_CLOSED, 0);
	assert_removes(recorder, NULL, 1, TW_CLOSED, 0);
	settle(recorder);
	assert_released(recorder, 1, TW_STOPPED);
	assert_released(recorder, 2, TW_STOPPED);
	recorder_close(recorder);
}

static struct recorder *open_with_queue_of_32(const struct variant *variant)
{
	return recorder_open_with(
		variant, 10,
		(struct tw_options){.queue_capacity = 32, .when_full = TW_WHEN_FULL_FAIL});
}

/* The last accepted ones go one by one: there is no room for a whole group. */
static void full_queue_stops_the_rest(void **state)
{
	struct numbered *numbered = number_items(INTERVAL * 9, INTERVAL * 2);
	struct recorder *recorder = open_with_queue_of_32(*state);

	assert_sets(recorder, numbered->sets, 30, TW_OK, 30);
	flush_wheel(recorder);
	numbered->moves[31].delay = 0;
	assert_moves(recorder, numbered->moves, 30, TW_OK, 30);
	assert_removes(recorder, numbered->keys, 30, TW_FULL, 2);
	assert_removes(recorder, numbered->keys, 30, TW_FULL, 0);
	flush_wheel(recorder);
	remove_timer(recorder, "any");
	assert_removes(recorder, numbered->keys + 2, 3, TW_OK, 3);
	assert_moves(recorder, numbered->moves + 5, 40, TW_INVALID, 26);
	assert_moves(recorder, numbered->moves + 5, 20, TW_FULL, 2);
	assert_int_equal(stats_of_wheel(recorder->wheel).refused, 3);
	pass_ticks(recorder, 2);
	for (uintptr_t value = 1; value <= 5; value++)
		assert_released(recorder, value, TW_REMOVED);
	for (uintptr_t value = 6; value <= 30; value++)
		assert_executed_at(recorder, value, INTERVAL * 2);
	recorder_close(recorder);
}

/* Moves and removes take none of its places. */
static void limit_of_pending_timers_does_not_concern_them(void **state)
{
	struct numbered *numbered = number_items(INTERVAL * 9, INTERVAL * 2);
	struct recorder *recorder = recorder_open_with(
		*state, 10, (struct tw_options){.max_pending = 3, .when_full = TW_WHEN_FULL_FAIL});

	assert_sets(recorder, numbered->sets, 9, TW_FULL, 3);
	assert_moves(recorder, numbered->moves, 9, TW_OK, 9);
	assert_moves(recorder, numbered->moves + 8, 1, TW_OK, 1);
	assert_removes(recorder, numbered->keys + 8, 1, TW_OK, 1);
	assert_removes(recorder, numbered->keys + 1, 9, TW_OK, 9);
	flush_wheel(recorder);
	assert_sets(recorder, numbered->sets + 4, 9, TW_FULL, 2);
	pass_ticks(recorder, 2);
	assert_executed_at(recorder, 1, INTERVAL * 2);
	assert_released(recorder, 2, TW_REMOVED);
	assert_released(recorder, 3, TW_REMOVED);
	recorder_close(recorder);
}

static void batches_larger_than_the_queue_go_in_where_the_caller_may_wait(void **state)
{
	static const size_t capacities[] = {2, 8, 16, 64, 1000};
	struct numbered *numbered = number_items(INTERVAL * 9, INTERVAL * 2);

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		struct recorder *recorder = recorder_open_with(
			*state, 10, (struct tw_options){.queue_capacity = capacities[i]});

		assert_sets(recorder, numbered->sets, MANY, TW_OK, MANY);
		assert_moves(recorder, numbered->moves, MANY, TW_OK, MANY);
		assert_removes(recorder, numbered->keys, MANY / 2, TW_OK, MANY / 2);
		pass_ticks(recorder, 2);
		assert_int_equal(event_count(recorder), MANY);
		for (uintptr_t value = 1; value <= MANY / 2; value += 111)
			assert_released(recorder, value, TW_REMOVED);
		for (uintptr_t value = MANY / 2 + 1; value <= MANY; value += 111)
			assert_executed_at(recorder, value, INTERVAL * 2);
		recorder_close(recorder);
	}
}

struct from_task {
	const struct numbered *numbered;
	size_t moved;
	size_t removed;
};

static void move_and_remove_from_task(struct recorder *recorder, const struct tw_task *task)
{
	struct from_task *from_task = recorder->argument;
	const struct numbered *numbered = from_task->numbered;

	if (task->value != VALUE(5000))
		return;
	(void)tw_move_timers(recorder->wheel, numbered->moves, MANY, &from_task->moved);
	(void)tw_remove_timers(recorder->wheel, numbered->keys, MANY / 2, &from_task->removed);
}

static void task_may_move_and_remove_more_than_the_queue_holds(void **state)
{
	struct from_task from_task = {number_items(INTERVAL * 9, INTERVAL * 2), 0, 0};
	struct recorder *recorder =
		recorder_open_with(*state, 10, (struct tw_options){.queue_capacity = 8});

	recorder->on_execute = move_and_remove_from_task;
	recorder->argument = &from_task;
	assert_sets(recorder, from_task.numbered->sets, MANY, TW_OK, MANY);
	set_timer(recorder, "any", 5000, INTERVAL);
	pass_ticks(recorder, 1);
	assert_int_equal(from_task.moved, MANY);
	assert_int_equal(from_task.removed, MANY / 2);
	pass_ticks(recorder, 2);
	assert_int_equal(event_count(recorder), MANY + 1);
	assert_released(recorder, 1, TW_REMOVED);
	assert_executed_at(recorder, MANY, INTERVAL * 3);
	recorder_close(recorder);
}

enum { THREADS = 3, ROUNDS = TEST_SHARE_OF(600), BATCH = 50, VALUES = ROUNDS * BATCH };

/* Threads set, move and remove in batches, on keys that they share. */
struct mover {
	struct tw_wheel *wheel;
	struct ledger *ledger;
	int number;
	int wrong;
	pthread_t thread;
};

static void give_three_batches(struct mover *mover, struct random *random, size_t first)
{
	uint64_t numbers[BATCH];
	struct tw_set sets[BATCH];
	struct tw_move moves[BATCH];
	struct tw_key keys[BATCH];
	size_t count = 0;

	for (size_t i = 0; i < BATCH; i++) {
		tw_duration delay = random_between(random, 1, 5 * INTERVAL);
		uint64_t *number = &numbers[i];

		*number = random_below(random, 300);
		sets[i] = (struct tw_set){number, sizeof(*number), VALUE(first + i), delay};
		moves[i] = (struct tw_move){number, sizeof(*number), delay + INTERVAL};
		keys[i] = (struct tw_key){number, sizeof(*number)};
		ledger_accept(mover->ledger, first + i);
	}
	mover->wrong += tw_set_timers(mover->wheel, sets, BATCH, &count) != TW_OK || count != BATCH;
	mover->wrong +=
		tw_move_timers(mover->wheel, moves, BATCH, &count) != TW_OK || count != BATCH;
	mover->wrong += tw_remove_timers(mover->wheel, keys, BATCH / 4, &count) != TW_OK ||
			count != BATCH / 4;
}

static void *move_in_crowd(void *argument)
{
	struct mover *mover = argument;
	struct random random = random_from(seed_choose(), 10 + (uint64_t)mover->number);

	for (size_t i = 0; i < ROUNDS; i++)
		give_three_batches(mover, &random, 1 + (size_t)mover->number * VALUES + i * BATCH);
	return NULL;
}

static void batches_of_several_threads_give_each_value_back_once(void **state)
{
	struct ledger *ledger = ledger_create((size_t)THREADS * VALUES);
	struct tw_options options =
		variant_options(*state, (struct tw_options){.queue_capacity = 256,
							    .context = ledger,
							    .release = ledger_release});
	struct mover movers[THREADS];
	struct tw_wheel *wheel;

	assert_status(tw_create(&wheel, INTERVAL, 64, ledger_execute, &options), TW_OK);
	for (int i = 0; i < THREADS; i++) {
		movers[i] = (struct mover){wheel, ledger, i, 0, 0};
		pthread_create(&movers[i].thread, NULL, move_in_crowd, &movers[i]);
	}
	for (int tick = 0; tick < 50; tick++) {
		assert_status(tw_advance(wheel, INTERVAL), TW_OK);
		wait_for(TW_MILLISECOND / 10);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(movers[i].thread, NULL);
		assert_int_equal(movers[i].wrong, 0);
	}
	tw_destroy(wheel);
	ledger_assert_balanced(ledger);
	ledger_destroy(ledger);
}

static const struct CMUnitTest tests[] = {
	TEST_INLINE(timers_run_at_their_new_deadlines_in_the_order_of_the_moves),
	TEST_EVERYWHERE(timers_are_moved_as_one_by_one),
	TEST_INLINE(removed_timers_are_released_in_the_order_of_the_keys),
	TEST_EVERYWHERE(batches_of_all_kinds_take_effect_in_their_order),
	TEST_EVERYWHERE(long_keys_stand_among_short_ones),
	TEST_EVERYWHERE(keys_are_copied),
	TEST_EVERYWHERE(no_items_are_fine),
	TEST_EVERYWHERE(missing_wheel_or_items_are_invalid),
	TEST_EVERYWHERE(bad_move_stops_the_rest_and_leaves_those_before_it),
	TEST_EVERYWHERE(bad_key_stops_the_rest_and_leaves_those_before_it),
	TEST_EVERYWHERE(stopped_wheel_accepts_nothing),
	TEST_BOTH(inline, full_queue_stops_the_rest),
	TEST_BOTH(workers, full_queue_stops_the_rest),
	TEST_EVERYWHERE(limit_of_pending_timers_does_not_concern_them),
	TEST_EVERYWHERE(batches_larger_than_the_queue_go_in_where_the_caller_may_wait),
	TEST_EVERYWHERE(task_may_move_and_remove_more_than_the_queue_holds),
	TEST_SHARED(batches_of_several_threads_give_each_value_back_once),
};

TEST_PROGRAM(tests)
