/* SPDX-License-Identifier: MIT */
/* Many drains may wait, one after the other, and many threads may drain. */
#include "support/test.h"

#include "support/recorder.h"
#include "support/script.h"

SCRIPT(by_caller, drain_that_finds_the_queue_full_is_refused,
       "set a 1; set b 1; drain = FULL; flush; drain; idle -> a:drained b:drained",
       .when_full = TW_WHEN_FULL_FAIL, .queue_capacity = 2)
/* The drain is applied, and nothing is handed over before the turn of idle. */
SCRIPT(inline, drained_handle_can_still_be_stopped_or_reset,
       "after a 9; after b 9; after c 9; drain; flush; pending = 0; stop a; reset b 0.5; flush;"
       "idle -> b:drained c:drained")
SCRIPT(inline, drained_key_is_free_before_its_value_is_handed_over,
       "set a1 1; drain; left a = NOT_FOUND; move a 1ns; add a2 1; set a3 1; pending = 1;"
       "pass 1 => a1:drained a2:replaced a3@1")
SCRIPT(inline, value_replaced_between_two_drains_is_released_between_them,
       "set a1 1; drain; set a2 1; set a3 1; drain; idle => a1:drained a2:replaced a3:drained")

enum { DRAINS = 300 }; /* each waits for the one before it */

/* Starts drains, each of one timer with a new key. Returns how many are accepted. */
static int drain_often(struct recorder *recorder)
{
	for (int i = 0; i < DRAINS; i++)
		if (tw_set_timer(recorder->wheel, &i, sizeof(i), VALUE(i), INTERVAL) != TW_OK ||
		    tw_drain(recorder->wheel, record_drain, recorder) != TW_OK)
			return i;
	return DRAINS;
}

static void assert_all_drained(struct recorder *recorder)
{
	settle(recorder);
	for (uintptr_t i = 0; i < DRAINS; i++)
		assert_drained(recorder, i);
}

/* Nothing is swept between them. */
RECORDED(inline, drains_in_a_row_give_each_value_back_in_their_order)
{
	assert_int_equal(drain_often(recorder), DRAINS);
	assert_all_drained(recorder);
	for (size_t i = 0; i < DRAINS; i++)
		assert_ptr_equal(event_at(recorder, i).value, VALUE(i));
}

/* They are more than a turn hands over. */
RECORDED(everywhere, drained_timers_are_drained_also_where_they_are_due_before)
{
	enum { MANY = 3000 };

	for (int number = 1; number <= MANY; number++)
		assert_status(tw_set_timer(recorder->wheel, &number, sizeof(number), VALUE(number),
					   INTERVAL),
			      TW_OK);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	pass_ticks(recorder, 1);
	settle(recorder);
	assert_int_equal(event_count_of_kind(recorder, EVENT_DRAIN), MANY);
	assert_int_equal(event_count(recorder), MANY);
}

static void drain_and_replace(void *context, const struct tw_task *task)
{
	struct recorder *recorder = context;

	record_drain(recorder, task);
	if (task->value != VALUE(201))
		return;
	may_fail(tw_set_timer(recorder->wheel, "x", 1, VALUE(501), INTERVAL));
	may_fail(tw_set_timer(recorder->wheel, "x", 1, VALUE(502), INTERVAL));
}

/* The first of two drains is over, and the second has begun. */
RECORDED(ordered, what_a_drain_function_causes_comes_after_the_rest_of_its_drain)
{
	for (int number = 1; number <= 400; number++) {
		assert_status(tw_set_timer(recorder->wheel, &number, sizeof(number), VALUE(number),
					   INTERVAL * (number % 200 + 1)),
			      TW_OK);
		if (number % 200 == 0)
			assert_status(tw_drain(recorder->wheel, drain_and_replace, recorder),
				      TW_OK);
	}
	settle(recorder);
	assert_released(recorder, 501, TW_REPLACED);
	assert_int_equal(event_count(recorder), 401);
	assert_ptr_equal(event_at(recorder, 400).value, VALUE(501));
}

static void drain_in_task(struct recorder *recorder, const struct tw_task *task)
{
	recorder->argument = VALUE(drain_often(recorder));
	/* The owner applies the drains before it answers. */
	assert_status(tw_contains(recorder->wheel, "x", 1, NULL), TW_NOT_FOUND);
}

TEST(everywhere, task_never_hangs_on_drains)
{
	struct recorder *recorder =
		recorder_open_with(*state, 10, (struct tw_options){.when_full = TW_WHEN_FULL_WAIT});

	recorder->on_execute = drain_in_task;
	set_timer(recorder, "drains", 1000, INTERVAL);
	pass_ticks(recorder, 1);
	settle(recorder);
	assert_ptr_equal(recorder->argument, VALUE(DRAINS));
	assert_all_drained(recorder);
	recorder_close(recorder);
}

static void note_drained(void *context, const struct tw_task *task)
{
	struct recorder *recorder = context;
	struct tw_stats stats;

	assert_status(tw_get_stats(recorder->wheel, &stats), TW_OK);
	if (!recorder->argument)
		recorder->argument = VALUE(stats.drained);
	record_drain(recorder, task);
}

static void drain_twice(struct recorder *recorder, const struct tw_task *task)
{
	(void)task;
	for (int i = 0; i < 2; i++)
		assert_status(tw_drain(recorder->wheel, note_drained, recorder), TW_OK);
}

/* The second waits in the queue, and the owner goes on in small steps. */
RECORDED(ordered, two_drains_in_a_task_make_no_long_turn)
{
	enum { MANY = 8000 };

	recorder->on_execute = drain_twice;
	set_timer(recorder, "drains", 1, INTERVAL);
	for (int number = 1; number <= MANY; number++)
		assert_status(tw_set_timer(recorder->wheel, &number, sizeof(number),
					   VALUE(number + 1), 2 * INTERVAL),
			      TW_OK);
	pass_ticks(recorder, 1);
	settle(recorder);
	assert_in_range((uintptr_t)recorder->argument, 1, MANY / 4);
	assert_int_equal(event_count_of_kind(recorder, EVENT_DRAIN), MANY);
}
