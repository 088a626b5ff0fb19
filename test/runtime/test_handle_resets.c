/* SPDX-License-Identifier: MIT */
/* A handle is reset wherever it is, and timers set themselves again. */
#include "support/test.h"

#include "base/clock.h"
#include "support/blocked_call.h"
#include "support/inside.h"
#include "support/probe.h"
#include "support/script.h"

#include "runtime/ask.h"

SCRIPT(everywhere, reset_reaches_a_timer_in_the_queue_and_in_the_wheel,
       "after a 50; after b 50; after c 50; after d 50; after e 50; after f 50;"
       "reset a 3; reset b 300+1ns; pass 2; reset c 3; reset d 400; reset e 0; reset f never;"
       "advance 0 -> e@2; pass 410 -> a@3 b@301 c@5 d@402; reset f 1; pass 1 -> f@413")
SCRIPT(everywhere, reset_of_a_done_or_stopped_timer_finds_nothing,
       "after a 1; after b 1; stop b; reset b 1 = NOT_FOUND; pass 1 -> a@1;"
       "reset a 1 = NOT_FOUND; reset b 1 = NOT_FOUND; pass 5")
SCRIPT(pool, job_of_the_pool_that_has_not_begun_can_be_reset,
       "after a 1; after b 1; after c 1; after d 1;" WORKERS_STOP
       "clock 1; reset a 9; reset b 2; reset b 5; reset c 3; stop c; flush;" WORKERS_GO
       "idle -> v@0 w@0 d@1; pass 20 -> a@10 b@6")
SCRIPT(pool, reset_of_a_job_that_is_overdue_by_the_time_it_comes_back_runs_late,
       "after p 1;" WORKERS_STOP "clock 1; reset p 2; clock 7;" WORKERS_GO "wait -> v@0 w@0 p@8/3")
SCRIPT(ordered, timer_that_a_task_sets_for_now_runs_at_that_tick_of_an_advance,
       "in p: after q 0; after p 1; set next 2; set last 5; advance 5 => p@1 q@1 next@2 last@5")
SCRIPT(everywhere, timer_reset_in_its_own_run_runs_again,
       "in p 1: reset p 3, reset p 5; after p 2; pass 20 -> p@2 p@7; reset p 1 = NOT_FOUND")
SCRIPT(pool, timer_reset_while_it_runs_runs_again_after_it,
       "hold p; after p 0; clock 0; reached p; reset p 5; go p; idle -> p@0; pass 9 -> p@5;"
       "stop p = NOT_FOUND")
SCRIPT(pool, timer_reset_while_it_runs_can_be_stopped,
       "hold p; after p 0; clock 0; reached p; reset p 2; stop p = REARMED; stop p = RUNNING;"
       "reset p 2 = NOT_FOUND; hold q; after q 0; clock 0; reached q; reset q 2; go p; go q;"
       "idle -> p@0 q@0; stop p = NOT_FOUND; stop q; pass 9")
SCRIPT(ordered, timers_of_one_tick_run_in_the_order_of_their_commands,
       "after a 5; after b 5; flush; set c 5; set d 5; after e 5; flush; after f 5; move c 5;"
       "advance 9 => a@5 b@5 d@5 e@5 f@5 c@5")
/* The deadline has passed and the tick is to come. The new deadline is later, and now. */
SCRIPT(everywhere, timer_reset_to_now_between_its_deadline_and_its_tick_runs_now,
       "after a 0.25; after b 0.25; advance 0.5; reset a 0; reset b -0.125;"
       "advance 0 -> a@0.5 b@0.5")
SCRIPT(inline, timer_that_resets_itself_to_now_runs_once_a_turn,
       "in p: reset p 0; after p 0; poll = 0; events = 1; poll = 0; events = 2; clock 0;"
       "events = 3; clock 0; events = 4; stop p -> p@0 p@0 p@0 p@0")
/* Neither reset finds room in the queue, nor needs it. */
SCRIPT(inline, reset_does_not_wait_for_commands_before_it,
       "after a 9; after b 2; flush; move none 1; move none 1; move none 1; move none 1;"
       "move none 1; move none 1; move none 1; move none 1; move none 1 = FULL;"
       "reset a 3; reset b 4; pass 9 -> a@3 b@4",
       .queue_capacity = 8, .when_full = TW_WHEN_FULL_FAIL)
/* The owner notices the reset at the old deadline. The last deadline is before the one asked for,
 * and after the one by which the timer is filed. */
SCRIPT(everywhere, timer_that_was_put_off_waits_at_its_old_deadline_unseen,
       "after p 2; flush; reset p 3; reset p 20; reset p 50; left p = 50; pass 2; pending = 1;"
       "left p = 48; reset p 5; pass 60 -> p@7/7")
SCRIPT(everywhere, timer_that_was_put_off_is_drained_with_its_last_deadline,
       "after p 2; flush; reset p 7; drain -> p:drained/7")
SCRIPT(everywhere, timer_that_was_put_off_is_released_with_its_last_deadline,
       "after p 2; flush; reset p 7; stop -> p:stopped/7")
SCRIPT(ordered, timer_that_rearms_itself_runs_at_each_of_its_ticks_within_a_long_advance,
       "in p: reset p 1; in q: after q 1; after p 1; after q 1;"
       "advance 6 => p@1 q@1 p@2 q@2 p@3 q@3 p@4 q@4 p@5 q@5 p@6 q@6")
/* The owner sleeps, and is woken by the worker. */
SCRIPT(threads, job_that_was_reset_is_pending_again_without_being_asked_for,
       "after p 1;" WORKERS_STOP "clock 1; reset p 10; flush; pending = 0;" WORKERS_GO
       "await 1; idle -> v@0 w@0")

static void stop_probe(void *argument)
{
	struct probe *probe = argument;

	probe->answers[0] = probe_stop(probe);
}

/* This flag of an alarm's word says that a thread has locked it. */
enum { BUSY = 1 << 9 };

PROBED(inline, stop_that_waits_for_a_reset_leaves_the_processor_to_it)
{
	const struct handle_table *table = &recorder->wheel->owner.out.handles;
	struct probe probe = {0};
	struct blocked_call stop;
	_Atomic uint64_t *word;

	probe_start(recorder, &probe, 1, INTERVAL);
	flush_wheel(recorder);
	word = &handle_find(table, probe.timer.id)->word;
	atomic_fetch_or(word, BUSY);
	blocked_call_start(&stop, stop_probe, &probe);
	/* It naps. */
	WAIT_UNTIL(blocked_call_is_asleep(&stop));
	atomic_fetch_and(word, ~(uint64_t)BUSY);
	blocked_call_end(&stop);
	assert_status(probe.answers[0], TW_OK);
	pass_ticks(recorder, 3);
	assert_int_equal(event_count(recorder), 0);
}

static void reset_the_other_to_now(struct probe *probe)
{
	probe->answers[0] = probe_reset(probe->others, 0);
}

/* Each is in the wheel while the other runs. */
PROBED(ordered, timers_that_reset_one_another_to_now_let_the_clock_go_on)
{
	struct probe left = {.in_run = reset_the_other_to_now};
	struct probe right = {.in_run = reset_the_other_to_now, .others = &left};

	left.others = &right;
	probe_repeat(recorder, &left, 1, INTERVAL, 100 * INTERVAL);
	probe_repeat(recorder, &right, 2, 50 * INTERVAL, 100 * INTERVAL);
	set_timer(recorder, "other", 3, 2 * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 3 * INTERVAL), TW_OK);
	assert_executed_at(recorder, 3, 2 * INTERVAL);
	stop_wheel(recorder);
}

/* Threads that reset timers faster than the owner applies the resets do this. */
PROBED(inline, question_is_answered_although_resets_come_without_end)
{
	enum { TIMERS = 400, SEEN = 64 };
	static struct probe probes[TIMERS];
	struct owner *owner = &recorder->wheel->owner;
	struct question question = {.kind = QUESTION_FLUSH};
	struct command_cell *cell;
	uint64_t position;
	tw_duration delay = TW_HOUR;
	int turns = 0;

	memset(probes, 0, sizeof(probes));
	for (uintptr_t i = 0; i < TIMERS; i++)
		probe_start(recorder, &probes[i], i, delay);
	flush_wheel(recorder);
	for (int i = 0; i < TIMERS; i++)
		assert_status(probe_reset(&probes[i], delay - 1), TW_OK);
	cell = command_queue_claim(&owner->queue, &position);
	cell->command = (struct command){.kind = COMMAND_ASK, .question = &question};
	command_queue_publish(cell, position);
	for (; atomic_load(&question.answers) == 0 && turns < 100; turns++) {
		delay -= 10;
		(void)owner_apply(owner, SEEN);
		/* There are more than one round looks at, so that there is always another. */
		for (int i = 0; i < TIMERS; i++)
			assert_status(probe_reset(&probes[i], delay), TW_OK);
	}
	assert_in_range(turns, TIMERS / SEEN / 2, 3 * TIMERS / SEEN + 4);
	stop_wheel(recorder);
}

static void reset_itself_to_now(struct probe *probe)
{
	probe->answers[0] |= probe_reset(probe, 0);
}

/* The run takes as long as a turn may: real time, which no manual clock stands for. */
static void reset_itself_to_now_after_a_while(struct probe *probe)
{
	tw_duration end = clock_read_real(CLOCK_MONOTONIC) + 10 * TW_MILLISECOND;

	while (clock_read_real(CLOCK_MONOTONIC) < end)
		;
	reset_itself_to_now(probe);
}

PROBED(inline, timer_that_resets_itself_to_now_runs_once_a_poll_however_long_it_takes)
{
	struct probe probe = {.in_run = reset_itself_to_now_after_a_while};

	probe_start(recorder, &probe, 1, 0);
	for (int turns = 1; turns <= 3; turns++) {
		assert_int_equal(poll_wheel(recorder), 0);
		assert_int_equal(event_count(recorder), turns);
	}
	assert_status(probe.answers[0], TW_OK);
}

static atomic_int busy_runs;

/* Counts only: it runs without end. */
static void run_again_at_once(void *wheel)
{
	atomic_fetch_add(&busy_runs, 1);
	may_fail(tw_after_func(wheel, 0, run_again_at_once, wheel, NULL));
}

PROBED(everywhere, timer_that_rearms_itself_at_once_for_ever_lets_others_go_on)
{
	struct probe other = {0};

	atomic_store(&busy_runs, 0);
	assert_status(tw_after_func(recorder->wheel, 0, run_again_at_once, recorder->wheel, NULL),
		      TW_OK);
	probe_start(recorder, &other, 1, 5 * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 4 * INTERVAL), TW_OK);
	assert_int_equal(event_count(recorder), 0);
	assert_status(tw_advance(recorder->wheel, 4 * INTERVAL), TW_OK);
	flush_wheel(recorder);
	settle(recorder);
	assert_int_equal(times_returned(recorder, 1), 1);
	assert_true(atomic_load(&busy_runs) > 0);
	stop_wheel(recorder);
}
