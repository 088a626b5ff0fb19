/* SPDX-License-Identifier: MIT */
/* In a task, a release or a drain function tw_destroy does nothing; tw_stop stops the wheel there.
 */
#include "support/test.h"

#include "support/recorder.h"

/* The functions of the wheel use these. */
static struct {
	struct tw_wheel *wheel;
	struct tw_alarm alarm;
	struct tw_alarm closing;
	pthread_key_t key;
	atomic_int called;
	atomic_int wrong; /* answers */
	atomic_int runs;
	atomic_bool is_stopped;
} end;

static void expect(enum tw_status status, enum tw_status expected)
{
	atomic_fetch_add(&end.wrong, status != expected);
}

static void destroy(void)
{
	expect(tw_destroy(end.wheel), TW_INVALID);
	atomic_fetch_add(&end.called, 1);
}

static void destroy_in_run(void *argument)
{
	destroy();
}

static void destroy_in_task(void *context, const struct tw_task *task)
{
	destroy();
}

static void destroy_in_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	destroy();
}

static tw_duration destroy_in_next(void *argument, tw_duration previous)
{
	if (tw_current_task())
		destroy();
	return tw_current_task() ? previous : previous + INTERVAL;
}

static void count_run(void *argument)
{
	atomic_fetch_add(&end.runs, 1);
}

static void end_open(const struct variant *variant)
{
	struct tw_options options =
		variant_options(variant, (struct tw_options){.release = destroy_in_release});

	memset(&end, 0, sizeof(end));
	assert_status(tw_create(&end.wheel, INTERVAL, 8, destroy_in_task, &options), TW_OK);
}

TEST(everywhere, wheel_goes_on_after_a_destroy_in_one_of_its_functions)
{
	end_open(*state);
	assert_status(tw_set_timer(end.wheel, "drained", 7, NULL, TW_HOUR), TW_OK);
	assert_status(tw_drain(end.wheel, destroy_in_task, NULL), TW_OK);
	assert_status(tw_set_timer(end.wheel, "removed", 7, NULL, TW_HOUR), TW_OK);
	assert_status(tw_remove_timer(end.wheel, "removed", 7), TW_OK);
	assert_status(tw_set_timer(end.wheel, "runs", 4, NULL, INTERVAL), TW_OK);
	assert_status(tw_after_func(end.wheel, INTERVAL, destroy_in_run, NULL, NULL), TW_OK);
	assert_status(tw_schedule_func(end.wheel, destroy_in_next, count_run, NULL, NULL), TW_OK);
	assert_status(tw_alarm_init(end.wheel, &end.alarm, destroy_in_run, NULL), TW_OK);
	assert_status(tw_alarm_set(&end.alarm, INTERVAL), TW_OK);
	assert_status(tw_alarm_init(end.wheel, &end.closing, count_run, NULL), TW_OK);
	assert_status(tw_alarm_close(&end.closing, destroy_in_run), TW_OK);
	assert_status(tw_advance(end.wheel, INTERVAL), TW_OK);
	settle_wheel(end.wheel);
	assert_int_equal(atomic_load(&end.called), 7);
	assert_int_equal(atomic_load(&end.runs), 1);
	assert_status(tw_after_func(end.wheel, INTERVAL, count_run, NULL, NULL), TW_OK);
	assert_status(tw_advance(end.wheel, INTERVAL), TW_OK);
	settle_wheel(end.wheel);
	assert_int_equal(atomic_load(&end.runs), 2);
	assert_status(tw_destroy(end.wheel), TW_OK);
	assert_int_equal(atomic_load(&end.wrong), 0);
}

static void stop_and_destroy(void *argument)
{
	expect(tw_stop(end.wheel), TW_OK);
	atomic_store(&end.is_stopped, true);
	destroy();
}

TEST(everywhere, task_may_stop_its_wheel_which_another_thread_destroys)
{
	end_open(*state);
	assert_status(tw_set_timer(end.wheel, "released", 8, NULL, TW_HOUR), TW_OK);
	assert_status(tw_after_func(end.wheel, INTERVAL, stop_and_destroy, NULL, NULL), TW_OK);
	may_fail(tw_advance(end.wheel, INTERVAL));
	WAIT_UNTIL(atomic_load(&end.is_stopped));
	assert_status(tw_destroy(end.wheel), TW_OK);
	assert_int_equal(atomic_load(&end.called), 2);
	assert_int_equal(atomic_load(&end.wrong), 0);
}

static void destroy_in_destructor(void *value)
{
	destroy();
}

static void set_specific(void *argument)
{
	pthread_setspecific(end.key, argument);
}

TEST(with_threads, destructor_of_a_threads_data_does_not_destroy_the_threads_wheel)
{
	end_open(*state);
	assert_int_equal(pthread_key_create(&end.key, destroy_in_destructor), 0);
	assert_status(tw_after_func(end.wheel, INTERVAL, set_specific, &end, NULL), TW_OK);
	assert_status(tw_advance(end.wheel, INTERVAL), TW_OK);
	settle_wheel(end.wheel);
	assert_status(tw_destroy(end.wheel), TW_OK);
	assert_int_equal(atomic_load(&end.called), 1);
	assert_int_equal(atomic_load(&end.wrong), 0);
	pthread_key_delete(end.key);
}
