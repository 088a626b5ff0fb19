/* SPDX-License-Identifier: MIT */
/* Timers run again and again by a period, with three policies for missed runs. */
#include "support/test.h"

#include "support/gate.h"
#include "support/probe.h"
#include "support/script.h"
#include "support/stats.h"

SCRIPT(everywhere, periodic_timer_runs_at_first_and_each_period_after_it,
       "every a 3 10; every b 0 20; every c 45 3; every d -5 25; advance 0 -> b@0 d@0;"
       "pass 35 -> a@3 a@13 a@23 a@33 b@20 d@20;"
       "pass 20 -> a@43 a@53 b@40 c@45 c@48 c@51 c@54 d@45; pending = 4")
SCRIPT(ordered, periods_that_are_no_whole_ticks_do_not_drift,
       "every a 3.5+3ns 2.5; advance 14 => a@4/3.500003 a@7/6.000003 a@9/8.500003"
       " a@12/11.000003 a@14/13.500003; stop a; every b 2-1ns 1+333333ns skip;"
       "advance 5.5 => b@16/15.999999 b@18/17.333332 b@19/18.666665; stop b;"
       "every c 0.5 123456789ns delay; advance 400 => c@20/20 c@144/143.456789"
       " c@267/266.913578 c@391/390.370367")
SCRIPT(everywhere, burst_of_a_period_below_the_interval_makes_up_for_all_each_tick,
       "every p 0.25 0.25; clock 1; wait -> p@1/0.25 p@1/0.5 p@1/0.75 p@1/1; clock 1;"
       "wait -> p@2 p@2 p@2 p@2; clock 1; wait -> p@3 p@3 p@3 p@3; stop p")
SCRIPT(everywhere, other_policies_run_a_period_below_the_interval_once_a_tick,
       "every a 0.25 0.25 delay; every b 0.25 0.25 skip; clock 1; wait -> a@1 b@1; clock 1;"
       "wait -> a@2 b@2; clock 1; wait -> a@3 b@3")
SCRIPT(ordered, periodic_timers_and_others_of_a_tick_run_in_order,
       "every a 10 10; set b 10; every c 10 10; set d 20; advance 10 => a@10 b@10 c@10; set e 10;"
       "advance 10 => d@20 a@20 c@20 e@20")
SCRIPT(everywhere, period_beyond_the_clock_runs_once_and_stays_pending,
       "every p 2 never; every q never 1; pass 5 -> p@2; advance 4600000000000; pending = 2;"
       "stop p; stop q")

/* These are tokio's figures: the period is 300, and the run at 300 lasts until 950. */
#define HELD_UNTIL_950 "hold p; clock 300; reached p; clock 650; go p;"
SCRIPT(pool, burst_runs_each_missed_one_at_once,
       "every p 300 300;" HELD_UNTIL_950
       "wait -> p@300 p@950/600 p@950/900; pass 650 -> p@1200 p@1500")
SCRIPT(pool, delay_counts_the_next_period_from_the_late_run,
       "every p 300 300 delay;" HELD_UNTIL_950 "wait -> p@300 p@950; pass 650 -> p@1250 p@1550")
SCRIPT(pool, skip_waits_for_the_next_multiple,
       "every p 300 300 skip;" HELD_UNTIL_950 "wait -> p@300 p@950; pass 650 -> p@1200 p@1500")

/* The run that is due at 300 cannot begin before 950. */
#define BEGUN_AT_950 WORKERS_STOP "clock 950;" WORKERS_GO
SCRIPT(pool, burst_makes_up_for_the_time_in_the_pool_too,
       "every p 300 300;" BEGUN_AT_950 "wait -> v@0 w@0 p@950 p@950 p@950; pass 350 -> p@1200")
SCRIPT(pool, delay_counts_from_a_run_that_waited_in_the_pool,
       "every p 300 300 delay;" BEGUN_AT_950 "wait -> v@0 w@0 p@950; pass 350 -> p@1250")
SCRIPT(pool, skip_leaves_out_the_time_in_the_pool,
       "every p 300 300 skip;" BEGUN_AT_950 "wait -> v@0 w@0 p@950; pass 350 -> p@1200")
SCRIPT(everywhere, policies_hold_for_a_timer_that_starts_in_the_past_too,
       "clock 950; every a -350 300; every b -350 300 delay; every c -350 300 skip;"
       "wait -> a@950 a@950 b@950 c@950; pass 350 -> a@1200 b@1250 c@1200")
SCRIPT(everywhere, run_late_by_a_period_has_missed_the_next,
       "clock 950; every a -300 300; every b -300 300 delay; every c -300 300 skip;"
       "wait -> a@950 a@950 b@950 c@950; pass 350 -> a@1250 b@1250 c@1250")

#define HELD_UNTIL_250 "hold p; clock 100; reached p; clock 150; go p;"
SCRIPT(pool, burst_late_by_less_than_a_period_changes_nothing,
       "every p 100 100;" HELD_UNTIL_250 "wait -> p@100 p@250; pass 200 -> p@300 p@400")
SCRIPT(pool, delay_late_by_less_than_a_period_changes_nothing,
       "every p 100 100 delay;" HELD_UNTIL_250 "wait -> p@100 p@250; pass 200 -> p@300 p@400")
SCRIPT(pool, skip_late_by_less_than_a_period_changes_nothing,
       "every p 100 100 skip;" HELD_UNTIL_250 "wait -> p@100 p@250; pass 200 -> p@300 p@400")

SCRIPT(everywhere, periodic_timer_stopped_between_runs_runs_no_more,
       "every p 5 5; pass 12 -> p@5 p@10; pending = 1; stop p; stop p = NOT_FOUND;"
       "reset p 1 = NOT_FOUND; pass 20; pending = 0; stop; idle")
SCRIPT(everywhere, periodic_timer_that_stops_itself_runs_no_more,
       "in p 3: stop_wait p = REARMED, stop p = RUNNING, reset p 1 = NOT_FOUND; every p 5 5;"
       "pass 40 -> p@5 p@10 p@15; stop p = NOT_FOUND; pending = 0")
SCRIPT(pool, periodic_timer_stopped_while_it_runs_does_not_run_again,
       "every p 5 5; hold p; clock 5; reached p; clock 50; stop p = REARMED; stop p = RUNNING;"
       "go p; stop_wait p = any; pass 20 -> p@5; stop p = NOT_FOUND; pending = 0; stop; idle")
SCRIPT(pool, late_run_that_waits_in_the_pool_can_be_stopped,
       "every p 5 5;" WORKERS_STOP "clock 50; stop p;" WORKERS_GO "pass 20 -> v@0 w@0")
SCRIPT(everywhere, reset_to_never_pauses_and_another_reset_goes_on,
       "every p 10 10; pass 12 -> p@10; reset p never; pass 100; pending = 1; reset p 3;"
       "pass 20 -> p@115 p@125")
SCRIPT(everywhere, periodic_timer_may_reset_itself,
       "in p 1: reset p 25; every p 10 10; pass 60 -> p@10 p@35 p@45 p@55")
SCRIPT(pool, reset_while_it_runs_takes_the_place_of_missed_runs,
       "every p 10 10; hold p; clock 10; reached p; clock 85; reset p 6; go p; idle -> p@10;"
       "pass 20 -> p@101 p@111")

SCRIPT(ordered, burst_has_run_when_advance_returns,
       "every p 0.25 0.25; clock 1; events = 4; clock 3; events = 16; stop p => p@1 p@1 p@1 p@1 p@2"
       " p@2 p@2 p@2 p@3 p@3 p@3 p@3 p@4 p@4 p@4 p@4")

/* The run has ended, but the wheel has not noticed yet. */
PROBED(workers, periodic_timer_stopped_on_its_way_back_is_pending_no_more)
{
	struct probe probe = {0};

	probe_repeat(recorder, &probe, 1, 10 * INTERVAL, 10 * INTERVAL);
	assert_status(tw_advance(recorder->wheel, 10 * INTERVAL), TW_OK);
	WAIT_UNTIL(stats_of_wheel(recorder->wheel).unfinished == 0);
	assert_status(probe_stop(&probe), TW_OK);
	assert_status(tw_flush(recorder->wheel), TW_OK);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	assert_int_equal(stats_of_wheel(recorder->wheel).removed, 1);
}

static struct gate first_run;

static void count_run(void *argument)
{
	if (atomic_fetch_add((atomic_int *)argument, 1) == 0)
		gate_pass(&first_run);
}

TEST(once, one_turn_files_all_timers_that_have_run_since_the_last)
{
	enum { TIMERS = 1000 };
	struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = 1};
	struct tw_wheel *wheel;
	atomic_int runs = 0;

	gate_init(&first_run);
	assert_status(tw_create(&wheel, INTERVAL, 8, record_execute, &options), TW_OK);
	for (int i = 0; i < TIMERS; i++)
		assert_status(tw_every(wheel, INTERVAL, 2 * INTERVAL, TW_MISSED_BURST, count_run,
				       &runs, NULL),
			      TW_OK);
	assert_status(tw_advance(wheel, INTERVAL), TW_OK);
	gate_open(&first_run);
	WAIT_UNTIL(stats_of_wheel(wheel).unfinished == 0);
	assert_int_equal(atomic_load(&runs), TIMERS);
	assert_status(tw_poll(wheel, NULL), TW_OK);
	assert_int_equal(tw_pending(wheel), TIMERS);
	tw_destroy(wheel);
}
