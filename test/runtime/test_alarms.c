/* SPDX-License-Identifier: MIT */
/* An alarm is made once, set and stopped any number of times, and ignored by drain and release. */
#include "support/test.h"

#include "support/inside.h"
#include "support/recorder.h"
#include "support/script.h"

SCRIPT(everywhere, alarm_runs_each_time_that_it_was_set,
       "advance 5; alarm x; set x 100; advance 99; advance 1 -> x@105; set x 100; advance 99;"
       "advance 1 -> x@205; set x 100; advance 100 -> x@305")
SCRIPT(ordered, alarms_of_one_tick_run_in_the_order_of_their_setting,
       "alarm a; alarm b; alarm c; alarm d; set a 20; set b 20; set c 20; set d 20;"
       "advance 20 => a@20 b@20 c@20 d@20")
SCRIPT(everywhere, alarm_moves_sooner_and_later,
       "alarm x; set x 10; set x 50; advance 49; set x 500; flush; set x 3; advance 2;"
       "advance 1 -> x@52; advance 1000")
SCRIPT(everywhere, delay_of_nothing_is_now_and_one_under_an_interval_is_one_interval,
       "alarm x; set x 0; advance 0 -> x@0; set x least; advance 0 -> x@0; clock 0.5; set x 1ns;"
       "advance 1-1ns; advance 0.5+1ns -> x@2; set_at x 2-1ns; advance 0 -> x@2;"
       "set_at x least; advance 0 -> x@2; set x never; advance 1000000")
/* The alarm is still filed at its earlier tick. */
SCRIPT(everywhere, stopped_alarm_does_not_run_until_it_is_set_again,
       "alarm x; stop x = NOT_FOUND; set x 10; stop x; stop x = NOT_FOUND; advance 5; set x 20;"
       "advance 19; advance 1 -> x@25")
SCRIPT(everywhere, alarm_may_be_set_and_stopped_in_its_own_run,
       "alarm x; in x: stop x = RUNNING, set x 0, stop x = REARMED; in x 1: set x 2;"
       "in x 2: set x 2; set x 1; pass 20 -> x@1 x@3 x@5")
/* One of the alarms may still be on the drained pending set. */
SCRIPT(everywhere, drain_and_release_never_meet_an_alarm,
       "alarm x; alarm y; set x 30; set y 30; set a 9; drain; set y 20; idle -> a:drained;"
       "pending = 0; advance 20 -> y@20; advance 10 -> x@30; set x 1; stop; idle;"
       "set x 0 = CLOSED; stop x = CLOSED; destroy x; destroy y")
SCRIPT(by_caller, alarm_needs_no_room_and_no_place,
       "alarm x; move a 1h; move a 1h; move a 1h; move a 1h; move a 1h = FULL; set x 1; flush;"
       "set a 1h; set b 1h; set c 1h; set d 1h; flush; set e 1h = FULL; advance 1 -> x@1;"
       "set e 1h = FULL; places = 4",
       .max_pending = 4, .queue_capacity = 4, .when_full = TW_WHEN_FULL_FAIL)
SCRIPT(everywhere, alarm_that_its_own_run_destroys_is_stopped_and_lives_on,
       "alarm x; in x 1: set x 0, destroy x = RUNNING; set x 0; advance 0 -> x@0; advance 10;"
       "set x 1; advance 1 -> x@11")
SCRIPT(ordered, alarm_that_is_due_may_be_destroyed_by_the_run_before_it,
       "alarm x; alarm y; in x: destroy y; set x 1; set y 1;"
       "advance 9 -> x@1")
SCRIPT(everywhere, alarm_that_has_run_does_not_count_as_pending,
       "alarm x; set x 1; set a 9; pass 2 -> x@1; pending = 1")
SCRIPT(pool, alarm_that_runs_can_be_set_stopped_and_destroyed,
       "alarm x; hold x; set x 0; clock 0; reached x; stop x = RUNNING; set x 0; stop x = REARMED;"
       "set x 0; hold x; go x; reached x; set x 0; begin w destroy x; asleep w; set x 0 = CLOSED;"
       "go x; ended w -> x@0 x@0; pass 10")
/* The alarms are never set, far, stopped but still filed, filed later than they are due, seen by
 * the owner, past their run, and in the drained pending set. */
SCRIPT(everywhere, memory_of_a_destroyed_alarm_is_free_wherever_it_was,
       "alarm n; alarm f; alarm s; alarm l; alarm o; alarm p; alarm d; set p 1; advance 1 -> p@1;"
       "set d 9; set a 9; flush; drain; set f 900; set s 900; set l 900; set o 900; flush; stop s;"
       "set l 5; destroy n; destroy f; destroy s; destroy l; destroy o; destroy p; destroy d;"
       "alarm z; set z 900; advance 900 -> a:drained z@901; advance 100; set z 1; stop; destroy z")
SCRIPT(pool, alarm_that_waits_for_a_worker_is_destroyed_when_no_worker_has_it,
       "hold b; after b 1; clock 1; reached b; alarm x; set x 1; clock 1; begin w destroy x;"
       "asleep w; set x 0 = CLOSED; go b; ended w; idle -> b@1",
       .workers = 1)

/* An alarm's argument points to a bell. */
struct bell {
	struct recorder *recorder;
	struct tw_wheel *wheel;
	struct tw_alarm alarm;
	void (*in_run)(struct bell *);
	atomic_int runs;
	tw_duration last; /* tw_now in the last run */
};

static void ring(void *argument)
{
	struct bell *bell = argument;

	bell->last = tw_now(bell->wheel);
	/* relaxed: read after tw_wait_idle or a semaphore. */
	atomic_fetch_add_explicit(&bell->runs, 1, memory_order_relaxed);
	if (bell->in_run != NULL)
		bell->in_run(bell);
}

static int runs_of(struct bell *bell)
{
	/* relaxed: see ring(). */
	return atomic_load_explicit(&bell->runs, memory_order_relaxed);
}

static void make(struct recorder *recorder, struct bell *bell)
{
	memset(bell, 0, sizeof(*bell));
	bell->recorder = recorder;
	bell->wheel = recorder->wheel;
	assert_status(tw_alarm_init(recorder->wheel, &bell->alarm, ring, bell), TW_OK);
}

/* BELL(kind, name) { ... } is a case with an alarm, `bell`, on a recorder's wheel. */
#define BELL(kind, name) TEST_GIVEN(kind, name, struct bell *bell, bell_give(*state, name))

static void bell_give(const struct variant *variant, void (*run)(struct bell *))
{
	struct recorder *recorder = recorder_open(variant, 10);
	struct bell bell;

	make(recorder, &bell);
	run(&bell);
	tw_alarm_destroy(&bell.alarm);
	recorder_close(recorder);
}

/* Advances; `runs` runs have begun by then. */
static void assert_runs_after(struct bell *bell, tw_duration by, int runs)
{
	advance(bell->recorder, by);
	assert_int_equal(runs_of(bell), runs);
}

static void set_for_now_in_its_run(struct bell *bell)
{
	if (runs_of(bell) < 10000)
		assert_status(tw_alarm_set(&bell->alarm, 0), TW_OK);
}

BELL(everywhere, alarm_that_sets_itself_for_now_keeps_no_turn_going)
{
	bell->in_run = set_for_now_in_its_run;
	assert_status(tw_alarm_set(&bell->alarm, 0), TW_OK);
	for (int i = 0; runs_of(bell) < 10000; i++) {
		assert_true(i < 100000);
		advance(bell->recorder, INTERVAL);
	}
}

static void drain_and_set_the_alarm(void *context, const struct tw_task *task)
{
	struct recorder *recorder = context;
	struct bell *bell = recorder->argument;

	record_drain(recorder, task);
	if (task->value == VALUE(1))
		(void)tw_alarm_set(&bell->alarm, 2 * INTERVAL);
}

/* The alarm is in the drained pending set and has not been taken from there yet. */
BELL(ordered, alarm_set_sooner_by_a_drain_function_runs_then)
{
	bell->recorder->argument = bell;
	for (int number = 1; number <= 300; number++)
		assert_status(tw_set_timer(bell->wheel, &number, sizeof(number), VALUE(number),
					   number * INTERVAL),
			      TW_OK);
	assert_status(tw_alarm_set(&bell->alarm, 1000 * INTERVAL), TW_OK);
	settle(bell->recorder);
	assert_status(tw_drain(bell->wheel, drain_and_set_the_alarm, bell->recorder), TW_OK);
	settle(bell->recorder);
	assert_int_equal(event_count(bell->recorder), 300);
	set_timer(bell->recorder, "a", 301, 9 * INTERVAL);
	pass_ticks(bell->recorder, 2);
	assert_int_equal(runs_of(bell), 1);
	assert_int_equal(tw_pending(bell->wheel), 1);
}

BELL(inline, poll_knows_when_the_last_of_many_alarms_is_due)
{
	enum { ALARMS = 1000 };
	struct tw_alarm alarms[ALARMS];

	for (int i = 0; i < ALARMS; i++) {
		assert_status(tw_alarm_init(bell->wheel, &alarms[i], ring, bell), TW_OK);
		assert_status(tw_alarm_set(&alarms[i], (ALARMS - i) * INTERVAL), TW_OK);
	}
	assert_int_equal(poll_wheel(bell->recorder), INTERVAL);
	assert_runs_after(bell, ALARMS * INTERVAL, ALARMS);
	for (int i = 0; i < ALARMS; i++)
		tw_alarm_destroy(&alarms[i]);
}

/* At 1 ns a tick, ticks of the clock's range have 63 bits. */
TEST(once, far_alarm_is_late_by_few_ticks_and_never_early)
{
	static const tw_duration year = 8766 * TW_HOUR;
	struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct bell far = {0};
	struct bell never = {0};

	assert_status(tw_create(&far.wheel, 1, 8, record_execute, &options), TW_OK);
	never.wheel = far.wheel;
	assert_status(tw_alarm_init(far.wheel, &far.alarm, ring, &far), TW_OK);
	assert_status(tw_alarm_init(far.wheel, &never.alarm, ring, &never), TW_OK);
	assert_status(tw_alarm_set(&never.alarm, TW_FOREVER), TW_OK);
	for (int years = 1; years < 100; years += 7) {
		tw_duration deadline = tw_now(far.wheel) + years * year + 1;

		assert_status(tw_alarm_set(&far.alarm, years * year + 1), TW_OK);
		assert_status(tw_advance(far.wheel, years * year / 2), TW_OK);
		assert_status(tw_advance(far.wheel, deadline - 1 - tw_now(far.wheel)), TW_OK);
		assert_int_equal(runs_of(&far), years / 7);
		assert_status(tw_advance(far.wheel, 256), TW_OK);
		assert_int_equal(runs_of(&far), years / 7 + 1);
		assert_true(far.last >= deadline);
		if (deadline > 150 * year)
			break;
	}
	assert_int_equal(runs_of(&never), 0);
	tw_alarm_destroy(&far.alarm);
	tw_alarm_destroy(&never.alarm);
	tw_destroy(far.wheel);
}

/* A virtual machine's clock may go back. The only worker is busy until then. */
RECORDED(pool, alarm_runs_though_the_clock_has_gone_back_since_it_was_due, .workers = 1)
{
	struct bell bell;

	recorder->held = 1;
	set_timer(recorder, "busy", 1, INTERVAL);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	gate_await(&recorder->gate);
	make(recorder, &bell);
	assert_status(tw_alarm_set(&bell.alarm, 8 * INTERVAL), TW_OK);
	assert_status(tw_advance(recorder->wheel, 8 * INTERVAL), TW_OK);
	wheel_set_clock(recorder->wheel, 5 * INTERVAL);
	gate_open(&recorder->gate);
	settle(recorder);
	assert_int_equal(runs_of(&bell), 1);
	tw_alarm_destroy(&bell.alarm);
}

enum { CROWD = 5000 };

/* A task sets all these alarms, from the last to the first due, or closes them. */
struct crowd {
	struct bell bells[CROWD];
	atomic_int closed;
};

static void ignore_close(void *argument)
{
}

static void count_close(void *argument)
{
	struct bell *bell = argument;
	struct crowd *crowd = (struct crowd *)(bell - (CROWD - 1));

	atomic_fetch_add(&crowd->closed, 1);
}

static void set_crowd(void *argument)
{
	struct crowd *crowd = argument;

	for (int i = 0; i < CROWD; i++)
		assert_status(tw_alarm_set(&crowd->bells[i].alarm,
					   i < CROWD - 1 ? TW_HOUR : 2 * INTERVAL),
			      TW_OK);
}

static void close_crowd(void *argument)
{
	struct crowd *crowd = argument;

	for (int i = 0; i < CROWD; i++)
		assert_status(tw_alarm_close(&crowd->bells[i].alarm,
					     i < CROWD - 1 ? ignore_close : count_close),
			      TW_OK);
}

TEST(ordered, all_alarms_that_a_task_changes_count_before_the_next_tick)
{
	struct recorder *recorder = recorder_open(*state, 8);
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	struct bell *last;

	assert_non_null(crowd);
	last = &crowd->bells[CROWD - 1];
	for (int i = 0; i < CROWD; i++)
		make(recorder, &crowd->bells[i]);
	assert_status(tw_after_func(recorder->wheel, INTERVAL, set_crowd, crowd, NULL), TW_OK);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_OK);
	assert_int_equal(runs_of(last), 1);
	assert_int_equal(last->last, 3 * INTERVAL);
	assert_status(tw_after_func(recorder->wheel, INTERVAL, close_crowd, crowd, NULL), TW_OK);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	settle(recorder);
	assert_int_equal(atomic_load(&crowd->closed), 1);
	recorder_close(recorder);
	free(crowd);
}
