/* SPDX-License-Identifier: MIT */
/*
 * Threads that cannot start, walks and drains without memory; test_calls_faults has each failure of
 * each call. The library's allocations are linked to come here first.
 */
#include "support/test.h"

#include "faults/faults.h"
#include "support/recorder.h"
#include "support/stats.h"

#include <semaphore.h>

/* It is stored in memory of its own. */
enum { LONGEST_KEY = 1000 };

/* Some of these wheels may grow, so that they have one thread more. */
TEST(once, wheel_whose_threads_cannot_all_start_ends_those_that_did)
{
	struct tw_options options = {.clock = TW_CLOCK_MANUAL};
	struct tw_wheel *wheel;
	size_t threads;

	/* The thread sanitizer starts one of its own with the first. */
	assert_status(tw_create(&wheel, INTERVAL, 10, record_execute, &options), TW_OK);
	tw_destroy(wheel);
	WAIT_UNTIL(count_threads() <= 2);
	threads = count_threads();
	for (options.workers = 1; options.workers <= 4; options.workers++) {
		/* This includes the owner's thread. */
		int started = options.workers + 1 + options.workers % 2;

		options.max_workers = options.workers + options.workers % 2;
		for (int failing = 1; failing <= started; failing++) {
			fail_thread(failing);
			errno = 0;
			assert_status(tw_create(&wheel, INTERVAL, 10, record_execute, &options),
				      TW_SYSTEM);
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(threads_until_fault(), 0);
			WAIT_UNTIL(count_threads() == threads);
		}
	}
	fail_thread(0);
}

struct hold {
	sem_t gate;
	atomic_int begun;
};

static void pass_gate(void *argument)
{
	struct hold *hold = argument;

	atomic_fetch_add(&hold->begun, 1);
	while (sem_wait(&hold->gate) != 0)
		continue;
}

/* The pool's first attempt to grow fails. On a busy machine it would want a fourth worker. */
TEST(pool, worker_that_cannot_start_is_tried_again)
{
	const struct variant *variant = *state;
	struct tw_options options = {
		.drive = variant->drive, .clock = TW_CLOCK_MANUAL, .max_workers = 3};
	struct tw_wheel *wheel;
	struct hold hold = {.begun = 0};

	sem_init(&hold.gate, 0, 0);
	assert_status(tw_create(&wheel, INTERVAL, 10, record_execute, &options), TW_OK);
	fail_thread(1);
	for (int i = 0; i < 3; i++)
		assert_status(tw_after_func(wheel, 0, pass_gate, &hold, NULL), TW_OK);
	assert_status(tw_advance(wheel, 0), TW_OK);
	WAIT_UNTIL(atomic_load(&hold.begun) == 3);
	assert_int_equal(threads_until_fault(), 0);
	assert_int_equal(stats_of_wheel(wheel).workers, 3);
	for (int i = 0; i < 3; i++)
		sem_post(&hold.gate);
	assert_status(tw_wait_idle(wheel), TW_OK);
	assert_int_equal(stats_of_wheel(wheel).fired, 3);
	tw_destroy(wheel);
	sem_destroy(&hold.gate);
}

static int count_keys(void *count, const struct tw_pending_timer *timer)
{
	*(size_t *)count += timer->key_size == LONGEST_KEY;
	return 1;
}

/* The walk must allocate more room for some of these long keys. */
RECORDED(everywhere, walk_without_memory_says_so_and_changes_nothing)
{
	enum { MANY = 5, LONG_ONE = 60000 };
	char *key = calloc(1, LONG_ONE);
	enum tw_status status = TW_NO_MEMORY;
	size_t count = 0;
	long failures = 0;

	assert_non_null(key);
	for (int i = 0; i < MANY; i++) {
		key[0] = (char)i;
		assert_status(tw_set_timer(recorder->wheel, key, LONGEST_KEY, NULL, TW_HOUR),
			      TW_OK);
	}
	assert_status(tw_set_timer(recorder->wheel, key, LONG_ONE, NULL, TW_HOUR), TW_OK);
	free(key);
	settle(recorder);
	for (; status == TW_NO_MEMORY; failures++) {
		count = 0;
		fail_allocation(failures + 1, false);
		status = tw_each(recorder->wheel, count_keys, &count);
		assert_int_equal(end_faults(), status == TW_NO_MEMORY);
	}
	assert_status(status, TW_OK);
	assert_int_equal(count, MANY);
	/* These are for the timers and their keys, and again with the longer one. */
	assert_int_equal(failures, 5);
	assert_int_equal(tw_pending(recorder->wheel), MANY + 1);
}

/* There are more than the drains that may run at a time. */
RECORDED(inline, drains_without_memory_leave_room_for_others)
{
	for (int i = 0; i < 100; i++) {
		fail_allocation(1, false);
		assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_NO_MEMORY);
		assert_true(end_faults());
	}
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
}
