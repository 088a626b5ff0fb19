/* SPDX-License-Identifier: MIT */
/* Many drains may be under way, and many threads may drain. */
#include "support/test.h"

#include "support/probe.h"
#include "support/recorder.h"
#include "support/stats.h"

enum { DRAINS = 300 }; /* more than the owner keeps apart */

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

RECORDED(by_caller, drain_that_finds_the_queue_full_is_refused, .when_full = TW_WHEN_FULL_FAIL,
	 .queue_capacity = 2)
{
	set_timer(recorder, "a", 1, INTERVAL);
	set_timer(recorder, "b", 2, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_FULL);
	assert_int_equal(stats_of_wheel(recorder->wheel).refused, 1);
	flush_wheel(recorder);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_drained(recorder, 1);
	assert_drained(recorder, 2);
}

/* The drain is applied, and nothing is handed over before the poll. */
PROBED(inline, drained_handle_can_still_be_stopped_or_reset)
{
	struct probe probes[3] = {0};

	probes_start_ms(recorder, probes, 1, 9, 9, 9);
	assert_status(tw_drain(recorder->wheel, probe_drain, recorder), TW_OK);
	flush_wheel(recorder);
	assert_int_equal(tw_pending(recorder->wheel), 0);
	assert_status(probe_stop(&probes[0]), TW_OK);
	assert_status(probe_reset(&probes[1], INTERVAL / 2), TW_OK);
	flush_wheel(recorder);
	settle(recorder);
	assert_drained(recorder, 2);
	assert_drained(recorder, 3);
	assert_int_equal(event_count(recorder), 2);
}

RECORDED(inline, drained_key_is_free_before_its_value_is_handed_over)
{
	set_timer(recorder, "key", 1, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	assert_status(tw_contains(recorder->wheel, "key", 3, NULL), TW_NOT_FOUND);
	assert_status(tw_move_timer(recorder->wheel, "key", 3, 1), TW_OK);
	assert_status(tw_add_timer(recorder->wheel, "key", 3, VALUE(2), INTERVAL), TW_OK);
	set_timer(recorder, "key", 3, INTERVAL);
	assert_int_equal(tw_pending(recorder->wheel), 1);
	pass_ticks(recorder, 1);
	assert_order(recorder, 1, 2, 3);
	assert_drained(recorder, 1);
	assert_released(recorder, 2, TW_REPLACED);
	assert_executed_at(recorder, 3, INTERVAL);
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

/* A value is replaced between two drains. */
RECORDED(inline, value_replaced_between_two_drains_is_released_between_them)
{
	set_timer(recorder, "a", 1, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	set_timer(recorder, "a", 2, INTERVAL);
	set_timer(recorder, "a", 3, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_order(recorder, 1, 2, 3);
}

/* The only worker is busy until all of the drain waits for it. */
RECORDED(pool, timer_that_is_due_overtakes_a_large_drain, .workers = 1)
{
	enum { MANY = 5000 };
	size_t before = 0;

	recorder->held = MANY + 1;
	set_timer(recorder, "holds", MANY + 1, INTERVAL);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	gate_await(&recorder->gate);
	for (int number = 1; number <= MANY; number++)
		assert_status(tw_set_timer(recorder->wheel, &number, sizeof(number), VALUE(number),
					   TW_SECOND),
			      TW_OK);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	WAIT_UNTIL((flush_wheel(recorder), stats_of_wheel(recorder->wheel).unfinished > MANY));
	set_timer(recorder, "due", MANY + 2, INTERVAL);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	flush_wheel(recorder);
	gate_open(&recorder->gate);
	settle(recorder);
	while (event_at(recorder, before).value != VALUE(MANY + 2))
		before++;
	assert_in_range(before, 1, MANY / 2);
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

/* These are more timers than a turn hands over. */
RECORDED(everywhere, idle_wait_covers_all_of_a_large_drain)
{
	enum { MANY = 5000 };

	for (int number = 1; number <= MANY; number++)
		assert_status(tw_set_timer(recorder->wheel, &number, sizeof(number), VALUE(number),
					   INTERVAL),
			      TW_OK);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_int_equal(event_count(recorder), MANY);
}
