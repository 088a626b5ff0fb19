/* SPDX-License-Identifier: MIT */
/*
 * No call is a cancellation point: a thread that is cancelled while it waits in a call gets its
 * answer first, and the wheel goes on.
 */
#include "support/test.h"

#include "support/gate.h"
#include "support/inside.h"
#include "support/recorder.h"

#include <limits.h>

#include "base/thread.h"

/* A thread makes this call and is cancelled in it. */
struct call {
	enum tw_status (*make)(struct call *);
	struct recorder *recorder;
	struct tw_timer timer;
	struct gate gate; /* holds a task */
	pthread_t thread;
	atomic_int id; /* the thread's system id */
	bool is_cancelled_before;
	bool returned;
	enum tw_status status;
};

static void *make_call(void *argument)
{
	struct call *call = argument;

	if (call->is_cancelled_before)
		pthread_cancel(pthread_self());
	atomic_store(&call->id, gettid());
	call->status = call->make(call);
	call->returned = true;
	pthread_testcancel();
	return NULL;
}

static void call_start(struct call *call)
{
	assert_int_equal(pthread_create(&call->thread, NULL, make_call, call), 0);
}

static void call_is_cancelled_asleep(struct call *call)
{
	WAIT_UNTIL(atomic_load(&call->id) && thread_is_asleep(atomic_load(&call->id)));
	pthread_cancel(call->thread);
}

static void call_starts_and_is_cancelled(struct call *call)
{
	call_start(call);
	call_is_cancelled_asleep(call);
}

static void call_returns(struct call *call, enum tw_status status)
{
	void *result;

	pthread_join(call->thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(call->returned);
	assert_status(call->status, status);
}

static void wait_to_go_on(void *argument)
{
	struct call *call = argument;

	gate_pass(&call->gate);
}

static void wait_with_value_1(struct recorder *recorder, const struct tw_task *task)
{
	if (task->value == VALUE(1))
		wait_to_go_on(recorder->argument);
}

static struct recorder *open_for(struct call *call, const struct variant *variant)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, variant);

	options.queue_capacity = 4;
	gate_init(&call->gate);
	call->recorder = recorder;
	recorder->argument = call;
	recorder->on_execute = wait_with_value_1;
	recorder_start(recorder, INTERVAL, 8, &options);
	return recorder;
}

static enum tw_status flush(struct call *call)
{
	return tw_flush(call->recorder->wheel);
}

static enum tw_status wait_idle(struct call *call)
{
	return tw_wait_idle(call->recorder->wheel);
}

static enum tw_status look_up(struct call *call)
{
	tw_duration remaining;

	return tw_contains(call->recorder->wheel, "pending", 7, &remaining);
}

static enum tw_status add(struct call *call)
{
	return tw_add_timer(call->recorder->wheel, "new", 3, VALUE(5), INTERVAL);
}

static enum tw_status take(struct call *call)
{
	void *value;

	return tw_take_timer(call->recorder->wheel, "new", 3, &value) == TW_NOT_FOUND ? TW_OK
										      : TW_INVALID;
}

static enum tw_status advance_by_one(struct call *call)
{
	return tw_advance(call->recorder->wheel, INTERVAL);
}

static enum tw_status stop_and_wait(struct call *call)
{
	return tw_timer_stop_wait(call->recorder->wheel, call->timer) == TW_RUNNING ? TW_OK
										    : TW_INVALID;
}

static enum tw_status set_until_full(struct call *call)
{
	enum tw_status status = TW_OK;

	for (int i = 0; i < 5 && status == TW_OK; i++)
		status = tw_set_timer(call->recorder->wheel, "many", 4, VALUE(4), INTERVAL);
	return status;
}

static enum tw_status destroy(struct call *call)
{
	tw_destroy(call->recorder->wheel);
	call->recorder->wheel = NULL;
	return TW_OK;
}

TEST(owner, thread_cancelled_in_a_call_gets_its_answer_first)
{
	static enum tw_status (*const calls[])(struct call *) = {
		flush,          wait_idle,     look_up,        add,    take,
		advance_by_one, stop_and_wait, set_until_full, destroy};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct call call = {.make = calls[i]};
		struct recorder *recorder = open_for(&call, *state);

		set_timer(recorder, "pending", 2, 2 * INTERVAL);
		assert_status(tw_after_func(recorder->wheel, 0, wait_to_go_on, &call, &call.timer),
			      TW_OK);
		gate_await(&call.gate);
		call_starts_and_is_cancelled(&call);
		gate_open(&call.gate);
		call_returns(&call, TW_OK);
		if (recorder->wheel) {
			set_timer(recorder, "after", 3, INTERVAL);
			pass_ticks(recorder, 3);
			assert_executed_at(recorder, 3, event_of(recorder, 3).now);
		}
		assert_int_equal(times_returned(recorder, 2), 1);
		recorder_close(recorder);
	}
}

static enum tw_status set_one(struct call *call)
{
	return tw_set_timer(call->recorder->wheel, "one", 3, VALUE(2), INTERVAL);
}

static enum tw_status create_and_destroy(struct call *call)
{
	struct tw_options options = {.clock = TW_CLOCK_BOOTTIME};
	struct tw_wheel *wheel;
	enum tw_status status = tw_create(&wheel, INTERVAL, 8, record_execute, &options);

	tw_destroy(wheel);
	return status;
}

static struct recorder *open_on_boottime(void)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, &levels_threads);

	options.clock = TW_CLOCK_BOOTTIME;
	recorder_start(recorder, INTERVAL, 8, &options);
	return recorder;
}

/* A wheel on CLOCK_BOOTTIME has a descriptor; making and closing one are cancellation points. */
TEST(once, thread_with_a_cancellation_pending_wakes_the_owner_all_the_same)
{
	static enum tw_status (*const calls[])(struct call *) = {set_one, flush, wait_idle,
								 create_and_destroy};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct call call = {.make = calls[i], .is_cancelled_before = true};
		struct recorder *recorder = open_on_boottime();

		call.recorder = recorder;
		WAIT_UNTIL(wheel_owner_sleeps(recorder->wheel));
		call_start(&call);
		call_returns(&call, TW_OK);
		WAIT_UNTIL(i > 0 || times_returned(recorder, 2) == 1);
		recorder_close(recorder);
	}
}

static enum tw_status nap(struct call *call)
{
	unsigned tries = UINT_MAX;

	thread_back_off(&tries);
	return TW_OK;
}

/* A nap comes between two attempts to read what another thread is writing. */
TEST(once, thread_with_a_cancellation_pending_naps_to_the_end)
{
	struct call call = {.make = nap, .is_cancelled_before = true};

	call_start(&call);
	call_returns(&call, TW_OK);
}
