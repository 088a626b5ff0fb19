/* SPDX-License-Identifier: MIT */
/*
 * These are the promises of go-zero's TimingWheel, with the figures of its own test suite, and its
 * known faults, which must not happen here.
 */
#include "support/test.h"

#include "support/memory.h"
#include "support/recorder.h"
#include "support/script.h"

/* go-zero counts in steps; one is one tick. */
#define STEP INTERVAL

/* These are the figures of go-zero's own test suite. */
SCRIPT(everywhere, timer_set_for_half_a_step_runs_at_the_next_tick,
       "set any 0.5; idle; pass 1 -> any@1/1; pass 25")
SCRIPT(everywhere, timer_set_twice_runs_once_with_the_second_value_and_delay,
       "set any3 4; set any5 7; pass 30 -> any3:replaced any5@7/7")
SCRIPT(everywhere, timer_moved_later_runs_then_and_not_before,
       "set any 4; move any 7; move any -1 = INVALID; move none 1; pass 6; pass 2 -> any@7/7")
SCRIPT(everywhere, timer_moved_to_half_a_step_runs_without_a_tick,
       "set any 4; move any 0.5; idle -> any@0; pass 30")
SCRIPT(everywhere, removed_timer_does_not_run,
       "set any 1; remove any; remove none; pass 5 -> any:removed")
SCRIPT(everywhere, moved_and_then_removed_timer_does_not_run,
       "set any 8; pass 6; move any 7; pass 3; remove any; pass 30 -> any:removed")
SCRIPT(everywhere, drain_gives_back_every_timer_once_and_a_second_drain_none,
       "set first 4; set second 7; set third 7;"
       "drain -> first:drained second:drained third:drained; drain; pass 25")

/* A timer runs at its tick in any lap, set and moved before or after the wheel has turned. */
SCRIPT(everywhere, timer_runs_once_at_the_tick_of_its_last_command,
       "set a 5; set b 7; set c 10; set d 12;"
       "set e 3; move e 5; set f 3; move f 7; set g 3; move g 10; set h 3; move h 12;"
       "set i 5; move i 7; set j 5; move j 10; set k 5; move k 12;"
       "set l 3; move l 5; move l 10; set m 3; move m 7; move m 12;"
       "set n 3; move n 10; move n 15; set o 3; move o 12; move o 17;"
       "set p 5; move p 7; move p 12; set q 5; move q 10; move q 17;"
       "set r 5; move r 12; move r 17;"
       "pass 9 -> a@5 e@5 b@7 f@7 i@7;"
       "pass 30 -> c@10 g@10 j@10 l@10 d@12 h@12 k@12 m@12 p@12 n@15 o@17 q@17 r@17")
SCRIPT(everywhere, timer_runs_at_its_tick_on_a_wheel_that_has_turned_by_less_than_a_lap,
       "pass 3; set a 5; set b 7; set c 10; set d 12;"
       "set e 5; move e 10; set f 7; move f 12; set g 10; move g 15; set h 12; move h 16;"
       "pass 30 -> a@8 b@10 c@13 d@15 e@13 f@15 g@18 h@19")
SCRIPT(everywhere, timer_runs_at_its_tick_on_a_wheel_that_has_turned_by_a_lap,
       "pass 5; set a 7; set b 10; set c 12;"
       "set d 7; move d 12; set e 10; move e 15; set f 12; move f 17;"
       "pass 30 -> a@12 b@15 c@17 d@17 e@20 f@22")

/* The tests from here on are known failures of go-zero. */

SCRIPT(everywhere, move_under_one_interval_runs_exactly_once,
       "set any 4; pass 2; move any 0.5; move any 0.5; idle -> any@2; pass 30")
SCRIPT(everywhere, drained_key_that_is_set_again_runs_once,
       "set a1 4; set b1 4; set c1 4; drain; set a2 7; set b2 7; set c2 7;"
       "pass 30 -> a1:drained b1:drained c1:drained a2@7 b2@7 c2@7")
SCRIPT(everywhere, drain_function_may_call_the_wheel,
       "set a1 4; set b1 4; in a1: set a2 3, move a2 5, set x 1, remove x; in b1: set b2 3;"
       "drain; wait -> a1:drained b1:drained x:removed; pending = 2; pass 30 -> a2@5 b2@3")
SCRIPT(everywhere, drain_function_may_drain_again,
       "set a 4; set b 4; in a: drain; in b: drain; drain -> a:drained b:drained")
SCRIPT(everywhere, nothing_runs_after_stop,
       "set a 1; set b 1; idle; stop; advance 5 = CLOSED -> a:stopped b:stopped")
SCRIPT(ordered, long_advance_drops_no_tick_and_runs_all_in_deadline_order,
       "set a 390; set b 279; set c 168; set d 57; set e 446; set f 335; set g 224; set h 113;"
       "set i 2; set j 3; set k 391; set l 900; set m 1; set n 56;"
       "advance 1000 => m@1 i@2 j@3 n@56 d@57 h@113 c@168 g@224 b@279 f@335 a@390 k@391 e@446"
       " l@900")

/* Old and new slot lie on different sides of the hand: go-zero runs such a timer a lap early or
 * late, as one that is set to 3 and moved to 17 after 6 ticks of 10 slots. */
TEST(everywhere, timer_that_is_moved_or_replaced_across_the_hand_runs_in_its_lap)
{
	for (int64_t elapsed = 0; elapsed <= 10; elapsed++)
		for (int64_t second = 1; second <= 23; second++) {
			struct recorder *recorder = recorder_open(*state, 10);

			pass_ticks(recorder, elapsed);
			set_timer(recorder, "moved", 1, STEP * 3);
			set_timer(recorder, "replaced", 2, STEP * 3);
			pass_ticks(recorder, 2);
			move_timer(recorder, "moved", STEP * second);
			set_timer(recorder, "replaced", 3, STEP * second);
			pass_ticks(recorder, 45);
			assert_executed_at(recorder, 1, STEP * (elapsed + 2 + second));
			assert_executed_at(recorder, 3, STEP * (elapsed + 2 + second));
			assert_released(recorder, 2, TW_REPLACED);
			recorder_close(recorder);
		}
}

/* Groups alternate between short and long keys. */
static void set_and_remove_far_timers(struct tw_wheel *wheel, uint32_t groups)
{
	uint32_t key[25] = {0};

	for (uint32_t group = 0; group < groups; group++) {
		size_t size = group % 2 == 0 ? 4 * sizeof(key[0]) : sizeof(key);

		key[1] = group;
		for (key[0] = 0; key[0] < 1000; key[0]++)
			assert_status(tw_set_timer(wheel, key, size, VALUE(1), TW_HOUR), TW_OK);
		for (key[0] = 0; key[0] < 1000; key[0]++)
			assert_status(tw_remove_timer(wheel, key, size), TW_OK);
		assert_status(tw_flush(wheel), TW_OK);
	}
}

TEST(everywhere, removed_timers_give_their_memory_back_at_once)
{
	struct tw_options options = variant_options(*state, (struct tw_options){0});
	struct tw_wheel *wheel;
	long before;

	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a sanitizer has memory of its own");
	assert_status(tw_create(&wheel, STEP, 512, record_execute, &options), TW_OK);
	set_and_remove_far_timers(wheel, 10);
	before = resident_memory();
	set_and_remove_far_timers(wheel, 1000);
	assert_in_range(resident_memory(), 1, before + (4 << 20));
	assert_int_equal(tw_pending(wheel), 0);
	tw_destroy(wheel);
}

RECORDED(pool, slow_task_holds_up_none_of_its_tick)
{
	recorder->held = 1;
	set_letters_ms(recorder, 1, 1, 1, 1, 1);
	assert_status(tw_advance(recorder->wheel, STEP), TW_OK);
	gate_await(&recorder->gate);
	WAIT_UNTIL(event_count(recorder) == 5);
	set_timer(recorder, "later", 200, STEP);
	assert_status(tw_advance(recorder->wheel, STEP), TW_OK);
	WAIT_UNTIL(event_count(recorder) == 6);
	gate_open(&recorder->gate);
	settle(recorder);
	assert_int_equal(event_count(recorder), 6);
}
