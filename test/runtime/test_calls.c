/* SPDX-License-Identifier: MIT */
/* Each public call is tested with bad arguments, for keys, after a stop, and after a fork. */
#include "support/test.h"

#include "support/script.h"
#include "support/stats.h"

TEST(once, every_status_has_its_name_and_a_text)
{
	assert_int_equal(TW_OK, 0);
#define ASSERT_TEXTS(name, text)                          \
	assert_string_equal(tw_status_name(name), #name); \
	assert_string_equal(tw_status_text(name), text);
	TW_STATUS_LIST(ASSERT_TEXTS)
#undef ASSERT_TEXTS
}

TEST(once, number_that_is_no_status_is_unknown)
{
	assert_string_equal(tw_status_name((enum tw_status)9999), "TW_UNKNOWN");
	assert_string_equal(tw_status_name((enum tw_status) - 1), "TW_UNKNOWN");
	assert_true(strlen(tw_status_text((enum tw_status)9999)) > 0);
}

TEST(once, version_is_one_number_and_one_string)
{
	char text[32];

	assert_int_equal(tw_version(), TW_VERSION);
	assert_int_equal(TW_VERSION / 10000, TW_VERSION_MAJOR);
	assert_int_equal(TW_VERSION / 100 % 100, TW_VERSION_MINOR);
	assert_int_equal(TW_VERSION % 100, TW_VERSION_PATCH);
	snprintf(text, sizeof(text), "%d.%d.%d", TW_VERSION_MAJOR, TW_VERSION_MINOR,
		 TW_VERSION_PATCH);
	assert_string_equal(TW_VERSION_STRING, text);
}

static void assert_create_refuses(tw_duration interval, size_t slots, tw_execute_fn *execute,
				  const struct tw_options *options)
{
	int anything;
	struct tw_wheel *wheel = (struct tw_wheel *)&anything;

	assert_status(tw_create(&wheel, interval, slots, execute, options), TW_INVALID);
	assert_null(wheel);
}

TEST(once, create_refuses_bad_arguments_and_leaves_no_wheel)
{
	assert_create_refuses(0, 10, record_execute, NULL);
	assert_create_refuses(-1, 10, record_execute, NULL);
	assert_create_refuses(INT64_MIN, 10, record_execute, NULL);
	assert_create_refuses(INTERVAL, 0, record_execute, NULL);
	assert_create_refuses(INTERVAL, TW_SLOTS_MAX + 1, record_execute, NULL);
	assert_create_refuses(INTERVAL, SIZE_MAX, record_execute, NULL);
	assert_status(tw_create(NULL, INTERVAL, 10, record_execute, NULL), TW_INVALID);
}

TEST(once, create_refuses_options_out_of_range)
{
	static const struct tw_options wrong[] = {
		{.layout = (enum tw_layout)(TW_LAYOUT_ROUNDS + 1)},
		{.clock = (enum tw_clock)(TW_CLOCK_MANUAL + 1)},
		{.drive = (enum tw_drive)(TW_DRIVE_CALLER + 1)},
		{.when_full = (enum tw_when_full)(TW_WHEN_FULL_FAIL + 1)},
		{.workers = TW_WORKERS_INLINE - 1},
		{.stack_size = TW_STACK_SIZE_MIN - 1},
		{.workers = TW_WORKERS_MAX + 1},
		{.max_workers = TW_WORKERS_MAX + 1},
		{.workers = 3, .max_workers = 2},
		{.max_workers = -1},
		{.workers = TW_WORKERS_INLINE, .max_workers = 1},
		{.patience_for_worker = -1},
		{.queue_capacity = TW_QUEUE_CAPACITY_MAX + 1},
		{.queue_capacity = SIZE_MAX},
		{.reserved = {1}},
		{.reserved = {0, 1}},
		{.reserved = {0, 0, 1}},
		{.reserved = {0, 0, 0, 1}},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_create_refuses(INTERVAL, 10, record_execute, &wrong[i]);
}

TEST(everywhere, wheel_of_most_slots_works)
{
	struct recorder *recorder = recorder_open(*state, TW_SLOTS_MAX);

	set_timer(recorder, "near", 1, INTERVAL);
	set_timer(recorder, "far", 2, INTERVAL * 3 * (tw_duration)TW_SLOTS_MAX);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	advance(recorder, INTERVAL * (3 * (tw_duration)TW_SLOTS_MAX - 2));
	assert_not_returned(recorder, 2);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 2, INTERVAL * 3 * (tw_duration)TW_SLOTS_MAX);
	recorder_close(recorder);
}

TEST(once, no_options_are_all_defaults)
{
	struct tw_options zeroed = {0};
	const struct tw_options *options[] = {NULL, &zeroed};
	struct tw_wheel *wheel;

	for (int i = 0; i < 2; i++) {
		assert_status(tw_create(&wheel, TW_HOUR, 10, record_execute, options[i]), TW_OK);
		assert_true(tw_now(wheel) >= 0);
		assert_status(tw_set_timer(wheel, "far", 3, VALUE(1), TW_HOUR), TW_OK);
		assert_status(tw_flush(wheel), TW_OK);
		assert_int_equal(tw_pending(wheel), 1);
		assert_status(tw_advance(wheel, TW_SECOND), TW_INVALID);
		assert_status(tw_poll(wheel, NULL), TW_INVALID);
		tw_destroy(wheel);
	}
}

TEST(everywhere, options_are_copied)
{
	struct recorder *recorder = recorder_create();
	struct tw_options options = recorder_options(recorder, *state);
	char name[] = "copied";

	options.name = name;
	recorder_start(recorder, INTERVAL, 10, &options);
	memset(name, 'x', sizeof(name));
	memset(&options, 0, sizeof(options));
	set_timer(recorder, "any", 1, INTERVAL);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	recorder_close(recorder);
}

TEST(everywhere, name_of_any_length_is_fine)
{
	static const char *const lengths[] = {
		"", "x", "exactly 15 byte",
		"a name that is much longer than what a thread may have"};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct recorder *recorder =
			recorder_open_with(*state, 10, (struct tw_options){.name = lengths[i]});

		set_timer(recorder, "any", 1, INTERVAL);
		pass_ticks(recorder, 1);
		assert_executed_at(recorder, 1, INTERVAL);
		recorder_close(recorder);
	}
}

static void run_nothing(void *argument)
{
	fail_msg("a task runs");
}

static tw_duration next_hour(void *argument, tw_duration previous)
{
	return previous + TW_HOUR;
}

/* An answer is a call as it is written, and its status. */
struct answer {
	const char *call;
	enum tw_status status;
};

#define ANSWER(call)        \
	{                   \
#call, call \
	}

/* Checks the status of each. The last row has no call. */
static void assert_answers(const struct answer *answers, enum tw_status expected)
{
	for (; answers->call; answers++)
		if (answers->status != expected)
			fail_msg("not %s: %s", tw_status_name(expected), answers->call);
}

/* Makes each call for the wheel, perhaps NULL. Returns whether one has another answer than this. */
static bool one_answers_otherwise(const struct variant *variant, struct tw_wheel *wheel,
				  struct script *script, const char *expected, const char *if_works)
{
	char answer[SCRIPT_ANSWER];
	bool is_wrong = false;

	for (const struct script_call *call = wheel_calls; call->step; call++) {
		const char *right = call->trait == CALL_WORKS_STOPPED ? if_works : expected;

		/* An alarm has its own wheel. */
		if (!script_has_call(variant, call) ||
		    (!wheel && strncmp(call->step, "set_at", 6) == 0))
			continue;
		script_answer(script, wheel, call->step, answer);
		if (strcmp(answer, right) == 0)
			continue;
		print_error("%s: %s, not %s\n", call->step, answer, right);
		is_wrong = true;
	}
	return is_wrong;
}

TEST(once, calls_without_a_wheel_are_invalid)
{
	static struct tw_alarm never_made;
	struct script *script = script_open(&levels_inline, (struct tw_options){0});
	const struct answer answers[] = {
		ANSWER(tw_alarm_init(NULL, &never_made, run_nothing, NULL)),
		ANSWER(tw_alarm_set(NULL, 0)),
		ANSWER(tw_alarm_set_at(NULL, 0)),
		ANSWER(tw_alarm_stop(NULL)),
		ANSWER(tw_alarm_close(NULL, run_nothing)),
		{NULL, TW_INVALID},
	};

	assert_false(one_answers_otherwise(&levels_inline, NULL, script, "INVALID", "INVALID"));
	assert_answers(answers, TW_INVALID);
	assert_status(tw_alarm_destroy(NULL), TW_OK);
	assert_status(tw_alarm_destroy(&never_made), TW_OK);
	assert_int_equal(tw_pending(NULL), 0);
	assert_int_equal(tw_now(NULL), 0);
	assert_int_equal(tw_clock_of(NULL), TW_CLOCK_MONOTONIC);
	assert_int_equal(tw_drive_of(NULL), TW_DRIVE_THREAD);
	assert_int_equal(tw_interval_of(NULL), 0);
	assert_status(tw_destroy(NULL), TW_OK);
	script_close(script, "without a wheel", __FILE__, __LINE__);
}

RECORDED(everywhere, bad_arguments_are_refused_and_change_nothing)
{
	static const char key[TW_KEY_SIZE_MAX + 1];
	static const struct {
		const void *key;
		size_t size;
		tw_duration delay;
	} wrong[] = {{"key", 0, INTERVAL},
		     {NULL, 3, INTERVAL},
		     {NULL, 0, INTERVAL},
		     {key, sizeof(key), INTERVAL},
		     {key, SIZE_MAX, INTERVAL},
		     {"any", 3, 0},
		     {"any", 3, -1},
		     {"any", 3, -INTERVAL},
		     {"any", 3, INT64_MIN}};
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_timer timers[5] = {{77}, {77}, {77}, {77}, {77}};
	enum tw_missed skip = TW_MISSED_SKIP;
	struct tw_alarm alarm;
	void *value = recorder;
	const struct answer answers[] = {
		ANSWER(tw_take_timer(wheel, NULL, 3, &value)),
		ANSWER(tw_take_timer(wheel, "any", 0, &value)),
		ANSWER(tw_take_timer(wheel, "any", 3, NULL)),
		ANSWER(tw_timer_take(wheel, timers[0], NULL)),
		ANSWER(tw_after_func(wheel, 1, NULL, NULL, NULL)),
		ANSWER(tw_after_func(wheel, 1, NULL, NULL, &timers[0])),
		ANSWER(tw_every(wheel, 1, 0, skip, run_nothing, NULL, &timers[1])),
		ANSWER(tw_every(wheel, 1, -1, skip, run_nothing, NULL, NULL)),
		ANSWER(tw_every(wheel, 1, 1, skip, NULL, NULL, &timers[2])),
		ANSWER(tw_every(wheel, 1, 1, (enum tw_missed)3, run_nothing, NULL, NULL)),
		ANSWER(tw_every(wheel, 1, 1, (enum tw_missed) - 1, run_nothing, NULL, NULL)),
		ANSWER(tw_schedule_func(wheel, NULL, run_nothing, NULL, &timers[3])),
		ANSWER(tw_schedule_func(wheel, next_hour, NULL, NULL, &timers[4])),
		ANSWER(tw_alarm_init(wheel, &alarm, NULL, NULL)),
		ANSWER(tw_alarm_init(wheel, NULL, run_nothing, NULL)),
		ANSWER(tw_drain(wheel, NULL, recorder)),
		ANSWER(tw_advance(wheel, -1)),
		ANSWER(tw_advance(wheel, INT64_MIN)),
		ANSWER(tw_get_stats(wheel, NULL)),
		ANSWER(tw_each(wheel, NULL, recorder)),
		ANSWER(tw_write_metrics(wheel, NULL, recorder, NULL)),
		{NULL, TW_INVALID},
	};

	assert_answers(answers, TW_INVALID);
	set_timer(recorder, "any", 1, INTERVAL * 2);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const void *bad = wrong[i].key;
		size_t size = wrong[i].size;
		tw_duration delay = wrong[i].delay;

		assert_status(tw_set_timer(wheel, bad, size, VALUE(9), delay), TW_INVALID);
		assert_status(tw_add_timer(wheel, bad, size, VALUE(9), delay), TW_INVALID);
		assert_status(tw_move_timer(wheel, bad, size, delay), TW_INVALID);
		if (delay < INTERVAL)
			continue;
		assert_status(tw_remove_timer(wheel, bad, size), TW_INVALID);
		assert_status(tw_contains(wheel, bad, size, NULL), TW_INVALID);
	}
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(timers[i].id, 0);
	assert_ptr_equal(value, recorder);
	assert_int_equal(tw_now(wheel), 0);
	pass_ticks(recorder, 3);
	assert_executed_at(recorder, 1, INTERVAL * 2);
	assert_int_equal(event_count(recorder), 1);
}

/* Programs are compiled with it. */
TEST(once, size_of_an_alarm_stays)
{
	assert_int_equal(sizeof(struct tw_alarm), 104);
}

SCRIPT(with_owner, poll_is_for_wheels_without_an_owner_thread, "poll = INVALID")

RECORDED(everywhere, any_value_is_given_back_as_it_was)
{
	set_timer(recorder, "null", 0, INTERVAL);
	set_timer(recorder, "all ones", UINTPTR_MAX, INTERVAL * 2);
	pass_ticks(recorder, 2);
	assert_executed_at(recorder, 0, INTERVAL);
	assert_executed_at(recorder, UINTPTR_MAX, INTERVAL * 2);
}

RECORDED(everywhere, key_is_copied)
{
	char key[] = "a key of more than thirty-two bytes";

	assert_status(tw_set_timer(recorder->wheel, key, 4, VALUE(1), INTERVAL), TW_OK);
	assert_status(tw_set_timer(recorder->wheel, key, sizeof(key), VALUE(2), INTERVAL * 9),
		      TW_OK);
	assert_status(tw_move_timer(recorder->wheel, key, sizeof(key), INTERVAL), TW_OK);
	memset(key, 'x', sizeof(key));
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_executed_at(recorder, 2, INTERVAL);
	assert_int_equal(event_of(recorder, 1).key_size, 4);
	assert_memory_equal(event_of(recorder, 1).key, "a ke", 4);
	assert_int_equal(event_of(recorder, 2).key_size, sizeof(key));
	assert_memory_equal(event_of(recorder, 2).key, "a key of more than thirty-two by", 32);
}

RECORDED(everywhere, keys_may_hold_zero_bytes)
{
	struct tw_wheel *wheel = recorder->wheel;

	assert_status(tw_set_timer(wheel, "\0\0\0", 3, VALUE(1), INTERVAL), TW_OK);
	assert_status(tw_set_timer(wheel, "\0\0\0", 2, VALUE(2), INTERVAL), TW_OK);
	assert_status(tw_set_timer(wheel, "\0\0\1", 3, VALUE(3), INTERVAL), TW_OK);
	assert_status(tw_set_timer(wheel, "\0", 1, VALUE(4), INTERVAL), TW_OK);
	assert_status(tw_remove_timer(wheel, "\0\0", 2), TW_OK);
	pass_ticks(recorder, 1);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_released(recorder, 2, TW_REMOVED);
	assert_executed_at(recorder, 3, INTERVAL);
	assert_executed_at(recorder, 4, INTERVAL);
}

static const size_t key_sizes[] = {
	1,   2,   7,   8,   15,  16,  17,   23,   24,   25,    31,
	32,  33,  63,  64,  65,  95,  96,   97,   127,  128,   159,
	160, 161, 255, 256, 257, 999, 4095, 4096, 4097, 65534, TW_KEY_SIZE_MAX};
enum { KEY_SIZES = sizeof(key_sizes) / sizeof(key_sizes[0]) };

/* Gives two commands for each of two keys of each size that differ in the last byte. */
static void give_commands_for_keys_of_all_sizes(struct tw_wheel *wheel, char *key)
{
	for (size_t i = 0; i < KEY_SIZES; i++) {
		size_t size = key_sizes[i];

		key[size - 1] = 1;
		assert_status(tw_set_timer(wheel, key, size, VALUE(100 + i), INTERVAL), TW_OK);
		key[size - 1] = 2;
		assert_status(tw_set_timer(wheel, key, size, VALUE(200 + i), INTERVAL * 9), TW_OK);
		assert_status(tw_move_timer(wheel, key, size, INTERVAL * 2), TW_OK);
		key[size - 1] = 3;
		assert_status(tw_set_timer(wheel, key, size, VALUE(300 + i), INTERVAL), TW_OK);
		assert_status(tw_contains(wheel, key, size, NULL), TW_OK);
		assert_status(tw_remove_timer(wheel, key, size), TW_OK);
		assert_status(tw_contains(wheel, key, size, NULL), TW_NOT_FOUND);
		key[size - 1] = 0;
	}
}

RECORDED(everywhere, keys_of_all_sizes_work)
{
	char *key = calloc(1, TW_KEY_SIZE_MAX);

	assert_non_null(key);
	give_commands_for_keys_of_all_sizes(recorder->wheel, key);
	free(key);
	pass_ticks(recorder, 3);
	for (size_t i = 0; i < KEY_SIZES; i++) {
		assert_executed_at(recorder, 100 + i, INTERVAL);
		assert_executed_at(recorder, 200 + i, INTERVAL * 2);
		assert_released(recorder, 300 + i, TW_REMOVED);
		assert_int_equal(event_of(recorder, 100 + i).key_size, key_sizes[i]);
		assert_int_equal(event_of(recorder, 200 + i).key_size, key_sizes[i]);
	}
}

SCRIPT(everywhere, unknown_keys_are_left_alone,
       "move none 3; move none 0.5; remove none; left none = NOT_FOUND; pass 5; pending = 0")

SCRIPT(everywhere, contains_follows_set_fire_remove_and_drain,
       "set a 1; left a = any; pass 1 -> a@1; left a = NOT_FOUND;"
       "set a1 1; remove a; left a = NOT_FOUND; set a2 1; drain; left a = NOT_FOUND;"
       "idle -> a1:removed a2:drained")

SCRIPT(everywhere, destroy_releases_pending_timers,
       "set far 1h; set endless never; idle; set late 1h;"
       "destroy -> far:stopped endless:stopped late:stopped")

static void count_run(void *runs)
{
	atomic_fetch_add((atomic_int *)runs, 1);
}

RECORDED(everywhere, without_release_a_wheel_drops_its_values_silently, .release = no_release)
{
	atomic_int runs = 0;

	assert_status(tw_after_func(recorder->wheel, INTERVAL, count_run, &runs, NULL), TW_OK);
	assert_status(tw_after_func(recorder->wheel, TW_HOUR, count_run, &runs, NULL), TW_OK);
	set_timer(recorder, "replaced", 1, INTERVAL);
	set_timer(recorder, "replaced", 2, INTERVAL);
	set_timer(recorder, "removed", 3, INTERVAL);
	remove_timer(recorder, "removed");
	set_timer(recorder, "pending", 4, TW_HOUR);
	pass_ticks(recorder, 2);
	tw_destroy(recorder->wheel);
	recorder->wheel = NULL;
	assert_order(recorder, 2);
	assert_int_equal(atomic_load(&runs), 1);
}

/* Each key is set three times: it is replaced in its slot, then where it runs at once. */
RECORDED(everywhere, without_release_keys_of_all_sizes_are_replaced, .release = no_release)
{
	char *key = calloc(1, TW_KEY_SIZE_MAX);

	assert_non_null(key);
	advance(recorder, INTERVAL * 5);
	for (size_t i = 0; i < KEY_SIZES; i++) {
		struct tw_wheel *wheel = recorder->wheel;
		size_t size = key_sizes[i];

		key[size - 1] = 1;
		assert_status(tw_set_timer(wheel, key, size, VALUE(100 + i), INTERVAL * 9), TW_OK);
		assert_status(tw_set_timer(wheel, key, size, VALUE(200 + i), INTERVAL * 4), TW_OK);
		key[size - 1] = 2;
		assert_status(tw_set_timer(wheel, key, size, VALUE(300 + i), INTERVAL), TW_OK);
		assert_status(tw_set_timer(wheel, key, size, VALUE(400 + i), INTERVAL), TW_OK);
		key[size - 1] = 0;
	}
	free(key);
	pass_ticks(recorder, 10);
	for (size_t i = 0; i < KEY_SIZES; i++) {
		assert_executed_at(recorder, 200 + i, INTERVAL * 9);
		assert_int_equal(event_of(recorder, 200 + i).deadline, INTERVAL * 9);
		assert_int_equal(event_of(recorder, 400 + i).deadline, INTERVAL * 6);
		assert_int_equal(event_of(recorder, 400 + i).key_size, key_sizes[i]);
	}
	assert_int_equal(event_count(recorder), 2 * KEY_SIZES);
	assert_int_equal(stats_of_wheel(recorder->wheel).replaced, 2 * KEY_SIZES);
}

TEST(everywhere, stopped_wheel_answers_closed)
{
	struct script *script = script_open(*state, (struct tw_options){0});

	script_make(script, SCRIPT_STAGE "; stop -> a:stopped L1:stopped b:stopped p:stopped"
					 " q:stopped");
	assert_false(one_answers_otherwise(*state, script_wheel(script), script, "CLOSED", "OK"));
	assert_int_equal(stats_of_wheel(script_wheel(script)).stopped, 5);
	script_make(script, "pending = 0; idle");
	script_close(script, "stop", __FILE__, __LINE__);
}

RECORDED(everywhere, reserved_fields_of_statistics_become_0)
{
	struct tw_stats stats;

	memset(&stats, 0xff, sizeof(stats));
	assert_status(tw_get_stats(recorder->wheel, &stats), TW_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(stats.reserved[i], 0);
}

TEST(everywhere, in_a_forks_child_every_call_answers_closed_and_the_parent_goes_on)
{
	struct script *script;
	struct tw_wheel *wheel;
	int exit_status;
	pid_t child;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	script = script_open(*state, (struct tw_options){0});
	script_make(script, SCRIPT_STAGE);
	wheel = script_wheel(script);
	child = fork();
	assert_int_not_equal(child, -1);
	if (child == 0) {
		alarm(60);
		tw_pending(wheel);
		tw_now(wheel);
		if (one_answers_otherwise(*state, wheel, script, "CLOSED", "CLOSED"))
			_exit(1);
		script_make(script,
			    "close x = CLOSED; destroy x = CLOSED; events = 0; destroy = CLOSED");
		_exit(script_is_wrong(script));
	}
	assert_int_equal(waitpid(child, &exit_status, 0), child);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 0);
	script_make(script, "close x -> x:closed; set a1 1 -> a:replaced; pass 1 -> a1@1");
	script_close(script, "fork", __FILE__, __LINE__);
}
