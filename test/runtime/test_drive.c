/* SPDX-License-Identifier: MIT */
/* With TW_DRIVE_CALLER and inline workers, tasks run in the calls that drive, and nowhere else. */
#include "support/test.h"

#include "support/recorder.h"

#include <stdio.h>

static int visit_nothing(void *context, const struct tw_pending_timer *timer)
{
	(void)context;
	(void)timer;
	return 1;
}

static void run_nothing(void *argument)
{
	(void)argument;
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
	assert_status(tw_set_timer_at(loop->wheel, "due", 3, VALUE(2), 0), TW_OK);
}

static void assert_nothing_ran_until_polled(struct idle_loop *loop)
{
	size_t count = event_count(loop->recorder);

	assert_int_equal(count, 0);
	assert_status(tw_poll(loop->wheel, NULL), TW_OK);
	assert_true(event_count(loop->recorder) > 0);
	recorder_close(loop->recorder);
}

static void commands_that_meet_a_full_queue_run_no_task(void **state)
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

static void questions_run_no_task(void **state)
{
	for (int kind = 0; kind < 8; kind++) {
		struct idle_loop loop;
		tw_duration left;
		void *value;
		FILE *nowhere = fopen("/dev/null", "w");

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
		else if (kind == 5)
			assert_status(tw_dump(loop.wheel, nowhere), TW_OK);
		else if (kind == 6)
			assert_status(tw_trim(loop.wheel), TW_OK);
		else
			assert_true(tw_fd(loop.wheel) >= 0);
		fclose(nowhere);
		assert_nothing_ran_until_polled(&loop);
	}
}

/* The call could make room only by running what is due. */
static void set_at_the_limit_of_pending_timers_runs_no_task(void **state)
{
	struct idle_loop loop;
	enum tw_status status = TW_OK;

	idle_loop_open(&loop, *state, TW_WHEN_FULL_WAIT);
	for (int i = 0; i < 300 && status == TW_OK; i++)
		status = tw_set_timer(loop.wheel, &i, sizeof(i), VALUE(i), TW_HOUR);
	assert_status(status, TW_FULL);
	assert_nothing_ran_until_polled(&loop);
}

static void calls_that_drive_run_what_is_due(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct idle_loop loop;

		idle_loop_open(&loop, *state, TW_WHEN_FULL_WAIT);
		assert_int_equal(event_count(loop.recorder), 0);
		if (kind == 0)
			assert_status(tw_flush(loop.wheel), TW_OK);
		else if (kind == 1)
			assert_status(tw_wait_idle(loop.wheel), TW_OK);
		else if (kind == 2)
			assert_status(tw_advance(loop.wheel, 0), TW_OK);
		else
			assert_status(tw_stop(loop.wheel), TW_OK);
		assert_true(event_count(loop.recorder) > 0);
		recorder_close(loop.recorder);
	}
}

static const struct CMUnitTest tests[] = {
	TEST_DRIVEN(commands_that_meet_a_full_queue_run_no_task),
	TEST_DRIVEN(questions_run_no_task),
	TEST_ALONE(set_at_the_limit_of_pending_timers_runs_no_task),
	TEST_DRIVEN(calls_that_drive_run_what_is_due),
};

TEST_PROGRAM(tests)
