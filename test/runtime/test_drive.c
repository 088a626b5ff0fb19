/* SPDX-License-Identifier: MIT */
/* With TW_DRIVE_CALLER and inline workers, tasks run in the calls that drive, and nowhere else. */
#include "support/test.h"

#include "support/recorder.h"
#include "support/script.h"

/* A timer and a handle are far, and the queue has one that is due. */
#define DUE "set far 1h; after p 1h; poll = any; set due 1h; move due 1ns;"
SCRIPT(inline, questions_run_no_task,
       DUE "left far = 3600000; left p = 3600000; add new 1h; take far = far; left far = NOT_FOUND;"
	   "walk = 2; events = 0; poll = any; events = 1; idle -> due@0")
/* The call could make room only by running what is due. */
SCRIPT(inline, set_at_the_limit_of_pending_timers_runs_no_task,
       DUE "set a 1h; set b 1h; set c 1h = FULL; after q 1h = FULL; events = 0; poll = any;"
	   "events = 1; idle -> due@0",
       .max_pending = 5)
SCRIPT(inline, idle_wait_runs_what_is_due, DUE "events = 0; idle -> due@0")
SCRIPT(inline, advance_runs_what_is_due, DUE "events = 0; clock 0; events = 1; idle -> due@0")
SCRIPT(inline, stop_releases_what_is_due,
       DUE "events = 0; stop; events = 3; idle -> due:stopped far:stopped p:stopped")
SCRIPT(inline, flush_applies_commands_and_runs_no_task,
       DUE "set a 1h; drain; set b 1h; remove b; set c 1h; move c 1ns; set d 1h; flush;"
	   "pending = 1; events = 0; poll = any;"
	   "idle -> due@0 far:drained p:drained a:drained b:removed c@0")
SCRIPT(inline, what_a_task_sets_for_now_waits_for_the_next_poll,
       "alarm x; after p 1h; in q1: after q2 0, reset p 0, set x 0; after q1 0; poll = 0;"
       "events = 1; poll = any; events = 4; idle -> q1@0 q2@0 p@0 x@0")
SCRIPT(inline, poll_sees_each_call_that_came_after_an_idle_one,
       "alarm x; poll = never; after p 7; poll = 7; reset p 6; poll = 6; set a 5; poll = 5;"
       "move a 4; poll = 4; set x 3; poll = 3; add b 2; poll = 2; advance 0.5; poll = 1.5;"
       "poll = 1.5; drain; poll = 2.5 -> p:drained a:drained b:drained")
/* The queue has four cells: each kind of command meets it full. A reset needs no room. */
SCRIPT(inline, commands_that_meet_a_full_queue_run_no_task,
       DUE
       "set a 1h; set b 1h; set c 1h; set d 1h; set e 1h; move far 2h; move far 2h; move far 2h;"
       "move far 2h; move far 2h; remove none; remove none; remove none; remove none; remove none;"
       "after q 1h; after r 1h; after s 1h; after t 1h; after u 1h; reset p 2h; reset q 2h;"
       "events = 0; poll = any; events = 1; idle -> due@0",
       .queue_capacity = 4, .when_full = TW_WHEN_FULL_WAIT)

static void run_nothing(void *argument)
{
}

/* ---- Polls with nothing to do ---- */

static enum tw_status poll_or_ask(struct tw_wheel *wheel, bool asks)
{
	if (!asks)
		return tw_poll(wheel, NULL);
	return tw_contains(wheel, "a", 1, NULL) == TW_NOT_FOUND ? TW_OK : TW_INVALID;
}

static void expect_memory_back(struct recorder *recorder, bool asks)
{
	enum { TIMERS = 50000 };
	struct tw_stats stats;
	uint64_t most;

	for (int i = 0; i < TIMERS; i++)
		assert_status(tw_after_func(recorder->wheel, INTERVAL, run_nothing, NULL, NULL),
			      TW_OK);
	assert_status(tw_get_stats(recorder->wheel, &stats), TW_OK);
	most = stats.memory;
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	assert_status(tw_poll(recorder->wheel, NULL), TW_OK);
	for (int second = 0; second < 20; second++) {
		for (int call = 0; call < 50; call++)
			assert_status(poll_or_ask(recorder->wheel, asks), TW_OK);
		assert_status(tw_advance(recorder->wheel, TW_SECOND), TW_OK);
	}
	assert_status(tw_get_stats(recorder->wheel, &stats), TW_OK);
	assert_true(TEST_HAS_SANITIZER || stats.memory < most / 4);
	recorder_close(recorder);
}

TEST(inline, idle_polls_give_memory_back)
{
	expect_memory_back(recorder_open(*state, 100), false);
}

TEST(inline, questions_give_memory_back)
{
	expect_memory_back(recorder_open(*state, 100), true);
}

/* ---- Work of more than 64 crowded turns, of 1,024 jobs each ---- */

enum { MUCH = 70000 };

struct much {
	struct tw_wheel *wheel;
	int given_back; /* by release or to the drain's function */
	int at_later;   /* given back when "later" ran, or -1 */
};

static void give_back(void *context, const struct tw_task *task)
{
	((struct much *)context)->given_back++;
}

static void release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	give_back(context, task);
}

/* "first" removes all the others but "later". */
static void execute(void *context, const struct tw_task *task)
{
	struct much *much = context;

	if (task->key_size == 5 && memcmp(task->key, "later", 5) == 0)
		much->at_later = much->given_back;
	else
		for (int i = 0; i < MUCH; i++)
			assert_status(tw_remove_timer(much->wheel, &i, sizeof(i)), TW_OK);
}

static void much_create(struct much *much, enum tw_drive drive, int count)
{
	const struct tw_options options = {.context = much,
					   .release = release,
					   .drive = drive,
					   .clock = TW_CLOCK_MANUAL,
					   .workers = TW_WORKERS_INLINE};

	*much = (struct much){.at_later = -1};
	assert_status(tw_create(&much->wheel, INTERVAL, 64, execute, &options), TW_OK);
	for (int i = 0; i < count; i++)
		assert_status(tw_set_timer(much->wheel, &i, sizeof(i), much, TW_HOUR), TW_OK);
}

TEST(once, call_returns_when_much_work_is_done)
{
	static const enum tw_drive drives[] = {TW_DRIVE_THREAD, TW_DRIVE_CALLER};
	struct much much;

	for (int i = 0; i < 2; i++) {
		much_create(&much, drives[i], MUCH);
		assert_status(tw_destroy(much.wheel), TW_OK);
		assert_int_equal(much.given_back, MUCH);

		much_create(&much, drives[i], MUCH);
		assert_status(tw_stop(much.wheel), TW_OK);
		assert_true(drives[i] == TW_DRIVE_THREAD || much.given_back == MUCH);
		tw_destroy(much.wheel);

		much_create(&much, drives[i], MUCH);
		assert_status(tw_drain(much.wheel, give_back, &much), TW_OK);
		assert_status(tw_wait_idle(much.wheel), TW_OK);
		assert_int_equal(much.given_back, MUCH);
		tw_destroy(much.wheel);

		much_create(&much, drives[i], MUCH);
		assert_status(tw_set_timer(much.wheel, "first", 5, NULL, INTERVAL), TW_OK);
		assert_status(tw_set_timer(much.wheel, "later", 5, NULL, 2 * INTERVAL), TW_OK);
		assert_status(tw_advance(much.wheel, 3 * INTERVAL), TW_OK);
		assert_int_equal(much.at_later, MUCH);
		tw_destroy(much.wheel);
	}
}

TEST(once, poll_of_one_job_runs_one_of_a_drain)
{
	struct much much;

	much_create(&much, TW_DRIVE_CALLER, 1000);
	assert_status(tw_drain(much.wheel, give_back, &much), TW_OK);
	for (int i = 0; i < 1001; i++)
		assert_status(tw_poll_some(much.wheel, 1, NULL), TW_OK);
	assert_int_equal(much.given_back, 1000);
	tw_destroy(much.wheel);
}

static void run_later(void *argument)
{
	struct much *much = argument;

	much->at_later = much->given_back;
}

/* Each poll runs fewer jobs than the commands before it cause. */
TEST(once, timers_run_beside_commands_that_cause_more_jobs_than_polls_run)
{
	struct much much;

	much_create(&much, TW_DRIVE_CALLER, 0);
	for (int poll = 0; poll < 200 && much.at_later < 0; poll++) {
		for (int i = 0; i < 64; i++) {
			assert_status(tw_set_timer(much.wheel, &i, sizeof(i), &much, TW_HOUR),
				      TW_OK);
			assert_status(tw_remove_timer(much.wheel, &i, sizeof(i)), TW_OK);
		}
		if (poll == 10)
			assert_status(tw_after_func(much.wheel, 0, run_later, &much, NULL), TW_OK);
		assert_status(tw_poll_some(much.wheel, 16, NULL), TW_OK);
	}
	/* Within some 70 polls. */
	assert_in_range(much.at_later, 0, 2000);
	tw_destroy(much.wheel);
}
