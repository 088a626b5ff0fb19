/* SPDX-License-Identifier: MIT */
/* With TW_DRIVE_LOOP one thread makes all calls. Promises common to all drives are tested
 * elsewhere, in the variants levels_loop and rounds_loop. */
#include "support/test.h"

#include "support/exceptions.h"
#include "support/recorder.h"
#include "support/seed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Asserts in a task, where the test itself can't fail. */
static void must(enum tw_status status, enum tw_status expected)
{
	if (status != expected)
		abort();
}

static void run_nothing(void *argument)
{
	(void)argument;
}

static tw_duration next_never(void *argument, tw_duration previous)
{
	(void)argument;
	(void)previous;
	return TW_FOREVER;
}

static int visit_nothing(void *context, const struct tw_pending_timer *timer)
{
	(void)context;
	(void)timer;
	return 0;
}

/* ---- Other threads ---- */

struct stranger {
	struct recorder *recorder;
	struct tw_alarm *alarm;
	struct tw_timer timer;
	int wrong; /* calls that returned something else */
};

static void expect_invalid(struct stranger *stranger, enum tw_status status)
{
	stranger->wrong += status != TW_INVALID;
}

static void call_by_key(struct stranger *stranger)
{
	struct tw_wheel *wheel = stranger->recorder->wheel;
	void *value;

	expect_invalid(stranger, tw_set_timer(wheel, "x", 1, NULL, INTERVAL));
	expect_invalid(stranger, tw_set_timer_at(wheel, "x", 1, NULL, INTERVAL));
	expect_invalid(stranger, tw_add_timer(wheel, "x", 1, NULL, INTERVAL));
	expect_invalid(stranger, tw_move_timer(wheel, "a", 1, 9 * INTERVAL));
	expect_invalid(stranger, tw_move_timer_at(wheel, "a", 1, 9 * INTERVAL));
	expect_invalid(stranger, tw_remove_timer(wheel, "a", 1));
	expect_invalid(stranger, tw_take_timer(wheel, "a", 1, &value));
	expect_invalid(stranger, tw_contains(wheel, "a", 1, NULL));
}

static void call_by_handle(struct stranger *stranger)
{
	struct tw_wheel *wheel = stranger->recorder->wheel;
	struct tw_timer timer;
	void *argument;

	expect_invalid(stranger, tw_after_func(wheel, 1, run_nothing, NULL, &timer));
	expect_invalid(stranger, tw_after_func_at(wheel, 1, run_nothing, NULL, NULL));
	expect_invalid(stranger, tw_every(wheel, 1, 1, TW_MISSED_SKIP, run_nothing, NULL, NULL));
	expect_invalid(stranger, tw_schedule_func(wheel, next_never, run_nothing, NULL, NULL));
	expect_invalid(stranger, tw_timer_reset(wheel, stranger->timer, INTERVAL));
	expect_invalid(stranger, tw_timer_reset_at(wheel, stranger->timer, INTERVAL));
	expect_invalid(stranger, tw_timer_stop(wheel, stranger->timer));
	expect_invalid(stranger, tw_timer_stop_wait(wheel, stranger->timer));
	expect_invalid(stranger, tw_timer_take(wheel, stranger->timer, &argument));
	expect_invalid(stranger, tw_timer_close(wheel, stranger->timer, NULL));
	expect_invalid(stranger, tw_timer_remaining(wheel, stranger->timer, NULL));
	stranger->wrong += timer.id != 0;
}

static void call_alarms(struct stranger *stranger)
{
	struct tw_wheel *wheel = stranger->recorder->wheel;
	struct tw_alarm own;
	struct tw_alarm *alarm;

	expect_invalid(stranger, tw_alarm_create(wheel, run_nothing, NULL, &alarm));
	expect_invalid(stranger, tw_alarm_init(wheel, &own, run_nothing, NULL));
	expect_invalid(stranger, tw_alarm_set(stranger->alarm, INTERVAL));
	expect_invalid(stranger, tw_alarm_set_at(stranger->alarm, INTERVAL));
	expect_invalid(stranger, tw_alarm_stop(stranger->alarm));
	expect_invalid(stranger, tw_alarm_remaining(stranger->alarm, NULL));
	expect_invalid(stranger, tw_alarm_close(stranger->alarm, run_nothing));
	expect_invalid(stranger, tw_alarm_destroy(stranger->alarm));
	stranger->wrong += alarm != NULL;
}

static void call_wheel(struct stranger *stranger)
{
	struct tw_wheel *wheel = stranger->recorder->wheel;
	tw_duration time;

	expect_invalid(stranger, tw_drain(wheel, record_drain, stranger->recorder));
	expect_invalid(stranger, tw_flush(wheel));
	expect_invalid(stranger, tw_trim(wheel));
	expect_invalid(stranger, tw_advance(wheel, INTERVAL));
	expect_invalid(stranger, tw_next(wheel, &time));
	expect_invalid(stranger, tw_poll(wheel, &time));
	expect_invalid(stranger, tw_poll_some(wheel, 1, &time));
	expect_invalid(stranger, tw_wait_idle(wheel));
	expect_invalid(stranger, tw_each(wheel, visit_nothing, NULL));
	expect_invalid(stranger, tw_dump(wheel, stderr));
	expect_invalid(stranger, tw_stop(wheel));
	stranger->wrong += tw_fd(wheel) != -1 || errno != EINVAL;
	/* It returns nothing, and has no effect. */
	tw_destroy(wheel);
}

static void *call_everything(void *argument)
{
	struct stranger *stranger = argument;
	struct tw_stats stats;

	call_by_key(stranger);
	call_by_handle(stranger);
	call_alarms(stranger);
	call_wheel(stranger);
	stranger->wrong += tw_pending(stranger->recorder->wheel) != 2;
	stranger->wrong += tw_now(stranger->recorder->wheel) != INTERVAL;
	stranger->wrong += tw_get_stats(stranger->recorder->wheel, &stats) != TW_OK;
	return NULL;
}

static void *call_stopped_wheel(void *argument)
{
	call_wheel(argument);
	return NULL;
}

static void calls_of_other_threads_are_refused_and_do_nothing(void **state)
{
	struct stranger stranger = {.recorder = recorder_open(*state, 10)};
	struct tw_wheel *wheel = stranger.recorder->wheel;
	pthread_t thread;

	set_timer(stranger.recorder, "a", 1, 3 * INTERVAL);
	assert_status(tw_after_func(wheel, 5 * INTERVAL, run_nothing, NULL, &stranger.timer),
		      TW_OK);
	assert_status(tw_alarm_create(wheel, run_nothing, NULL, &stranger.alarm), TW_OK);
	assert_status(tw_alarm_set(stranger.alarm, 4 * INTERVAL), TW_OK);
	advance(stranger.recorder, INTERVAL);
	assert_int_equal(pthread_create(&thread, NULL, call_everything, &stranger), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(stranger.wrong, 0);
	assert_status(tw_contains(wheel, "a", 1, NULL), TW_OK);
	assert_status(tw_contains(wheel, "s", 1, NULL), TW_NOT_FOUND);
	assert_status(tw_timer_stop(wheel, stranger.timer), TW_OK);
	assert_status(tw_alarm_stop(stranger.alarm), TW_OK);
	assert_status(tw_alarm_destroy(stranger.alarm), TW_OK);
	pass_ticks(stranger.recorder, 2);
	assert_executed_at(stranger.recorder, 1, 3 * INTERVAL);
	/* This holds for a stopped wheel, too. */
	stop_wheel(stranger.recorder);
	stranger.wrong = 0;
	assert_int_equal(pthread_create(&thread, NULL, call_stopped_wheel, &stranger), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(stranger.wrong, 0);
	assert_status(tw_set_timer(wheel, "a", 1, NULL, INTERVAL), TW_CLOSED);
	recorder_close(stranger.recorder);
}

/* ---- Polls ---- */

static void calls_that_would_run_tasks_elsewhere_run_none(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	tw_duration next;

	set_timer(recorder, "a", 1, INTERVAL);
	set_timer(recorder, "b", 2, INTERVAL);
	remove_timer(recorder, "b");
	assert_status(tw_advance(recorder->wheel, 3 * INTERVAL), TW_OK);
	assert_int_equal(tw_now(recorder->wheel), 3 * INTERVAL);
	assert_status(tw_flush(recorder->wheel), TW_OK);
	assert_status(tw_wait_idle(recorder->wheel), TW_INVALID);
	assert_status(tw_wait_idle_until(recorder->wheel, INTERVAL), TW_INVALID);
	assert_int_equal(tw_fd(recorder->wheel), -1);
	assert_int_equal(event_count(recorder), 0);
	assert_status(tw_next(recorder->wheel, &next), TW_OK);
	assert_true(next <= 3 * INTERVAL);
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	assert_released(recorder, 2, TW_REMOVED);
	assert_executed_at(recorder, 1, 3 * INTERVAL);
	recorder_close(recorder);
}

static void tasks_of_one_poll_run_in_the_order_of_their_deadlines(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	static const tw_duration deadlines[] = {50, 7, 31, 12, 30, 9, 49, 48};

	pass_ticks(recorder, 5);
	/* The timers are within one tick, at other ticks, and long past. */
	for (uintptr_t i = 0; i < 8; i++)
		set_timer_at(recorder, (char[]){(char)('a' + i), 0}, i + 1,
			     deadlines[i] * INTERVAL / 2 + (tw_duration)i);
	set_timer_at(recorder, "x", 9, 20 * INTERVAL + 5);
	set_timer_at(recorder, "y", 10, 20 * INTERVAL + 3);
	set_timer_at(recorder, "z", 11, -TW_HOUR);
	assert_status(tw_advance(recorder->wheel, 20 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	assert_int_equal(event_count(recorder), 11);
	for (size_t i = 1; i < 11; i++)
		assert_true(event_at(recorder, i - 1).deadline < event_at(recorder, i).deadline);
	recorder_close(recorder);
}

static void set_again_in_the_past(struct recorder *recorder, const struct tw_task *task)
{
	uintptr_t value = (uintptr_t)task->value;

	if (value >= 3)
		return;
	set_timer_at(recorder, "a", value + 1, (tw_duration)value * INTERVAL);
	set_timer_at(recorder, value == 1 ? "b" : "c", value + 10, tw_now(recorder->wheel));
}

static void what_a_task_makes_due_waits_for_the_next_poll(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	recorder->on_execute = set_again_in_the_past;
	set_timer(recorder, "a", 1, INTERVAL);
	assert_status(tw_advance(recorder->wheel, 100 * INTERVAL), TW_OK);
	assert_int_equal(poll_wheel(recorder), 0);
	assert_int_equal(event_count(recorder), 1);
	assert_int_equal(tw_pending(recorder->wheel), 2);
	assert_int_equal(poll_wheel(recorder), 0);
	assert_int_equal(event_count_of_kind(recorder, EVENT_EXECUTE), 3);
	assert_int_equal((uintptr_t)event_at(recorder, 1).value, 2);
	assert_int_equal((uintptr_t)event_at(recorder, 2).value, 11);
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	assert_int_equal(event_count_of_kind(recorder, EVENT_EXECUTE), 5);
	recorder_close(recorder);
}

static void remove_and_set(struct recorder *recorder, const struct tw_task *task)
{
	(void)task;
	set_timer(recorder, "r", 5, TW_HOUR);
	remove_timer(recorder, "r");
}

static void what_a_release_causes_waits_for_the_next_poll(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	recorder->on_release = remove_and_set;
	remove_and_set(recorder, NULL);
	for (size_t polls = 1; polls <= 10; polls++) {
		assert_int_equal(poll_wheel(recorder), 0);
		assert_int_equal(event_count(recorder), polls);
	}
	recorder->on_release = NULL;
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	recorder_close(recorder);
}

static void drain_again(struct recorder *recorder, const struct tw_task *task)
{
	(void)task;
	set_timer(recorder, "d", 5, TW_HOUR);
	must(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
}

static void drain_that_a_drain_begins_waits_for_the_next_poll(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	recorder->on_drain = drain_again;
	drain_again(recorder, NULL);
	for (size_t polls = 1; polls <= 10; polls++) {
		assert_int_equal(poll_wheel(recorder), 0);
		assert_int_equal(event_count(recorder), polls);
	}
	recorder->on_drain = NULL;
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static void poll_of_some_goes_on_where_the_last_one_was(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	tw_duration until = -1;

	for (uintptr_t i = 0; i < 20; i++)
		set_timer(recorder, (char[]){(char)('a' + i), 0}, i + 1,
			  (1 + (tw_duration)i / 5) * INTERVAL);
	set_timer(recorder, "released", 30, TW_HOUR);
	remove_timer(recorder, "released");
	assert_status(tw_advance(recorder->wheel, 4 * INTERVAL), TW_OK);
	assert_status(tw_poll_some(recorder->wheel, 0, &until), TW_INVALID);
	assert_status(tw_poll_some(recorder->wheel, 3, &until), TW_OK);
	assert_int_equal(event_count(recorder), 3);
	assert_int_equal(until, 0);
	assert_status(tw_next(recorder->wheel, &until), TW_OK);
	assert_true(until == INTERVAL);
	/* It is the first of the rest to be due. */
	set_timer_at(recorder, "early", 100, INTERVAL / 2);
	assert_status(tw_poll_some(recorder->wheel, 1, &until), TW_OK);
	assert_int_equal((uintptr_t)event_at(recorder, 3).value, 100);
	while (until == 0)
		assert_status(tw_poll_some(recorder->wheel, 2, &until), TW_OK);
	assert_true(until == TW_FOREVER);
	for (uintptr_t i = 1; i <= 20; i++)
		assert_executed_at(recorder, i, 4 * INTERVAL);
	recorder_close(recorder);
}

static char order[8];

static void first_run(void *argument)
{
	strncat(order, argument, 1);
}

static void what_was_put_off_runs_at_its_place(void **state)
{
	for (int drains = 0; drains < 2; drains++) {
		struct recorder *recorder = recorder_open(*state, 10);
		struct tw_wheel *wheel = recorder->wheel;
		struct tw_timer timer;
		struct tw_alarm *alarm;

		order[0] = '\0';
		assert_status(tw_alarm_create(wheel, first_run, "a", &alarm), TW_OK);
		assert_status(tw_alarm_set(alarm, INTERVAL), TW_OK);
		assert_status(tw_alarm_set(alarm, 4 * INTERVAL), TW_OK);
		if (drains)
			assert_status(tw_drain(wheel, record_drain, recorder), TW_OK);
		assert_status(tw_after_func(wheel, INTERVAL, first_run, "h", &timer), TW_OK);
		assert_status(tw_timer_reset(wheel, timer, 3 * INTERVAL), TW_OK);
		assert_status(tw_after_func(wheel, 9 * INTERVAL, first_run, "t", NULL), TW_OK);
		assert_status(tw_advance(wheel, 10 * INTERVAL), TW_OK);
		(void)poll_wheel(recorder);
		assert_string_equal(order, "hat");
		assert_status(tw_alarm_destroy(alarm), TW_OK);
		recorder_close(recorder);
	}
}

static void drain_and_set_in_the_past(struct recorder *recorder, const struct tw_task *task)
{
	must(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	set_timer_at(recorder, "x", 2, task->deadline + INTERVAL);
}

static void what_is_set_after_a_drain_in_a_task_waits_too(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	recorder->on_execute = drain_and_set_in_the_past;
	set_timer(recorder, "a", 1, INTERVAL);
	assert_status(tw_advance(recorder->wheel, 50 * INTERVAL), TW_OK);
	for (size_t polls = 1; polls <= 5; polls++) {
		assert_int_equal(poll_wheel(recorder), 0);
		assert_int_equal(event_count_of_kind(recorder, EVENT_EXECUTE), polls);
		/* This holds in a task, too. */
		assert_int_equal(tw_pending(recorder->wheel), 1);
	}
	recorder->on_execute = NULL;
	recorder_close(recorder);
}

static void look_at_pending(struct recorder *recorder, const struct tw_task *task)
{
	must(tw_pending(recorder->wheel) == 4 - (uintptr_t)task->value ? TW_OK : TW_INVALID, TW_OK);
}

static void task_finds_the_number_of_those_behind_it(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	recorder->on_execute = look_at_pending;
	for (uintptr_t i = 0; i < 4; i++)
		set_timer_at(recorder, (char[]){(char)('a' + i), 0}, i + 1,
			     INTERVAL + (tw_duration)i);
	assert_status(tw_advance(recorder->wheel, 2 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	assert_int_equal(event_count(recorder), 4);
	recorder->on_execute = NULL;
	recorder_close(recorder);
}

static void poll_inside(struct recorder *recorder, const struct tw_task *task)
{
	(void)task;
	must(tw_poll(recorder->wheel, NULL), TW_INVALID);
	must(tw_flush(recorder->wheel), TW_INVALID);
	must(tw_advance(recorder->wheel, INTERVAL), TW_INVALID);
	must(tw_is_in_task(recorder->wheel) ? TW_OK : TW_INVALID, TW_OK);
	must(tw_contains(recorder->wheel, "b", 1, NULL), TW_OK);
	/* It is due in the same tick, and may still be removed. */
	must(tw_remove_timer(recorder->wheel, "b", 1), TW_OK);
}

static void task_does_not_poll_and_may_stop_others_of_its_tick(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	recorder->on_execute = poll_inside;
	set_timer_at(recorder, "a", 1, INTERVAL - 1);
	set_timer_at(recorder, "b", 2, INTERVAL);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	assert_int_equal(poll_wheel(recorder), 0);
	assert_int_equal(event_count(recorder), 1);
	assert_false(tw_is_in_task(recorder->wheel));
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	assert_released(recorder, 2, TW_REMOVED);
	recorder_close(recorder);
}

static void stop_inside(struct recorder *recorder, const struct tw_task *task)
{
	(void)task;
	must(tw_stop(recorder->wheel), TW_OK);
}

static void all_comes_back_in_the_poll_whose_task_stops_the_wheel(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	recorder->on_execute = stop_inside;
	for (uintptr_t i = 0; i < 20; i++)
		set_timer(recorder, (char[]){(char)('a' + i), 0}, i + 1,
			  (1 + (tw_duration)i) * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_OK);
	assert_status(tw_poll_some(recorder->wheel, 1, NULL), TW_CLOSED);
	assert_int_equal(event_count_of_kind(recorder, EVENT_EXECUTE), 1);
	for (uintptr_t i = 2; i <= 20; i++)
		assert_released(recorder, i, TW_STOPPED);
	recorder_close(recorder);
}

static void stop_gives_all_back(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	set_timer(recorder, "a", 1, INTERVAL);
	set_timer(recorder, "b", 2, INTERVAL);
	remove_timer(recorder, "b");
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	set_timer(recorder, "c", 3, INTERVAL);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	assert_drained(recorder, 1);
	assert_released(recorder, 2, TW_REMOVED);
	assert_released(recorder, 3, TW_STOPPED);
	assert_status(tw_stop(recorder->wheel), TW_CLOSED);
	recorder_close(recorder);
}

/* ---- Exceptions ---- */

static void throw_at_two(struct recorder *recorder, const struct tw_task *task)
{
	(void)recorder;
	if ((uintptr_t)task->value == 2)
		exception_throw();
}

static void poll_once(void *recorder)
{
	(void)tw_poll(((struct recorder *)recorder)->wheel, NULL);
}

static void next_poll_goes_on_after_an_exception(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	recorder->on_execute = recorder->on_release = throw_at_two;
	for (uintptr_t i = 0; i < 4; i++)
		set_timer(recorder, (char[]){(char)('a' + i), 0}, i + 1, INTERVAL + (tw_duration)i);
	assert_status(tw_advance(recorder->wheel, 2 * INTERVAL), TW_OK);
	assert_true(exception_comes_out_of(poll_once, recorder));
	assert_int_equal(event_count(recorder), 2);
	assert_false(tw_is_in_task(recorder->wheel));
	assert_false(exception_comes_out_of(poll_once, recorder));
	assert_int_equal(event_count(recorder), 4);
	set_timer(recorder, "x", 2, TW_HOUR);
	set_timer(recorder, "y", 7, TW_HOUR);
	remove_timer(recorder, "x");
	remove_timer(recorder, "y");
	assert_true(exception_comes_out_of(poll_once, recorder));
	assert_false(exception_comes_out_of(poll_once, recorder));
	assert_released(recorder, 7, TW_REMOVED);
	recorder_close(recorder);
}

static void be_cancelled(struct recorder *recorder, const struct tw_task *task)
{
	(void)recorder;
	(void)task;
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

/* The wheel belongs to that thread. */
static void *poll_and_be_cancelled(void *variant)
{
	struct recorder *recorder = recorder_open(variant, 10);

	recorder->on_execute = be_cancelled;
	set_timer(recorder, "a", 1, INTERVAL);
	must(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	must(tw_poll(recorder->wheel, NULL), TW_OK);
	must(event_count(recorder) == 1 ? TW_OK : TW_INVALID, TW_OK);
	recorder_close(recorder);
	pthread_testcancel();
	return NULL;
}

static void poll_is_no_cancellation_point(void **state)
{
	pthread_t thread;
	void *returned;

	assert_int_equal(pthread_create(&thread, NULL, poll_and_be_cancelled, *state), 0);
	assert_int_equal(pthread_join(thread, &returned), 0);
	assert_true(returned == PTHREAD_CANCELED);
}

/* ---- Options ---- */

static void loop_has_no_workers(void **state)
{
	struct tw_options options = {.drive = TW_DRIVE_LOOP, .workers = 1};
	struct tw_wheel *wheel;

	(void)state;
	assert_status(tw_create(&wheel, INTERVAL, 10, ignore_task, &options), TW_INVALID);
	options.workers = 0;
	assert_status(tw_create(&wheel, INTERVAL, 10, ignore_task, &options), TW_OK);
	assert_int_equal(tw_drive_of(wheel), TW_DRIVE_LOOP);
	assert_int_equal(tw_drive_of(NULL), TW_DRIVE_THREAD);
	tw_destroy(wheel);
}

static void real_clock_is_followed(void **state)
{
	const struct variant *variant = *state;
	struct tw_options options = {.drive = TW_DRIVE_LOOP, .layout = variant->layout};
	struct tw_wheel *wheel;
	struct tw_alarm alarm;
	tw_duration until = 0;
	tw_duration now;

	assert_status(tw_create(&wheel, INTERVAL, 10, ignore_task, &options), TW_OK);
	assert_status(tw_alarm_init(wheel, &alarm, run_nothing, NULL), TW_OK);
	assert_status(tw_alarm_set(&alarm, 20 * INTERVAL), TW_OK);
	now = tw_now(wheel);
	assert_status(tw_poll(wheel, &until), TW_OK);
	assert_true(until > 0 && until <= 21 * INTERVAL);
	while (tw_alarm_remaining(&alarm, NULL) == TW_OK) {
		assert_status(tw_poll(wheel, &until), TW_OK);
		usleep(500);
	}
	assert_true(tw_now(wheel) >= now + 20 * INTERVAL);
	assert_status(tw_alarm_close(&alarm, run_nothing), TW_OK);
	tw_destroy(wheel);
}

/* ---- Random calls ---- */

enum { THINGS = 60, STEPS = TEST_SHARE_OF(60000) };

enum thing_kind { BY_KEY, BY_HANDLE, BY_ALARM };

/* A thing is a timer and the time at which it should run. */
struct thing {
	struct world *world;
	enum thing_kind kind;
	struct tw_timer timer;
	struct tw_alarm alarm;
	tw_duration deadline; /* TW_FOREVER if it is not set */
	bool is_for_next;     /* set in the current poll, and due */
	bool is_changed;      /* set in the current poll */
};

struct world {
	struct tw_wheel *wheel;
	struct random random;
	struct thing things[THINGS];
	tw_duration polled; /* when the poll began, or TW_FOREVER */
	tw_duration last;   /* rank of the last task in this poll */
	int runs;
	int wrong;
};

static void world_change(struct world *world);

static tw_duration tick_at_or_after(tw_duration time)
{
	return (time + INTERVAL - 1) / INTERVAL * INTERVAL;
}

static void thing_runs(void *argument)
{
	struct thing *thing = argument;
	struct world *world = thing->world;

	world->wrong += thing->is_for_next || thing->deadline > world->polled ||
			thing->deadline < world->last;
	world->last = thing->deadline;
	thing->deadline = TW_FOREVER;
	world->runs++;
	for (int i = 0; i < 3; i++)
		world_change(world);
}

static void key_runs(void *context, const struct tw_task *task)
{
	(void)context;
	thing_runs(task->value);
}

static size_t thing_number(const struct thing *thing)
{
	return (size_t)(thing - thing->world->things);
}

/* Says whether the deadline is due in the current poll. */
static bool is_due(const struct world *world, tw_duration deadline)
{
	return world->polled != TW_FOREVER && deadline != TW_FOREVER &&
	       tick_at_or_after(deadline) <= world->polled;
}

static void thing_set(struct thing *thing, tw_duration delay)
{
	struct world *world = thing->world;
	tw_duration now = tw_now(world->wheel);
	tw_duration deadline = now + delay;
	size_t number = thing_number(thing);
	bool is_moved = thing->deadline != TW_FOREVER && random_once_in(&world->random, 2);

	if (thing->kind == BY_KEY && is_moved)
		must(tw_move_timer_at(world->wheel, &number, sizeof(number), deadline), TW_OK);
	else if (thing->kind == BY_KEY)
		must(tw_set_timer_at(world->wheel, &number, sizeof(number), thing, deadline),
		     TW_OK);
	else if (thing->kind == BY_HANDLE && is_moved)
		must(tw_timer_reset_at(world->wheel, thing->timer, deadline), TW_OK);
	else if (thing->kind == BY_HANDLE) {
		(void)tw_timer_stop(world->wheel, thing->timer);
		must(tw_after_func_at(world->wheel, deadline, thing_runs, thing, &thing->timer),
		     TW_OK);
	} else {
		must(tw_alarm_set_at(&thing->alarm, deadline), TW_OK);
		deadline = deadline < 0 ? 0 : tick_at_or_after(deadline);
	}
	/* Times since the last tick are due with that tick. */
	if (thing->kind != BY_ALARM && delay <= 0 && tick_at_or_after(deadline) > now)
		deadline = now / INTERVAL * INTERVAL;
	/* A timer that was due in this poll and is put off may still be due in it. A handle that is
	 * reset may have been put off twice, and an alarm stopped meanwhile. */
	thing->is_for_next = is_due(world, deadline) && thing->kind != BY_ALARM &&
			     (thing->kind == BY_KEY || !is_moved) &&
			     !(is_due(world, thing->deadline) && deadline >= thing->deadline);
	thing->is_changed = true;
	thing->deadline = deadline;
}

static void thing_stop(struct thing *thing)
{
	struct world *world = thing->world;
	size_t number = thing_number(thing);
	enum tw_status status = TW_OK;

	if (thing->kind == BY_KEY)
		must(tw_remove_timer(world->wheel, &number, sizeof(number)), TW_OK);
	else if (thing->kind == BY_HANDLE)
		status = tw_timer_stop(world->wheel, thing->timer);
	else
		status = tw_alarm_stop(&thing->alarm);
	if (thing->deadline != TW_FOREVER)
		world->wrong += status != TW_OK;
	thing->deadline = TW_FOREVER;
}

static void world_change(struct world *world)
{
	struct thing *thing = &world->things[random_below(&world->random, THINGS)];
	tw_duration delay = (tw_duration)random_below(&world->random, 30 * INTERVAL);

	/* A running timer is left alone: other tests do this. */
	if (thing->kind != BY_KEY && tw_current_task() && tw_current_task()->value == thing)
		return;
	if (random_once_in(&world->random, 3))
		thing_stop(thing);
	else if (random_once_in(&world->random, 4))
		thing_set(thing, -delay);
	else
		thing_set(thing, random_once_in(&world->random, 2) ? delay : delay * 40);
}

static tw_duration world_earliest(const struct world *world)
{
	tw_duration earliest = TW_FOREVER;

	for (int i = 0; i < THINGS; i++)
		if (world->things[i].deadline < earliest)
			earliest = world->things[i].deadline;
	return earliest;
}

static void world_poll(struct world *world)
{
	size_t most = random_once_in(&world->random, 4) ? 3 : SIZE_MAX;
	tw_duration until = -1;
	tw_duration next = -1;
	tw_duration earliest;

	for (int i = 0; i < THINGS; i++)
		world->things[i].is_changed = false;
	world->polled = tw_now(world->wheel);
	world->last = INT64_MIN;
	assert_status(tw_poll_some(world->wheel, most, &until), TW_OK);
	for (int i = 0; i < THINGS; i++) {
		const struct thing *thing = &world->things[i];

		assert_true(most < SIZE_MAX || thing->is_changed ||
			    !is_due(world, thing->deadline));
		world->things[i].is_for_next = false;
	}
	world->polled = TW_FOREVER;
	earliest = world_earliest(world);
	assert_status(tw_next(world->wheel, &next), TW_OK);
	assert_true(next == earliest ||
		    (next <= tw_now(world->wheel) && earliest <= tw_now(world->wheel)));
	/* It is never too late, and not at once for nothing. */
	assert_true(earliest == TW_FOREVER ||
		    tw_now(world->wheel) + until <= tick_at_or_after(earliest) || until == 0);
}

static void everything_runs_by_its_deadline_and_what_tasks_set_later(void **state)
{
	const struct variant *variant = *state;
	struct tw_options options = {
		.layout = variant->layout, .clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_LOOP};
	struct world world = {.random = random_from(seed_choose(), 1), .polled = TW_FOREVER};

	assert_status(tw_create(&world.wheel, INTERVAL, 8, key_runs, &options), TW_OK);
	for (int i = 0; i < THINGS; i++) {
		struct thing *thing = &world.things[i];

		*thing = (struct thing){
			.world = &world, .kind = (enum thing_kind)(i % 3), .deadline = TW_FOREVER};
		assert_status(tw_alarm_init(world.wheel, &thing->alarm, thing_runs, thing), TW_OK);
	}
	for (int i = 0; i < STEPS; i++) {
		world_change(&world);
		if (random_once_in(&world.random, 5))
			assert_status(tw_advance(world.wheel, (tw_duration)random_below(
								      &world.random, 6 * INTERVAL)),
				      TW_OK);
		if (random_once_in(&world.random, 3))
			world_poll(&world);
		assert_int_equal(world.wrong, 0);
	}
	assert_true(world.runs > STEPS / 10);
	for (int i = 0; i < THINGS; i++)
		assert_status(tw_alarm_close(&world.things[i].alarm, run_nothing), TW_OK);
	tw_destroy(world.wheel);
}

static void calls_are_counted_at_once(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);

	set_timer(recorder, "a", 1, INTERVAL);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	remove_timer(recorder, "a");
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

/* ---- Polls with nothing to do ---- */

static void poll_sees_each_call_that_came_after_an_idle_one(void **state)
{
	struct recorder *recorder = recorder_open(*state, 100);
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_alarm *alarm;
	struct tw_timer timer;

	assert_status(tw_alarm_create(wheel, run_nothing, NULL, &alarm), TW_OK);
	assert_true(poll_wheel(recorder) == TW_FOREVER);
	assert_status(tw_after_func(wheel, 90 * INTERVAL, run_nothing, NULL, &timer), TW_OK);
	assert_true(poll_wheel(recorder) == 90 * INTERVAL);
	assert_status(tw_timer_reset(wheel, timer, 80 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 80 * INTERVAL);
	set_timer(recorder, "a", 1, 70 * INTERVAL);
	assert_true(poll_wheel(recorder) == 70 * INTERVAL);
	assert_status(tw_move_timer(wheel, "a", 1, 60 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 60 * INTERVAL);
	assert_status(tw_alarm_set(alarm, 50 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 50 * INTERVAL);
	assert_status(tw_add_timer(wheel, "b", 1, NULL, 40 * INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 40 * INTERVAL);
	assert_status(tw_advance(wheel, INTERVAL), TW_OK);
	assert_true(poll_wheel(recorder) == 39 * INTERVAL);
	assert_true(poll_wheel(recorder) == 39 * INTERVAL);
	assert_status(tw_drain(wheel, record_drain, recorder), TW_OK);
	assert_true(poll_wheel(recorder) == 49 * INTERVAL);
	assert_drained(recorder, 1);
	assert_status(tw_alarm_destroy(alarm), TW_OK);
	recorder_close(recorder);
}

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

static void idle_polls_give_memory_back(void **state)
{
	expect_memory_back(recorder_open(*state, 100), false);
}

static void questions_give_memory_back(void **state)
{
	expect_memory_back(recorder_open(*state, 100), true);
}

struct stopper {
	struct tw_wheel *wheel;
	struct tw_timer timer;
	struct tw_alarm *alarm;
	int runs;
};

static void stop_own_timer(void *argument)
{
	struct stopper *stopper = argument;

	stopper->runs++;
	must(tw_timer_stop(stopper->wheel, stopper->timer), TW_REARMED);
	must(tw_timer_stop(stopper->wheel, stopper->timer), TW_RUNNING);
	must(tw_timer_reset(stopper->wheel, stopper->timer, INTERVAL), TW_NOT_FOUND);
}

static void close_own_alarm(void *argument)
{
	struct stopper *stopper = argument;

	stopper->runs++;
	must(tw_alarm_close(stopper->alarm, run_nothing), TW_OK);
	must(tw_alarm_set(stopper->alarm, INTERVAL), TW_CLOSED);
}

static void tasks_stop_and_close_their_own_timer_for_good(void **state)
{
	struct recorder *recorder = recorder_open(*state, 10);
	struct stopper stopper = {.wheel = recorder->wheel};

	assert_status(tw_every(recorder->wheel, INTERVAL, INTERVAL, TW_MISSED_SKIP, stop_own_timer,
			       &stopper, &stopper.timer),
		      TW_OK);
	assert_status(tw_alarm_create(recorder->wheel, close_own_alarm, &stopper, &stopper.alarm),
		      TW_OK);
	assert_status(tw_alarm_set(stopper.alarm, INTERVAL), TW_OK);
	for (int i = 0; i < 3; i++) {
		assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
		assert_status(tw_poll(recorder->wheel, NULL), TW_OK);
	}
	assert_int_equal(stopper.runs, 2);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	recorder_close(recorder);
}

static const struct CMUnitTest tests[] = {
	TEST_BOTH(loop, calls_of_other_threads_are_refused_and_do_nothing),
	TEST_BOTH(loop, calls_that_would_run_tasks_elsewhere_run_none),
	TEST_BOTH(loop, tasks_of_one_poll_run_in_the_order_of_their_deadlines),
	TEST_BOTH(loop, what_a_task_makes_due_waits_for_the_next_poll),
	TEST_BOTH(loop, what_a_release_causes_waits_for_the_next_poll),
	TEST_BOTH(loop, drain_that_a_drain_begins_waits_for_the_next_poll),
	TEST_BOTH(loop, poll_of_some_goes_on_where_the_last_one_was),
	TEST_BOTH(loop, what_was_put_off_runs_at_its_place),
	TEST_BOTH(loop, what_is_set_after_a_drain_in_a_task_waits_too),
	TEST_BOTH(loop, task_finds_the_number_of_those_behind_it),
	TEST_BOTH(loop, task_does_not_poll_and_may_stop_others_of_its_tick),
	TEST_BOTH(loop, all_comes_back_in_the_poll_whose_task_stops_the_wheel),
	TEST_BOTH(loop, stop_gives_all_back),
	TEST_BOTH(loop, next_poll_goes_on_after_an_exception),
	TEST_BOTH(loop, poll_is_no_cancellation_point),
	cmocka_unit_test(loop_has_no_workers),
	TEST_BOTH(loop, real_clock_is_followed),
	TEST_BOTH(loop, calls_are_counted_at_once),
	TEST_ALONE(poll_sees_each_call_that_came_after_an_idle_one),
	TEST_ALONE(idle_polls_give_memory_back),
	TEST_DRIVEN(questions_give_memory_back),
	TEST_BOTH(loop, tasks_stop_and_close_their_own_timer_for_good),
	TEST_BOTH(loop, everything_runs_by_its_deadline_and_what_tasks_set_later),
};

TEST_PROGRAM(tests)
