/* SPDX-License-Identifier: MIT */
/*
 * Closing an alarm returns at once. Its `closed` function is called once, when no run is under way
 * or to come. Runs end each other's timers, and wait for none.
 */
#include "support/test.h"

#include "support/gate.h"
#include "support/probe.h"
#include "support/recorder.h"
#include "support/script.h"

SCRIPT(everywhere, closed_alarm_runs_no_more_and_says_so_once,
       "alarm x; alarm y; set x 1; close x; close y; advance 10 -> x:closed y:closed")
SCRIPT(everywhere, alarm_may_close_itself,
       "alarm x; in x 1: set x 0, close x, close x = CLOSED; set x 0; wait => x@0 x:closed;"
       "advance 10")

/* A thing is an alarm that gets closed, or a timer by handle. */
struct thing {
	struct tw_wheel *wheel;
	struct tw_alarm alarm;
	struct tw_timer timer;
	void (*in_run)(struct thing *);
	struct thing *other;
	struct gate gate;
	enum tw_status answers[2];
	bool in_task; /* tw_current_task() was right in thing_closed() */
	bool early;   /* thing_closed() was called during a run */
	atomic_int is_running;
	atomic_int runs;
	atomic_int closings;
};

static void thing_run(void *argument)
{
	struct thing *thing = argument;

	atomic_store(&thing->is_running, 1);
	atomic_fetch_add(&thing->runs, 1);
	if (thing->in_run)
		thing->in_run(thing);
	atomic_store(&thing->is_running, 0);
}

static void close_alarm(struct thing *thing);

static void thing_closed(void *argument)
{
	struct thing *thing = argument;

	thing->early |= atomic_load(&thing->is_running) != 0;
	thing->in_task = tw_current_task() && tw_current_task()->value == thing &&
			 tw_current_task()->wheel == thing->wheel;
	atomic_fetch_add(&thing->closings, 1);
	if (thing->other && !thing->in_run)
		close_alarm(thing->other);
}

static void close_alarm(struct thing *thing)
{
	thing->answers[0] = tw_alarm_close(&thing->alarm, thing_closed);
}

static void thing_make(struct recorder *recorder, struct thing *thing)
{
	memset(thing, 0, sizeof(*thing));
	thing->wheel = recorder->wheel;
	gate_init(&thing->gate);
}

static void thing_make_alarm(struct recorder *recorder, struct thing *thing)
{
	thing_make(recorder, thing);
	assert_status(tw_alarm_init(thing->wheel, &thing->alarm, thing_run, thing), TW_OK);
}

static void assert_closed(struct thing *thing, int runs)
{
	assert_int_equal(atomic_load(&thing->closings), 1);
	assert_int_equal(atomic_load(&thing->runs), runs);
	assert_false(thing->early);
	assert_true(thing->in_task);
}

static void hold_run(struct thing *thing)
{
	gate_pass(&thing->gate);
}

RECORDED(pool, alarm_is_closed_after_the_run_that_is_under_way)
{
	struct thing thing;

	thing_make_alarm(recorder, &thing);
	thing.in_run = hold_run;
	assert_status(tw_alarm_set(&thing.alarm, 0), TW_OK);
	assert_status(tw_advance(recorder->wheel, 0), TW_OK);
	gate_await(&thing.gate);
	close_alarm(&thing);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_OK);
	assert_int_equal(atomic_load(&thing.closings), 0);
	gate_open(&thing.gate);
	settle(recorder);
	assert_closed(&thing, 1);
}

/* Each is closed by the `closed` function of the one before it. */
TEST(everywhere, alarms_closed_before_the_end_are_notified_by_then)
{
	enum { CHAIN = 30 };
	struct recorder *recorder = recorder_open(*state, 8);
	struct thing things[CHAIN];

	for (int i = 0; i < CHAIN; i++) {
		thing_make_alarm(recorder, &things[i]);
		assert_status(tw_alarm_set(&things[i].alarm, TW_HOUR), TW_OK);
		things[i].other = i < CHAIN - 1 ? &things[i + 1] : NULL;
	}
	close_alarm(&things[0]);
	recorder_close(recorder);
	for (int i = 0; i < CHAIN; i++)
		assert_closed(&things[i], 0);
}

/* ---- Runs that end each other ---- */

enum { RING = 3 };

/* Each run waits until all are under way, and then ends the next one's timer. */
struct ring {
	struct thing things[RING];
	size_t count;
	pthread_barrier_t all;
};

static struct ring ring;

/* Neither waits; both are closed instead. */
static void destroy_next_alarm(struct thing *thing)
{
	pthread_barrier_wait(&ring.all);
	thing->answers[0] = tw_alarm_destroy(&thing->other->alarm);
	pthread_barrier_wait(&ring.all);
	thing->answers[1] = tw_alarm_close(&thing->other->alarm, thing_closed);
}

static void stop_next_timer(struct thing *thing)
{
	pthread_barrier_wait(&ring.all);
	thing->answers[0] = tw_timer_stop_wait(thing->wheel, thing->other->timer);
	pthread_barrier_wait(&ring.all);
}

static void ring_make(struct recorder *recorder, size_t count, void (*in_run)(struct thing *))
{
	ring.count = count;
	pthread_barrier_init(&ring.all, NULL, (unsigned)count);
	for (size_t i = 0; i < count; i++) {
		thing_make(recorder, &ring.things[i]);
		ring.things[i].in_run = in_run;
		ring.things[i].other = &ring.things[(i + 1) % count];
	}
}

static size_t ring_answers(enum tw_status status)
{
	size_t count = 0;

	for (size_t i = 0; i < ring.count; i++)
		count += ring.things[i].answers[0] == status;
	return count;
}

static void ring_end(struct recorder *recorder)
{
	advance(recorder, INTERVAL);
	for (size_t i = 0; i < ring.count; i++)
		assert_int_equal(atomic_load(&ring.things[i].runs), 1);
	pthread_barrier_destroy(&ring.all);
}

static struct recorder *recorder_open_three(const struct variant *variant)
{
	return recorder_open_with(variant, 8, (struct tw_options){.workers = RING});
}

static void ring_set_alarms(void)
{
	for (size_t i = 0; i < ring.count; i++) {
		struct thing *thing = &ring.things[i];

		assert_status(tw_alarm_init(thing->wheel, &thing->alarm, thing_run, thing), TW_OK);
		assert_status(tw_alarm_set(&thing->alarm, INTERVAL), TW_OK);
	}
}

static void ring_start_timers(void)
{
	for (size_t i = 0; i < ring.count; i++) {
		struct thing *thing = &ring.things[i];

		assert_status(tw_every(thing->wheel, INTERVAL, TW_HOUR, TW_MISSED_SKIP, thing_run,
				       thing, &thing->timer),
			      TW_OK);
	}
}

TEST(pool, alarms_that_destroy_each_other_do_not_wait_for_ever)
{
	for (size_t count = 2; count <= RING; count++) {
		struct recorder *recorder = recorder_open_three(*state);

		ring_make(recorder, count, destroy_next_alarm);
		ring_set_alarms();
		ring_end(recorder);
		assert_int_equal(ring_answers(TW_RUNNING), count);
		for (size_t i = 0; i < count; i++)
			assert_status(ring.things[i].answers[1], TW_OK);
		settle(recorder);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(atomic_load(&ring.things[i].closings), 1);
		recorder_close(recorder);
	}
}

TEST(pool, timers_that_stop_each_other_do_not_wait_for_ever)
{
	for (size_t count = 2; count <= RING; count++) {
		struct recorder *recorder = recorder_open_three(*state);

		ring_make(recorder, count, stop_next_timer);
		ring_start_timers();
		ring_end(recorder);
		assert_int_equal(ring_answers(TW_REARMED), count);
		assert_int_equal(tw_pending(recorder->wheel), 0);
		recorder_close(recorder);
	}
}

static void close_next_and_itself(struct thing *thing)
{
	pthread_barrier_wait(&ring.all);
	if (thing == &ring.things[0])
		for (size_t i = 0; i < ring.count; i++)
			close_alarm(&ring.things[i]);
}

RECORDED(pool, run_may_close_alarms_whose_runs_are_under_way, .workers = RING)
{
	ring_make(recorder, RING, close_next_and_itself);
	ring_set_alarms();
	ring_end(recorder);
	settle(recorder);
	settle(recorder);
	for (size_t i = 0; i < RING; i++)
		assert_closed(&ring.things[i], 1);
}

/* A connection contains its alarm. The counts outlive it. */
struct connection {
	struct tw_alarm idle;
	struct counts {
		atomic_int runs;
		atomic_int closings;
	} * counts;
	bool closes_in_run;
};

static void connection_closed(void *argument)
{
	struct connection *connection = argument;

	atomic_fetch_add(&connection->counts->closings, 1);
	memset(connection, 0xff, sizeof(*connection));
	free(connection);
}

static void connection_is_idle(void *argument)
{
	struct connection *connection = argument;

	atomic_fetch_add(&connection->counts->runs, 1);
	if (connection->closes_in_run)
		(void)tw_alarm_close(&connection->idle, connection_closed);
}

static struct connection *connection_open(struct tw_wheel *wheel, struct counts *counts)
{
	struct connection *connection = malloc(sizeof(*connection));

	assert_non_null(connection);
	memset(connection, 0xff, sizeof(*connection));
	connection->counts = counts;
	connection->closes_in_run = false;
	assert_status(tw_alarm_init(wheel, &connection->idle, connection_is_idle, connection),
		      TW_OK);
	return connection;
}

RECORDED(everywhere, alarm_in_a_struct_needs_no_memory_and_leaves_it_alone_once_closed)
{
	enum { CONNECTIONS = 300 };
	struct tw_wheel *wheel = recorder->wheel;
	struct counts counts = {0};

	for (int i = 0; i < CONNECTIONS; i++) {
		struct connection *connection = connection_open(wheel, &counts);
		struct tw_alarm *idle = &connection->idle;

		assert_status(tw_alarm_close(idle, NULL), TW_INVALID);
		connection->closes_in_run = i % 6 == 5;
		/* The alarm is never set, filed, put off, stopped but still filed, or about to
		 * run. */
		if (i % 6 > 0)
			assert_status(tw_alarm_set(idle, INTERVAL), TW_OK);
		if (i % 6 > 1)
			assert_status(tw_flush(wheel), TW_OK);
		if (i % 6 == 2)
			assert_status(tw_alarm_set(idle, 9 * INTERVAL), TW_OK);
		if (i % 6 == 3)
			assert_status(tw_alarm_stop(idle), TW_OK);
		if (i % 6 == 4)
			advance(recorder, INTERVAL);
		if (i % 6 != 5)
			assert_status(tw_alarm_close(idle, connection_closed), TW_OK);
	}
	advance(recorder, 20 * INTERVAL);
	assert_int_equal(atomic_load(&counts.closings), CONNECTIONS);
	/* Those that were due, or close themselves, have run once. */
	assert_int_equal(atomic_load(&counts.runs), CONNECTIONS / 6 * 2);
}

TEST(everywhere, alarms_in_structs_that_are_closed_before_the_end_are_notified_by_then)
{
	struct recorder *recorder = recorder_open(*state, 8);
	struct counts counts = {0};
	struct connection *left = connection_open(recorder->wheel, &counts);

	for (int i = 0; i < 20; i++) {
		struct connection *connection = connection_open(recorder->wheel, &counts);

		assert_status(tw_alarm_set(&connection->idle, TW_HOUR), TW_OK);
		assert_status(tw_alarm_close(&connection->idle, connection_closed), TW_OK);
	}
	assert_status(tw_alarm_set(&left->idle, TW_HOUR), TW_OK);
	tw_stop(recorder->wheel);
	assert_status(tw_alarm_init(recorder->wheel, &left->idle, connection_is_idle, left),
		      TW_CLOSED);
	recorder_close(recorder);
	assert_int_equal(atomic_load(&counts.closings), 20);
	/* An alarm that was not closed may be freed once the wheel is destroyed. */
	free(left);
}
