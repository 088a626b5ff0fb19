/* SPDX-License-Identifier: MIT */
/*
 * A slot holds a crowd of timers and few others are near: slots that come down take turns, a
 * repeating timer comes first, and the leftover timers of a tick come last.
 */
#include "support/test.h"

#include "wheel/wheel.h"

enum {
	STEP = 64,
	SLOTS = 16,
	SPAN = SLOTS * SLOTS, /* ticks in a slot of level 2 */
	CROWD = 10000
};

struct crowd {
	struct wheel *wheel;
	struct timer timers[CROWD + 1]; /* the last one lies beside the crowd */
	size_t left;
};

/* A deadline is its tick. */
static const struct ticks ticks = {.interval = 1};

static void crowd_open(struct crowd *crowd)
{
	crowd->wheel = wheel_create(SLOTS, &ticks, false, 1);
	assert_non_null(crowd->wheel);
	crowd->left = 0;
}

static void add(struct crowd *crowd, size_t number, uint64_t expiry)
{
	crowd->timers[number] = (struct timer){.deadline = (tw_duration)expiry};
	wheel_add(crowd->wheel, &crowd->timers[number]);
	crowd->left++;
}

static void add_crowd(struct crowd *crowd, uint64_t expiry)
{
	for (size_t i = 0; i < CROWD; i++)
		add(crowd, i, expiry);
}

static size_t step(struct crowd *crowd, struct timer **expired)
{
	size_t count = wheel_expire(crowd->wheel, expired, STEP);

	for (size_t i = 0; i < count; i++)
		assert_true(expired[i]->deadline <= (tw_duration)crowd->wheel->now);
	crowd->left -= count;
	return count;
}

/* Expires all: each timer comes out once, at its tick if that is not past. */
static void crowd_close(struct crowd *crowd)
{
	struct timer *expired[STEP];

	while (crowd->left > 0) {
		if (wheel_is_busy(crowd->wheel))
			(void)step(crowd, expired);
		else
			wheel_advance(crowd->wheel, wheel_next_tick(crowd->wheel));
	}
	assert_false(wheel_is_busy(crowd->wheel));
	assert_int_equal(wheel_check(crowd->wheel), 0);
	wheel_destroy(crowd->wheel);
}

/* Counts steps until the timer beside the crowd is in another slot. */
static int steps_until_moved(struct crowd *crowd)
{
	struct timer *expired[STEP];
	const struct list *link = &crowd->timers[CROWD].link;
	const struct list before = *link;
	int steps = 0;

	while (link->next == before.next && link->previous == before.previous) {
		assert_true(wheel_is_busy(crowd->wheel));
		assert_int_equal(step(crowd, expired), 0);
		steps++;
	}
	return steps;
}

TEST(once, crowd_of_one_slot_does_not_hold_up_the_next_slot)
{
	static struct crowd crowd;

	crowd_open(&crowd);
	add_crowd(&crowd, 4 * SPAN + 100);
	add(&crowd, CROWD, 5 * SPAN + 100);
	wheel_advance(crowd.wheel, 3 * SPAN);
	wheel_advance(crowd.wheel, 4 * SPAN);
	(void)wheel_check(crowd.wheel);
	assert_true(steps_until_moved(&crowd) <= 2);
	crowd_close(&crowd);
}

TEST(once, timer_set_first_into_the_slot_of_a_crowd_is_looked_at_soon)
{
	static struct crowd crowd;

	crowd_open(&crowd);
	add(&crowd, CROWD, 4 * SPAN + 20);
	add_crowd(&crowd, 4 * SPAN + 100);
	wheel_advance(crowd.wheel, 3 * SPAN);
	assert_int_equal(steps_until_moved(&crowd), 1);
	crowd_close(&crowd);
}

/* This happens in the slot where it is set, and in those that it comes down to. */
TEST(once, timer_that_repeats_is_the_first_of_its_tick)
{
	static struct crowd crowd;
	struct timer *expired[STEP];
	uint64_t tick = 4 * SPAN + 100;

	crowd_open(&crowd);
	add_crowd(&crowd, tick);
	crowd.timers[CROWD] =
		(struct timer){.deadline = (tw_duration)tick, .class = TIMER_PERIODIC};
	wheel_add(crowd.wheel, &crowd.timers[CROWD]);
	crowd.left++;
	while (crowd.wheel->now < tick) {
		wheel_advance(crowd.wheel, wheel_next_tick(crowd.wheel));
		while (crowd.wheel->now < tick && wheel_is_busy(crowd.wheel))
			assert_int_equal(step(&crowd, expired), 0);
	}
	assert_int_equal(step(&crowd, expired), STEP);
	assert_ptr_equal(expired[0], &crowd.timers[CROWD]);
	crowd_close(&crowd);
}

/* Timer i and no other comes next, late or not. */
static void assert_next_is(struct crowd *crowd, size_t i, bool late)
{
	struct timer *expired[STEP];

	assert_int_equal(step(crowd, expired), 1);
	assert_ptr_equal(expired[0], &crowd->timers[i]);
	assert_int_equal(crowd->wheel->expired_late, late);
}

TEST(once, leftover_timers_of_a_tick_come_after_all_that_are_newly_due)
{
	static struct crowd crowd;
	struct timer *expired[STEP];

	crowd_open(&crowd);
	add_crowd(&crowd, 1);
	wheel_advance(crowd.wheel, 1);
	assert_false(list_is_empty(&crowd.wheel->due));
	assert_int_equal(step(&crowd, expired), STEP);
	assert_false(crowd.wheel->expired_late);
	wheel_put_off(crowd.wheel);
	assert_true(list_is_empty(&crowd.wheel->due));
	add(&crowd, CROWD, 0);
	assert_false(list_is_empty(&crowd.wheel->due));
	assert_next_is(&crowd, CROWD, false);
	assert_int_equal(step(&crowd, expired), STEP);
	assert_true(crowd.wheel->expired_late);
	crowd_close(&crowd);
}

TEST(once, timer_refiled_too_late_is_late_and_one_set_in_the_past_is_not)
{
	static struct crowd crowd;

	crowd_open(&crowd);
	add(&crowd, 0, 4 * SPAN + 100);
	wheel_advance(crowd.wheel, 3 * SPAN);
	wheel_advance(crowd.wheel, 5 * SPAN);
	add(&crowd, 1, 4 * SPAN);
	assert_next_is(&crowd, 1, false);
	assert_next_is(&crowd, 0, true);
	crowd_close(&crowd);
}

/* More slots have come up than there are lists for them. */
TEST(once, slots_that_come_up_one_after_the_other_lose_nothing)
{
	static struct crowd crowd;

	crowd_open(&crowd);
	for (size_t slots = 0; slots < 3 * WHEEL_COMING; slots++) {
		uint64_t now = crowd.wheel->now;

		for (size_t i = 0; i < 10; i++)
			add(&crowd, slots * 10 + i, now + 3 * SPAN + i);
		wheel_advance(crowd.wheel, wheel_next_tick(crowd.wheel) < now + SPAN
						   ? wheel_next_tick(crowd.wheel)
						   : now + SPAN);
		(void)wheel_check(crowd.wheel);
	}
	crowd_close(&crowd);
}
