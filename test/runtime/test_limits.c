/* SPDX-License-Identifier: MIT */
/* The queue has a limit, and sets that are refused keep no memory. */
#include "support/test.h"

#include "support/inside.h"
#include "support/memory.h"
#include "support/script.h"
#include "support/stats.h"

/* The number is both key and value. */
static enum tw_status set_number(struct tw_wheel *wheel, int number, tw_duration delay)
{
	return tw_set_timer(wheel, &number, sizeof(number), VALUE(number), delay);
}

/* Returns how many sets of new keys succeed before one fails. */
static int fill_queue(struct recorder *recorder, int first, enum tw_status *refusal)
{
	int number = first;

	while ((*refusal = set_number(recorder->wheel, number, INTERVAL)) == TW_OK &&
	       number < first + 100000)
		number++;
	return number - first;
}

SCRIPT(by_caller, full_queue_refuses_and_has_room_again_after_a_poll,
       "set a 1; set b 1; set c 1; set d 1; set e 1 = FULL; move x 1 = FULL; remove x = FULL;"
       "move L1 1 = FULL; counts = refused 4; poll = any; set e 1; set f 1; set g 1; set L1 1;"
       "set h 1 = FULL; pass 1 -> a@1 b@1 c@1 d@1 e@1 f@1 g@1 L1@1",
       .queue_capacity = 3, .when_full = TW_WHEN_FULL_FAIL)
SCRIPT(inline, full_queue_can_be_stopped,
       "set a 1; set b 1; set c 1; set d 1; set e 1 = FULL;"
       "stop -> a:stopped b:stopped c:stopped d:stopped",
       .queue_capacity = 4, .when_full = TW_WHEN_FULL_FAIL)
SCRIPT(inline, full_queue_can_be_drained_or_says_so,
       "set a 1; set b 1; set c 1; set d 1; drain = any; flush;"
       "drain -> a:drained b:drained c:drained d:drained",
       .queue_capacity = 4, .when_full = TW_WHEN_FULL_FAIL)

TEST(inline, queue_holds_its_capacity_rounded_up_to_a_power_of_two)
{
	static const size_t capacities[] = {2, 3, 4, 5, 8, 1000};
	static const int rounded[] = {2, 4, 4, 8, 8, 1024};

	for (size_t i = 0; i < sizeof(rounded) / sizeof(rounded[0]); i++) {
		struct tw_options options = {.queue_capacity = capacities[i],
					     .when_full = TW_WHEN_FULL_FAIL};
		struct recorder *recorder = recorder_open_with(*state, 10, options);
		enum tw_status refusal;

		for (int turn = 0; turn < 5; turn++) {
			assert_int_equal(fill_queue(recorder, 1 + turn * 2000, &refusal),
					 rounded[i]);
			assert_status(refusal, TW_FULL);
			assert_status(tw_poll(recorder->wheel, NULL), TW_OK);
		}
		assert_int_equal(tw_pending(recorder->wheel), 5 * rounded[i]);
		recorder_close(recorder);
	}
}

/* The owner is in a task that hangs. */
#define FULL "hold p; after p 1; begin w clock 1; reached p; set a 3; set b 3;"
SCRIPT(owner, callers_wait_until_the_full_queue_has_room,
       FULL "begin u set c 3; begin v set d 3; asleep u; asleep v; go p; ended u; ended v; ended w;"
	    "idle -> p@1; counts = set 5 fired 1 pending 4 begun 1 ended 1;"
	    "pass 3 -> a@4 b@4 c@4 d@4",
       .queue_capacity = 2, .when_full = TW_WHEN_FULL_WAIT)
SCRIPT(owner, callers_that_wait_for_room_are_sent_home_by_stop,
       FULL "begin u set c 3; begin v set d 3; asleep u; asleep v; stop; go p; ended u = CLOSED;"
	    "ended v = CLOSED; ended w = any; idle -> p@1 a:stopped b:stopped",
       .queue_capacity = 2, .when_full = TW_WHEN_FULL_WAIT)

/* Two cells are given back, which wakes no waiting caller: a task that claimed behind both would
 * wait for ever. */
SCRIPT(owner, inline_task_claims_a_cell_before_callers_that_wait_for_one,
       "in p: meet 2, asleep u, asleep v, set x 3, meet 4; after p 1; begin w clock 1; meet 2;"
       "set a 3; set b 3; half; set c 3; set d 3; set e 3; set f 3; set g 3; set h 3; set i 3;"
       "set j 3; set k 3; set l 3; set m 3; set n 3; set o 3; begin u set q 3; begin v set r 3;"
       "meet 4; whole; ended u; ended v; ended w; pass 3 -> p@1 a@4 b@4 c@4 d@4 e@4 f@4 g@4 h@4 i@4"
       " j@4 k@4 l@4 m@4 n@4 o@4 q@4 r@4 x@4",
       .queue_capacity = 16, .when_full = TW_WHEN_FULL_WAIT)

/* The time that a crowd may take before others overtake it does not depend on the tick. */
TEST(once, crowds_have_as_long_at_every_interval)
{
	static const tw_duration intervals[] = {1, TW_MICROSECOND, 100 * TW_MICROSECOND,
						TW_MILLISECOND, TW_SECOND};

	for (size_t i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
		struct recorder *recorder = recorder_create();
		struct tw_options options = recorder_options(recorder, &levels_threads);
		tw_duration time;

		recorder_start(recorder, intervals[i], 10, &options);
		time = wheel_patience(recorder->wheel);
		assert_in_range(time, TW_SECOND / 2, TW_SECOND / 2 + intervals[i]);
		recorder_close(recorder);
	}
}

/* Timers are made in several sizes, by the size of the key. */
static void assert_refused_sets_keep_no_memory(struct tw_wheel *wheel)
{
	static const size_t sizes[] = {24, 32, 96, 160, 260, 380, 600, 850, 1000};
	static const char key[1000];

	/* An emulator's own memory counts, too. */
	if (TEST_HAS_SANITIZER || TEST_IS_EMULATED)
		return;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		long before = resident_memory();

		for (int n = 0; n < 40000; n++)
			assert_status(tw_set_timer(wheel, key, sizes[i], NULL, TW_HOUR), TW_FULL);
		assert_in_range(resident_memory(), 1, before + (2 << 20));
	}
}

RECORDED(inline, refused_sets_keep_no_memory, .max_pending = 1)
{
	assert_status(set_number(recorder->wheel, 1, TW_HOUR), TW_OK);
	assert_refused_sets_keep_no_memory(recorder->wheel);
}

/* The queue is full, and the sets reuse other timers' memory. */
RECORDED(inline, sets_refused_by_the_queue_keep_no_memory, .queue_capacity = 512,
	 .when_full = TW_WHEN_FULL_FAIL)
{
	for (int i = 0; i < 500; i++)
		assert_status(set_number(recorder->wheel, i, INTERVAL), TW_OK);
	pass_ticks(recorder, 1);
	assert_int_equal(event_count(recorder), 500);
	while (tw_remove_timer(recorder->wheel, "none", 4) == TW_OK)
		continue;
	assert_refused_sets_keep_no_memory(recorder->wheel);
}
