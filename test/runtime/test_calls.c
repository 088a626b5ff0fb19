/* SPDX-License-Identifier: MIT */
/* Each public call is tested with bad arguments, for keys, after a stop, and after a fork. */
#include "support/test.h"

#include "support/recorder.h"
#include "support/stats.h"

#include <timingwheel/cron.h>

TEST(once, every_status_has_its_name_and_a_text)
{
	assert_int_equal(TW_OK, 0);
	assert_string_equal(tw_status_name(TW_OK), "TW_OK");
	assert_string_equal(tw_status_name(TW_INVALID), "TW_INVALID");
	assert_string_equal(tw_status_name(TW_CLOSED), "TW_CLOSED");
	assert_string_equal(tw_status_name(TW_FULL), "TW_FULL");
	assert_string_equal(tw_status_name(TW_NO_MEMORY), "TW_NO_MEMORY");
	assert_string_equal(tw_status_name(TW_NOT_FOUND), "TW_NOT_FOUND");
	assert_string_equal(tw_status_name(TW_RUNNING), "TW_RUNNING");
	assert_string_equal(tw_status_name(TW_EXISTS), "TW_EXISTS");
	assert_string_equal(tw_status_name(TW_SYSTEM), "TW_SYSTEM");
#define ASSERT_TEXT(name, text) assert_string_equal(tw_status_text(name), text);
	TW_STATUS_LIST(ASSERT_TEXT)
#undef ASSERT_TEXT
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
	assert_status(tw_create(NULL, INTERVAL, 10, record_execute, NULL), TW_INVALID);
}

TEST(once, create_refuses_options_out_of_range)
{
	struct tw_options layout = {.layout = (enum tw_layout)(TW_LAYOUT_ROUNDS + 1)};
	struct tw_options clock = {.clock = (enum tw_clock)(TW_CLOCK_MANUAL + 1)};
	struct tw_options drive = {.drive = (enum tw_drive)(TW_DRIVE_CALLER + 1)};
	struct tw_options when_full = {.when_full = (enum tw_when_full)(TW_WHEN_FULL_FAIL + 1)};
	struct tw_options too_few_workers = {.workers = TW_WORKERS_INLINE - 1};
	struct tw_options too_many_workers = {.workers = TW_WORKERS_MAX + 1};
	struct tw_options too_many_at_most = {.max_workers = TW_WORKERS_MAX + 1};
	struct tw_options fewer_at_most = {.workers = 3, .max_workers = 2};
	struct tw_options negative_at_most = {.max_workers = -1};
	struct tw_options inline_at_most = {.workers = TW_WORKERS_INLINE, .max_workers = 1};
	struct tw_options negative_patience = {.patience_for_worker = -1};

	assert_create_refuses(INTERVAL, 10, record_execute, &layout);
	assert_create_refuses(INTERVAL, 10, record_execute, &clock);
	assert_create_refuses(INTERVAL, 10, record_execute, &drive);
	assert_create_refuses(INTERVAL, 10, record_execute, &when_full);
	assert_create_refuses(INTERVAL, 10, record_execute, &too_few_workers);
	assert_create_refuses(INTERVAL, 10, record_execute, &too_many_workers);
	assert_create_refuses(INTERVAL, 10, record_execute, &too_many_at_most);
	assert_create_refuses(INTERVAL, 10, record_execute, &fewer_at_most);
	assert_create_refuses(INTERVAL, 10, record_execute, &negative_at_most);
	assert_create_refuses(INTERVAL, 10, record_execute, &inline_at_most);
	assert_create_refuses(INTERVAL, 10, record_execute, &negative_patience);
}

TEST(once, create_refuses_options_with_a_reserved_field)
{
	for (int i = 0; i < 4; i++) {
		struct tw_options options = {0};

		options.reserved[i] = 1;
		assert_create_refuses(INTERVAL, 10, record_execute, &options);
	}
}

TEST(inline, create_refuses_sizes_beyond_the_limits)
{
	const struct variant *variant = *state;
	struct tw_options options = {.layout = variant->layout};
	struct tw_options long_queue = {.queue_capacity = TW_QUEUE_CAPACITY_MAX + 1};
	struct tw_options longest_queue = {.queue_capacity = SIZE_MAX};

	assert_create_refuses(INTERVAL, TW_SLOTS_MAX + 1, record_execute, &options);
	assert_create_refuses(INTERVAL, SIZE_MAX, record_execute, &options);
	assert_create_refuses(INTERVAL, 10, record_execute, &long_queue);
	assert_create_refuses(INTERVAL, 10, record_execute, &longest_queue);
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

static int visit_nothing(void *context, const struct tw_pending_timer *timer)
{
	fail_msg("a timer is reported");
	return 0;
}

static void write_nothing(void *context, const char *text, size_t size)
{
	fail_msg("text is written");
}

static void run_nothing(void *argument)
{
	fail_msg("a task runs");
}

static tw_duration next_hour(void *argument, tw_duration previous)
{
	return previous + TW_HOUR;
}

static const struct tw_cron *hourly(void)
{
	static struct tw_cron *cron;

	if (!cron)
		assert_status(tw_cron_create(&cron, "@hourly", NULL, NULL), TW_OK);
	return cron;
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
enum { ANSWERS_MOST = 40 };

/* Returns the first call with another answer, or NULL. The last row has no call. */
static const char *other_answer(const struct answer *answers, enum tw_status expected)
{
	while (answers->call && answers->status == expected)
		answers++;
	return answers->call;
}

static void assert_answers(const struct answer *answers, enum tw_status expected)
{
	const char *other = other_answer(answers, expected);

	if (other)
		fail_msg("not %s: %s", tw_status_name(expected), other);
}

/* These calls end with the wheel. Their arguments are right, but perhaps for wheel and alarm. */
static void make_calls(struct tw_wheel *wheel, struct tw_alarm *alarm,
		       struct answer answers[ANSWERS_MOST])
{
	static char long_key[100];
	struct tw_timer timers[4] = {{77}, {77}, {77}, {77}};
	struct tw_timer timer = {1};
	struct tw_alarm other;
	tw_duration left = 77;
	void *value = NULL;
	const struct answer made[ANSWERS_MOST] = {
		ANSWER(tw_set_timer(wheel, "any", 3, VALUE(9), INTERVAL)),
		ANSWER(tw_set_timer(wheel, long_key, 100, VALUE(9), INTERVAL)),
		ANSWER(tw_add_timer(wheel, "any", 3, VALUE(9), INTERVAL)),
		ANSWER(tw_move_timer(wheel, "any", 3, INTERVAL)),
		ANSWER(tw_move_timer(wheel, long_key, 100, INTERVAL)),
		ANSWER(tw_remove_timer(wheel, "any", 3)),
		ANSWER(tw_take_timer(wheel, "any", 3, &value)),
		ANSWER(tw_contains(wheel, "any", 3, &left)),
		ANSWER(tw_drain(wheel, record_drain, NULL)),
		ANSWER(tw_each(wheel, visit_nothing, NULL)),
		ANSWER(tw_after_func(wheel, 0, run_nothing, NULL, NULL)),
		ANSWER(tw_after_func(wheel, 0, run_nothing, NULL, &timers[0])),
		ANSWER(tw_every(wheel, 0, 1, TW_MISSED_SKIP, run_nothing, NULL, NULL)),
		ANSWER(tw_every(wheel, 0, 1, TW_MISSED_SKIP, run_nothing, NULL, &timers[1])),
		ANSWER(tw_schedule_func(wheel, next_hour, run_nothing, NULL, NULL)),
		ANSWER(tw_schedule_func(wheel, next_hour, run_nothing, NULL, &timers[2])),
		ANSWER(tw_schedule_cron(wheel, hourly(), run_nothing, NULL, &timers[3])),
		ANSWER(tw_timer_stop(wheel, timer)),
		ANSWER(tw_timer_stop_wait(wheel, timer)),
		ANSWER(tw_timer_take(wheel, timer, &value)),
		ANSWER(tw_timer_reset(wheel, timer, INTERVAL)),
		ANSWER(tw_timer_remaining(wheel, timer, &left)),
		ANSWER(tw_alarm_init(wheel, &other, run_nothing, NULL)),
		ANSWER(tw_alarm_set(alarm, 0)),
		ANSWER(tw_alarm_set_at(alarm, 0)),
		ANSWER(tw_alarm_stop(alarm)),
		ANSWER(tw_flush(wheel)),
		ANSWER(tw_advance(wheel, 0)),
		ANSWER(tw_advance(wheel, INTERVAL * 100)),
		ANSWER(tw_stop(wheel)),
	};

	memcpy(answers, made, sizeof(made));
	for (int i = 0; i < 4; i++)
		assert_int_equal(timers[i].id, 0);
	assert_null(value);
	assert_int_equal(left, 77);
}

/* These calls also have an answer when the wheel is stopped. */
static void make_calls_about_it(struct tw_wheel *wheel, struct answer answers[ANSWERS_MOST])
{
	struct tw_stats stats;
	const struct answer made[ANSWERS_MOST] = {
		ANSWER(tw_wait_idle(wheel)),
		ANSWER(tw_wait_idle_until(wheel, TW_FOREVER)),
		ANSWER(tw_get_stats(wheel, &stats)),
	};

	memcpy(answers, made, sizeof(made));
}

TEST(once, calls_without_a_wheel_are_invalid)
{
	static struct tw_alarm never_made;
	struct answer answers[ANSWERS_MOST];

	make_calls(NULL, NULL, answers);
	assert_answers(answers, TW_INVALID);
	make_calls_about_it(NULL, answers);
	assert_answers(answers, TW_INVALID);
	assert_status(tw_poll(NULL, NULL), TW_INVALID);
	assert_status(tw_write_metrics(NULL, write_nothing, NULL, NULL), TW_INVALID);
	assert_status(tw_alarm_close(NULL, run_nothing), TW_INVALID);
	assert_status(tw_alarm_destroy(NULL), TW_OK);
	assert_status(tw_alarm_destroy(&never_made), TW_OK);
	assert_int_equal(tw_pending(NULL), 0);
	assert_int_equal(tw_now(NULL), 0);
	assert_int_equal(tw_clock_of(NULL), TW_CLOCK_MONOTONIC);
	assert_int_equal(tw_interval_of(NULL), 0);
	assert_status(tw_destroy(NULL), TW_OK);
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

TEST(once, poll_is_for_wheels_without_an_owner_thread)
{
	struct recorder *driven = recorder_open(&levels_inline, 10);
	struct recorder *owned = recorder_open(&levels_threads, 10);
	tw_duration until_next;

	assert_status(tw_poll(driven->wheel, NULL), TW_OK);
	assert_status(tw_poll(driven->wheel, &until_next), TW_OK);
	assert_status(tw_poll(owned->wheel, &until_next), TW_INVALID);
	recorder_close(driven);
	recorder_close(owned);
}

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

RECORDED(everywhere, unknown_keys_are_left_alone)
{
	tw_duration remaining = 77;

	move_timer(recorder, "none", INTERVAL * 3);
	move_timer(recorder, "none", INTERVAL / 2);
	remove_timer(recorder, "none");
	assert_status(tw_contains(recorder->wheel, "none", 4, &remaining), TW_NOT_FOUND);
	pass_ticks(recorder, 5);
	assert_int_equal(event_count(recorder), 0);
	assert_int_equal(tw_pending(recorder->wheel), 0);
}

RECORDED(everywhere, contains_follows_set_fire_remove_and_drain)
{
	struct tw_wheel *wheel = recorder->wheel;

	set_timer(recorder, "any", 1, INTERVAL);
	assert_status(tw_contains(wheel, "any", 3, NULL), TW_OK);
	pass_ticks(recorder, 1);
	assert_status(tw_contains(wheel, "any", 3, NULL), TW_NOT_FOUND);
	set_timer(recorder, "any", 2, INTERVAL);
	remove_timer(recorder, "any");
	assert_status(tw_contains(wheel, "any", 3, NULL), TW_NOT_FOUND);
	set_timer(recorder, "any", 3, INTERVAL);
	assert_status(tw_drain(wheel, record_drain, recorder), TW_OK);
	assert_status(tw_contains(wheel, "any", 3, NULL), TW_NOT_FOUND);
}

RECORDED(everywhere, destroy_releases_pending_timers)
{
	set_timer(recorder, "far", 1, TW_HOUR);
	set_timer(recorder, "never", 2, TW_FOREVER);
	settle(recorder);
	set_timer(recorder, "not applied yet", 3, TW_HOUR);
	tw_destroy(recorder->wheel);
	recorder->wheel = NULL;
	assert_released(recorder, 1, TW_STOPPED);
	assert_released(recorder, 2, TW_STOPPED);
	assert_released(recorder, 3, TW_STOPPED);
}

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

RECORDED(everywhere, stopped_wheel_answers_closed)
{
	struct tw_wheel *wheel = recorder->wheel;
	struct answer answers[ANSWERS_MOST];
	struct tw_alarm alarm;

	assert_status(tw_alarm_init(wheel, &alarm, run_nothing, NULL), TW_OK);
	set_timer(recorder, "any", 1, INTERVAL);
	assert_status(tw_stop(wheel), TW_OK);
	make_calls(wheel, &alarm, answers);
	assert_answers(answers, TW_CLOSED);
	if (recorder->variant->drive == TW_DRIVE_CALLER)
		assert_status(tw_poll(wheel, NULL), TW_CLOSED);
	make_calls_about_it(wheel, answers);
	assert_answers(answers, TW_OK);
	assert_int_equal(stats_of_wheel(wheel).stopped, 1);
	assert_int_equal(tw_pending(wheel), 0);
	assert_released(recorder, 1, TW_STOPPED);
	assert_int_equal(event_count(recorder), 1);
	tw_alarm_destroy(&alarm);
}

RECORDED(everywhere, reserved_fields_of_statistics_become_0)
{
	struct tw_stats stats;

	memset(&stats, 0xff, sizeof(stats));
	assert_status(tw_get_stats(recorder->wheel, &stats), TW_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(stats.reserved[i], 0);
}

/* Runs in a fork's child. Says whether a call answers otherwise than it should, and which. */
static bool child_is_wrong(struct recorder *recorder, struct tw_alarm *alarm)
{
	struct answer answers[2 * ANSWERS_MOST];
	struct tw_wheel *wheel = recorder->wheel;
	const char *other[2];

	make_calls(wheel, alarm, answers);
	make_calls_about_it(wheel, answers + ANSWERS_MOST);
	for (int i = 0; i < 2; i++) {
		other[i] = other_answer(answers + i * ANSWERS_MOST, TW_CLOSED);
		if (other[i])
			print_error("not TW_CLOSED: %s\n", other[i]);
	}
	tw_pending(wheel);
	tw_now(wheel);
	return other[0] || other[1] || tw_alarm_close(alarm, run_nothing) != TW_CLOSED ||
	       tw_alarm_destroy(alarm) != TW_CLOSED ||
	       (recorder->variant->drive == TW_DRIVE_CALLER && tw_poll(wheel, NULL) != TW_CLOSED) ||
	       tw_write_metrics(wheel, write_nothing, NULL, NULL) != TW_CLOSED ||
	       tw_destroy(wheel) != TW_CLOSED || event_count(recorder) != 0;
}

TEST(everywhere, in_a_forks_child_every_call_answers_closed_and_the_parent_goes_on)
{
	atomic_int closings = 0;
	struct recorder *recorder;
	struct tw_alarm timer;
	int exit_status;
	pid_t child;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	recorder = recorder_open(*state, 10);
	assert_status(tw_alarm_init(recorder->wheel, &timer, run_nothing, &closings), TW_OK);
	set_timer(recorder, "any", 1, INTERVAL);
	set_timer(recorder, "other", 2, INTERVAL * 2);
	flush_wheel(recorder);
	child = fork();
	assert_int_not_equal(child, -1);
	if (child == 0) {
		alarm(60);
		_exit(child_is_wrong(recorder, &timer));
	}
	assert_int_equal(waitpid(child, &exit_status, 0), child);
	assert_true(WIFEXITED(exit_status));
	assert_int_equal(WEXITSTATUS(exit_status), 0);
	assert_status(tw_alarm_close(&timer, count_run), TW_OK);
	pass_ticks(recorder, 2);
	assert_int_equal(atomic_load(&closings), 1);
	assert_executed_at(recorder, 1, INTERVAL);
	assert_executed_at(recorder, 2, INTERVAL * 2);
	recorder_close(recorder);
}
