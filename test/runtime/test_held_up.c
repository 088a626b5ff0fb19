/* SPDX-License-Identifier: MIT */
/*
 * A producer that is stopped between the claim of a cell and its publication delays the commands
 * and requests behind it. The threads that wait for it yield a few times, then nap: otherwise the
 * producer would never run on a processor where the owner has a higher priority. The claim is made
 * by hand here, and published late.
 */
#include "support/test.h"

#include "support/inside.h"
#include "support/recorder.h"

/* Returns the processor time of all threads. */
static int64_t processor_time(void)
{
	struct timespec time;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
	return time.tv_sec * TW_SECOND + time.tv_nsec;
}

struct call {
	struct recorder *recorder;
	pthread_t thread;
	atomic_int id; /* the thread's system id */
	enum tw_status status;
	struct half_command half[2];
};

static void *flush(void *argument)
{
	struct call *call = argument;

	call->status = tw_flush(call->recorder->wheel);
	return NULL;
}

/* An owner that does not nap would turn all the time. */
RECORDED(everywhere, owner_naps_while_a_command_is_half_written)
{
	struct half_command half;
	struct call call = {.recorder = recorder};
	int64_t began;
	int64_t used;

	flush_wheel(recorder);
	half = half_command_begin(recorder->wheel);
	began = wall_clock();
	used = processor_time();
	assert_int_equal(pthread_create(&call.thread, NULL, flush, &call), 0);
	wait_for(200 * TW_MILLISECOND);
	used = processor_time() - used;
	assert_true(used <= (wall_clock() - began) / 2);
	half_command_end(&half);
	pthread_join(call.thread, NULL);
	assert_status(call.status, TW_OK);
}

TEST(threads, timers_run_while_a_command_is_half_written)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);
	struct half_command half;

	options.clock = TW_CLOCK_MONOTONIC;
	recorder_start(recorder, INTERVAL, 8, &options);
	set_timer(recorder, "before", 1, 5 * INTERVAL);
	flush_wheel(recorder);
	half = half_command_begin(recorder->wheel);
	set_timer(recorder, "behind", 2, INTERVAL);
	WAIT_UNTIL(times_returned(recorder, 1) == 1);
	assert_not_returned(recorder, 2);
	half_command_end(&half);
	WAIT_UNTIL(times_returned(recorder, 2) == 1);
	recorder_close(recorder);
}

/* A queue of two is full of half commands when an inline task sets a timer. */
static void set_in_full_queue(struct recorder *recorder, const struct tw_task *task)
{
	struct call *call = recorder->argument;

	if (task->value != VALUE(1))
		return;
	call->half[0] = half_command_begin(recorder->wheel);
	call->half[1] = half_command_begin(recorder->wheel);
	atomic_store(&call->id, gettid());
	call->status = tw_set_timer(recorder->wheel, "more", 4, VALUE(2), INTERVAL);
}

static void *advance_by_one(void *argument)
{
	struct recorder *recorder = argument;

	(void)tw_advance(recorder->wheel, INTERVAL);
	return NULL;
}

RECORDED(inline, task_that_fills_the_queue_naps_while_a_command_is_half_written,
	 .queue_capacity = 2)
{
	struct call call = {.recorder = recorder, .status = TW_INVALID};

	recorder->argument = &call;
	recorder->on_execute = set_in_full_queue;
	set_timer(recorder, "first", 1, INTERVAL);
	flush_wheel(recorder);
	assert_int_equal(pthread_create(&call.thread, NULL, advance_by_one, recorder), 0);
	WAIT_UNTIL(atomic_load(&call.id) && thread_is_asleep(atomic_load(&call.id)));
	half_command_end(&call.half[0]);
	half_command_end(&call.half[1]);
	pthread_join(call.thread, NULL);
	settle(recorder);
	assert_status(call.status, TW_OK);
}
