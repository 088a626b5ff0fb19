/* SPDX-License-Identifier: MIT */
/*
 * Memory that a storm of timers took goes back to the system as they end: no call is needed for
 * that, no time has to pass, and no turn of the owner is wanted. The remaining timers are
 * unchanged, and old ids stay invalid. A wheel that has not seen a storm has little memory.
 *
 * The bounds leave room for what else the process maps. Under a sanitizer, where resident memory
 * means little, the same storms run without them.
 */
#include "support/test.h"

#include "support/gate.h"
#include "support/memory.h"

#include <limits.h>

#include <timingwheel/timingwheel.h>

enum { TIMERS = TEST_SHARE_OF(200000), KEY_SIZE = 16 };

static const long allowance = 4L << 20;
/* The wheel keeps some pages of each size. */
static const uint64_t kept = 3u << 19;

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
	size_t key_size;
	long before;
	long peak;
};

static struct storm storm_open(struct tw_options options, bool uses_handles)
{
	struct storm storm = {.uses_handles = uses_handles, .key_size = KEY_SIZE};

	options.clock = TW_CLOCK_MANUAL;
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
	assert_in_range(taken, TIMERS * 80L, TIMERS * 500L + allowance);
	return storm->before + taken / 100 * percent + allowance;
}

static const struct tw_options drives[] = {
	{.workers = 0},
	{.workers = TW_WORKERS_INLINE},
	{.drive = TW_DRIVE_CALLER},
	{.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE},
};
enum { DRIVES = sizeof(drives) / sizeof(drives[0]) };

/* A pool's workers give back what they have when they become idle. */
static void storm_rest(const struct storm *storm, long percent)
{
	long most = storm_most(storm, percent);

	WAIT_UNTIL(resident_memory() <= most);
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
	uint64_t needed = TIMERS * 80u;
	struct tw_stats stats;

	assert_int_equal(storm_stats(&storm).memory_in_use, 0);
	(void)storm_fill(&storm, TIMERS, 0);
	stats = storm_stats(&storm);
	assert_in_range(stats.memory_in_use, needed, needed + needed / 50);
	assert_in_range(stats.memory, stats.memory_in_use, needed + needed / 10 + (4u << 20));
	storm_pass(&storm);
	/* Workers give back what they have when they are idle. */
	WAIT_UNTIL(storm_stats(&storm).memory <= stats.memory / 20 + kept);
	WAIT_UNTIL(storm_stats(&storm).memory_in_use <= needed / 100);
	storm_close(&storm);
}

TEST(once, memory_comes_back_with_each_drive_and_that_of_those_left_when_they_go)
{
	for (int i = 0; i < 2 * DRIVES; i++) {
		struct storm storm = storm_open(drives[i / 2], i % 2 == 1);

		for (int round = 0; round < 2; round++) {
			/* Each of those left may have a page of its own. */
			size_t pages = storm_fill(&storm, TIMERS, 100) + 16;

			storm_pass(&storm);
			WAIT_UNTIL(storm_stats(&storm).memory <= pages * 4096 * 8 / 7 + kept);
			storm_rest(&storm, storm.uses_handles ? 45 : 35);
			assert_int_equal(tw_advance(storm.wheel, TW_HOUR), TW_OK);
			assert_int_equal(tw_wait_idle(storm.wheel), TW_OK);
			assert_int_equal(tw_pending(storm.wheel), 0);
			assert_int_equal(atomic_exchange(&runs, 0), TIMERS);
			storm_rest(&storm, 10);
			WAIT_UNTIL(storm_stats(&storm).memory <= TIMERS * 128u / 10 + kept);
		}
		storm_close(&storm);
	}
}

TEST(once, busy_wheel_gives_back_what_its_load_does_not_need)
{
	struct storm storm = storm_open(drives[DRIVES - 1], false);
	uint64_t peak;

	(void)storm_fill(&storm, TIMERS, 0);
	peak = storm_stats(&storm).memory;
	storm_pass(&storm);
	if (peak == 0) {
		storm_close(&storm);
		TEST_SKIP("the memory is malloc's");
	}
	for (int second = 0; second < 5; second++) {
		(void)storm_fill(&storm, TIMERS / 10, 0);
		storm_pass(&storm);
		assert_in_range(storm_stats(&storm).memory, 0, peak / 4 + kept);
	}
	storm_close(&storm);
}

TEST(once, wheel_without_timers_wants_no_turn_for_its_memory)
{
	struct tw_options options = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct tw_wheel *wheel;
	tw_duration until_next;

	assert_int_equal(tw_create(&wheel, TW_MILLISECOND, 10, count_run, &options), TW_OK);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(tw_set_timer(wheel, &i, sizeof(i), NULL, 1), TW_OK);
	do
		assert_int_equal(tw_poll(wheel, &until_next), TW_OK);
	while (tw_pending(wheel) > 0);
	assert_int_equal(tw_poll(wheel, &until_next), TW_OK);
	assert_int_equal(until_next, TW_FOREVER);
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
		WAIT_UNTIL(storm_stats(&storm).memory <= TIMERS * 80u / 5 + kept);
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
