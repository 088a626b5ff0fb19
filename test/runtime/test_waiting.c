/* SPDX-License-Identifier: MIT */
/* Calls wait for running tasks, for the owner or for one another; others do not wait. */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/inside.h"
#include "support/script.h"
#include "support/stats.h"

static void run_held(struct recorder *recorder, const char *key)
{
	recorder->held = 1;
	set_timer(recorder, key, 1, INTERVAL);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	gate_await(&recorder->gate);
}

#define HELD "hold a; set a 1; clock 1; reached a;"
SCRIPT(pool, wait_idle_waits_for_running_tasks,
       HELD "begin w idle; asleep w; go a; ended w; counts = set 1 fired 1 begun 1 ended 1;"
	    "idle -> a@1")
SCRIPT(pool, wait_idle_after_stop_waits_for_running_tasks,
       HELD "stop; begin w idle; asleep w; go a; ended w;"
	    "counts = set 1 fired 1 begun 1 ended 1; idle -> a@1")
SCRIPT(pool, wait_idle_waits_for_the_commands_of_running_tasks,
       "in a: asleep w, set b 1; set a 1; clock 1; begin w idle; ended w; pending = 1;"
       "idle -> a@1; pass 1 -> b@2",
       .workers = 1)
/* What the first wait has left behind delays no other call. */
SCRIPT(pool, wait_idle_until_ends_when_its_deadline_comes,
       HELD "begin w until 3; asleep w; clock 2-1ns; asleep w; clock 1ns; ended w = TIMED_OUT;"
	    "counts = set 1 fired 1 unfinished 1 running 1 begun 1; go a; idle -> a@1")
SCRIPT(pool, wait_idle_until_ends_sooner_when_the_wheel_is_idle,
       HELD "begin w until 1h; asleep w; go a; ended w;"
	    "counts = set 1 fired 1 begun 1 ended 1; idle -> a@1")
SCRIPT(pool, destroy_waits_for_running_tasks,
       HELD "begin w destroy; asleep w; go a; ended w -> a@1")
/* A program can end although a task hangs. */
SCRIPT(ordered, stop_does_not_wait_for_a_task_that_hangs_in_another_thread,
       "hold a; set a 1; set b 1h; begin w clock 1; reached a; stop; stop = CLOSED; go a;"
       "ended w = any; idle -> a@1 b:stopped")
/* The advance comes when the turn has finished its own look at advances. */
SCRIPT(owner, advance_that_comes_while_a_task_runs_moves_the_clock,
       "clock 2; set due 3; hold p; after p 0; reached p; begin w clock 5; asleep w; go p;"
       "ended w; now = 7; idle -> p@2 due@5")

/* The flush is answered between two tasks of a tick. */
SCRIPT(owner, pending_is_exact_after_a_flush_between_inline_tasks,
       "hold a; hold b; set a 1; set b 1; set c 1h; begin w clock 1; reached a; begin f flush;"
       "asleep f; go a; reached b; ended f; pending = 2; go b; ended w; idle -> a@1 b@1")
/* Both come to one worker, which begins the first. The other one sleeps, at least at the second
 * time. */
SCRIPT(pool, second_of_two_tasks_of_a_tick_is_not_held_up_by_the_first,
       "in b: go a; hold a; set a 1; set b 1; pass 1 -> a@1 b@1; hold a; set a 1; set b 1;"
       "pass 1 -> a@2 b@2")
/* What tasks of this turn have set for now was run, the one that runs now among it. */
SCRIPT(owner, wait_idle_waits_for_what_was_set_for_now_while_a_task_ran,
       "in p: after q 0; hold q; after p 0; reached q; after r 0; begin w idle; asleep w; go q;"
       "ended w; events = 3; idle -> p@0 q@0 r@0")

/* A task acts once the main thread waits for it. */
struct late {
	int waiter; /* system id of the main thread */
	void (*act)(struct tw_wheel *);
};

static void act_late(struct recorder *recorder, const struct tw_task *task)
{
	const struct late *late = recorder->argument;

	if (task->value != VALUE(1))
		return;
	while (!thread_is_asleep(late->waiter))
		continue;
	late->act(recorder->wheel);
}

static void run_late_task(struct recorder *recorder, struct late *late)
{
	late->waiter = gettid();
	recorder->argument = late;
	recorder->on_execute = act_late;
	run_held(recorder, "late");
}

static void stop(struct tw_wheel *wheel)
{
	(void)tw_stop(wheel);
}

RECORDED(pool, wait_idle_waits_for_what_a_stop_by_a_running_task_releases, .workers = 1)
{
	enum { MANY = 20000 };
	struct late late = {.act = stop};

	run_late_task(recorder, &late);
	for (int number = 2; number <= MANY; number++)
		assert_status(tw_set_timer(recorder->wheel, &number, sizeof(number), VALUE(number),
					   INTERVAL),
			      TW_OK);
	gate_open(&recorder->gate);
	settle(recorder);
	assert_int_equal(event_count(recorder), MANY);
}

SCRIPT(everywhere, wait_idle_until_has_a_status_for_each_case,
       "in a: until never = INVALID; set a 1; pass 2 -> a@1; until 2 = TIMED_OUT;"
       "until -1 = TIMED_OUT; until 1h; stop; until 1h")

static void *wait_idle_from_thread(void *wheel)
{
	return VALUE(tw_wait_idle(wheel));
}

/* The task hangs in the owner, which therefore answers no call, on either clock of the system. */
TEST(ordered, wait_idle_until_ends_also_while_the_owner_hangs)
{
	static const enum tw_clock clocks[] = {TW_CLOCK_MONOTONIC, TW_CLOCK_BOOTTIME};

	for (size_t i = 0; i < 2; i++) {
		struct recorder *recorder = recorder_create();
		struct tw_options options = recorder_options(recorder, *state);
		tw_duration deadline;
		pthread_t thread;

		options.clock = clocks[i];
		recorder->held = 1;
		recorder_start(recorder, INTERVAL, 10, &options);
		set_timer(recorder, "hangs", 1, INTERVAL);
		wait_for(2 * INTERVAL);
		pthread_create(&thread, NULL, wait_idle_from_thread, recorder->wheel);
		gate_await(&recorder->gate);
		deadline = tw_now(recorder->wheel) + 20 * TW_MILLISECOND;
		assert_status(tw_wait_idle_until(recorder->wheel, deadline), TW_TIMED_OUT);
		assert_true(tw_now(recorder->wheel) >= deadline);
		gate_open(&recorder->gate);
		pthread_join(thread, NULL);
		deadline = tw_now(recorder->wheel) + TW_HOUR;
		assert_status(tw_wait_idle_until(recorder->wheel, deadline), TW_OK);
		recorder_close(recorder);
	}
}

SCRIPT(pool, advance_and_flush_do_not_wait_for_tasks,
       "set next 2; hold a; set a 1; clock 1; reached a; clock 5; flush; left next = NOT_FOUND;"
       "pending = 0; events = 1; go a; idle -> a@1 next@6/2",
       .workers = 1)
SCRIPT(pool, tasks_not_begun_at_stop_are_released_and_do_not_run,
       "hold a; set a 1; clock 1; reached a; set b 1; set c 1; after p 1; set d 2; clock 1; stop;"
       "go a; idle -> a@1 b:stopped c:stopped p:stopped d:stopped;"
       "counts = set 5 fired 1 stopped 4 begun 1 ended 1",
       .workers = 1)

/* Several threads drive one wheel. */
enum { DRIVERS = 4, TICKS_PER_DRIVER = TEST_SHARE_OF(2000) };

struct driver {
	struct recorder *recorder;
	int number;
	enum tw_status status; /* the first that is not TW_OK */
};

struct overlap {
	atomic_int in_task;
	atomic_int overlaps;
};

static void removal_overlap(struct recorder *recorder, const struct tw_task *task)
{
	struct overlap *overlap = recorder->argument;

	if (atomic_fetch_add(&overlap->in_task, 1) != 0)
		atomic_fetch_add(&overlap->overlaps, 1);
	atomic_fetch_sub(&overlap->in_task, 1);
}

static void *drive(void *argument)
{
	struct driver *driver = argument;
	struct tw_wheel *wheel = driver->recorder->wheel;

	for (int i = 0; i < TICKS_PER_DRIVER && driver->status == TW_OK; i++) {
		int key[2] = {driver->number, i};

		driver->status = tw_set_timer(wheel, key, sizeof(key), VALUE(1), INTERVAL);
		if (driver->status == TW_OK)
			driver->status = tw_advance(wheel, INTERVAL);
		if (driver->status == TW_OK && i % 16 == 0)
			driver->status = tw_flush(wheel);
		if (driver->status == TW_OK && i % 32 == 0)
			driver->status = tw_poll(wheel, NULL);
	}
	return NULL;
}

RECORDED(inline, threads_that_drive_one_wheel_take_turns)
{
	struct overlap overlap = {0};
	struct driver drivers[DRIVERS];
	pthread_t threads[DRIVERS];

	recorder->on_execute = removal_overlap;
	recorder->argument = &overlap;
	for (int i = 0; i < DRIVERS; i++) {
		drivers[i] = (struct driver){.recorder = recorder, .number = i};
		pthread_create(&threads[i], NULL, drive, &drivers[i]);
	}
	for (int i = 0; i < DRIVERS; i++) {
		pthread_join(threads[i], NULL);
		assert_status(drivers[i].status, TW_OK);
	}
	assert_int_equal(tw_now(recorder->wheel), INTERVAL * DRIVERS * TICKS_PER_DRIVER);
	pass_ticks(recorder, 2);
	assert_int_equal(event_count(recorder), DRIVERS * TICKS_PER_DRIVER);
	assert_int_equal(atomic_load(&overlap.overlaps), 0);
}

/* A producer sets and moves without a pause, until it is stopped. */
struct producer {
	struct tw_wheel *wheel;
	atomic_bool *end;
	uint32_t number;
};

static void *produce(void *argument)
{
	const struct producer *producer = argument;

	for (uint32_t i = 0; !atomic_load(producer->end); i++) {
		uint32_t key[2] = {producer->number, i % 1000};

		may_fail(tw_set_timer(producer->wheel, key, sizeof(key), VALUE(1), TW_HOUR));
	}
	return NULL;
}

/* Gives the producers time to go on. */
static void release_slowly(void *context, const struct tw_task *task, enum tw_reason reason)
{
	give_way();
}

/* Inline, each replaced value is a job, after which commands could be applied that replace more. */
TEST(owner, waits_end_while_others_go_on_setting)
{
	const struct variant *variant = *state;
	/* On a busy machine each release may take long. */
	struct tw_options options = {
		.workers = variant->workers, .queue_capacity = 64, .release = release_slowly};
	struct tw_wheel *wheel;
	struct producer producers[4];
	pthread_t threads[4];
	atomic_bool end = false;

	assert_status(tw_create(&wheel, INTERVAL, 10, ignore_task, &options), TW_OK);
	for (uint32_t i = 0; i < 4; i++) {
		producers[i] = (struct producer){wheel, &end, i};
		pthread_create(&threads[i], NULL, produce, &producers[i]);
	}
	for (int i = 0; i < 5; i++) {
		assert_status(tw_wait_idle(wheel), TW_OK);
		assert_status(tw_flush(wheel), TW_OK);
	}
	atomic_store(&end, true);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	tw_destroy(wheel);
}

/* The owner goes on to later ticks while timers of an earlier one are left. */
TEST(threads, wait_idle_waits_for_a_crowd_that_later_ticks_overtake)
{
	enum { CROWD = 100000 };
	const struct variant *variant = *state;
	const struct tw_options options = {.workers = variant->workers};
	struct tw_wheel *wheel;
	tw_duration deadline;
	tw_duration latest = 0;

	assert_status(tw_create(&wheel, INTERVAL, 10, ignore_task, &options), TW_OK);
	deadline = tw_now(wheel) + 100 * TW_MILLISECOND;
	for (uint64_t key = 0; key < CROWD; key++) {
		tw_duration left = deadline - tw_now(wheel);
		tw_duration delay = left > INTERVAL ? left : INTERVAL;

		assert_status(tw_set_timer(wheel, &key, sizeof(key), VALUE(1), delay), TW_OK);
		/* This thread may have stood still between its look at the clock and the call. */
		if (tw_now(wheel) + delay > latest)
			latest = tw_now(wheel) + delay;
	}
	/* Deadlines are rounded up to a tick. */
	WAIT_UNTIL(tw_now(wheel) >= latest + INTERVAL);
	assert_status(tw_wait_idle(wheel), TW_OK);
	assert_int_equal(stats_of_wheel(wheel).fired, CROWD);
	tw_destroy(wheel);
}
