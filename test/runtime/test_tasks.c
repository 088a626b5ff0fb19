/* SPDX-License-Identifier: MIT */
/* Tasks, releases and drain functions get their arguments and make calls. */
#include "support/test.h"

#include "support/inside.h"
#include "support/recorder.h"

/* The calls in a task note their answers here, for the main thread to check. */
struct answers {
	enum tw_status flush;
	enum tw_status wait_idle;
	enum tw_status contains;
	enum tw_status advance;
	enum tw_status poll;
	enum tw_status set;
	enum tw_status move;
	enum tw_status remove;
	enum tw_status drain;
	int asked;
};

static void ask_waiting_calls(struct recorder *recorder, const struct tw_task *task)
{
	struct answers *answers = recorder->argument;
	struct tw_wheel *wheel = recorder->wheel;

	answers->asked++;
	answers->flush = tw_flush(wheel);
	answers->wait_idle = tw_wait_idle(wheel);
	answers->contains = tw_contains(wheel, "other", 5, NULL);
	answers->advance = tw_advance(wheel, 0);
	answers->poll = tw_poll(wheel, NULL);
}

/* Waiting for tasks is invalid anywhere; waiting for the owner must return `expected`. */
static void assert_answers(struct answers *answers, enum tw_status expected)
{
	assert_int_equal(answers->asked, 1);
	assert_status(answers->wait_idle, TW_INVALID);
	assert_status(answers->flush, expected);
	assert_status(answers->advance, expected);
	if (expected == TW_INVALID)
		assert_status(answers->poll, TW_INVALID);
	memset(answers, 0, sizeof(*answers));
}

/* Each task, release and drain function makes the calls. */
static struct recorder *open_asking(const struct variant *variant, struct answers *answers)
{
	struct recorder *recorder = recorder_open(variant, 10);

	memset(answers, 0, sizeof(*answers));
	recorder->argument = answers;
	recorder->on_execute = recorder->on_release = recorder->on_drain = ask_waiting_calls;
	return recorder;
}

TEST(ordered, calls_that_would_wait_are_invalid_where_the_wheel_is_driven)
{
	struct answers answers;
	struct recorder *recorder = open_asking(*state, &answers);

	set_timer(recorder, "any", 1, INTERVAL);
	set_timer(recorder, "other", 2, INTERVAL * 9);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_status(answers.contains, TW_OK);
	assert_answers(&answers, TW_INVALID);
	remove_timer(recorder, "other");
	settle(recorder);
	assert_released(recorder, 2, TW_REMOVED);
	assert_status(answers.contains, TW_NOT_FOUND);
	assert_answers(&answers, TW_INVALID);
	set_timer(recorder, "any", 3, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_drained(recorder, 3);
	assert_answers(&answers, TW_INVALID);
	recorder_close(recorder);
}

TEST(pool, calls_on_a_worker_may_wait_for_the_owner_but_not_for_tasks)
{
	struct answers answers;
	struct recorder *recorder = open_asking(*state, &answers);

	set_timer(recorder, "other", 2, INTERVAL * 9);
	set_timer(recorder, "any", 1, INTERVAL);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_status(answers.contains, TW_OK);
	assert_answers(&answers, TW_OK);
	set_timer(recorder, "any", 3, INTERVAL);
	remove_timer(recorder, "any");
	settle(recorder);
	assert_released(recorder, 3, TW_REMOVED);
	assert_answers(&answers, TW_OK);
	remove_timer(recorder, "other");
	settle(recorder);
	memset(&answers, 0, sizeof(answers));
	set_timer(recorder, "any", 4, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_status(answers.flush, TW_OK);
	assert_status(answers.contains, TW_NOT_FOUND);
	recorder_close(recorder);
}

static void give_all_commands(struct recorder *recorder, const struct tw_task *task)
{
	struct answers *answers = recorder->argument;
	struct tw_wheel *wheel = recorder->wheel;

	if (task->value != VALUE(1))
		return;
	answers->asked++;
	answers->set = tw_set_timer(wheel, "new", 3, VALUE(10), INTERVAL);
	may_fail(tw_set_timer(wheel, "new too", 7, VALUE(11), INTERVAL * 2));
	answers->move = tw_move_timer(wheel, "moved", 5, INTERVAL * 3);
	answers->remove = tw_remove_timer(wheel, "removed", 7);
	may_fail(tw_set_timer(wheel, "replaced", 8, VALUE(12), INTERVAL * 4));
}

RECORDED(everywhere, commands_of_a_task_take_effect)
{
	struct answers answers = {0};

	recorder->argument = &answers;
	recorder->on_execute = give_all_commands;
	set_timer(recorder, "moved", 2, INTERVAL * 20);
	set_timer(recorder, "removed", 3, INTERVAL * 20);
	set_timer(recorder, "replaced", 4, INTERVAL * 20);
	set_timer(recorder, "any", 1, INTERVAL * 5);
	pass_ticks(recorder, 30);
	assert_int_equal(answers.asked, 1);
	assert_status(answers.set, TW_OK);
	assert_status(answers.move, TW_OK);
	assert_status(answers.remove, TW_OK);
	assert_executed_at(recorder, 10, INTERVAL * 6);
	assert_executed_at(recorder, 11, INTERVAL * 7);
	assert_executed_at(recorder, 2, INTERVAL * 8);
	assert_executed_at(recorder, 12, INTERVAL * 9);
	assert_released(recorder, 3, TW_REMOVED);
	assert_released(recorder, 4, TW_REPLACED);
}

static void drain_rest(struct recorder *recorder, const struct tw_task *task)
{
	if (task->value == VALUE(1))
		tw_drain(recorder->wheel, record_drain, recorder);
}

RECORDED(ordered, inline_task_can_drain_the_rest_of_its_tick)
{
	recorder->on_execute = drain_rest;
	set_timer(recorder, "any", 1, INTERVAL);
	set_timer(recorder, "other", 2, INTERVAL);
	set_timer(recorder, "far", 3, INTERVAL * 90);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_drained(recorder, 2);
	assert_drained(recorder, 3);
}

static void set_for_now(struct recorder *recorder, uintptr_t value)
{
	may_fail(tw_set_timer(recorder->wheel, "now", 3, VALUE(value), TW_HOUR));
	may_fail(tw_move_timer(recorder->wheel, "now", 3, 1));
}

static void set_next_for_now(struct recorder *recorder, const struct tw_task *task)
{
	uintptr_t value = (uintptr_t)task->value;

	if (value < 5)
		set_for_now(recorder, value + 1);
}

RECORDED(ordered, timers_that_tasks_move_to_now_one_after_the_other_run_in_the_same_tick)
{
	recorder->on_execute = set_next_for_now;
	set_timer(recorder, "any", 1, INTERVAL);
	set_timer(recorder, "far", 100, INTERVAL * 500);
	advance(recorder, INTERVAL * 1000);
	for (uintptr_t i = 2; i <= 5; i++)
		assert_executed_at(recorder, i, INTERVAL);
	assert_executed_at(recorder, 100, INTERVAL * 500);
}

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

static void drain_and_set_again(struct recorder *recorder, const struct tw_task *task)
{
	if (task->value != VALUE(1))
		return;
	tw_drain(recorder->wheel, record_drain, recorder);
	may_fail(tw_set_timer(recorder->wheel, "next", 4, VALUE(3), INTERVAL));
}

/* Another thread has half written its command while a task calls the wheel. */
struct half_written {
	struct half_command command;
	int task_thread;
	atomic_bool task_ended;
	enum tw_status contains;
};

static void *write_the_other_half(void *argument)
{
	struct half_written *half = argument;

	while (!thread_is_asleep(half->task_thread) && !atomic_load(&half->task_ended))
		give_way();
	half_command_end(&half->command);
	return NULL;
}

/* Another thread claims the queue's next cell here, and writes it when the caller waits for it. */
static pthread_t half_begin(struct tw_wheel *wheel, struct half_written *half)
{
	pthread_t thread;

	half->task_thread = gettid();
	half->command = half_command_begin(wheel);
	pthread_create(&thread, NULL, write_the_other_half, half);
	return thread;
}

static void set_and_look_behind_half_a_command(struct recorder *recorder,
					       const struct tw_task *task)
{
	struct half_written *half = recorder->argument;
	pthread_t thread;

	if (task->value != VALUE(1))
		return;
	thread = half_begin(recorder->wheel, half);
	may_fail(tw_set_timer(recorder->wheel, "own", 3, VALUE(3), TW_HOUR));
	half->contains = tw_contains(recorder->wheel, "own", 3, NULL);
	atomic_store(&half->task_ended, true);
	pthread_join(thread, NULL);
}

RECORDED(ordered, inline_task_sees_its_own_set_behind_half_a_command_of_another_thread)
{
	struct half_written half = {.contains = TW_INVALID};

	recorder->argument = &half;
	recorder->on_execute = set_and_look_behind_half_a_command;
	set_timer(recorder, "task", 1, INTERVAL);
	pass_ticks(recorder, 1);
	assert_status(half.contains, TW_OK);
}

static void stop_another_behind_half_a_command(struct recorder *recorder,
					       const struct tw_task *task)
{
	if (task->value != VALUE(1))
		return;
	pthread_detach(half_begin(recorder->wheel, recorder->argument));
	(void)tw_remove_timer(recorder->wheel, "other", 5);
}

RECORDED(ordered, inline_task_stops_another_behind_half_a_command_of_another_thread)
{
	struct half_written half = {.contains = TW_INVALID};

	recorder->argument = &half;
	recorder->on_execute = stop_another_behind_half_a_command;
	set_timer(recorder, "task", 1, INTERVAL);
	set_timer(recorder, "other", 2, INTERVAL);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_released(recorder, 2, TW_REMOVED);
}

RECORDED(ordered, drain_of_an_inline_task_is_given_out_before_the_next_tick)
{
	recorder->on_execute = drain_and_set_again;
	set_timer(recorder, "any", 1, INTERVAL);
	set_timer(recorder, "next", 2, INTERVAL * 2);
	advance(recorder, INTERVAL * 10);
	assert_drained(recorder, 2);
	assert_int_equal(event_of(recorder, 2).now, INTERVAL);
	assert_executed_at(recorder, 3, INTERVAL * 2);
	assert_int_equal(event_of(recorder, 3).lateness, 0);
	assert_order(recorder, 1, 2, 3);
}

static void set_own_key(struct recorder *recorder, const struct tw_task *task)
{
	if (task->value == VALUE(1))
		may_fail(tw_set_timer(recorder->wheel, task->key, task->key_size, VALUE(2),
				      INTERVAL * 2));
}

RECORDED(everywhere, key_of_a_running_task_is_free)
{
	recorder->on_execute = set_own_key;
	set_timer(recorder, "any", 1, INTERVAL);
	pass_ticks(recorder, 9);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_executed_at(recorder, 2, INTERVAL * 3);
	assert_int_equal(event_count(recorder), 2);
}

static void forbidden_run(void *argument)
{
	abort();
}

static void stop_its_wheel(struct recorder *recorder, const struct tw_task *task)
{
	if (task->value == VALUE(1) && tw_stop(recorder->wheel) != TW_OK)
		recorder->argument = NULL;
}

RECORDED(ordered, stop_in_an_inline_task_lets_nothing_later_run)
{
	recorder->on_execute = stop_its_wheel;
	recorder->argument = recorder;
	set_timer(recorder, "any", 1, INTERVAL * 2);
	set_timer(recorder, "next", 2, INTERVAL * 3);
	set_timer(recorder, "far", 3, TW_HOUR);
	set_timer(recorder, "before", 4, INTERVAL);
	assert_status(tw_after_func(recorder->wheel, INTERVAL * 2, forbidden_run, VALUE(5), NULL),
		      TW_OK);
	assert_status(tw_after_func(recorder->wheel, INTERVAL * 3, forbidden_run, VALUE(6), NULL),
		      TW_OK);
	assert_status(tw_advance(recorder->wheel, INTERVAL * 10), TW_CLOSED);
	assert_non_null(recorder->argument);
	settle(recorder);
	assert_executed_at(recorder, 4, INTERVAL);
	assert_executed_at(recorder, 1, INTERVAL * 2);
	assert_status(tw_stop(recorder->wheel), TW_CLOSED);
	assert_released(recorder, 2, TW_STOPPED);
	assert_released(recorder, 3, TW_STOPPED);
	assert_released(recorder, 5, TW_STOPPED);
	assert_released(recorder, 6, TW_STOPPED);
	assert_int_equal(event_count(recorder), 6);
}

RECORDED(pool, stop_on_a_worker_lets_nothing_later_run)
{
	recorder->on_execute = stop_its_wheel;
	recorder->argument = recorder;
	set_timer(recorder, "any", 1, INTERVAL);
	set_timer(recorder, "next", 2, INTERVAL * 2);
	assert_status(tw_after_func(recorder->wheel, INTERVAL * 2, forbidden_run, VALUE(3), NULL),
		      TW_OK);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	settle(recorder);
	assert_non_null(recorder->argument);
	assert_status(tw_advance(recorder->wheel, INTERVAL * 10), TW_CLOSED);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_released(recorder, 2, TW_STOPPED);
	assert_released(recorder, 3, TW_STOPPED);
}

static void stop_in_release(struct recorder *recorder, const struct tw_task *task)
{
	tw_stop(recorder->wheel);
}

TEST(everywhere, stop_in_a_release_or_drain_function_stops)
{
	for (int in_drain = 0; in_drain < 2; in_drain++) {
		struct recorder *recorder = recorder_open(*state, 10);

		recorder->on_release = recorder->on_drain = stop_in_release;
		set_timer(recorder, "any", 1, INTERVAL);
		if (in_drain)
			assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
		else
			remove_timer(recorder, "any");
		settle(recorder);
		assert_int_equal(times_returned(recorder, 1), 1);
		assert_status(tw_set_timer(recorder->wheel, "any", 3, VALUE(2), INTERVAL),
			      TW_CLOSED);
		recorder_close(recorder);
	}
}

static void assert_noted(struct recorder *recorder, uintptr_t value, const char *key,
			 tw_duration deadline, tw_duration lateness)
{
	struct event event = event_of(recorder, value);

	assert_int_equal(event.key_size, strlen(key));
	assert_memory_equal(event.key, key, strlen(key));
	assert_int_equal(event.deadline, deadline);
	assert_int_equal(event.lateness, lateness);
}

RECORDED(everywhere, release_gets_key_value_deadline_and_reason)
{
	advance(recorder, 500);
	set_timer(recorder, "replaced", 1, INTERVAL * 5 + 3);
	set_timer(recorder, "removed", 2, INTERVAL * 6 + 4);
	set_timer(recorder, "a stopped timer with a long key", 3, INTERVAL * 7 + 5);
	pass_ticks(recorder, 2);
	set_timer(recorder, "replaced", 4, INTERVAL * 50);
	remove_timer(recorder, "removed");
	settle(recorder);
	stop_wheel(recorder);
	assert_released(recorder, 1, TW_REPLACED);
	assert_noted(recorder, 1, "replaced", INTERVAL * 5 + 503, 0);
	assert_released(recorder, 2, TW_REMOVED);
	assert_noted(recorder, 2, "removed", INTERVAL * 6 + 504, 0);
	assert_released(recorder, 3, TW_STOPPED);
	assert_noted(recorder, 3, "a stopped timer with a long key", INTERVAL * 7 + 505, 0);
	assert_released(recorder, 4, TW_STOPPED);
	assert_noted(recorder, 4, "replaced", INTERVAL * 52 + 500, 0);
}

RECORDED(everywhere, drain_function_gets_key_value_and_deadline)
{
	advance(recorder, 500);
	set_timer(recorder, "any", 1, INTERVAL * 5 + 3);
	set_timer(recorder, "never", 2, TW_FOREVER);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_drained(recorder, 1);
	assert_noted(recorder, 1, "any", INTERVAL * 5 + 503, 0);
	assert_noted(recorder, 2, "never", TW_FOREVER, 0);
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
