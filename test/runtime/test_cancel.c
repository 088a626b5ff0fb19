/* SPDX-License-Identifier: MIT */
/*
 * No call is a cancellation point: a thread that is cancelled while it waits in a call gets its
 * answer first, and the wheel goes on.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/inside.h"
#include "support/recorder.h"
#include "support/script.h"

#include <limits.h>

#include "base/thread.h"

/* The owner is in a task that hangs, so that the call waits. */
#define CANCELLED_IN(call) \
	"set b 2; hold p; after p 0; reached p;" call "; asleep w; cancel w; go p; ended w"
#define GOES_ON "; idle -> p@0; set z 1; left z = 1"

TEST(owner, thread_cancelled_in_a_call_gets_its_answer_first)
{
	static const char *const texts[] = {
		CANCELLED_IN("begin w flush") GOES_ON,
		CANCELLED_IN("begin w idle") GOES_ON,
		CANCELLED_IN("begin w left b") " = 2" GOES_ON,
		CANCELLED_IN("begin w add new 1") GOES_ON,
		CANCELLED_IN("begin w take new") " = NOT_FOUND" GOES_ON,
		CANCELLED_IN("begin w clock 1") GOES_ON,
		CANCELLED_IN("begin w stop_wait p") " = RUNNING" GOES_ON,
		CANCELLED_IN("set c 9; set d 9; set e 9; set f 9; begin w set g 9") GOES_ON,
		CANCELLED_IN("begin w destroy") " -> p@0 b:stopped",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		script_run(*state, (struct tw_options){.queue_capacity = 4}, texts[i], __FILE__,
			   __LINE__);
}

/* A thread makes this call, with a cancellation pending. */
struct call {
	enum tw_status (*make)(struct tw_wheel *wheel);
	struct tw_wheel *wheel;
	enum tw_status status;
};

static void make_cancelled(void *argument)
{
	struct call *call = argument;

	pthread_cancel(pthread_self());
	call->status = call->make(call->wheel);
}

static void assert_goes_to_the_end(enum tw_status (*make)(struct tw_wheel *wheel),
				   struct tw_wheel *wheel)
{
	struct call call = {make, wheel, TW_INVALID};
	struct blocked_call thread;

	blocked_call_start(&thread, make_cancelled, &call);
	blocked_call_end(&thread);
	assert_status(call.status, TW_OK);
}

static enum tw_status set_one(struct tw_wheel *wheel)
{
	return tw_set_timer(wheel, "one", 3, VALUE(2), INTERVAL);
}

static enum tw_status create_and_destroy(struct tw_wheel *wheel)
{
	struct tw_options options = {.clock = TW_CLOCK_BOOTTIME};
	enum tw_status status = tw_create(&wheel, INTERVAL, 8, record_execute, &options);

	tw_destroy(wheel);
	return status;
}

/* A wheel on CLOCK_BOOTTIME has a descriptor; making and closing one are cancellation points. */
TEST(once, thread_with_a_cancellation_pending_wakes_the_owner_all_the_same)
{
	static enum tw_status (*const calls[])(struct tw_wheel *) = {
		set_one, tw_flush, tw_wait_idle, create_and_destroy};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct recorder *recorder = recorder_create();
		struct tw_options options = recorder_options(recorder, &levels_threads);

		options.clock = TW_CLOCK_BOOTTIME;
		recorder_start(recorder, INTERVAL, 8, &options);
		WAIT_UNTIL(wheel_owner_sleeps(recorder->wheel));
		assert_goes_to_the_end(calls[i], recorder->wheel);
		WAIT_UNTIL(i > 0 || times_returned(recorder, 2) == 1);
		recorder_close(recorder);
	}
}

static enum tw_status nap(struct tw_wheel *wheel)
{
	unsigned tries = UINT_MAX;

	thread_back_off(&tries);
	return TW_OK;
}

/* A nap comes between two attempts to read what another thread is writing. */
TEST(once, thread_with_a_cancellation_pending_naps_to_the_end)
{
	assert_goes_to_the_end(nap, NULL);
}
