/* SPDX-License-Identifier: MIT */
/*
 * Memory that a storm of timers took goes back to the system: without any call some seconds after
 * the storm, by the wheel's clock, which is a manual one here; never while a recurring load will
 * need it again. The remaining timers are unchanged, and old ids stay invalid.
 * A wheel that has not seen a storm has little memory.
 *
 * The bounds leave room for what else the process maps. Under a sanitizer, where resident memory
 * means little, the same storms run without them.
 */
#include "support/test.h"

#include "support/gate.h"
#include "support/memory.h"

#include <limits.h>
#include <poll.h>
#include <sys/resource.h>

#include <timingwheel/timingwheel.h>

enum { TIMERS = TEST_SHARE_OF(200000), KEY_SIZE = 16 };

static const long allowance = 4L << 20;
/* The wheel ignores less than a mebibyte, and what lies on its pages. */
static const uint64_t not_worth_a_pass = 5u << 18;

static atomic_size_t runs;

static void count_run(void *context, const struct tw_task *task)
{
	atomic_fetch_add(&runs, 1);
}

static void count_handle(void *argument)
{
	atomic_fetch_add(&runs, 1);
}

/* A wheel is filled and emptied, and the process's memory is noted. */
struct storm {
	struct tw_wheel *wheel;
	struct random random;
	struct tw_timer *timers; /* ids of handles */
	bool uses_handles;
	bool has_workers;
	size_t key_size;
	long before;
	long peak;
};

static struct storm storm_open(struct tw_options options, bool uses_handles)
{
	struct storm storm = {.uses_handles = uses_handles, .key_size = KEY_SIZE};

	options.clock = TW_CLOCK_MANUAL;
	storm.has_workers = options.workers != TW_WORKERS_INLINE;
	storm.random = random_from(seed_choose(), 1);
	storm.timers = calloc(TIMERS, sizeof(*storm.timers));
	assert_non_null(storm.timers);
	memset(storm.timers, 1, TIMERS * sizeof(*storm.timers));
	storm.before = resident_memory();
	assert_int_equal(tw_create(&storm.wheel, TW_MILLISECOND, 512, count_run, &options), TW_OK);
	atomic_store(&runs, 0);
	return storm;
}

static void storm_close(struct storm *storm)
{
	tw_destroy(storm->wheel);
	free(storm->timers);
}

/* Sets timers due within a second, but one in `survivors_one_in` due after an hour. Returns the
 * number of the latter. */
static size_t storm_fill(struct storm *storm, size_t count, uint64_t survivors_one_in)
{
	unsigned char key[256] = {0};
	size_t survivors = 0;

	for (size_t i = 0; i < count; i++) {
		bool survives =
			survivors_one_in > 0 && random_once_in(&storm->random, survivors_one_in);
		tw_duration delay =
			survives ? TW_HOUR : random_between(&storm->random, 1, TW_SECOND);

		survivors += survives;
		memcpy(key, &i, sizeof(i));
		assert_int_equal(
			storm->uses_handles
				? tw_after_func(storm->wheel, delay, count_handle, NULL,
						&storm->timers[i])
				: tw_set_timer(storm->wheel, key, storm->key_size, NULL, delay),
			TW_OK);
	}
	assert_int_equal(tw_flush(storm->wheel), TW_OK);
	storm->peak = resident_memory();
	return survivors;
}

static void storm_pass(struct storm *storm)
{
	assert_int_equal(tw_advance(storm->wheel, TW_SECOND), TW_OK);
	assert_int_equal(tw_wait_idle(storm->wheel), TW_OK);
}

static struct tw_stats storm_stats(const struct storm *storm)
{
	struct tw_stats stats;

	assert_int_equal(tw_get_stats(storm->wheel, &stats), TW_OK);
	return stats;
}

/* Returns the most memory that may be left, with `percent` % of what the process took for the
 * storm. */
static long storm_most(const struct storm *storm, long percent)
{
	long taken = storm->peak - storm->before;

	if (TEST_HAS_SANITIZER)
		return LONG_MAX;
	assert_in_range(taken, TIMERS * 80L, TIMERS * 500L);
	return storm->before + taken / 100 * percent + allowance;
}

static void storm_expect_left(const struct storm *storm, long percent)
{
	assert_in_range(resident_memory(), 0, storm_most(storm, percent));
}

static const struct tw_options drives[] = {
	{.workers = 0},
	{.workers = TW_WORKERS_INLINE},
	{.drive = TW_DRIVE_CALLER},
	{.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE},
};
enum { DRIVES = sizeof(drives) / sizeof(drives[0]) };

static void quiet(const struct storm *storm)
{
	for (int second = 0; second < 10; second++)
		assert_int_equal(tw_advance(storm->wheel, TW_SECOND), TW_OK);
}

/*
 * Makes at least one turn; with a thread the wheel goes on by itself. A pool's workers give back
 * what they have when they become idle, which is not a quiet moment: each look moves the wheel's
 * clock by a second.
 */
static bool storm_has_at_most(const struct storm *storm, uint64_t memory)
{
	if (storm->has_workers)
		assert_int_equal(tw_advance(storm->wheel, TW_SECOND), TW_OK);
	assert_int_equal(tw_flush(storm->wheel), TW_OK);
	return storm_stats(storm).memory <= memory;
}

/* Waits through a quiet time until no more than that is left. */
static void storm_rest(const struct storm *storm, long percent)
{
	long most = storm_most(storm, percent);

	quiet(storm);
	WAIT_UNTIL(storm_has_at_most(storm, UINT64_MAX) && resident_memory() <= most);
}

/* It has four threads, and the last wheel's may still be starting. */
TEST(once, idle_wheel_has_less_than_192_KiB)
{
	enum { WHEELS = 8 };
	struct tw_wheel *wheels[WHEELS];
	long before = 0;

	/* The first one brings memory that the process takes once. */
	for (int i = 0; i < WHEELS; i++) {
		if (i == 1)
			before = resident_memory();
		assert_int_equal(tw_create(&wheels[i], TW_MILLISECOND, 512, count_run, NULL),
				 TW_OK);
		assert_int_equal(tw_wait_idle(wheels[i]), TW_OK);
	}
	if (!TEST_HAS_SANITIZER)
		assert_in_range(resident_memory() - before, 0, (WHEELS - 1) * (192L << 10));
	for (int i = 0; i < WHEELS; i++)
		tw_destroy(wheels[i]);
}

/* ---- After a storm ---- */

static void storm_and_rest(bool uses_handles, uint64_t survivors_one_in, long percent)
{
	struct storm storm = storm_open((struct tw_options){0}, uses_handles);
	size_t survivors = 0;

	for (int round = 0; round < 3; round++) {
		survivors = storm_fill(&storm, TIMERS, survivors_one_in);
		storm_pass(&storm);
		storm_rest(&storm, percent);
		assert_int_equal(tw_pending(storm.wheel), survivors);
		assert_int_equal(tw_advance(storm.wheel, TW_HOUR), TW_OK);
		assert_int_equal(tw_wait_idle(storm.wheel), TW_OK);
		assert_int_equal(atomic_exchange(&runs, 0), TIMERS);
		storm_rest(&storm, 10);
	}
	storm_close(&storm);
}

TEST(once, what_keyed_timers_had_comes_back)
{
	storm_and_rest(false, 0, 10);
}

TEST(once, what_handles_had_comes_back)
{
	storm_and_rest(true, 0, 10);
}

TEST(once, keyed_timers_that_are_left_keep_a_third)
{
	storm_and_rest(false, 100, 35);
}

TEST(once, handles_that_are_left_keep_less_than_a_half)
{
	storm_and_rest(true, 100, 45);
}

TEST(once, keys_of_many_lengths_in_turn_leave_nothing_behind)
{
	static const size_t sizes[] = {16, 60, 130, 8, 200, 250, 100};
	struct storm storm = storm_open((struct tw_options){0}, false);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		storm.key_size = sizes[i];
		(void)storm_fill(&storm, TIMERS, 0);
		storm_pass(&storm);
		storm_rest(&storm, 10);
	}
	storm_close(&storm);
}

TEST(once, statistics_report_memory)
{
	struct storm storm = storm_open((struct tw_options){0}, true);
	uint64_t needed = TIMERS * 88u;
	struct tw_stats stats;

	assert_int_equal(storm_stats(&storm).memory_in_use, 0);
	(void)storm_fill(&storm, TIMERS, 0);
	stats = storm_stats(&storm);
	assert_in_range(stats.memory_in_use, needed, needed + needed / 50);
	assert_in_range(stats.memory, stats.memory_in_use, needed + needed / 10 + (4u << 20));
	storm_pass(&storm);
	/* Workers give back what they have when they are idle. */
	quiet(&storm);
	WAIT_UNTIL(storm_has_at_most(&storm, stats.memory / 20 + not_worth_a_pass));
	assert_in_range(storm_stats(&storm).memory_in_use, 0, needed / 100);
	storm_close(&storm);
}

TEST(once, quiet_wheel_gives_back_within_ten_seconds)
{
	for (int i = 0; i < 2 * DRIVES; i++) {
		struct storm storm = storm_open(drives[i / 2], i % 2 == 1);
		uint64_t a_hundredth = i % 2 == 1 ? 88u * 45 : 128u * 35;
		uint64_t most = TIMERS / 100 * a_hundredth + not_worth_a_pass;

		/* A storm and a quiet time come twice. Of handles one in 100 is left after both. */
		for (int round = 0; round < 2; round++) {
			(void)storm_fill(&storm, TIMERS, i % 2 == 1 ? 200 : 100);
			storm_pass(&storm);
			quiet(&storm);
			/* Its steps take turns, and a flush may make only one. */
			WAIT_UNTIL(storm_has_at_most(&storm, most));
			storm_expect_left(&storm, 45);
		}
		storm_close(&storm);
	}
}

TEST(once, memory_of_those_that_were_left_comes_back_when_they_go)
{
	for (int i = 0; i < 2; i++) {
		struct storm storm = storm_open(drives[DRIVES - 1], i == 1);
		uint64_t all;

		(void)storm_fill(&storm, TIMERS, 100);
		all = storm_stats(&storm).memory;
		storm_pass(&storm);
		quiet(&storm);
		/* Each turn does a step. */
		for (int turn = 0; turn < 2000; turn++)
			assert_int_equal(tw_flush(storm.wheel), TW_OK);
		assert_in_range(storm_stats(&storm).memory, 0, all / 100 * 45 + not_worth_a_pass);
		assert_int_equal(tw_advance(storm.wheel, TW_HOUR), TW_OK);
		assert_int_equal(tw_pending(storm.wheel), 0);
		quiet(&storm);
		WAIT_UNTIL(storm_has_at_most(&storm, all / 10 + not_worth_a_pass));
		storm_close(&storm);
	}
}

/* The descriptor rings until all memory has gone back. */
TEST(once, loop_that_waits_for_the_descriptor_gives_back_too)
{
	struct storm storm = storm_open(drives[DRIVES - 1], true);
	struct pollfd ready = {.fd = tw_fd(storm.wheel), .events = POLLIN};
	uint64_t all;
	uint64_t left;
	size_t polls = 0;

	assert_true(ready.fd >= 0);
	(void)storm_fill(&storm, TIMERS, 0);
	all = storm_stats(&storm).memory;
	storm_pass(&storm);
	quiet(&storm);
	assert_int_equal(tw_poll(storm.wheel, NULL), TW_OK);
	for (left = storm_stats(&storm).memory; left > all / 10 + (512u << 10); polls++) {
		assert_true(polls < 10000 && poll(&ready, 1, 0) == 1);
		assert_int_equal(tw_poll(storm.wheel, NULL), TW_OK);
		left = storm_stats(&storm).memory;
	}
	assert_true(TEST_HAS_SANITIZER || polls > 10);
	storm_close(&storm);
}

static long page_faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

TEST(once, load_that_comes_and_goes_keeps_its_pages)
{
	struct storm storm = storm_open((struct tw_options){0}, false);
	uint64_t most = 0;
	long faults = 0;

	for (int tooth = 0; tooth < 30; tooth++) {
		uint64_t memory;

		(void)storm_fill(&storm, TIMERS / 4, 0);
		storm_pass(&storm);
		assert_int_equal(tw_advance(storm.wheel, 3 * TW_SECOND), TW_OK);
		memory = storm_stats(&storm).memory;
		assert_true(TEST_HAS_SANITIZER || memory >= most - most / 8);
		most = memory > most ? memory : most;
		if (tooth == 4)
			faults = page_faults();
	}
	/* A tooth has some 1,560 pages. */
	if (!TEST_HAS_SANITIZER)
		assert_in_range(page_faults() - faults, 0, 3000);
	storm_close(&storm);
}

TEST(once, busy_wheel_gives_back_what_its_load_does_not_need)
{
	struct storm storm = storm_open(drives[DRIVES - 1], false);
	uint64_t peak;

	(void)storm_fill(&storm, TIMERS, 0);
	storm_pass(&storm);
	peak = storm_stats(&storm).memory;
	if (peak == 0) {
		storm_close(&storm);
		TEST_SKIP("the memory is malloc's");
	}
	for (int second = 0; second < 5; second++) {
		(void)storm_fill(&storm, TIMERS / 10, 0);
		storm_pass(&storm);
		assert_true(storm_stats(&storm).memory >= peak - peak / 10);
	}
	for (int second = 0; second < 10; second++) {
		(void)storm_fill(&storm, TIMERS / 10, 0);
		storm_pass(&storm);
		for (int turn = 0; turn < 200; turn++)
			assert_int_equal(tw_flush(storm.wheel), TW_OK);
		/* The load keeps its memory between two of its storms. */
		assert_true(storm_stats(&storm).memory >= peak / 10);
	}
	assert_true(storm_stats(&storm).memory <= peak / 4 + (2u << 20));
	storm_close(&storm);
}

TEST(once, small_wheel_wakes_for_no_memory)
{
	struct tw_options options = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct tw_wheel *wheel;
	tw_duration until_next;

	assert_int_equal(tw_create(&wheel, TW_MILLISECOND, 10, count_run, &options), TW_OK);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(tw_set_timer(wheel, &i, sizeof(i), NULL, 1), TW_OK);
	do
		assert_int_equal(tw_poll(wheel, &until_next), TW_OK);
	while (tw_pending(wheel) > 0);
	assert_int_equal(tw_poll(wheel, &until_next), TW_OK);
	assert_int_equal(until_next, TW_FOREVER);
	tw_destroy(wheel);
}

TEST(once, caller_learns_when_memory_needs_a_turn)
{
	struct tw_options options = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct tw_wheel *wheel;
	tw_duration until_next;

	if (SANITIZER_ADDRESS)
		TEST_SKIP("the address sanitizer changes what is allocated");
	assert_int_equal(tw_create(&wheel, TW_MILLISECOND, 10, count_run, &options), TW_OK);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(tw_set_timer(wheel, &i, sizeof(i), NULL, 1), TW_OK);
	do
		assert_int_equal(tw_poll(wheel, &until_next), TW_OK);
	while (tw_pending(wheel) > 0);
	assert_int_equal(tw_poll(wheel, &until_next), TW_OK);
	assert_in_range(until_next, 0, 7 * TW_SECOND);
	tw_destroy(wheel);
}

/* ---- Old ids ---- */

static int compare_ids(const void *a, const void *b)
{
	uint64_t left = ((const struct tw_timer *)a)->id;
	uint64_t right = ((const struct tw_timer *)b)->id;

	return (left > right) - (left < right);
}

TEST(once, ids_from_before_memory_came_back_stay_invalid)
{
	enum { ROUNDS = 3, ALL = ROUNDS * TIMERS };
	struct storm storm = storm_open((struct tw_options){0}, true);
	struct tw_timer *all = calloc(ALL, sizeof(*all));
	uint64_t memory;

	assert_non_null(all);
	for (size_t round = 0; round < ROUNDS; round++) {
		/* Some of them were used more often than others. */
		(void)storm_fill(&storm, TIMERS / 10 * (round + 1), 0);
		storm_pass(&storm);
		(void)storm_fill(&storm, TIMERS, 0);
		memcpy(all + round * TIMERS, storm.timers, TIMERS * sizeof(*all));
		if (round > 0)
			for (size_t i = 0; i < round * TIMERS; i++)
				assert_int_equal(tw_timer_stop(storm.wheel, all[i]), TW_NOT_FOUND);
		assert_int_equal(tw_pending(storm.wheel), TIMERS);
		storm_pass(&storm);
		quiet(&storm);
		WAIT_UNTIL(storm_has_at_most(&storm, TIMERS * 88u / 5 + not_worth_a_pass));
	}
	memory = storm_stats(&storm).memory;
	for (size_t i = 0; i < ALL; i++) {
		assert_int_equal(tw_timer_stop(storm.wheel, all[i]), TW_NOT_FOUND);
		assert_int_equal(tw_timer_reset(storm.wheel, all[i], TW_SECOND), TW_NOT_FOUND);
		assert_int_equal(tw_timer_stop_wait(storm.wheel, all[i]), TW_NOT_FOUND);
	}
	assert_true(storm_stats(&storm).memory <= memory);
	qsort(all, ALL, sizeof(*all), compare_ids);
	assert_true(all[0].id > 0);
	for (size_t i = 1; i < ALL; i++)
		assert_true(all[i].id > all[i - 1].id);
	storm_close(&storm);
	free(all);
}

TEST(once, drained_and_stopped_wheels_give_back_too)
{
	for (int i = 0; i < 2; i++) {
		struct storm storm = storm_open((struct tw_options){0}, i == 1);

		(void)storm_fill(&storm, TIMERS, 0);
		assert_int_equal(tw_drain(storm.wheel, count_run, NULL), TW_OK);
		assert_int_equal(tw_wait_idle(storm.wheel), TW_OK);
		assert_int_equal(atomic_load(&runs), TIMERS);
		storm_rest(&storm, 10);
		storm_close(&storm);
	}
}
