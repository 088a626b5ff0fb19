/* SPDX-License-Identifier: MIT */
/*
 * These tests are for options.delay_from. Commands are made to wait in the queue by hand: the cell
 * before them is claimed and published late, and the manual clock moves meanwhile.
 */
#include "support/test.h"

#include "support/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ask.h"

#define LONG_KEY "a key too long for a cell of the queue"

static struct recorder *open_from(const struct variant *variant, enum tw_delay_from delay_from)
{
	return recorder_open_with(variant, 10, (struct tw_options){.delay_from = delay_from});
}

static struct recorder *open_from_applied(const struct variant *variant)
{
	return open_from(variant, TW_FROM_APPLIED);
}

/* No command is applied from hold_begin to hold_end. */
struct hold {
	struct command_cell *cell;
	uint64_t position;
};

static struct hold hold_begin(struct recorder *recorder)
{
	struct hold hold;

	flush_wheel(recorder);
	hold.cell = command_queue_claim(&recorder->wheel->owner.queue, &hold.position);
	assert_non_null(hold.cell);
	hold.cell->command = (struct command){.kind = COMMAND_REMOVE, .key_size = 1};
	return hold;
}

static void hold_end(struct recorder *recorder, const struct hold *hold, tw_duration now)
{
	clock_set_manual(&recorder->wheel->owner.clock, now);
	command_queue_publish(hold->cell, hold->position);
	settle(recorder);
}

static tw_duration deadline_of(struct recorder *recorder, uintptr_t value)
{
	return event_of(recorder, value).deadline;
}

static void unknown_value_is_invalid(void **state)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);

	options.delay_from = (enum tw_delay_from)2;
	assert_status(tw_create(&recorder->wheel, INTERVAL, 10, record_execute, &options),
		      TW_INVALID);
	assert_null(recorder->wheel);
	options.delay_from = TW_FROM_APPLIED;
	recorder_start(recorder, INTERVAL, 10, &options);
	recorder_close(recorder);
}

/* Sets and moves, with short and long keys; the commands wait for ten
 * intervals. */
static void give_while_held(struct recorder *recorder)
{
	struct hold hold;

	set_timer(recorder, "a", 11, INTERVAL * 50);
	set_timer(recorder, "b", 12, INTERVAL * 50);
	set_timer(recorder, "never", 15, INTERVAL * 50);
	hold = hold_begin(recorder);
	set_timer(recorder, "one", 1, INTERVAL * 5);
	set_timer(recorder, "short", 2, INTERVAL - 1);
	set_timer(recorder, LONG_KEY, 5, INTERVAL * 5);
	move_timer(recorder, "a", INTERVAL * 7);
	move_timer(recorder, "b", INTERVAL - 1);
	move_timer(recorder, "never", TW_FOREVER);
	set_timer_at(recorder, "at", 6, INTERVAL * 5);
	hold_end(recorder, &hold, INTERVAL * 10);
	pass_ticks(recorder, 100);
	assert_int_equal(tw_pending(recorder->wheel), 1);
}

/* Checks the deadlines of the values if delays count from `from`. */
static void assert_deadlines_from(struct recorder *recorder, tw_duration from)
{
	assert_int_equal(deadline_of(recorder, 1), from + INTERVAL * 5);
	assert_int_equal(deadline_of(recorder, 2), from + INTERVAL);
	assert_int_equal(deadline_of(recorder, 5), from + INTERVAL * 5);
	assert_int_equal(deadline_of(recorder, 6), INTERVAL * 5);
	assert_int_equal(deadline_of(recorder, 11), from + INTERVAL * 7);
	assert_int_equal(deadline_of(recorder, 12), from + INTERVAL - 1);
	assert_not_returned(recorder, 15);
}

static void delays_count_from_the_call(void **state)
{
	struct recorder *recorder = open_from(*state, TW_FROM_CALL);

	give_while_held(recorder);
	assert_deadlines_from(recorder, 0);
	recorder_close(recorder);
}

static void delays_count_from_when_the_owner_takes_the_command(void **state)
{
	struct recorder *recorder = open_from_applied(*state);

	give_while_held(recorder);
	assert_deadlines_from(recorder, INTERVAL * 10);
	assert_executed_at(recorder, 1, INTERVAL * 15);
	assert_executed_at(recorder, 2, INTERVAL * 11);
	assert_executed_at(recorder, 11, INTERVAL * 17);
	assert_executed_at(recorder, 12, INTERVAL * 10);
	recorder_close(recorder);
}

static void replaced_and_moved_timers_count_from_the_new_command(void **state)
{
	struct recorder *recorder = open_from_applied(*state);
	struct hold hold;

	set_timer(recorder, "a", 1, INTERVAL * 12);
	set_timer(recorder, LONG_KEY, 2, INTERVAL * 12);
	hold = hold_begin(recorder);
	set_timer(recorder, "a", 3, INTERVAL * 5);
	set_timer(recorder, LONG_KEY, 4, INTERVAL * 5);
	move_timer(recorder, LONG_KEY, INTERVAL * 6);
	hold_end(recorder, &hold, INTERVAL * 10);
	pass_ticks(recorder, 20);
	assert_released(recorder, 1, TW_REPLACED);
	assert_released(recorder, 2, TW_REPLACED);
	assert_int_equal(deadline_of(recorder, 1), INTERVAL * 12);
	assert_int_equal(deadline_of(recorder, 2), INTERVAL * 12);
	assert_executed_at(recorder, 3, INTERVAL * 15);
	assert_executed_at(recorder, 4, INTERVAL * 16);
	recorder_close(recorder);
}

/* A replaced value is not reported: its timer stays, and takes the new deadline. */
static void replaced_timer_counts_from_the_new_command_without_a_release(void **state)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);
	struct hold hold;

	options.release = NULL;
	options.delay_from = TW_FROM_APPLIED;
	recorder_start(recorder, INTERVAL, 10, &options);
	set_timer(recorder, "a", 1, INTERVAL * 12);
	hold = hold_begin(recorder);
	set_timer(recorder, "a", 2, INTERVAL * 5);
	hold_end(recorder, &hold, INTERVAL * 10);
	pass_ticks(recorder, 20);
	assert_not_returned(recorder, 1);
	assert_executed_at(recorder, 2, INTERVAL * 15);
	recorder_close(recorder);
}

static void commands_keep_their_order(void **state)
{
	struct recorder *recorder = open_from_applied(*state);

	set_timer(recorder, "a", 1, INTERVAL * 3);
	set_timer(recorder, "b", 2, INTERVAL * 3);
	move_timer(recorder, "a", INTERVAL * 2);
	remove_timer(recorder, "b");
	set_timer(recorder, "c", 3, INTERVAL * 2);
	set_timer(recorder, "a", 4, INTERVAL * 2);
	move_timer(recorder, "c", 1);
	set_timer_at(recorder, "d", 5, INTERVAL * 2);
	advance(recorder, INTERVAL * 10);
	assert_order(recorder, 2, 1, 3, 4, 5);
	assert_int_equal(event_of(recorder, 3).deadline, 1);
	assert_int_equal(event_of(recorder, 3).lateness, 0);
	recorder_close(recorder);
}

static void sum_that_is_too_large_is_never(void **state)
{
	struct recorder *recorder = open_from_applied(*state);
	tw_duration remaining = 0;

	advance(recorder, INTERVAL);
	set_timer(recorder, "a", 1, TW_FOREVER);
	set_timer(recorder, "b", 2, INTERVAL * 2);
	move_timer(recorder, "b", TW_FOREVER - INTERVAL + 1);
	assert_status(tw_contains(recorder->wheel, "a", 1, &remaining), TW_OK);
	assert_int_equal(remaining, TW_FOREVER);
	assert_status(tw_contains(recorder->wheel, "b", 1, &remaining), TW_OK);
	assert_int_equal(remaining, TW_FOREVER);
	stop_wheel(recorder);
	assert_int_equal(deadline_of(recorder, 2), TW_FOREVER);
	recorder_close(recorder);
}

static void forbidden_run(void *argument)
{
	(void)argument;
	abort();
}

static void delays_by_handle_count_from_the_call(void **state)
{
	struct recorder *recorder = open_from_applied(*state);
	struct tw_timer timer;
	struct hold hold = hold_begin(recorder);

	assert_status(
		tw_after_func(recorder->wheel, INTERVAL * 90, forbidden_run, VALUE(1), &timer),
		TW_OK);
	assert_status(tw_timer_reset(recorder->wheel, timer, INTERVAL * 80), TW_OK);
	hold_end(recorder, &hold, INTERVAL * 10);
	stop_wheel(recorder);
	assert_int_equal(deadline_of(recorder, 1), INTERVAL * 80);
	recorder_close(recorder);
}

/* The call itself has the owner arm it, so it has not waited. */
static void set_that_asks_for_a_place_counts_from_the_call(void **state)
{
	struct recorder *recorder = recorder_open_with(
		*state, 10, (struct tw_options){.max_pending = 1, .delay_from = TW_FROM_APPLIED});

	set_timer(recorder, "a", 1, INTERVAL * 5);
	advance(recorder, INTERVAL);
	set_timer(recorder, "a", 2, INTERVAL * 5);
	flush_wheel(recorder);
	set_timer(recorder, "a", 3, 1);
	pass_ticks(recorder, 1);
	assert_int_equal(deadline_of(recorder, 1), INTERVAL * 5);
	assert_int_equal(deadline_of(recorder, 2), INTERVAL * 6);
	assert_executed_at(recorder, 3, INTERVAL * 2);
	assert_int_equal(deadline_of(recorder, 3), INTERVAL * 2);
	recorder_close(recorder);
}

static void set_again(struct recorder *recorder, const struct tw_task *task)
{
	uintptr_t value = (uintptr_t)task->value;

	if (value < 5)
		assert_status(tw_set_timer(recorder->wheel, task->key, task->key_size,
					   VALUE(value + 1), INTERVAL * 3),
			      TW_OK);
}

static void timer_that_a_task_sets_counts_from_its_tick(void **state)
{
	struct recorder *recorder = open_from_applied(*state);

	recorder->on_execute = set_again;
	set_timer(recorder, "a", 1, INTERVAL * 3);
	advance(recorder, INTERVAL * 100);
	for (uintptr_t value = 1; value <= 5; value++)
		assert_executed_at(recorder, value, INTERVAL * 3 * (tw_duration)value);
	recorder_close(recorder);
}

/* Gives a set that is accepted and comes behind the stop. */
static void set_late(struct recorder *recorder, const char *key, uintptr_t value)
{
	struct owner *owner = &recorder->wheel->owner;
	size_t size = strlen(key);
	uint32_t hash = key_hash(&recorder->wheel->seed, key, size);
	struct command command = {.kind = COMMAND_SET_AFTER,
				  .hash = hash,
				  .key_size = (uint16_t)size,
				  .time = INTERVAL * 5,
				  .value = VALUE(value)};
	uint64_t position;
	struct command_cell *cell;

	if (size > COMMAND_KEY_INLINE) {
		command.timer = timer_new(&owner->out.store, key, size, hash);
	} else {
		command.timer = timer_take_memory(&owner->out.store);
		assert_non_null(command.timer);
		memcpy(command.key, key, size);
	}
	cell = command_queue_claim(&owner->queue, &position);
	cell->command = command;
	command_queue_publish(cell, position);
}

static void set_behind_the_stop_comes_back_with_a_deadline(void **state)
{
	struct recorder *recorder = open_from_applied(*state);

	advance(recorder, INTERVAL * 10);
	stop_wheel(recorder);
	set_late(recorder, "short", 1);
	set_late(recorder, LONG_KEY, 2);
	settle(recorder);
	for (uintptr_t value = 1; value <= 2; value++) {
		assert_released(recorder, value, TW_STOPPED);
		assert_int_equal(deadline_of(recorder, value), INTERVAL * 15);
	}
	recorder_close(recorder);
}

/* On a real clock, the deadline is after each time that was read before a drive. */
static void real_clock_is_read_when_commands_are_applied(void **state)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);
	tw_duration called;
	tw_duration before;

	options.clock = TW_CLOCK_MONOTONIC;
	options.delay_from = TW_FROM_APPLIED;
	recorder_start(recorder, INTERVAL, 10, &options);
	set_timer(recorder, "a", 1, TW_HOUR);
	called = tw_now(recorder->wheel);
	do
		before = tw_now(recorder->wheel);
	while (before == called);
	(void)poll_wheel(recorder);
	called = tw_now(recorder->wheel);
	remove_timer(recorder, "a");
	settle(recorder);
	assert_in_range(deadline_of(recorder, 1), before + TW_HOUR, called + TW_HOUR);
	recorder_close(recorder);
}

static const struct CMUnitTest tests[] = {
	TEST_EVERYWHERE(unknown_value_is_invalid),
	TEST_EVERYWHERE(delays_count_from_the_call),
	TEST_SHARED(delays_count_from_when_the_owner_takes_the_command),
	TEST_SHARED(replaced_and_moved_timers_count_from_the_new_command),
	TEST_SHARED(replaced_timer_counts_from_the_new_command_without_a_release),
	TEST_INLINE(commands_keep_their_order),
	TEST_EVERYWHERE(sum_that_is_too_large_is_never),
	TEST_EVERYWHERE(delays_by_handle_count_from_the_call),
	TEST_EVERYWHERE(set_that_asks_for_a_place_counts_from_the_call),
	TEST_INLINE(timer_that_a_task_sets_counts_from_its_tick),
	TEST_SHARED(set_behind_the_stop_comes_back_with_a_deadline),
	TEST_BOTH(inline, real_clock_is_read_when_commands_are_applied),
	TEST_BOTH(workers, real_clock_is_read_when_commands_are_applied),
};

TEST_PROGRAM(tests)
