/* SPDX-License-Identifier: MIT */
/* In a task, a release or a drain function tw_destroy does nothing; tw_stop stops the wheel there.
 */
#include "support/test.h"

#include "support/script.h"

/* These are a drained and a removed timer, a key's and a handle's task, and an alarm's two
 * functions. */
SCRIPT(everywhere, wheel_goes_on_after_a_destroy_in_one_of_its_functions,
       "in a: destroy = INVALID; in b: destroy = INVALID; in c: destroy = INVALID;"
       "in p: destroy = INVALID; in x: destroy = INVALID; in y: destroy = INVALID; set a 1h; drain;"
       "set b 1h; remove b; set c 1; after p 1; alarm x; set x 1; alarm y; close y;"
       "pass 1 -> a:drained b:removed c@1 p@1 x@1 y:closed; after q 1; pass 1 -> q@2; destroy")
SCRIPT(everywhere, task_may_stop_its_wheel_which_another_thread_destroys,
       "in p: stop, destroy = INVALID; in a: destroy = INVALID; set a 1h; after p 1; clock 1 = any;"
       "idle -> p@1 a:stopped; destroy")

SCRIPT(everywhere, wheel_goes_on_after_a_destroy_in_a_schedule,
       "asking p 2: destroy = INVALID; schedule p 1 1; pass 1 -> p@1; destroy")

/* The wheel's functions use these. */
static struct {
	struct tw_wheel *wheel;
	pthread_key_t key;
	atomic_int called;
	atomic_int wrong; /* answers */
} end;

static void end_open(const struct variant *variant)
{
	struct tw_options options = variant_options(variant, (struct tw_options){0});

	memset(&end, 0, sizeof(end));
	assert_status(tw_create(&end.wheel, INTERVAL, 8, ignore_task, &options), TW_OK);
}

static void destroy_in_destructor(void *value)
{
	atomic_fetch_add(&end.wrong, tw_destroy(end.wheel) != TW_INVALID);
	atomic_fetch_add(&end.called, 1);
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

/* An alarm that is set for now in a task, and the task's thread, by the system's number. */
struct last_alarm {
	struct tw_alarm alarm;
	atomic_int thread;
};

static void set_for_now_and_stop(void *argument)
{
	struct last_alarm *last = argument;

	assert_status(tw_alarm_set(&last->alarm, 0), TW_OK);
	assert_status(tw_stop(end.wheel), TW_OK);
	atomic_store(&last->thread, gettid());
}

/* The alarm, which was to run in the next turn, does not run. */
TEST(owner, owner_sleeps_though_the_stop_left_it_an_alarm_for_now)
{
	struct last_alarm last = {.thread = 0};

	end_open(*state);
	assert_status(tw_alarm_init(end.wheel, &last.alarm, set_for_now_and_stop, &last), TW_OK);
	assert_status(tw_alarm_set(&last.alarm, 0), TW_OK);
	WAIT_UNTIL(atomic_load(&last.thread) != 0);
	WAIT_UNTIL(thread_is_asleep(atomic_load(&last.thread)));
	assert_status(tw_destroy(end.wheel), TW_OK);
}
