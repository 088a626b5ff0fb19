/* SPDX-License-Identifier: MIT */
/*
 * tw_destroy in a task, a release or a drain function of its own wheel stops it at once. All values
 * come back, and threads and memory are gone after the last of these functions has returned.
 */
#include "support/test.h"

#include "support/gate.h"
#include "support/recorder.h"
#include "support/wait.h"

#include <dirent.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TIMERS = 3 };

/* The functions of the wheel that ends use these. */
static struct {
	struct tw_wheel *wheel;
	struct tw_alarm *alarm;
	struct gate gate; /* holds functions up */
	bool is_driven;   /* they run inside a call of the main thread, and are not held up */
	bool releases_destroy;
	atomic_int destroyed;
	atomic_int begun; /* runs after the end */
	atomic_int released;
	atomic_int closed;
	atomic_int wrong; /* wrong answers after the end */
} end;

/* Counts the threads of all wheels. */
static int thread_count(void)
{
	DIR *directory = opendir("/proc/self/task");
	const struct dirent *entry;
	int count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory))) {
		char name[4] = "";
		char path[300];
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		count += fgets(name, sizeof(name), file) && strcmp(name, "tw-") == 0;
		fclose(file);
	}
	closedir(directory);
	return count;
}

static void count_closed(void *argument)
{
	(void)argument;
	atomic_fetch_add(&end.closed, 1);
}

static void destroy(void)
{
	if (!end.is_driven)
		gate_pass(&end.gate);
	tw_destroy(end.wheel);
	if (atomic_fetch_add(&end.destroyed, 1) == 0)
		(void)tw_alarm_close(end.alarm, count_closed);
	/* Its own run can still make calls. */
	atomic_fetch_add(&end.wrong, tw_set_timer(end.wheel, "x", 1, NULL, 1) != TW_CLOSED);
	atomic_fetch_add(&end.wrong, tw_flush(end.wheel) == TW_OK);
	atomic_fetch_add(&end.wrong, !tw_current_task() || tw_current_task()->wheel != end.wheel);
}

static void destroy_in_run(void *argument)
{
	(void)argument;
	destroy();
}

static void destroy_in_task(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	destroy();
}

static void count_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	(void)context;
	(void)task;
	if (reason == TW_REMOVED)
		destroy();
	else if (end.releases_destroy)
		tw_destroy(end.wheel);
	atomic_fetch_add(&end.released, reason == TW_STOPPED);
}

static void beat(void *argument)
{
	(void)argument;
	atomic_fetch_add(&end.begun, atomic_load(&end.destroyed) > 0);
}

static void end_open_with(const struct variant *variant, struct tw_options more)
{
	struct tw_options options = variant_options(variant, more);

	options.release = count_release;
	memset(&end, 0, sizeof(end));
	gate_init(&end.gate);
	end.is_driven = variant->workers < 0 && variant->drive != TW_DRIVE_THREAD;
	assert_status(tw_create(&end.wheel, INTERVAL, 8, destroy_in_task, &options), TW_OK);
	assert_status(tw_alarm_create(end.wheel, beat, NULL, &end.alarm), TW_OK);
	assert_status(tw_alarm_set(end.alarm, 10 * INTERVAL), TW_OK);
	assert_status(
		tw_every(end.wheel, 10 * INTERVAL, INTERVAL, TW_MISSED_SKIP, beat, NULL, NULL),
		TW_OK);
	for (char key = 1; key < TIMERS; key++)
		assert_status(tw_set_timer(end.wheel, &key, 1, NULL, TW_HOUR), TW_OK);
}

static void end_open(const struct variant *variant)
{
	end_open_with(variant, (struct tw_options){0});
}

/* Starts the timers. This is the main thread's last call, and returns before a function that is
 * held up goes on. */
static void end_begin(const struct variant *variant)
{
	if (variant->drive != TW_DRIVE_THREAD)
		assert_status(tw_poll(end.wheel, NULL), end.is_driven ? TW_CLOSED : TW_OK);
}

static void let_go(int functions)
{
	for (int i = 0; i < functions && !end.is_driven; i++)
		gate_await(&end.gate);
	for (int i = 0; i < functions && !end.is_driven; i++)
		gate_open(&end.gate);
}

static void assert_ended(int destroyed)
{
	if (!end.is_driven)
		WAIT_UNTIL(thread_count() == 0);
	assert_int_equal(thread_count(), 0);
	assert_int_equal(atomic_load(&end.destroyed), destroyed);
	assert_int_equal(atomic_load(&end.released), TIMERS);
	assert_int_equal(atomic_load(&end.closed), 1);
	assert_int_equal(atomic_load(&end.begun), 0);
	assert_int_equal(atomic_load(&end.wrong), 0);
}

static void run_may_destroy_its_wheel(void **state)
{
	end_open(*state);
	assert_status(tw_after_func(end.wheel, 0, destroy_in_run, NULL, NULL), TW_OK);
	end_begin(*state);
	let_go(1);
	assert_ended(1);
}

static void task_of_a_key_may_destroy_its_wheel(void **state)
{
	end_open(*state);
	assert_status(tw_set_timer(end.wheel, "now", 3, NULL, TW_HOUR), TW_OK);
	assert_status(tw_move_timer(end.wheel, "now", 3, 1), TW_OK);
	end_begin(*state);
	let_go(1);
	assert_ended(1);
}

static void release_may_destroy_its_wheel(void **state)
{
	end_open(*state);
	assert_status(tw_set_timer(end.wheel, "gone", 4, NULL, TW_HOUR), TW_OK);
	assert_status(tw_remove_timer(end.wheel, "gone", 4), TW_OK);
	end_begin(*state);
	let_go(1);
	assert_ended(1);
}

/* Each of the drained timers calls tw_destroy. */
static void drain_function_may_destroy_its_wheel(void **state)
{
	const struct variant *variant = *state;
	int at_a_time = variant->workers > 0 ? 2 : 1;

	end_open(variant);
	assert_status(tw_drain(end.wheel, destroy_in_task, NULL), TW_OK);
	end_begin(variant);
	for (int i = 0; i < TIMERS && !end.is_driven; i += at_a_time)
		let_go(at_a_time < TIMERS - i ? at_a_time : TIMERS - i);
	atomic_fetch_add(&end.released, TIMERS);
	assert_ended(TIMERS);
}

static void only_worker_may_destroy_its_wheel(void **state)
{
	end_open_with(*state, (struct tw_options){.workers = 1, .max_workers = 1});
	assert_status(tw_after_func(end.wheel, 0, destroy_in_run, NULL, NULL), TW_OK);
	end_begin(*state);
	let_go(1);
	assert_ended(1);
}

static void two_runs_may_destroy_their_wheel(void **state)
{
	end_open(*state);
	assert_status(tw_after_func(end.wheel, 0, destroy_in_run, NULL, NULL), TW_OK);
	assert_status(tw_after_func(end.wheel, 0, destroy_in_run, NULL, NULL), TW_OK);
	end_begin(*state);
	let_go(2);
	assert_ended(2);
}

static void release_of_the_end_may_call_it_again(void **state)
{
	end_open(*state);
	end.releases_destroy = true;
	assert_status(tw_after_func(end.wheel, 0, destroy_in_run, NULL, NULL), TW_OK);
	end_begin(*state);
	let_go(1);
	assert_ended(1);
	end_open(*state);
	end.releases_destroy = true;
	assert_status(tw_alarm_close(end.alarm, count_closed), TW_OK);
	tw_destroy(end.wheel);
	assert_ended(0);
}

static void call_until_the_wheel_is_destroyed(void *argument)
{
	(void)argument;
	sem_post(&end.gate.reached);
	while (atomic_load(&end.destroyed) == 0)
		sched_yield();
	for (int i = 0; i < 100; i++) {
		wait_for(100 * TW_MICROSECOND);
		atomic_fetch_add(&end.wrong, tw_flush(end.wheel) != TW_CLOSED);
	}
}

static void end_waits_for_the_runs_that_are_under_way(void **state)
{
	end_open(*state);
	assert_status(tw_after_func(end.wheel, 0, call_until_the_wheel_is_destroyed, NULL, NULL),
		      TW_OK);
	assert_status(tw_after_func(end.wheel, 0, destroy_in_run, NULL, NULL), TW_OK);
	end_begin(*state);
	gate_await(&end.gate);
	let_go(1);
	assert_ended(1);
}

/* ---- Calls that run tasks ---- */

static void each_call_that_runs_tasks_ends_the_wheel(void **state)
{
	for (int call = 0; call < 3; call++) {
		end_open(*state);
		assert_status(tw_after_func(end.wheel, INTERVAL, destroy_in_run, NULL, NULL),
			      TW_OK);
		if (call != 0)
			assert_status(tw_after_func(end.wheel, 0, destroy_in_run, NULL, NULL),
				      TW_OK);
		if (call == 0)
			assert_status(tw_advance(end.wheel, 20 * INTERVAL), TW_CLOSED);
		else if (call == 1)
			settle_wheel(end.wheel);
		else
			assert_status(tw_poll(end.wheel, NULL), TW_CLOSED);
		atomic_fetch_sub(&end.released, call != 0);
		assert_ended(1);
	}
}

static void stop_whose_release_destroys_the_wheel_ends_it(void **state)
{
	end_open(*state);
	end.releases_destroy = true;
	assert_status(tw_alarm_close(end.alarm, count_closed), TW_OK);
	assert_status(tw_stop(end.wheel), TW_OK);
	assert_ended(0);
}

static const struct CMUnitTest tests[] = {
	TEST_EVERYWHERE(run_may_destroy_its_wheel),
	TEST_EVERYWHERE(task_of_a_key_may_destroy_its_wheel),
	TEST_EVERYWHERE(release_may_destroy_its_wheel),
	TEST_EVERYWHERE(drain_function_may_destroy_its_wheel),
	TEST_POOL(only_worker_may_destroy_its_wheel),
	TEST_POOL(two_runs_may_destroy_their_wheel),
	TEST_EVERYWHERE(release_of_the_end_may_call_it_again),
	TEST_POOL(end_waits_for_the_runs_that_are_under_way),
	TEST_DRIVEN(each_call_that_runs_tasks_ends_the_wheel),
	TEST_DRIVEN(stop_whose_release_destroys_the_wheel_ends_it),
};

TEST_PROGRAM(tests)
