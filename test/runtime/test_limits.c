/* SPDX-License-Identifier: MIT */
/* The queue has a limit, sets that are refused keep no memory, and many threads call at once. */
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

RECORDED(by_caller, caller_that_drives_never_hangs_on_a_full_queue, .queue_capacity = 8,
	 .when_full = TW_WHEN_FULL_WAIT)
{
	for (int i = 1; i <= 1000; i++) {
		assert_status(set_number(recorder->wheel, i, INTERVAL * 2), TW_OK);
		assert_status(tw_move_timer(recorder->wheel, &i, sizeof(i), INTERVAL), TW_OK);
	}
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	for (int i = 1001; i <= 2000; i++)
		assert_status(set_number(recorder->wheel, i, INTERVAL), TW_OK);
	pass_ticks(recorder, 1);
	for (uintptr_t i = 1; i <= 1000; i++) {
		assert_drained(recorder, i);
		assert_executed_at(recorder, 1000 + i, INTERVAL);
	}
}

static void set_a_thousand(struct recorder *recorder, const struct tw_task *task)
{
	atomic_int *refused = recorder->argument;

	if (task->value != VALUE(5000))
		return;
	for (int i = 1; i <= 1000; i++)
		if (set_number(recorder->wheel, i, INTERVAL) != TW_OK)
			atomic_fetch_add(refused, 1);
}

RECORDED(everywhere, task_never_hangs_on_a_full_queue, .queue_capacity = 8,
	 .when_full = TW_WHEN_FULL_WAIT)
{
	atomic_int refused = 0;

	recorder->on_execute = set_a_thousand;
	recorder->argument = &refused;
	set_timer(recorder, "any", 5000, INTERVAL);
	pass_ticks(recorder, 2);
	assert_int_equal(atomic_load(&refused), 0);
	for (uintptr_t i = 1; i <= 1000; i++)
		assert_executed_at(recorder, i, INTERVAL * 2);
}

/* A thread calls the wheel where the call may have to wait. */
struct setter {
	struct tw_wheel *wheel;
	int first;
	int count;
	enum tw_status status; /* the first that is not TW_OK */
	atomic_int accepted;
	pthread_t thread;
};

static void *set_numbers(void *argument)
{
	struct setter *setter = argument;

	for (int i = 0; i < setter->count && setter->status == TW_OK; i++) {
		setter->status = set_number(setter->wheel, setter->first + i, INTERVAL * 3);
		if (setter->status == TW_OK)
			atomic_fetch_add(&setter->accepted, 1);
	}
	return NULL;
}

static void setter_start(struct setter *setter, struct recorder *recorder, int first, int count)
{
	*setter = (struct setter){.wheel = recorder->wheel, .first = first, .count = count};
	assert_int_equal(pthread_create(&setter->thread, NULL, set_numbers, setter), 0);
}

static void setter_join(struct setter *setter)
{
	assert_int_equal(pthread_join(setter->thread, NULL), 0);
}

static void *advance_one_tick(void *wheel)
{
	return VALUE(tw_advance(wheel, INTERVAL));
}

/* Starts a thread in a tw_advance that ends only when its inline task is released. */
static pthread_t hold_up_owner(struct recorder *recorder)
{
	pthread_t thread;

	recorder->held = 5000;
	set_timer(recorder, "slow", 5000, INTERVAL);
	assert_int_equal(pthread_create(&thread, NULL, advance_one_tick, recorder->wheel), 0);
	gate_await(&recorder->gate);
	return thread;
}

RECORDED(owner, caller_waits_until_the_full_queue_has_room, .queue_capacity = 16,
	 .when_full = TW_WHEN_FULL_WAIT)
{
	pthread_t advancing = hold_up_owner(recorder);
	struct setter setter;

	setter_start(&setter, recorder, 1, 1000);
	WAIT_UNTIL(wheel_callers_waiting(recorder->wheel) > 0);
	assert_in_range(atomic_load(&setter.accepted), 1, 16);
	gate_open(&recorder->gate);
	setter_join(&setter);
	assert_status(setter.status, TW_OK);
	pthread_join(advancing, NULL);
	pass_ticks(recorder, 3);
	for (uintptr_t i = 1; i <= 1000; i++)
		assert_int_equal(event_of(recorder, i).kind, EVENT_EXECUTE);
	assert_int_equal(stats_of_wheel(recorder->wheel).refused, 0);
}

RECORDED(owner, several_callers_wait_for_room_and_all_get_in, .queue_capacity = 4,
	 .when_full = TW_WHEN_FULL_WAIT)
{
	pthread_t advancing = hold_up_owner(recorder);
	struct setter setters[4];

	for (int i = 0; i < 4; i++)
		setter_start(&setters[i], recorder, 1 + i * 300, 300);
	WAIT_UNTIL(wheel_callers_waiting(recorder->wheel) == 4);
	gate_open(&recorder->gate);
	for (int i = 0; i < 4; i++) {
		setter_join(&setters[i]);
		assert_status(setters[i].status, TW_OK);
	}
	pthread_join(advancing, NULL);
	pass_ticks(recorder, 3);
	assert_int_equal(event_count(recorder), 1201);
}

RECORDED(owner, callers_that_wait_for_room_are_sent_home_by_stop, .queue_capacity = 8,
	 .when_full = TW_WHEN_FULL_WAIT)
{
	pthread_t advancing = hold_up_owner(recorder);
	struct setter setter;
	void *status;

	setter_start(&setter, recorder, 1, 100);
	WAIT_UNTIL(wheel_callers_waiting(recorder->wheel) > 0);
	assert_status(tw_stop(recorder->wheel), TW_OK);
	gate_open(&recorder->gate);
	setter_join(&setter);
	assert_status(setter.status, TW_CLOSED);
	pthread_join(advancing, &status);
	assert_true(status == VALUE(TW_CLOSED) || status == VALUE(TW_OK));
	settle(recorder);
	assert_int_equal(event_count(recorder), (size_t)atomic_load(&setter.accepted) + 1);
	for (uintptr_t i = 1; i <= (uintptr_t)atomic_load(&setter.accepted); i++)
		assert_released(recorder, i, TW_STOPPED);
}

enum { HOLDERS = 4, MOVES_IN_TASK = 100 };

/* Keeps the small queue full, with other calls that wait for room, until the task has ended. */
static void *remove_until_ended(void *argument)
{
	struct recorder *recorder = argument;

	while (!atomic_load((atomic_bool *)recorder->argument))
		assert_status(tw_remove_timer(recorder->wheel, "none", 4), TW_OK);
	return NULL;
}

static void move_often(struct recorder *recorder, const struct tw_task *task)
{
	for (int i = 0; i < MOVES_IN_TASK; i++)
		assert_status(tw_move_timer(recorder->wheel, "none", 4, INTERVAL), TW_OK);
	atomic_store((atomic_bool *)recorder->argument, true);
}

TEST(owner, inline_task_gets_room_before_all_that_wait_for_it)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);
	pthread_t holders[HOLDERS];
	atomic_bool ended = false;

	options.queue_capacity = 2;
	recorder->argument = &ended;
	recorder->on_execute = move_often;
	recorder_start(recorder, INTERVAL, 8, &options);
	set_timer(recorder, "first", 1, INTERVAL);
	for (int i = 0; i < HOLDERS; i++)
		assert_int_equal(pthread_create(&holders[i], NULL, remove_until_ended, recorder),
				 0);
	/* The threads call by then. */
	wait_for(10 * TW_MILLISECOND);
	advance(recorder, INTERVAL);
	for (int i = 0; i < HOLDERS; i++)
		pthread_join(holders[i], NULL);
	assert_true(atomic_load(&ended));
	recorder_close(recorder);
}

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
