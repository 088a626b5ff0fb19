/* SPDX-License-Identifier: MIT */
/* With TW_DRIVE_CALLER and inline workers, tasks run in the calls that drive, and nowhere else. */
#include "support/test.h"

#include "support/recorder.h"

static int visit_nothing(void *context, const struct tw_pending_timer *timer)
{
	return 1;
}

static void run_nothing(void *argument)
{
}

/* The wheel has a small queue, a far timer by handle, and two due timers: "due" by key, and one by
 * handle. The clock has moved, and no call has driven the wheel since. */
struct idle_loop {
	struct recorder *recorder;
	struct tw_wheel *wheel;
	struct tw_timer far;
};

static void idle_loop_open(struct idle_loop *loop, const struct variant *variant,
			   enum tw_when_full when_full)
{
	loop->recorder = recorder_open_with(variant, 10,
					    (struct tw_options){.queue_capacity = 64,
								.when_full = when_full,
								.max_pending = 200});
	loop->wheel = loop->recorder->wheel;
	set_timer(loop->recorder, "far", 1, TW_HOUR);
	assert_status(tw_after_func(loop->wheel, TW_HOUR, run_nothing, NULL, &loop->far), TW_OK);
	assert_status(tw_poll(loop->wheel, NULL), TW_OK);
	set_timer(loop->recorder, "due", 2, TW_HOUR);
	move_timer(loop->recorder, "due", 1);
}

static void assert_nothing_ran_until_polled(struct idle_loop *loop)
{
	size_t count = event_count(loop->recorder);

	assert_int_equal(count, 0);
	assert_status(tw_poll(loop->wheel, NULL), TW_OK);
	assert_true(event_count(loop->recorder) > 0);
	recorder_close(loop->recorder);
}

TEST(inline, commands_that_meet_a_full_queue_run_no_task)
{
	for (int kind = 0; kind < 5; kind++) {
		struct idle_loop loop;

		idle_loop_open(&loop, *state, TW_WHEN_FULL_WAIT);
		for (int i = 0; i < 150; i++) {
			enum tw_status status = TW_OK;

			if (kind == 0)
				status = tw_set_timer(loop.wheel, &i, sizeof(i), VALUE(i), TW_HOUR);
			else if (kind == 1)
				status = tw_move_timer(loop.wheel, "far", 3, TW_HOUR + i);
			else if (kind == 2)
				status = tw_remove_timer(loop.wheel, &i, sizeof(i));
			else if (kind == 3)
				status =
					tw_after_func(loop.wheel, TW_HOUR, run_nothing, NULL, NULL);
			else
				(void)tw_timer_reset(loop.wheel, loop.far, TW_HOUR + i);
			assert_status(status, TW_OK);
		}
		assert_nothing_ran_until_polled(&loop);
	}
}

TEST(inline, questions_run_no_task)
{
	for (int kind = 0; kind < 6; kind++) {
		struct idle_loop loop;
		tw_duration left;
		void *value;

		idle_loop_open(&loop, *state, TW_WHEN_FULL_WAIT);
		if (kind == 0)
			assert_status(tw_contains(loop.wheel, "far", 3, &left), TW_OK);
		else if (kind == 1)
			assert_status(tw_add_timer(loop.wheel, "new", 3, VALUE(3), TW_HOUR), TW_OK);
		else if (kind == 2)
			assert_status(tw_take_timer(loop.wheel, "far", 3, &value), TW_OK);
		else if (kind == 3)
			assert_status(tw_timer_remaining(loop.wheel, loop.far, &left), TW_OK);
		else if (kind == 4)
			assert_status(tw_each(loop.wheel, visit_nothing, NULL), TW_OK);
		else
			assert_true(tw_fd(loop.wheel) >= 0);
		assert_nothing_ran_until_polled(&loop);
	}
}

/* The call could make room only by running what is due. */
TEST(inline, set_at_the_limit_of_pending_timers_runs_no_task)
{
	struct idle_loop loop;
	enum tw_status status = TW_OK;

	idle_loop_open(&loop, *state, TW_WHEN_FULL_WAIT);
	for (int i = 0; i < 300 && status == TW_OK; i++)
		status = tw_set_timer(loop.wheel, &i, sizeof(i), VALUE(i), TW_HOUR);
	assert_status(status, TW_FULL);
	assert_nothing_ran_until_polled(&loop);
}

TEST(inline, calls_that_drive_run_what_is_due)
{
	for (int kind = 0; kind < 3; kind++) {
		struct idle_loop loop;

		idle_loop_open(&loop, *state, TW_WHEN_FULL_WAIT);
		assert_int_equal(event_count(loop.recorder), 0);
		if (kind == 0)
			assert_status(tw_wait_idle(loop.wheel), TW_OK);
		else if (kind == 1)
			assert_status(tw_advance(loop.wheel, 0), TW_OK);
		else
			assert_status(tw_stop(loop.wheel), TW_OK);
		assert_true(event_count(loop.recorder) > 0);
		recorder_close(loop.recorder);
	}
}

TEST(inline, flush_applies_commands_and_runs_no_task)
{
	struct idle_loop loop;

	idle_loop_open(&loop, *state, TW_WHEN_FULL_WAIT);
	set_timer(loop.recorder, "drained", 4, TW_HOUR);
	assert_status(tw_drain(loop.wheel, record_drain, loop.recorder), TW_OK);
	set_timer(loop.recorder, "removed", 5, TW_HOUR);
	remove_timer(loop.recorder, "removed");
	set_timer(loop.recorder, "moved", 6, TW_HOUR);
	assert_status(tw_move_timer(loop.wheel, "moved", 5, 1), TW_OK);
	set_timer(loop.recorder, "set", 7, TW_HOUR);
	assert_status(tw_flush(loop.wheel), TW_OK);
	assert_int_equal(tw_pending(loop.wheel), 1);
	assert_int_equal(event_count(loop.recorder), 0);
	assert_status(tw_poll(loop.wheel, NULL), TW_OK);
	assert_drained(loop.recorder, 4);
	assert_released(loop.recorder, 5, TW_REMOVED);
	assert_executed_at(loop.recorder, 6, 0);
	recorder_close(loop.recorder);
}

/* A run by handle sets itself for now; the first also an alarm and another timer. */
struct eager {
	struct tw_wheel *wheel;
	struct tw_timer pending;
	struct tw_alarm alarm;
	size_t by_handle, by_reset, by_alarm;
};

static void run_by_handle(void *argument)
{
	struct eager *eager = argument;

	eager->by_handle++;
	may_fail(tw_after_func(eager->wheel, 0, run_by_handle, eager, NULL));
	if (eager->by_handle > 1)
		return;
	may_fail(tw_timer_reset(eager->wheel, eager->pending, 0));
	may_fail(tw_alarm_set(&eager->alarm, 0));
}

static void run_by_reset(void *argument)
{
	struct eager *eager = argument;

	eager->by_reset++;
}

static void run_by_alarm(void *argument)
{
	struct eager *eager = argument;

	eager->by_alarm++;
}

RECORDED(inline, what_a_task_sets_for_now_waits_for_the_next_poll)
{
	struct eager eager = {.wheel = recorder->wheel};

	assert_status(tw_alarm_init(eager.wheel, &eager.alarm, run_by_alarm, &eager), TW_OK);
	assert_status(tw_after_func(eager.wheel, TW_HOUR, run_by_reset, &eager, &eager.pending),
		      TW_OK);
	assert_status(tw_after_func(eager.wheel, 0, run_by_handle, &eager, NULL), TW_OK);
	for (size_t polls = 1; polls <= 5; polls++) {
		assert_int_equal(poll_wheel(recorder), 0);
		assert_int_equal(eager.by_handle, polls);
		assert_int_equal(eager.by_reset, polls > 1);
		assert_int_equal(eager.by_alarm, polls > 1);
	}
	tw_alarm_destroy(&eager.alarm);
}

/* ---- Polls with nothing to do ---- */

TEST(inline, poll_sees_each_call_that_came_after_an_idle_one)
{
	struct recorder *recorder = recorder_open(*state, 100);
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_alarm alarm;
	struct tw_timer timer;

	assert_status(tw_alarm_init(wheel, &alarm, run_nothing, NULL), TW_OK);
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	assert_status(tw_after_func(wheel, 90 * INTERVAL, run_nothing, NULL, &timer), TW_OK);
	assert_true(poll_wheel(recorder) == 90 * INTERVAL);
	assert_status(tw_timer_reset(wheel, timer, 80 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 80 * INTERVAL);
	set_timer(recorder, "a", 1, 70 * INTERVAL);
	assert_true(poll_wheel(recorder) == 70 * INTERVAL);
	assert_status(tw_move_timer(wheel, "a", 1, 60 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 60 * INTERVAL);
	assert_status(tw_alarm_set(&alarm, 50 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 50 * INTERVAL);
	assert_status(tw_add_timer(wheel, "b", 1, NULL, 40 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 40 * INTERVAL);
	assert_status(tw_advance(wheel, INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 39 * INTERVAL);
	assert_true(poll_wheel(recorder) == 39 * INTERVAL);
	assert_status(tw_drain(wheel, record_drain, recorder), TW_OK);
	assert_true(poll_wheel(recorder) == 49 * INTERVAL);
	assert_drained(recorder, 1);
	assert_status(tw_alarm_destroy(&alarm), TW_OK);
	recorder_close(recorder);
}

static enum tw_status poll_or_ask(struct tw_wheel *wheel, bool asks)
{
	if (!asks)
		return tw_poll(wheel, NULL);
	return tw_contains(wheel, "a", 1, NULL) == TW_NOT_FOUND ? TW_OK : TW_INVALID;
}

static void expect_memory_back(struct recorder *recorder, bool asks)
{
	enum { TIMERS = 50000 };
	struct tw_stats stats;
	uint64_t most;

	for (int i = 0; i < TIMERS; i++)
		assert_status(tw_after_func(recorder->wheel, INTERVAL, run_nothing, NULL, NULL),
			      TW_OK);
	assert_status(tw_get_stats(recorder->wheel, &stats), TW_OK);
	most = stats.memory;
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	assert_status(tw_poll(recorder->wheel, NULL), TW_OK);
	for (int second = 0; second < 20; second++) {
		for (int call = 0; call < 50; call++)
			assert_status(poll_or_ask(recorder->wheel, asks), TW_OK);
		assert_status(tw_advance(recorder->wheel, TW_SECOND), TW_OK);
	}
	assert_status(tw_get_stats(recorder->wheel, &stats), TW_OK);
	assert_true(TEST_HAS_SANITIZER || stats.memory < most / 4);
	recorder_close(recorder);
}

TEST(inline, idle_polls_give_memory_back)
{
	expect_memory_back(recorder_open(*state, 100), false);
}

TEST(inline, questions_give_memory_back)
{
	expect_memory_back(recorder_open(*state, 100), true);
}
