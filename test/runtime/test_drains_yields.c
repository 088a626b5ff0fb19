/* SPDX-License-Identifier: MIT */
/*
 * The thread that drives a wheel is held up before each of its atomic operations in turn, while
 * another thread sets a timer, drains, and sets the timer again: these take effect in this order.
 * This runs with the library of test_histories_yields.
 */
#include "support/test.h"

#include "support/gate.h"
#include "support/recorder.h"
#include "support/yields/yield.h"

enum { OPERATIONS_LEAST = 8 };

static struct setter {
	struct recorder *recorder;
	struct gate gate;
	bool ends;
	/* The driving thread counts its operations down to the one where it is held up. */
	int operations;
} setter;

static void *setter_run(void *unused)
{
	for (gate_pass(&setter.gate); !setter.ends; gate_pass(&setter.gate)) {
		struct tw_wheel *wheel = setter.recorder->wheel;

		if (tw_set_timer(wheel, "a", 1, VALUE(1), TW_HOUR) != TW_OK ||
		    tw_drain(wheel, record_drain, setter.recorder) != TW_OK ||
		    tw_set_timer(wheel, "a", 1, VALUE(2), TW_HOUR) != TW_OK)
			abort();
	}
	return unused;
}

static void setter_goes_on(void)
{
	gate_open(&setter.gate);
	gate_await(&setter.gate);
}

static void hold_up(void)
{
	if (--setter.operations == 0)
		setter_goes_on();
}

/* Returns false if the turn has fewer operations. */
static bool turn_is_held_up_at(int operation, const struct variant *variant)
{
	struct recorder *recorder = recorder_open(variant, 10);

	setter.recorder = recorder;
	setter.operations = operation;
	yield_instead = hold_up;
	assert_status(tw_poll(recorder->wheel, NULL), TW_OK);
	yield_instead = NULL;
	if (setter.operations <= 0) {
		settle(recorder);
		assert_drained(recorder, 1);
		assert_int_equal(event_count(recorder), 1);
		assert_int_equal(tw_pending(recorder->wheel), 1);
	}
	recorder_close(recorder);
	return setter.operations <= 0;
}

TEST(inline, drain_comes_between_two_sets_of_its_thread)
{
	pthread_t thread;
	int operation = 1;

	setter.ends = false;
	gate_init(&setter.gate);
	assert_int_equal(pthread_create(&thread, NULL, setter_run, NULL), 0);
	gate_await(&setter.gate);
	while (turn_is_held_up_at(operation, *state))
		operation++;
	assert_true(operation > OPERATIONS_LEAST);
	setter.ends = true;
	gate_open(&setter.gate);
	pthread_join(thread, NULL);
}
