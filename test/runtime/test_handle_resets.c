/* SPDX-License-Identifier: MIT */
/* A handle is reset wherever it is, and timers set themselves again. */
#include "support/test.h"

#include "base/clock.h"
#include "support/blocked_call.h"
#include "support/inside.h"
#include "support/probe.h"

#include "runtime/ask.h"
#include "runtime/apply.h"

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

PROBED(pool, job_of_the_pool_that_has_not_begun_can_be_reset)
{
	struct probe held[2];
	struct probe probes[4] = {0};

	probes_wait(recorder, held, probes, 4);
	assert_status(probe_reset(&probes[0], 9 * INTERVAL), TW_OK);
	assert_status(probe_reset(&probes[1], 2 * INTERVAL), TW_OK);
	assert_status(probe_reset(&probes[1], 5 * INTERVAL), TW_OK);
	assert_status(probe_reset(&probes[2], 3 * INTERVAL), TW_OK);
	assert_status(probe_stop(&probes[2]), TW_OK);
	flush_wheel(recorder);
	let_workers_go(recorder, held);
	assert_executed_at(recorder, 3, INTERVAL);
	assert_int_equal(event_count(recorder), 3);
	pass_ticks(recorder, 20);
	assert_executed_at(recorder, 0, 10 * INTERVAL);
	assert_executed_at(recorder, 1, 6 * INTERVAL);
	assert_not_returned(recorder, 2);
}

static void start_another_now(struct probe *probe)
{
	struct probe *other = probe->others;

	probe->answers[0] =
		tw_after_func(probe->recorder->wheel, 0, probe_run, other, &other->timer);
}

PROBED(ordered, timer_that_a_task_sets_for_now_runs_at_that_tick_of_an_advance)
{
	struct probe other = {.recorder = recorder, .number = 2};
	struct probe probe = {.in_run = start_another_now, .others = &other};

	probe_start(recorder, &probe, 1, INTERVAL);
	set_timer(recorder, "next", 3, 2 * INTERVAL);
	set_timer(recorder, "last", 4, 5 * INTERVAL);
	advance(recorder, 5 * INTERVAL);
	assert_status(probe.answers[0], TW_OK);
	assert_executed_at(recorder, 2, INTERVAL);
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

/* The owner sleeps, and is woken by the worker. */
PROBED(threads, job_that_was_reset_is_pending_again_without_being_asked_for)
{
	struct probe probe = {0};
	struct probe held[2];

	probes_wait(recorder, held, &probe, 1);
	assert_status(probe_reset(&probe, 10 * INTERVAL), TW_OK);
	assert_status(tw_flush(recorder->wheel), TW_OK);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	wait_for(20000000);
	gate_open(&held[0].gate);
	gate_open(&held[1].gate);
	WAIT_UNTIL(tw_pending(recorder->wheel) == 1);
	settle(recorder);
}

PROBED(pool, reset_of_a_job_that_is_overdue_by_the_time_it_comes_back_runs_late)
{
	struct probe held[2];
	struct probe probe = {0};

	probes_wait(recorder, held, &probe, 1);
	assert_status(probe_reset(&probe, 2 * INTERVAL), TW_OK);
	assert_status(tw_advance(recorder->wheel, 7 * INTERVAL), TW_OK);
	let_workers_go(recorder, held);
	advance(recorder, 0);
	assert_executed_at(recorder, 0, 8 * INTERVAL);
}

PROBED(pool, timer_reset_while_it_runs_runs_again_after_it)
{
	struct probe probe;

	probe_start_held(recorder, &probe, 1);
	assert_status(probe_reset(&probe, 5 * INTERVAL), TW_OK);
	gate_open(&probe.gate);
	settle(recorder);
	probe.in_run = NULL;
	assert_int_equal(event_count(recorder), 1);
	pass_ticks(recorder, 9);
	assert_order(recorder, 1, 1);
	assert_int_equal(event_at(recorder, 1).now, 5 * INTERVAL);
	assert_status(probe_stop(&probe), TW_NOT_FOUND);
}

PROBED(pool, timer_reset_while_it_runs_can_be_stopped)
{
	struct probe probes[2];

	probe_start_held(recorder, &probes[0], 1);
	assert_status(probe_reset(&probes[0], 2 * INTERVAL), TW_OK);
	assert_status(probe_stop(&probes[0]), TW_REARMED);
	assert_status(probe_stop(&probes[0]), TW_RUNNING);
	assert_status(probe_reset(&probes[0], 2 * INTERVAL), TW_NOT_FOUND);
	probe_start_held(recorder, &probes[1], 2);
	assert_status(probe_reset(&probes[1], 2 * INTERVAL), TW_OK);
	gate_open(&probes[0].gate);
	gate_open(&probes[1].gate);
	settle(recorder);
	assert_status(probe_stop(&probes[0]), TW_NOT_FOUND);
	assert_status(probe_stop(&probes[1]), TW_OK);
	pass_ticks(recorder, 9);
	assert_int_equal(event_count(recorder), 2);
}

PROBED(ordered, timers_of_one_tick_run_in_the_order_of_their_commands)
{
	struct probe probes[4] = {0};

	probes_start_ms(recorder, probes, 1, 5, 5);
	flush_wheel(recorder);
	set_timer(recorder, "keyed", 6, 5 * INTERVAL);
	set_timer(recorder, "other", 7, 5 * INTERVAL);
	probe_start(recorder, &probes[2], 4, 5 * INTERVAL);
	flush_wheel(recorder);
	probe_start(recorder, &probes[3], 5, 5 * INTERVAL);
	move_timer(recorder, "keyed", 5 * INTERVAL);
	advance(recorder, 9 * INTERVAL);
	assert_order(recorder, 1, 2, 7, 4, 5, 6);
}

/* Its deadline has passed and its tick is to come. The new deadline is later, and now. */
PROBED(everywhere, timer_reset_to_now_between_its_deadline_and_its_tick_runs_now)
{
	struct probe probes[2] = {0};

	probe_start(recorder, &probes[0], 1, INTERVAL / 4);
	probe_start(recorder, &probes[1], 2, INTERVAL / 4);
	advance(recorder, INTERVAL / 2);
	assert_int_equal(event_count(recorder), 0);
	assert_status(probe_reset(&probes[0], 0), TW_OK);
	assert_status(probe_reset(&probes[1], -INTERVAL / 8), TW_OK);
	advance(recorder, 0);
	assert_executed_at(recorder, 1, INTERVAL / 2);
	assert_executed_at(recorder, 2, INTERVAL / 2);
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

PROBED(inline, reset_does_not_wait_for_commands_before_it, .queue_capacity = 64)
{
	struct probe probes[2] = {0};

	probes_start_ms(recorder, probes, 1, 9, 2);
	flush_wheel(recorder);
	/* Neither finds room in the queue, nor needs it. */
	while (wheel_commands_queued(recorder->wheel) < 64)
		move_timer(recorder, "none", INTERVAL);
	assert_status(probe_reset(&probes[0], 3 * INTERVAL), TW_OK);
	assert_status(probe_reset(&probes[1], 4 * INTERVAL), TW_OK);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 1, 3 * INTERVAL);
	assert_executed_at(recorder, 2, 4 * INTERVAL);
}

/* The owner notices the reset at the old deadline. */
PROBED(everywhere, timer_that_was_put_off_waits_at_its_old_deadline_unseen)
{
	struct probe probe = {0};
	tw_duration remaining;

	probe_start(recorder, &probe, 1, 2 * INTERVAL);
	flush_wheel(recorder);
	for (int i = 3; i <= 50; i++)
		assert_status(probe_reset(&probe, i * INTERVAL), TW_OK);
	assert_status(tw_timer_remaining(recorder->wheel, probe.timer, &remaining), TW_OK);
	assert_int_equal(remaining, 50 * INTERVAL);
	pass_ticks(recorder, 2);
	assert_int_equal(event_count(recorder), 0);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	assert_status(tw_timer_remaining(recorder->wheel, probe.timer, &remaining), TW_OK);
	assert_int_equal(remaining, 48 * INTERVAL);
	/* This deadline is before the last one, and after that by which the timer is filed. */
	assert_status(probe_reset(&probe, 5 * INTERVAL), TW_OK);
	pass_ticks(recorder, 60);
	assert_executed_at(recorder, 1, 7 * INTERVAL);
	assert_int_equal(event_count(recorder), 1);
}

static void note_deadline(struct recorder *recorder, const struct tw_task *task)
{
	*(tw_duration *)recorder->argument = task->deadline;
}

TEST(everywhere, timer_that_was_put_off_is_drained_and_released_with_its_last_deadline)
{
	for (int stops = 0; stops < 2; stops++) {
		struct recorder *recorder = probes_open(*state);
		struct probe probe = {0};
		tw_duration deadline = 0;

		recorder->argument = &deadline;
		recorder->on_drain = recorder->on_release = note_deadline;
		probe_start(recorder, &probe, 1, 2 * INTERVAL);
		flush_wheel(recorder);
		assert_status(probe_reset(&probe, 7 * INTERVAL), TW_OK);
		if (stops)
			stop_wheel(recorder);
		else
			assert_status(tw_drain(recorder->wheel, probe_drain, recorder), TW_OK);
		settle(recorder);
		assert_int_equal(deadline, 7 * INTERVAL);
		recorder_close(recorder);
	}
}

static void reset_itself_to_now(struct probe *probe)
{
	probe->answers[0] |= probe_reset(probe, 0);
}

PROBED(inline, timer_that_resets_itself_to_now_runs_once_a_turn)
{
	struct probe probe = {.in_run = reset_itself_to_now};

	probe_start(recorder, &probe, 1, 0);
	for (int turns = 1; turns <= 10; turns++) {
		assert_int_equal(poll_wheel(recorder), 0);
		assert_int_equal(event_count(recorder), turns);
	}
	for (int turns = 11; turns <= 20; turns++) {
		assert_status(tw_advance(recorder->wheel, 0), TW_OK);
		assert_int_equal(event_count(recorder), turns);
	}
	assert_status(probe.answers[0], TW_OK);
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

/* Counts only: it runs without end. */
static void run_again_at_once(void *argument)
{
	struct probe *probe = argument;

	atomic_fetch_add(&probe->ended, 1);
	may_fail(tw_after_func(probe->recorder->wheel, 0, run_again_at_once, probe, NULL));
}

PROBED(everywhere, timer_that_rearms_itself_at_once_for_ever_lets_others_go_on)
{
	struct probe busy = {.recorder = recorder};
	struct probe other = {0};

	assert_status(tw_after_func(recorder->wheel, 0, run_again_at_once, &busy, NULL), TW_OK);
	probe_start(recorder, &other, 1, 5 * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 4 * INTERVAL), TW_OK);
	assert_int_equal(event_count(recorder), 0);
	assert_status(tw_advance(recorder->wheel, 4 * INTERVAL), TW_OK);
	flush_wheel(recorder);
	settle(recorder);
	assert_int_equal(times_returned(recorder, 1), 1);
	assert_true(atomic_load(&busy.ended) > 0);
	stop_wheel(recorder);
}

static void start_again_in_a_tick(struct probe *probe)
{
	probe->answers[0] |=
		tw_after_func(probe->recorder->wheel, INTERVAL, probe_run, probe, NULL);
}

static void reset_itself_by_a_tick(struct probe *probe)
{
	probe->answers[0] |= probe_reset(probe, INTERVAL);
}

PROBED(ordered, timer_that_rearms_itself_runs_at_each_of_its_ticks_within_a_long_advance)
{
	struct probe probes[2] = {{.in_run = start_again_in_a_tick},
				  {.in_run = reset_itself_by_a_tick}};

	probes_start_ms(recorder, probes, 0, 1, 1);
	advance(recorder, 100 * INTERVAL);
	assert_int_equal(event_count(recorder), 200);
	for (size_t i = 0; i < 200; i++) {
		assert_ptr_equal(event_at(recorder, i).value, VALUE(i % 2));
		assert_int_equal(event_at(recorder, i).now, (tw_duration)(i / 2 + 1) * INTERVAL);
	}
	assert_status(probes[0].answers[0], TW_OK);
	assert_status(probes[1].answers[0], TW_OK);
}
