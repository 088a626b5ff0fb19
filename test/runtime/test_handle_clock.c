/* SPDX-License-Identifier: MIT */
/* Handles on the real clock are never early and do not drift, and reach a sleeping owner. */
#include "support/test.h"

#include "support/recorder.h"

#define TICK TW_MILLISECOND

enum { REPEATS = 50 };

/* A task notes when it ran and was due. */
struct diary {
	struct tw_wheel *wheel;
	atomic_size_t count;
	tw_duration times[REPEATS];
	tw_duration deadlines[REPEATS];
};

static void note_time(void *argument)
{
	struct diary *diary = argument;
	size_t count = atomic_load(&diary->count);

	if (count < REPEATS) {
		diary->times[count] = tw_now(diary->wheel);
		diary->deadlines[count] = tw_current_task()->deadline;
	}
	atomic_store(&diary->count, count + 1);
}

static void diary_open(struct diary *diary, const struct variant *variant)
{
	struct tw_options options = {.drive = variant->drive, .workers = variant->workers};

	*diary = (struct diary){.count = 0};
	assert_status(tw_create(&diary->wheel, TICK, 512, ignore_task, &options), TW_OK);
}

TEST(with_owner, periodic_timer_is_neither_early_nor_drifts)
{
	tw_duration first = 3 * TICK;
	tw_duration period = 2 * TICK + TICK / 3;
	tw_duration start;
	static struct diary diary;
	struct tw_timer timer;

	diary_open(&diary, *state);
	start = tw_now(diary.wheel);
	assert_status(
		tw_every(diary.wheel, first, period, TW_MISSED_BURST, note_time, &diary, &timer),
		TW_OK);
	WAIT_UNTIL(atomic_load(&diary.count) >= REPEATS);
	assert_true(tw_timer_stop_wait(diary.wheel, timer) != TW_NOT_FOUND);
	assert_true(diary.deadlines[0] >= start + first);
	for (int i = 0; i < REPEATS; i++) {
		assert_int_equal(diary.deadlines[i] - diary.deadlines[0], i * period);
		assert_true(diary.times[i] >= diary.deadlines[i]);
	}
	tw_destroy(diary.wheel);
}

TEST(with_owner, reset_reaches_a_sleeping_owner)
{
	static struct diary diary;
	struct tw_timer timer;
	tw_duration start;

	diary_open(&diary, *state);
	assert_status(tw_after_func(diary.wheel, TW_HOUR, note_time, &diary, &timer), TW_OK);
	for (int i = 0; i < 3; i++) {
		wait_for(20 * TICK);
		start = tw_now(diary.wheel);
		assert_status(tw_timer_reset(diary.wheel, timer, 5 * TICK), TW_OK);
		WAIT_UNTIL(atomic_load(&diary.count) == (size_t)i + 1);
		assert_true(diary.times[i] - start >= 5 * TICK);
		assert_status(tw_wait_idle(diary.wheel), TW_OK);
		assert_status(tw_timer_reset(diary.wheel, timer, TICK), TW_NOT_FOUND);
		assert_status(tw_after_func(diary.wheel, TW_HOUR, note_time, &diary, &timer),
			      TW_OK);
	}
	tw_destroy(diary.wheel);
}

TEST(with_owner, stop_reaches_a_sleeping_owner)
{
	static struct diary diary;
	struct tw_timer timer;

	diary_open(&diary, *state);
	for (int i = 0; i < 3; i++) {
		assert_status(tw_after_func(diary.wheel, TW_HOUR, note_time, &diary, &timer),
			      TW_OK);
		assert_status(tw_flush(diary.wheel), TW_OK);
		assert_int_equal(tw_pending(diary.wheel), 1);
		wait_for(10 * TICK);
		assert_status(tw_timer_stop(diary.wheel, timer), TW_OK);
		/* No call asks the owner: it gives the memory back by itself. */
		WAIT_UNTIL(tw_pending(diary.wheel) == 0);
	}
	tw_destroy(diary.wheel);
}
