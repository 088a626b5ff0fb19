/* SPDX-License-Identifier: MIT */
/*
 * A thread knows its current task, also in wheels that take timers by handle alone. That each
 * function has its own is checked by all scripts (support/script.c).
 */
#include "support/test.h"

#include "support/recorder.h"

/* Says whether the task is the thread's current one, and this wheel's. */
static bool is_current(const struct tw_task *task, const struct tw_wheel *wheel)
{
	const struct tw_task *current = tw_current_task();

	return current && current->wheel == wheel && current->value == task->value &&
	       current->key_size == task->key_size && current->deadline == task->deadline &&
	       current->lateness == task->lateness && current->timer.id == task->timer.id &&
	       current->run == task->run;
}

/* A task of one wheel drives another, whose task runs inside. */
struct nest {
	struct tw_wheel *inner;
	atomic_int right;
};

static void look_inside(void *context, const struct tw_task *task)
{
	struct nest *nest = context;

	atomic_fetch_add(&nest->right, is_current(task, nest->inner));
}

static void drive_inner(struct recorder *recorder, const struct tw_task *task)
{
	struct nest *nest = recorder->argument;

	(void)tw_advance(nest->inner, INTERVAL);
	atomic_fetch_add(&nest->right, is_current(task, recorder->wheel));
}

RECORDED(everywhere, inner_task_goes_before_the_outer_one)
{
	struct nest nest = {0};
	struct tw_options options =
		variant_options(recorder->variant, (struct tw_options){.context = &nest});

	options.drive = TW_DRIVE_CALLER;
	options.workers = TW_WORKERS_INLINE;
	options.max_workers = 0;
	assert_status(tw_create(&nest.inner, INTERVAL, 10, look_inside, &options), TW_OK);
	assert_status(tw_set_timer(nest.inner, "in", 2, NULL, INTERVAL), TW_OK);
	recorder->argument = &nest;
	recorder->on_execute = drive_inner;
	set_timer(recorder, "out", 1, INTERVAL);
	pass_ticks(recorder, 1);
	assert_int_equal(atomic_load(&nest.right), 2);
	assert_null(tw_current_task());
	tw_destroy(nest.inner);
}

static void check_current(void *count)
{
	const struct tw_task *task = tw_current_task();

	if (!task->key && task->key_size == 0 && task->run == check_current &&
	    task->value == count && task->deadline == INTERVAL)
		atomic_fetch_add((atomic_int *)count, 1);
}

TEST(everywhere, wheel_without_execute_takes_timers_by_handle_alone)
{
	struct tw_options options = variant_options(*state, (struct tw_options){0});
	struct tw_wheel *wheel;
	atomic_int count = 0;

	assert_status(tw_create(&wheel, INTERVAL, 10, NULL, &options), TW_OK);
	assert_status(tw_set_timer(wheel, "any", 3, NULL, INTERVAL), TW_INVALID);
	assert_status(tw_add_timer(wheel, "any", 3, NULL, INTERVAL), TW_INVALID);
	/* No timer has that key, which is allowed. */
	assert_status(tw_move_timer(wheel, "any", 3, INTERVAL), TW_OK);
	assert_status(tw_remove_timer(wheel, "any", 3), TW_OK);
	assert_status(tw_after_func(wheel, INTERVAL, check_current, &count, NULL), TW_OK);
	assert_int_equal(tw_pending(wheel) <= 1, 1);
	assert_status(tw_advance(wheel, INTERVAL), TW_OK);
	settle_wheel(wheel);
	assert_int_equal(atomic_load(&count), 1);
	tw_destroy(wheel);
}
