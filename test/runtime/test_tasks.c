/* SPDX-License-Identifier: MIT */
/* Tasks, releases and drain functions get their arguments and make calls. */
#include "support/test.h"

#include "support/recorder.h"
#include "support/script.h"

/* Each task, release and drain function makes these calls. Waiting for tasks is invalid there. */
#define WAIT_INLINE "idle = INVALID, flush = INVALID, clock 0 = INVALID, poll = INVALID;"
#define WAIT_ON_A_WORKER "idle = INVALID, flush, clock 0;"
SCRIPT(ordered, calls_that_would_wait_are_invalid_where_the_wheel_is_driven,
       "in a: left other = 8," WAIT_INLINE "in other: left other = NOT_FOUND," WAIT_INLINE
       "in b:" WAIT_INLINE "set a 1; set other 9; pass 1 -> a@1; remove other;"
       "idle -> other:removed; set b 1; drain -> b:drained")
SCRIPT(pool, calls_on_a_worker_may_wait_for_the_owner_but_not_for_tasks,
       "in a: left other = 8," WAIT_ON_A_WORKER "in b1: left other = 8," WAIT_ON_A_WORKER
       "in other: left other = NOT_FOUND," WAIT_ON_A_WORKER "in b2: left other = NOT_FOUND, flush;"
       "set other 9; set a 1; pass 1 -> a@1; set b1 1; remove b; idle -> b1:removed;"
       "remove other; idle -> other:removed; set b2 1; drain -> b2:drained")
SCRIPT(everywhere, commands_of_a_task_take_effect,
       "in a: set new 1, set newer 2, move moved 3, remove removed, set replaced2 4;"
       "set moved 20; set removed 20; set replaced1 20; set a 5;"
       "pass 30 -> a@5 removed:removed replaced1:replaced new@6 newer@7 moved@8 replaced2@9")
SCRIPT(ordered, inline_task_can_drain_the_rest_of_its_tick,
       "in a: drain; set a 1; set other 1; set far 90; pass 9 -> a@1 other:drained far:drained")
SCRIPT(ordered, timers_that_tasks_move_to_now_one_after_the_other_run_in_the_same_tick,
       "in a1: set b1 1h, move b1 1ns; in b1: set b2 1h, move b2 1ns;"
       "in b2: set b3 1h, move b3 1ns; set a1 1; set far 500;"
       "advance 1000 => a1@1 b1@1 b2@1 b3@1 far@500")
SCRIPT(ordered, drain_of_an_inline_task_is_given_out_before_the_next_tick,
       "in a: drain, set next2 1; set a 1; set next1 2;"
       "advance 10 => a@1 next1:drained next2@2")
SCRIPT(everywhere, key_of_a_running_task_is_free, "in a1: set a2 2; set a1 1; pass 9 -> a1@1 a2@3")
SCRIPT(ordered, stop_in_an_inline_task_lets_nothing_later_run,
       "in a: stop; set a 2; set next 3; set far 1h; set before 1; after p 2; after q 3;"
       "advance 10 = CLOSED -> before@1 a@2 next:stopped far:stopped p:stopped q:stopped;"
       "stop = CLOSED")
SCRIPT(pool, stop_on_a_worker_lets_nothing_later_run,
       "in a: stop; set a 1; set next 2; after p 2; clock 1; idle -> a@1 next:stopped p:stopped;"
       "advance 10 = CLOSED")
SCRIPT(everywhere, stop_in_a_release_function_stops,
       "in a: stop; set a 1; remove a; idle -> a:removed; set b 1 = CLOSED")
SCRIPT(everywhere, stop_in_a_drain_function_stops,
       "in a: stop; set a 1; drain -> a:drained; set b 1 = CLOSED")
SCRIPT(everywhere, release_gets_key_value_deadline_and_reason,
       "clock 500ns; set replaced1 5+3ns; set removed 6+4ns;"
       "set a_stopped_timer_with_a_long_key 7+5ns; pass 2; set replaced2 50; remove removed;"
       "idle -> replaced1:replaced/5.000503 removed:removed/6.000504;"
       "stop -> a_stopped_timer_with_a_long_key:stopped/7.000505 replaced2:stopped/52.0005")
SCRIPT(everywhere, drain_function_gets_key_value_and_deadline,
       "clock 500ns; set a 5+3ns; set never 1; move never never;"
       "drain -> a:drained/5.000503 never:drained/never")

/* Another thread has half written its command while a task calls the wheel. */
SCRIPT(ordered, inline_task_sees_its_own_set_behind_half_a_command_of_another_thread,
       "in p: half, whole_asleep w, set a 1h, left a = 3600000; after p 1; pass 1 -> p@1; ended w")
SCRIPT(ordered, inline_task_stops_another_behind_half_a_command_of_another_thread,
       "in a: half, whole_asleep w, remove b; set a 1; set b 1; pass 1 -> a@1 b:removed; ended w")

static void set_again_for_now(struct recorder *recorder, const struct tw_task *task)
{
	size_t *accepted = recorder->argument;

	if (task->value == VALUE(100) ||
	    tw_set_timer(recorder->wheel, task->key, task->key_size, VALUE(1), TW_HOUR) != TW_OK)
		return;
	may_fail(tw_move_timer(recorder->wheel, task->key, task->key_size, 1));
	*accepted += 1;
}

RECORDED(ordered, task_that_moves_itself_to_now_for_ever_lets_others_go_on)
{
	size_t accepted = 2;

	recorder->argument = &accepted;
	recorder->on_execute = set_again_for_now;
	set_timer(recorder, "any", 1, INTERVAL);
	set_timer(recorder, "other", 100, INTERVAL * 5);
	assert_status(tw_advance(recorder->wheel, INTERVAL * 10), TW_OK);
	assert_executed_at(recorder, 100, INTERVAL * 5);
	flush_wheel(recorder);
	stop_wheel(recorder);
	assert_true(accepted > 3);
	assert_int_equal(event_count(recorder), accepted);
}

/* These are too many for one turn to run a full round of them. */
RECORDED(ordered, many_that_rearm_themselves_let_others_go_on)
{
	size_t accepted = 0;

	recorder->argument = &accepted;
	recorder->on_execute = set_again_for_now;
	for (uintptr_t i = 0; i < 40; i++)
		assert_status(tw_set_timer(recorder->wheel, &i, sizeof(i), VALUE(1), INTERVAL),
			      TW_OK);
	set_timer(recorder, "other", 100, INTERVAL * 5);
	assert_status(tw_advance(recorder->wheel, INTERVAL * 10), TW_OK);
	assert_executed_at(recorder, 100, INTERVAL * 5);
	/* They go on, and count here. */
	stop_wheel(recorder);
}

static struct tw_wheel *rearmed;

static void rearm(void *argument)
{
	may_fail(tw_after_func(rearmed, 0, rearm, argument, NULL));
}

static void count_beat(void *beats)
{
	++*(int *)beats;
}

RECORDED(ordered, many_handles_that_rearm_themselves_let_others_go_on)
{
	int beats = 0;

	rearmed = recorder->wheel;
	for (int i = 0; i < 3000; i++)
		assert_status(tw_after_func(rearmed, INTERVAL, rearm, NULL, NULL), TW_OK);
	assert_status(
		tw_every(rearmed, INTERVAL, INTERVAL, TW_MISSED_BURST, count_beat, &beats, NULL),
		TW_OK);
	assert_status(tw_advance(rearmed, INTERVAL * 10), TW_OK);
	assert_int_equal(beats, 10);
	stop_wheel(recorder);
}

/* A crowd's tasks have one tick and take several turns. */
enum { CROWD = 6000, REMOVING = 500 };

static void *remove_last_of_crowd(void *argument)
{
	struct recorder *recorder = argument;
	uintptr_t last = CROWD;

	assert_status(tw_remove_timer(recorder->wheel, &last, sizeof(last)), TW_OK);
	return NULL;
}

/* A thread of its own removes it: a task's own call is applied at once. */
static void have_last_of_crowd_removed(struct recorder *recorder, const struct tw_task *task)
{
	pthread_t remover;

	if (task->value != VALUE(REMOVING))
		return;
	assert_int_equal(pthread_create(&remover, NULL, remove_last_of_crowd, recorder), 0);
	assert_int_equal(pthread_join(remover, NULL), 0);
}

RECORDED(ordered, command_of_another_thread_does_not_wait_for_the_end_of_a_crowd)
{
	recorder->on_execute = have_last_of_crowd_removed;
	for (uintptr_t i = 1; i <= CROWD; i++)
		assert_status(tw_set_timer(recorder->wheel, &i, sizeof(i), VALUE(i), INTERVAL),
			      TW_OK);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	assert_executed_at(recorder, CROWD - 1, INTERVAL);
	assert_released(recorder, CROWD, TW_REMOVED);
}

static void remember_context(void *context, const struct tw_task *task)
{
	*(void **)context = task->value;
}

RECORDED(everywhere, each_drain_has_its_own_function_and_context)
{
	void *first = NULL;
	void *second = NULL;

	set_timer(recorder, "any", 1, INTERVAL);
	assert_status(tw_drain(recorder->wheel, remember_context, &first), TW_OK);
	set_timer(recorder, "any", 2, INTERVAL);
	assert_status(tw_drain(recorder->wheel, remember_context, &second), TW_OK);
	settle(recorder);
	assert_ptr_equal(first, VALUE(1));
	assert_ptr_equal(second, VALUE(2));
}

/* A task, a release and a drain call, all by this thread or all by others. */
static void assert_called(const struct variant *variant, bool by_this_thread)
{
	struct recorder *recorder = recorder_open(variant, 10);

	set_timer(recorder, "any", 1, INTERVAL);
	set_timer(recorder, "removed", 2, INTERVAL);
	remove_timer(recorder, "removed");
	pass_ticks(recorder, 1);
	set_timer(recorder, "drained", 3, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_int_equal(event_count(recorder), 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(by_this_thread ==
			    (pthread_equal(event_at(recorder, i).thread, pthread_self()) != 0));
	recorder_close(recorder);
}

TEST(pool, workers_call_the_users_functions_and_no_other_thread)
{
	assert_called(*state, false);
}

TEST(inline, driving_thread_calls_the_users_functions_when_inline)
{
	assert_called(*state, true);
}
