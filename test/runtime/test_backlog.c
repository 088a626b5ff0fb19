/* SPDX-License-Identifier: MIT */
/*
 * With max_unfinished, due timers stay in the wheel while the pool has enough to do, and can be
 * moved and removed there. Nothing is lost, and no call hangs.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/ledger.h"
#include "support/recorder.h"
#include "support/seed.h"
#include "support/stats.h"
#include "support/wait.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Values up to this block their worker. */
enum { LAST_BLOCKER = 10 };

static sem_t gate;

static void pass_gate(struct recorder *recorder, const struct tw_task *task)
{
	(void)recorder;
	if (task->value <= VALUE(LAST_BLOCKER))
		while (sem_wait(&gate) != 0)
			continue;
}

static struct recorder *open_with_backlog(const struct variant *variant, enum tw_clock clock,
					  size_t max_unfinished)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, variant);

	sem_init(&gate, 0, 0);
	recorder->on_execute = pass_gate;
	options.clock = clock;
	options.max_unfinished = max_unfinished;
	recorder_start(recorder, INTERVAL, 10, &options);
	return recorder;
}

static void open_gate(int times)
{
	for (int i = 0; i < times; i++)
		sem_post(&gate);
}

static void close_backlog(struct recorder *recorder)
{
	recorder_close(recorder);
	sem_destroy(&gate);
}

static struct tw_stats stats_after_poll(struct recorder *recorder)
{
	/* This drives the wheel if the caller does, and is refused otherwise. */
	(void)tw_poll(recorder->wheel, NULL);
	return stats_of_wheel(recorder->wheel);
}

/* Puts two blocking tasks in the pool, which has no room for the `others` set behind them. */
static void fill_pool(struct recorder *recorder)
{
	set_timer(recorder, "blocker 1", 1, INTERVAL);
	set_timer(recorder, "blocker 2", 2, INTERVAL);
	WAIT_UNTIL(stats_after_poll(recorder).running == 2);
}

static void timers_stay_in_the_wheel_while_the_pool_has_no_room(void **state)
{
	struct recorder *recorder = open_with_backlog(*state, TW_CLOCK_MONOTONIC, 2);
	uint64_t turns;

	fill_pool(recorder);
	set_timer(recorder, "stays", 11, INTERVAL);
	set_timer(recorder, "removed", 12, INTERVAL);
	set_timer(recorder, "moved", 13, INTERVAL);
	set_timer(recorder, "now", 14, TW_HOUR);
	move_timer(recorder, "now", 1);
	set_timer_at(recorder, "past", 15, tw_now(recorder->wheel) - 1);
	WAIT_UNTIL(stats_after_poll(recorder).held_back > 0);
	flush_wheel(recorder);
	wait_for(3 * INTERVAL);
	assert_int_equal(stats_after_poll(recorder).unfinished, 2);
	assert_int_equal(stats_after_poll(recorder).pending, 5);
	assert_int_equal(stats_after_poll(recorder).fired, 2);
	assert_status(tw_contains(recorder->wheel, "stays", 5, NULL), TW_OK);
	remove_timer(recorder, "removed");
	move_timer(recorder, "moved", TW_HOUR);
	flush_wheel(recorder);
	WAIT_UNTIL(stats_after_poll(recorder).released_removed == 1 ||
		   stats_after_poll(recorder).unfinished == 3);
	/* An owner that only waits sleeps. */
	WAIT_UNTIL((turns = stats_after_poll(recorder).turns, wait_for(5 * INTERVAL),
		    stats_after_poll(recorder).turns - turns <= 4));
	open_gate(2);
	settle(recorder);
	assert_int_equal(stats_after_poll(recorder).pending, 1);
	assert_int_equal(times_returned(recorder, 11), 1);
	assert_released(recorder, 12, TW_REMOVED);
	assert_not_returned(recorder, 13);
	assert_int_equal(times_returned(recorder, 14), 1);
	assert_int_equal(times_returned(recorder, 15), 1);
	close_backlog(recorder);
}

/* No further command comes: the pool wakes the owner. One place is enough. */
static void held_back_timers_run_when_one_task_ends(void **state)
{
	struct recorder *recorder = open_with_backlog(*state, TW_CLOCK_MONOTONIC, 2);

	fill_pool(recorder);
	set_timer(recorder, "a", 11, INTERVAL);
	set_timer(recorder, "b", 12, INTERVAL);
	set_timer(recorder, "c", 13, INTERVAL);
	WAIT_UNTIL(stats_after_poll(recorder).held_back > 0);
	open_gate(1);
	WAIT_UNTIL(stats_after_poll(recorder).fired == 5 &&
		   stats_after_poll(recorder).unfinished == 1);
	open_gate(1);
	settle(recorder);
	assert_int_equal(event_count_of_kind(recorder, EVENT_EXECUTE), 5);
	close_backlog(recorder);
}

static void poll_of_a_full_pool_says_to_come_back_soon(void **state)
{
	struct recorder *recorder = open_with_backlog(*state, TW_CLOCK_MONOTONIC, 2);
	tw_duration until_next = 0;

	fill_pool(recorder);
	set_timer(recorder, "a", 11, INTERVAL);
	WAIT_UNTIL(stats_after_poll(recorder).held_back > 0);
	assert_status(tw_poll(recorder->wheel, &until_next), TW_OK);
	assert_int_equal(until_next, INTERVAL);
	open_gate(2);
	settle(recorder);
	assert_status(tw_poll(recorder->wheel, &until_next), TW_OK);
	assert_true(until_next == TW_FOREVER);
	close_backlog(recorder);
}

static void drain_and_stop_do_not_wait_for_room(void **state)
{
	struct recorder *recorder = open_with_backlog(*state, TW_CLOCK_MONOTONIC, 2);

	fill_pool(recorder);
	set_timer(recorder, "drained", 11, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	flush_wheel(recorder);
	set_timer(recorder, "stopped", 12, INTERVAL);
	WAIT_UNTIL(stats_after_poll(recorder).unfinished == 3);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	open_gate(2);
	settle(recorder);
	assert_drained(recorder, 11);
	assert_released(recorder, 12, TW_STOPPED);
	assert_int_equal(event_count(recorder), 4);
	close_backlog(recorder);
}

static void destroy_wheel(void *wheel)
{
	tw_destroy(wheel);
}

static void full_wheel_can_be_destroyed(void **state)
{
	struct recorder *recorder = open_with_backlog(*state, TW_CLOCK_MONOTONIC, 2);
	struct blocked_call destroyer;

	fill_pool(recorder);
	set_timer(recorder, "a", 11, INTERVAL);
	blocked_call_start(&destroyer, destroy_wheel, recorder->wheel);
	/* The wheel is stopped, and waits for the tasks behind the gate. */
	WAIT_UNTIL(tw_timer_stop(recorder->wheel, (struct tw_timer){0}) == TW_CLOSED);
	open_gate(2);
	blocked_call_end(&destroyer);
	recorder->wheel = NULL;
	assert_released(recorder, 11, TW_STOPPED);
	close_backlog(recorder);
}

static void *advance_by_three(void *recorder)
{
	return VALUE(tw_advance(((struct recorder *)recorder)->wheel, 3 * INTERVAL));
}

/* Advance hands over the timer that the first task's end makes room for; the last one waits for the
 * second. */
static void advance_waits_for_room(void **state)
{
	struct recorder *recorder = open_with_backlog(*state, TW_CLOCK_MANUAL, 2);
	pthread_t thread;
	void *status;

	set_timer(recorder, "a", 1, INTERVAL);
	set_timer(recorder, "b", 2, INTERVAL);
	set_timer(recorder, "c", 11, 2 * INTERVAL);
	set_timer(recorder, "d", 12, 3 * INTERVAL);
	assert_int_equal(pthread_create(&thread, NULL, advance_by_three, recorder), 0);
	WAIT_UNTIL(event_count(recorder) == 2);
	assert_true(tw_now(recorder->wheel) <= 2 * INTERVAL);
	open_gate(1);
	pthread_join(thread, &status);
	assert_status((enum tw_status)(uintptr_t)status, TW_OK);
	assert_int_equal(tw_now(recorder->wheel), 3 * INTERVAL);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	open_gate(1);
	settle(recorder);
	assert_int_equal(event_count(recorder), 4);
	close_backlog(recorder);
}

static atomic_int statuses_in_task[2];

static void call_wheel(struct recorder *recorder, const struct tw_task *task)
{
	(void)task;
	atomic_store(&statuses_in_task[0], tw_flush(recorder->wheel));
	atomic_store(&statuses_in_task[1], tw_advance(recorder->wheel, 0));
}

/* The task takes all of the pool's room, and other timers are due. */
static void task_that_fills_the_pool_may_call_the_wheel(void **state)
{
	struct recorder *recorder = open_with_backlog(*state, TW_CLOCK_MANUAL, 1);

	recorder->on_execute = call_wheel;
	for (uintptr_t value = 11; value <= 20; value++)
		set_timer(recorder, (char[]){(char)('a' + value), 0}, value, INTERVAL);
	advance(recorder, INTERVAL);
	assert_status((enum tw_status)atomic_load(&statuses_in_task[0]), TW_OK);
	assert_status((enum tw_status)atomic_load(&statuses_in_task[1]), TW_INVALID);
	assert_int_equal(event_count(recorder), 10);
	close_backlog(recorder);
}

/* A timer that is already due stands behind each drain, and has to wait for this task's end. */
static void drain_often(struct recorder *recorder, const struct tw_task *task)
{
	if (task->value != VALUE(11))
		return;
	for (int i = 0; i < 300; i++) {
		assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
		set_timer_at(recorder, "due", 12, 0);
	}
}

static void task_that_fills_the_pool_may_drain_often(void **state)
{
	struct recorder *recorder = open_with_backlog(*state, TW_CLOCK_MANUAL, 1);

	recorder->on_execute = drain_often;
	set_timer(recorder, "drains", 11, INTERVAL);
	advance(recorder, INTERVAL);
	settle(recorder);
	assert_int_equal(event_count_of_kind(recorder, EVENT_DRAIN), 299);
	assert_int_equal(event_count_of_kind(recorder, EVENT_EXECUTE), 2);
	close_backlog(recorder);
}

/* The first timer takes the only place, and has to wait for this task's end. */
static void set_two(struct recorder *recorder, const struct tw_task *task)
{
	if (task->value != VALUE(11))
		return;
	set_timer(recorder, "held back", 12, INTERVAL);
	assert_status(tw_set_timer(recorder->wheel, "no place", 8, VALUE(13), INTERVAL), TW_FULL);
}

static void task_that_fills_the_pool_does_not_wait_for_a_place(void **state)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);

	recorder->on_execute = set_two;
	options.clock = TW_CLOCK_MONOTONIC;
	options.max_unfinished = 1;
	options.max_pending = 1;
	recorder_start(recorder, INTERVAL, 10, &options);
	set_timer(recorder, "sets", 11, INTERVAL);
	WAIT_UNTIL(event_count_of_kind(recorder, EVENT_EXECUTE) == 2);
	recorder_close(recorder);
}

enum { TIMERS = 3000 };

struct crowd {
	struct tw_wheel *wheel;
	struct ledger *ledger;
	size_t limit;
	atomic_int too_many;
};

static void execute_in_crowd(void *context, const struct tw_task *task)
{
	struct crowd *crowd = context;
	struct tw_stats stats;

	if ((uintptr_t)task->value % 64 == 0 &&
	    (tw_get_stats(crowd->wheel, &stats) != TW_OK || stats.unfinished > crowd->limit))
		atomic_fetch_add(&crowd->too_many, 1);
	ledger_execute(crowd->ledger, task);
}

static void crowd_set(struct crowd *crowd, struct random *random)
{
	for (size_t value = 1; value <= TIMERS; value++) {
		tw_duration delay = random_between(random, 1, 20 * INTERVAL);

		ledger_accept(crowd->ledger, value);
		assert_status(
			tw_set_timer(crowd->wheel, &value, sizeof(value), VALUE(value), delay),
			TW_OK);
		if (value % 100 == 0)
			assert_status(tw_move_timer(crowd->wheel, &value, sizeof(value), 1), TW_OK);
	}
}

static void each_timer_runs_once_and_never_more_than_the_limit_at_a_time(void **state)
{
	const struct variant *variant = *state;
	struct random random = random_from(seed_choose(), 0);

	for (size_t limit = 1; limit <= 512; limit *= 8) {
		struct crowd crowd = {.ledger = ledger_create(TIMERS), .limit = limit};
		struct tw_options options = {.context = &crowd,
					     .layout = variant->layout,
					     .drive = variant->drive,
					     .clock = TW_CLOCK_MANUAL,
					     .max_unfinished = limit};

		assert_status(tw_create(&crowd.wheel, INTERVAL, 10, execute_in_crowd, &options),
			      TW_OK);
		crowd_set(&crowd, &random);
		while (tw_now(crowd.wheel) < 21 * INTERVAL)
			assert_status(tw_advance(crowd.wheel, random_between(&random, 1, INTERVAL)),
				      TW_OK);
		assert_status(tw_wait_idle(crowd.wheel), TW_OK);
		assert_int_equal(ledger_counts(crowd.ledger).executed, TIMERS);
		assert_int_equal(atomic_load(&crowd.too_many), 0);
		ledger_assert_balanced(crowd.ledger);
		tw_destroy(crowd.wheel);
		ledger_destroy(crowd.ledger);
	}
}

static void *advance_a_tick(void *wheel)
{
	return VALUE(tw_advance(wheel, INTERVAL));
}

/* Two tasks go on, no job waits, and more than half of the room is taken: there still is room. */
static void room_is_notified_where_no_job_waits(void **state)
{
	struct variant variant = *(const struct variant *)*state;
	struct recorder *recorder;
	pthread_t advancing;
	void *status;

	variant.workers = 3;
	recorder = open_with_backlog(&variant, TW_CLOCK_MANUAL, 3);
	set_letters_ms(recorder, 1, 1, 1);
	set_timer(recorder, "last", LAST_BLOCKER + 1, INTERVAL);
	assert_int_equal(pthread_create(&advancing, NULL, advance_a_tick, recorder->wheel), 0);
	WAIT_UNTIL(stats_of_wheel(recorder->wheel).running == 3);
	/* The owner is asleep by then. */
	wait_for(20 * TW_MILLISECOND);
	assert_not_returned(recorder, LAST_BLOCKER + 1);
	open_gate(1);
	WAIT_UNTIL(times_returned(recorder, LAST_BLOCKER + 1) == 1);
	open_gate(2);
	pthread_join(advancing, &status);
	assert_int_equal((uintptr_t)status, TW_OK);
	close_backlog(recorder);
}

static struct recorder *recorder_of_timers;

static void record_timer(void *value)
{
	const struct tw_task task = {.value = value};

	record_execute(recorder_of_timers, &task);
}

/* Drives the wheel if the caller has to, and returns how many tasks have run. */
static size_t poll_and_count(struct recorder *recorder)
{
	(void)tw_poll(recorder->wheel, NULL);
	return event_count(recorder);
}

/* Timers may be set for now in several ways. */
static void what_is_for_now_comes_after_what_is_due(void **state)
{
	struct recorder *recorder = open_with_backlog(*state, TW_CLOCK_MONOTONIC, 1);
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_timer timer;
	tw_duration start;

	recorder_of_timers = recorder;
	set_timer(recorder, "blocker", 1, INTERVAL);
	set_timer(recorder, "moved", 20, TW_HOUR);
	assert_status(tw_after_func(wheel, TW_HOUR, record_timer, VALUE(21), &timer), TW_OK);
	WAIT_UNTIL(stats_after_poll(recorder).running == 1);
	for (uintptr_t i = 11; i <= 15; i++)
		assert_status(tw_set_timer(wheel, &i, sizeof(i), VALUE(i), (i - 10) * INTERVAL),
			      TW_OK);
	start = tw_now(wheel);
	WAIT_UNTIL(tw_now(wheel) > start + 10 * INTERVAL);
	move_timer(recorder, "moved", 1);
	assert_status(tw_timer_reset(wheel, timer, 0), TW_OK);
	set_timer_at(recorder, "set", 22, 0);
	assert_status(tw_after_func(wheel, 0, record_timer, VALUE(23), NULL), TW_OK);
	flush_wheel(recorder);
	open_gate(1);
	WAIT_UNTIL(poll_and_count(recorder) == 10);
	for (uintptr_t i = 11; i <= 15; i++)
		assert_ptr_equal(event_at(recorder, i - 10).value, VALUE(i));
	close_backlog(recorder);
}

static bool crowd_is_first(const struct variant *variant)
{
	enum { CROWD = 3000 };
	struct recorder *recorder = open_with_backlog(variant, TW_CLOCK_MONOTONIC, CROWD / 2);
	struct tw_wheel *wheel = recorder->wheel;
	bool is_first = true;
	tw_duration due;

	set_timer(recorder, "blocker 1", 1, INTERVAL);
	set_timer(recorder, "blocker 2", 2, INTERVAL);
	WAIT_UNTIL(stats_after_poll(recorder).running == 2);
	due = tw_now(wheel) + 250 * TW_MILLISECOND;
	set_timer_at(recorder, "later", 11, due + 3 * INTERVAL);
	for (uintptr_t i = 100; i < 100 + CROWD; i++)
		assert_status(tw_set_timer_at(wheel, &i, sizeof(i), VALUE(i), due), TW_OK);
	WAIT_UNTIL(tw_now(wheel) > due + 5 * INTERVAL);
	open_gate(2);
	WAIT_UNTIL(poll_and_count(recorder) == 3 + CROWD);
	/* The two workers may be a few tasks apart. */
	for (size_t i = 0; i < CROWD - 100; i++)
		is_first &= event_at(recorder, i).value != VALUE(11);
	close_backlog(recorder);
	return is_first;
}

/* This holds also where a turn ends amid the crowd. A busy machine may set the crowd too late. */
static void crowd_is_not_overtaken(void **state)
{
	WAIT_UNTIL(crowd_is_first(*state));
}

static const struct CMUnitTest tests[] = {
	TEST_POOL(what_is_for_now_comes_after_what_is_due),
	TEST_POOL(crowd_is_not_overtaken),
	TEST_BOTH(threads, room_is_notified_where_no_job_waits),
	TEST_POOL(timers_stay_in_the_wheel_while_the_pool_has_no_room),
	TEST_POOL(held_back_timers_run_when_one_task_ends),
	TEST_BOTH(workers, poll_of_a_full_pool_says_to_come_back_soon),
	TEST_POOL(drain_and_stop_do_not_wait_for_room),
	TEST_POOL(full_wheel_can_be_destroyed),
	TEST_POOL(advance_waits_for_room),
	TEST_POOL(task_that_fills_the_pool_may_call_the_wheel),
	TEST_POOL(task_that_fills_the_pool_may_drain_often),
	TEST_BOTH(threads, task_that_fills_the_pool_does_not_wait_for_a_place),
	TEST_POOL(each_timer_runs_once_and_never_more_than_the_limit_at_a_time),
};

TEST_PROGRAM(tests)
