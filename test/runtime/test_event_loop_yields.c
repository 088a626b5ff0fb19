/* SPDX-License-Identifier: MIT */
/*
 * A worker is held up before each of its atomic operations after a task, and then again after that
 * operation. Meanwhile the program, which polls the wheel, sleeps at its descriptor, and another
 * thread then drives the wheel. The program is still notified of the timers held back for want of
 * room in the pool. This runs with the library of test_histories_yields.
 */
#include "support/test.h"

#include "runtime/ask.h"
#include "runtime/owner.h"
#include "support/blocked_call.h"
#include "support/gate.h"
#include "support/wait.h"
#include "support/yields/yield.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { TIMERS = 3, LOOKS = 20, LONG_MS = 10000 };

static struct trial {
	struct tw_wheel *wheel;
	int descriptor;
	atomic_int runs;
	/* These belong to the worker. */
	atomic_int id; /* its system id */
	struct gate task;
	struct gate gate;
	int operations; /* countdown to the hold-up */
	atomic_int held_up;
	/* The polling thread uses these. */
	struct gate drive;
	atomic_int polled;
} trial;

static void hold_up(void)
{
	if (--trial.operations > 0 || trial.operations < -1)
		return;
	atomic_fetch_add(&trial.held_up, 1);
	gate_pass(&trial.gate);
}

/* The first task waits until the others are due. */
static void run(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	if (atomic_fetch_add(&trial.runs, 1) > 0)
		return;
	atomic_store(&trial.id, gettid());
	gate_pass(&trial.task);
	yield_instead = hold_up;
}

static bool is_readable(int wait_ms)
{
	struct pollfd descriptor = {.fd = trial.descriptor, .events = POLLIN};

	return poll(&descriptor, 1, wait_ms) == 1;
}

/* Returns false if the worker sleeps without having been held up. */
static bool await_hold_up(int count)
{
	int looks = 0;

	WAIT_UNTIL(atomic_load(&trial.held_up) >= count ||
		   (looks = thread_is_asleep(atomic_load(&trial.id)) ? looks + 1 : 0) == LOOKS);
	return atomic_load(&trial.held_up) >= count;
}

static void flush(void *wheel)
{
	(void)tw_flush(wheel);
}

/* Calls tw_poll, with a gate before and after it. */
static void poll_slowly(void *unused)
{
	(void)unused;
	wheel_begin_drive(trial.wheel);
	gate_pass(&trial.drive);
	event_count_cancel(&trial.wheel->owner.event);
	owner_begin_sleep(&trial.wheel->owner, wheel_turn_while_due(trial.wheel, SIZE_MAX));
	atomic_store(&trial.polled, 1);
	gate_pass(&trial.drive);
	wheel_end_drive(trial.wheel);
}

/* Waits until the call has returned or is blocked. */
static void await_call(struct blocked_call *call)
{
	int looks = 0;

	WAIT_UNTIL(blocked_call_has_returned(call) ||
		   (looks = blocked_call_is_asleep(call) ? looks + 1 : 0) == LOOKS);
}

/* Polls and flushes while the worker is held up. Where it holds a lock, nothing is checked. */
static void poll_and_flush(void)
{
	struct blocked_call poller;
	struct blocked_call other;

	blocked_call_start(&poller, poll_slowly, NULL);
	gate_await(&trial.drive);
	/* The flush rings the descriptor, which the poll silences. */
	blocked_call_start(&other, flush, trial.wheel);
	WAIT_UNTIL(blocked_call_is_asleep(&other));
	gate_open(&trial.drive);
	await_call(&poller);
	gate_open(&trial.gate);
	(void)await_hold_up(2);
	if (atomic_load(&trial.polled)) {
		gate_open(&trial.drive);
		await_call(&other);
		gate_open(&trial.gate);
	} else {
		gate_open(&trial.gate);
		gate_await(&trial.drive);
		gate_open(&trial.drive);
	}
	blocked_call_end(&poller);
	blocked_call_end(&other);
}

static void trial_open(int operation)
{
	struct tw_options options = {.clock = TW_CLOCK_MONOTONIC,
				     .drive = TW_DRIVE_CALLER,
				     .workers = 1,
				     .max_unfinished = 1};
	char key[] = "a";

	trial = (struct trial){.operations = operation};
	gate_init(&trial.task);
	gate_init(&trial.gate);
	gate_init(&trial.drive);
	assert_int_equal(tw_create(&trial.wheel, TW_MILLISECOND, 64, run, &options), TW_OK);
	trial.descriptor = tw_fd(trial.wheel);
	for (int i = 0; i < TIMERS; i++, key[0]++)
		assert_int_equal(tw_set_timer(trial.wheel, key, 1, NULL, TW_MILLISECOND), TW_OK);
	/* One of them runs, the others are due and held back. */
	while (!trial.wheel->owner.held_back) {
		assert_true(is_readable(LONG_MS));
		assert_int_equal(tw_poll(trial.wheel, NULL), TW_OK);
	}
	gate_await(&trial.task);
	gate_open(&trial.task);
}

static void trial_close(void)
{
	/* The worker may come to those operations only now. */
	gate_open(&trial.gate);
	gate_open(&trial.gate);
	/* It polls only after a notification. */
	WAIT_UNTIL((!is_readable(0) || tw_poll(trial.wheel, NULL) == TW_OK) &&
		   atomic_load(&trial.runs) == TIMERS);
	tw_destroy(trial.wheel);
}

/* Returns false if the worker has fewer operations. */
static bool trial_hold_up_at(int operation)
{
	bool was_held_up;

	trial_open(operation);
	was_held_up = await_hold_up(1);
	if (was_held_up)
		poll_and_flush();
	trial_close();
	return was_held_up;
}

static void timers_held_back_are_notified_whichever_thread_drives(void **state)
{
	int operation = 1;

	(void)state;
	while (trial_hold_up_at(operation))
		operation++;
	assert_true(operation > 5);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(timers_held_back_are_notified_whichever_thread_drives),
};

TEST_PROGRAM(tests)
