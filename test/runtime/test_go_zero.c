/* SPDX-License-Identifier: MIT */
/*
 * These are the promises of go-zero's TimingWheel, with the figures of its own test suite, and its
 * known faults, which must not happen here.
 */
#include "support/test.h"

#include "support/memory.h"
#include "support/recorder.h"

/* go-zero counts in steps; one is one tick. */
#define STEP INTERVAL

RECORDED(layouts, timer_set_for_half_a_step_runs_at_the_next_tick)
{
	set_timer(recorder, "any", 3, STEP / 2);
	settle(recorder);
	assert_not_returned(recorder, 3);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 3, STEP);
	pass_ticks(recorder, 25);
	assert_int_equal(event_count(recorder), 1);
}

RECORDED(layouts, timer_set_twice_runs_once_with_the_second_value_and_delay)
{
	set_timer(recorder, "any", 3, STEP * 4);
	set_timer(recorder, "any", 5, STEP * 7);
	pass_ticks(recorder, 30);
	assert_released(recorder, 3, TW_REPLACED);
	assert_executed_at(recorder, 5, STEP * 7);
	assert_int_equal(event_count(recorder), 2);
}

RECORDED(layouts, timer_moved_later_runs_then_and_not_before)
{
	set_timer(recorder, "any", 3, STEP * 4);
	move_timer(recorder, "any", STEP * 7);
	assert_status(tw_move_timer(recorder->wheel, "any", 3, -STEP), TW_INVALID);
	move_timer(recorder, "none", STEP);
	pass_ticks(recorder, 5);
	assert_not_returned(recorder, 3);
	pass_ticks(recorder, 3);
	assert_executed_at(recorder, 3, STEP * 7);
}

RECORDED(layouts, timer_moved_to_half_a_step_runs_without_a_tick)
{
	set_timer(recorder, "any", 3, STEP * 4);
	move_timer(recorder, "any", STEP / 2);
	settle(recorder);
	assert_executed_at(recorder, 3, 0);
}

RECORDED(layouts, removed_timer_does_not_run)
{
	set_timer(recorder, "any", 3, STEP);
	remove_timer(recorder, "any");
	remove_timer(recorder, "none");
	assert_status(tw_remove_timer(recorder->wheel, NULL, 0), TW_INVALID);
	pass_ticks(recorder, 5);
	assert_released(recorder, 3, TW_REMOVED);
	assert_int_equal(event_count(recorder), 1);
}

RECORDED(layouts, moved_and_then_removed_timer_does_not_run)
{
	set_timer(recorder, "any", 3, STEP * 8);
	pass_ticks(recorder, 6);
	move_timer(recorder, "any", STEP * 7);
	pass_ticks(recorder, 3);
	remove_timer(recorder, "any");
	pass_ticks(recorder, 30);
	assert_released(recorder, 3, TW_REMOVED);
	assert_int_equal(event_count(recorder), 1);
}

/* A course is the ticks that pass before the set, then the delays in ticks; a delay of 0 is left
 * out. */
struct course {
	int64_t elapsed;
	int64_t set;
	int64_t move;
	int64_t move_again;
};

static void assert_course(const struct variant *variant, struct course course)
{
	struct recorder *recorder = recorder_open(variant, 5);
	int64_t due = course.set;

	pass_ticks(recorder, course.elapsed);
	set_timer(recorder, "any", 2, STEP * course.set);
	if (course.move > 0)
		move_timer(recorder, "any", STEP * (due = course.move));
	if (course.move_again > 0)
		move_timer(recorder, "any", STEP * (due = course.move_again));
	pass_ticks(recorder, 30);
	assert_executed_at(recorder, 2, STEP * (course.elapsed + due));
	recorder_close(recorder);
}

/* The timer runs at its tick in any lap, set and moved before or after the wheel has turned. */
TEST(layouts, timer_runs_once_at_the_tick_of_its_last_command)
{
	static const struct course courses[] = {
		{0, 5, 0, 0},   {0, 7, 0, 0},   {0, 10, 0, 0},  {0, 12, 0, 0},  {0, 3, 5, 0},
		{0, 3, 7, 0},   {0, 3, 10, 0},  {0, 3, 12, 0},  {0, 5, 7, 0},   {0, 5, 10, 0},
		{0, 5, 12, 0},  {0, 3, 5, 10},  {0, 3, 7, 12},  {0, 3, 10, 15}, {0, 3, 12, 17},
		{0, 5, 7, 12},  {0, 5, 10, 17}, {0, 5, 12, 17}, {3, 5, 0, 0},   {3, 7, 0, 0},
		{3, 10, 0, 0},  {3, 12, 0, 0},  {5, 7, 0, 0},   {5, 10, 0, 0},  {5, 12, 0, 0},
		{3, 5, 10, 0},  {3, 7, 12, 0},  {3, 10, 15, 0}, {3, 12, 16, 0}, {5, 7, 12, 0},
		{5, 10, 15, 0}, {5, 12, 17, 0},
	};

	for (size_t i = 0; i < sizeof(courses) / sizeof(courses[0]); i++)
		assert_course(*state, courses[i]);
}

RECORDED(layouts, drain_gives_back_every_timer_once_and_a_second_drain_none)
{
	set_timer(recorder, "first", 3, STEP * 4);
	set_timer(recorder, "second", 5, STEP * 7);
	set_timer(recorder, "third", 7, STEP * 7);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_drained(recorder, 3);
	assert_drained(recorder, 5);
	assert_drained(recorder, 7);
	assert_memory_equal(event_of(recorder, 3).key, "first", 5);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	pass_ticks(recorder, 25);
	assert_int_equal(event_count(recorder), 3);
}

/* The tests from here on are known failures of go-zero. */

/* Old and new slot lie on different sides of the hand: go-zero runs such a timer a lap early or
 * late, as one that is set to 3 and moved to 17 after 6 ticks of 10 slots. */
TEST(layouts, timer_that_is_moved_or_replaced_across_the_hand_runs_in_its_lap)
{
	for (int64_t elapsed = 0; elapsed <= 10; elapsed++)
		for (int64_t second = 1; second <= 23; second++) {
			struct recorder *recorder = recorder_open(*state, 10);

			pass_ticks(recorder, elapsed);
			set_timer(recorder, "moved", 1, STEP * 3);
			set_timer(recorder, "replaced", 2, STEP * 3);
			pass_ticks(recorder, 2);
			move_timer(recorder, "moved", STEP * second);
			set_timer(recorder, "replaced", 3, STEP * second);
			pass_ticks(recorder, 45);
			assert_executed_at(recorder, 1, STEP * (elapsed + 2 + second));
			assert_executed_at(recorder, 3, STEP * (elapsed + 2 + second));
			assert_released(recorder, 2, TW_REPLACED);
			recorder_close(recorder);
		}
}

RECORDED(layouts, move_under_one_interval_runs_exactly_once)
{
	set_timer(recorder, "any", 3, STEP * 4);
	pass_ticks(recorder, 2);
	move_timer(recorder, "any", STEP / 2);
	move_timer(recorder, "any", STEP / 2);
	settle(recorder);
	pass_ticks(recorder, 30);
	assert_executed_at(recorder, 3, STEP * 2);
	assert_int_equal(event_count(recorder), 1);
}

static void set_many(struct recorder *recorder, uintptr_t first_value, tw_duration delay)
{
	char key[16];

	for (uintptr_t i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "key %d", (int)i);
		set_timer(recorder, key, first_value + i, delay);
	}
}

RECORDED(layouts, drained_key_that_is_set_again_runs_once)
{
	set_many(recorder, 1000, STEP * 4);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	set_many(recorder, 2000, STEP * 7);
	pass_ticks(recorder, 30);
	for (uintptr_t i = 0; i < 100; i++) {
		assert_drained(recorder, 1000 + i);
		assert_executed_at(recorder, 2000 + i, STEP * 7);
	}
	assert_int_equal(event_count(recorder), 200);
}

static void set_drained_key_again(struct recorder *recorder, const struct tw_task *task)
{
	struct tw_wheel *wheel = recorder->wheel;
	uintptr_t value = (uintptr_t)task->value;

	may_fail(tw_set_timer(wheel, task->key, task->key_size, VALUE(value + 1000), STEP * 3));
	tw_move_timer(wheel, task->key, task->key_size, STEP * 5);
	may_fail(tw_set_timer(wheel, "shared", 6, VALUE(1), STEP));
	tw_remove_timer(wheel, "shared", 6);
}

RECORDED(layouts, drain_function_may_call_the_wheel)
{
	recorder->on_drain = set_drained_key_again;
	set_many(recorder, 1000, STEP * 4);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 100);
	pass_ticks(recorder, 30);
	for (uintptr_t i = 0; i < 100; i++) {
		assert_drained(recorder, 1000 + i);
		assert_executed_at(recorder, 2000 + i, STEP * 5);
	}
}

static void drain_in_drain_function(struct recorder *recorder, const struct tw_task *task)
{
	tw_drain(recorder->wheel, record_drain, recorder);
}

RECORDED(layouts, drain_function_may_drain_again)
{
	recorder->on_drain = drain_in_drain_function;
	set_many(recorder, 1000, STEP * 4);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	for (uintptr_t i = 0; i < 100; i++)
		assert_drained(recorder, 1000 + i);
	assert_int_equal(event_count(recorder), 100);
}

RECORDED(layouts, nothing_runs_after_stop)
{
	set_many(recorder, 1000, STEP);
	settle(recorder);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	assert_status(tw_advance(recorder->wheel, STEP * 5), TW_CLOSED);
	settle(recorder);
	for (uintptr_t i = 0; i < 100; i++)
		assert_released(recorder, 1000 + i, TW_STOPPED);
	assert_int_equal(event_count(recorder), 100);
}

/* Groups alternate between short and long keys. */
static void set_and_remove_far_timers(struct tw_wheel *wheel, uint32_t groups)
{
	uint32_t key[25] = {0};

	for (uint32_t group = 0; group < groups; group++) {
		size_t size = group % 2 == 0 ? 4 * sizeof(key[0]) : sizeof(key);

		key[1] = group;
		for (key[0] = 0; key[0] < 1000; key[0]++)
			assert_status(tw_set_timer(wheel, key, size, VALUE(1), TW_HOUR), TW_OK);
		for (key[0] = 0; key[0] < 1000; key[0]++)
			assert_status(tw_remove_timer(wheel, key, size), TW_OK);
		assert_status(tw_flush(wheel), TW_OK);
	}
}

TEST(layouts, removed_timers_give_their_memory_back_at_once)
{
	struct tw_options options = variant_options(*state, (struct tw_options){0});
	struct tw_wheel *wheel;
	long before;

	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a sanitizer has memory of its own");
	assert_status(tw_create(&wheel, STEP, 512, record_execute, &options), TW_OK);
	set_and_remove_far_timers(wheel, 10);
	before = resident_memory();
	set_and_remove_far_timers(wheel, 1000);
	assert_in_range(resident_memory(), 1, before + (4 << 20));
	assert_int_equal(tw_pending(wheel), 0);
	tw_destroy(wheel);
}

RECORDED(ordered, long_advance_drops_no_tick_and_runs_all_in_deadline_order)
{
	char key[16];

	for (int i = 0; i < 500; i++) {
		int tick = 1 + i * 389 % 500;

		snprintf(key, sizeof(key), "tick %d", tick);
		set_timer(recorder, key, (uintptr_t)tick, STEP * tick);
	}
	assert_status(tw_advance(recorder->wheel, STEP * 1000), TW_OK);
	assert_int_equal(event_count(recorder), 500);
	for (int i = 0; i < 500; i++) {
		struct event event = event_at(recorder, (size_t)i);

		assert_ptr_equal(event.value, VALUE(i + 1));
		assert_int_equal(event.now, STEP * (i + 1));
		assert_int_equal(event.lateness, 0);
	}
}

RECORDED(pool, slow_task_holds_up_none_of_its_tick)
{
	recorder->held = 1;
	set_many(recorder, 1, STEP);
	assert_status(tw_advance(recorder->wheel, STEP), TW_OK);
	gate_await(&recorder->gate);
	WAIT_UNTIL(event_count(recorder) == 100);
	set_timer(recorder, "later", 200, STEP);
	assert_status(tw_advance(recorder->wheel, STEP), TW_OK);
	WAIT_UNTIL(event_count(recorder) == 101);
	gate_open(&recorder->gate);
	settle(recorder);
	assert_int_equal(event_count(recorder), 101);
}
