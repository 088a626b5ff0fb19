/* SPDX-License-Identifier: MIT */
/*
 * Closing an alarm returns at once. Its `closed` function is called once, when no run is under way
 * or to come. Runs end each other's timers, and wait for none.
 */
#include "support/test.h"

#include "support/script.h"

SCRIPT(everywhere, closed_alarm_runs_no_more_and_says_so_once,
       "alarm x; alarm y; set x 1; close x; close y; advance 10 -> x:closed y:closed")
SCRIPT(everywhere, alarm_may_close_itself,
       "alarm x; in x 1: set x 0, close x, close x = CLOSED; set x 0; wait => x@0 x:closed;"
       "advance 10")

SCRIPT(pool, alarm_is_closed_after_the_run_that_is_under_way,
       "alarm x; hold x; set x 0; clock 0; reached x; close x; clock 10; events = 1; go x;"
       "idle -> x@0 x:closed; pass 10")
/* Each is closed by the `closed` function of the one before it. */
SCRIPT(everywhere, alarms_closed_before_the_end_are_notified_by_then,
       "alarm a; alarm b; alarm c; alarm d; set a 1h; set b 1h; set c 1h; set d 1h;"
       "in a: close b; in b: close c; in c: close d; close a;"
       "destroy -> a:closed b:closed c:closed d:closed")

/* Runs that are all under way end each other's timers: none waits for another. The alarms are
 * closed instead. */
SCRIPT(pool, two_alarms_that_destroy_each_other_do_not_wait_for_ever,
       "alarm a; alarm b; set a 1; set b 1;"
       "in a 1: meet 2, destroy b = RUNNING, meet 4, close b;"
       "in b 1: meet 2, destroy a = RUNNING, meet 4, close a;"
       "pass 1 -> a@1 b@1 a:closed b:closed")
SCRIPT(pool, alarms_that_destroy_each_other_do_not_wait_for_ever,
       "alarm a; alarm b; alarm c; set a 1; set b 1; set c 1;"
       "in a 1: meet 3, destroy b = RUNNING, meet 6, close b;"
       "in b 1: meet 3, destroy c = RUNNING, meet 6, close c;"
       "in c 1: meet 3, destroy a = RUNNING, meet 6, close a;"
       "pass 1 -> a@1 b@1 c@1 a:closed b:closed c:closed",
       .workers = 3)
SCRIPT(pool, two_timers_that_stop_each_other_do_not_wait_for_ever,
       "every p 1 1h; every q 1 1h; in p: meet 2, stop_wait q = REARMED, meet 4;"
       "in q: meet 2, stop_wait p = REARMED, meet 4; pass 1 -> p@1 q@1; pending = 0")
SCRIPT(pool, timers_that_stop_each_other_do_not_wait_for_ever,
       "every p 1 1h; every q 1 1h; every r 1 1h; in p: meet 3, stop_wait q = REARMED, meet 6;"
       "in q: meet 3, stop_wait r = REARMED, meet 6; in r: meet 3, stop_wait p = REARMED, meet 6;"
       "pass 1 -> p@1 q@1 r@1; pending = 0",
       .workers = 3)
SCRIPT(pool, run_may_close_alarms_whose_runs_are_under_way,
       "alarm a; alarm b; alarm c; set a 1; set b 1; set c 1; in b 1: meet 3; in c 1: meet 3;"
       "in a 1: meet 3, close a, close b, close c;"
       "pass 1 -> a@1 b@1 c@1 a:closed b:closed c:closed; pass 1",
       .workers = 3)

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
