/* SPDX-License-Identifier: MIT */
/* A thread knows its current task, also in wheels that take timers by handle alone. */
#include "support/test.h"

#include "support/probe.h"

/* Says whether the task is the thread's current one, and this wheel's. */
static bool is_current(const struct tw_task *task, const struct tw_wheel *wheel)
{
	const struct tw_task *current = tw_current_task();

	return current && current->wheel == wheel && current->value == task->value &&
	       current->key_size == task->key_size && current->deadline == task->deadline &&
	       current->lateness == task->lateness && current->timer.id == task->timer.id &&
	       current->run == task->run;
}

static void look_at_current(struct recorder *recorder, const struct tw_task *task)
{
	atomic_int *right = recorder->argument;

	if (is_current(task, recorder->wheel) && tw_current_task()->key == task->key)
		atomic_fetch_add(right, 1);
}

RECORDED(everywhere, execute_release_and_drain_have_their_task)
{
	atomic_int right = 0;

	recorder->argument = &right;
	recorder->on_execute = recorder->on_release = recorder->on_drain = look_at_current;
	assert_null(tw_current_task());
	set_timer(recorder, "executed", 1, INTERVAL);
	set_timer(recorder, "replaced", 2, INTERVAL);
	set_timer(recorder, "replaced", 3, INTERVAL);
	set_timer(recorder, "removed", 4, INTERVAL);
	remove_timer(recorder, "removed");
	pass_ticks(recorder, 1);
	set_timer(recorder, "drained", 5, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	set_timer(recorder, "stopped", 6, INTERVAL);
	stop_wheel(recorder);
	assert_int_equal(event_count(recorder), 6);
	assert_int_equal(right, 6);
	assert_null(tw_current_task());
}

/* Runs of handles and alarms note their task here: their argument knows nothing of the recorder. */
static struct tw_task noted[4];
static atomic_size_t noted_count;

static void note_current(void *argument)
{
	size_t number = atomic_load(&noted_count);

	noted[number] = *tw_current_task();
	atomic_store(&noted_count, number + 1);
}

static void assert_noted(size_t number, const struct tw_wheel *wheel, struct tw_timer timer,
			 tw_duration deadline)
{
	assert_ptr_equal(noted[number].wheel, wheel);
	assert_true(noted[number].run == note_current);
	assert_null(noted[number].key);
	assert_int_equal(noted[number].key_size, 0);
	assert_int_equal(noted[number].timer.id, timer.id);
	assert_int_equal(noted[number].deadline, deadline);
	assert_ptr_equal(noted[number].value, VALUE(number + 1));
}

RECORDED(everywhere, run_without_key_has_its_task)
{
	struct tw_timer once;
	struct tw_timer again;
	struct tw_alarm alarm;

	atomic_store(&noted_count, 0);
	assert_status(tw_after_func(recorder->wheel, INTERVAL, note_current, VALUE(1), &once),
		      TW_OK);
	assert_status(tw_every(recorder->wheel, 2 * INTERVAL, TW_HOUR, TW_MISSED_SKIP, note_current,
			       VALUE(2), &again),
		      TW_OK);
	assert_status(tw_alarm_init(recorder->wheel, &alarm, note_current, VALUE(3)), TW_OK);
	assert_status(tw_alarm_set(&alarm, 3 * INTERVAL), TW_OK);
	pass_ticks(recorder, 3);
	assert_int_equal(atomic_load(&noted_count), 3);
	assert_noted(0, recorder->wheel, once, INTERVAL);
	assert_noted(1, recorder->wheel, again, 2 * INTERVAL);
	assert_noted(2, recorder->wheel, (struct tw_timer){0}, 3 * INTERVAL);
	tw_alarm_destroy(&alarm);
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
	tw_destroy(nest.inner);
}

TEST(everywhere, wheel_without_execute_takes_timers_by_handle_alone)
{
	struct tw_options options = variant_options(*state, (struct tw_options){0});
	struct tw_wheel *wheel;
	struct tw_timer timer;

	atomic_store(&noted_count, 0);
	assert_status(tw_create(&wheel, INTERVAL, 10, NULL, &options), TW_OK);
	assert_status(tw_set_timer(wheel, "any", 3, NULL, INTERVAL), TW_INVALID);
	assert_status(tw_add_timer(wheel, "any", 3, NULL, INTERVAL), TW_INVALID);
	/* No timer has that key, which is allowed. */
	assert_status(tw_move_timer(wheel, "any", 3, INTERVAL), TW_OK);
	assert_status(tw_remove_timer(wheel, "any", 3), TW_OK);
	assert_status(tw_after_func(wheel, INTERVAL, note_current, VALUE(1), &timer), TW_OK);
	assert_int_equal(tw_pending(wheel) <= 1, 1);
	assert_status(tw_advance(wheel, INTERVAL), TW_OK);
	settle_wheel(wheel);
	assert_int_equal(atomic_load(&noted_count), 1);
	assert_noted(0, wheel, timer, INTERVAL);
	tw_destroy(wheel);
}
