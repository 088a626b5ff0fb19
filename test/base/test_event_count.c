/* SPDX-License-Identifier: MIT */
/* A sleep ends at its deadline or by a notification, by the condition variable and by the
 * descriptor. That no order of threads loses a wake-up is proof/event_count.c's. */
#include "support/test.h"

#include "support/blocked_call.h"

#include <poll.h>

#include "base/clock.h"
#include "base/event_count.h"

struct event {
	struct event_count count;
	bool boottime;
};

static void event_open(struct event *event, const bool *boottime)
{
	event->boottime = *boottime;
	assert_true(event_count_init(&event->count, *boottime));
	assert_int_equal(atomic_load(&event->count.state), EVENT_COUNT_AWAKE);
}

static tw_duration now_of(const struct event *event)
{
	struct timespec now;

	clock_gettime(event->boottime ? CLOCK_BOOTTIME : CLOCK_MONOTONIC, &now);
	return (tw_duration)now.tv_sec * TW_SECOND + now.tv_nsec;
}

static bool on_monotonic = false;
static bool on_boottime = true;

static struct event shared;

/* Replaces the clock in `state` by an event with this clock. */
static int set_up(void **state)
{
	event_open(&shared, *state);
	*state = &shared;
	return 0;
}

static int tear_down(void **state)
{
	event_count_destroy(&shared.count);
	return 0;
}

static const struct test_kind kind_clocks = {
	.open = set_up,
	.close = tear_down,
	.variants = TEST_VARIANTS({"monotonic", &on_monotonic}, {"boottime", &on_boottime}),
};

TEST(clocks, notified_between_the_announcement_and_the_sleep_it_does_not_sleep)
{
	struct event *event = *state;

	for (int i = 0; i < 1000; i++) {
		event_count_prepare(&event->count, EVENT_COUNT_SLEEPING, TW_FOREVER);
		event_count_notify(&event->count, EVENT_COUNT_SLEEPING);
		event_count_wait(&event->count, TW_FOREVER);
		assert_int_equal(atomic_load(&event->count.state), EVENT_COUNT_AWAKE);
	}
}

TEST(clocks, notification_of_one_awake_is_not_kept_for_its_next_sleep)
{
	struct event *event = *state;
	tw_duration deadline;

	event_count_notify(&event->count, EVENT_COUNT_NAPPING);
	event_count_notify(&event->count, EVENT_COUNT_SLEEPING);
	event_count_prepare(&event->count, EVENT_COUNT_SLEEPING, TW_FOREVER);
	event_count_cancel(&event->count);
	event_count_notify(&event->count, EVENT_COUNT_NAPPING);
	deadline = now_of(event) + 2 * TW_MILLISECOND;
	event_count_prepare(&event->count, EVENT_COUNT_SLEEPING, deadline);
	event_count_wait(&event->count, deadline);
	assert_true(now_of(event) >= deadline);
}

/* The clock's 0 is a deadline like any other, and ends any alarm set before. */
TEST(clocks, sleep_ends_at_its_deadline_and_not_before)
{
	static const tw_duration past[] = {0, -1, -TW_SECOND, -TW_FOREVER};
	struct event *event = *state;

	for (int i = 0; i < 14; i++) {
		tw_duration deadline =
			i < 4 ? past[i] : now_of(event) + (i - 6) * TW_MILLISECOND / 2;

		event_count_prepare(&event->count, EVENT_COUNT_SLEEPING, deadline);
		event_count_wait(&event->count, deadline);
		assert_true(now_of(event) >= deadline);
		assert_int_equal(atomic_load(&event->count.state), EVENT_COUNT_AWAKE);
	}
}

struct sleeper {
	struct event *event;
	enum event_count_state level;
	struct blocked_call call;
};

static void sleep_once(void *argument)
{
	struct sleeper *sleeper = argument;

	event_count_prepare(&sleeper->event->count, sleeper->level, TW_FOREVER);
	event_count_wait(&sleeper->event->count, TW_FOREVER);
}

static void sleeper_start(struct sleeper *sleeper, struct event *event,
			  enum event_count_state level)
{
	*sleeper = (struct sleeper){.event = event, .level = level};
	blocked_call_start(&sleeper->call, sleep_once, sleeper);
	WAIT_UNTIL(atomic_load(&event->count.state) == (int)level &&
		   blocked_call_is_asleep(&sleeper->call));
}

static void sleeper_end(struct sleeper *sleeper)
{
	blocked_call_end(&sleeper->call);
	assert_int_equal(atomic_load(&sleeper->event->count.state), EVENT_COUNT_AWAKE);
}

TEST(clocks, sleep_is_ended_by_all_notifications)
{
	struct event *event = *state;
	struct sleeper sleeper;

	sleeper_start(&sleeper, event, EVENT_COUNT_SLEEPING);
	event_count_notify(&event->count, EVENT_COUNT_SLEEPING);
	sleeper_end(&sleeper);
	sleeper_start(&sleeper, event, EVENT_COUNT_SLEEPING);
	event_count_notify(&event->count, EVENT_COUNT_NAPPING);
	sleeper_end(&sleeper);
}

TEST(clocks, nap_is_ended_only_by_a_notifier_for_naps)
{
	struct event *event = *state;
	struct sleeper sleeper;

	sleeper_start(&sleeper, event, EVENT_COUNT_NAPPING);
	for (int i = 0; i < 100; i++)
		event_count_notify(&event->count, EVENT_COUNT_SLEEPING);
	assert_int_equal(atomic_load(&event->count.state), EVENT_COUNT_NAPPING);
	assert_false(blocked_call_has_returned(&sleeper.call));
	event_count_notify(&event->count, EVENT_COUNT_NAPPING);
	sleeper_end(&sleeper);
}

static int descriptor_of(struct event *event)
{
	int descriptor = event_count_descriptor(&event->count,
						event->boottime ? CLOCK_BOOTTIME : CLOCK_MONOTONIC);

	assert_true(descriptor >= 0);
	return descriptor;
}

static bool is_readable(int descriptor, int milliseconds)
{
	struct pollfd polled = {.fd = descriptor, .events = POLLIN};

	return poll(&polled, 1, milliseconds) == 1;
}

TEST(clocks, descriptor_is_readable_from_the_notification_on)
{
	struct event *event = *state;
	int descriptor;

	descriptor = descriptor_of(event);
	assert_int_equal(descriptor_of(event), descriptor);
	assert_false(is_readable(descriptor, 0));
	for (int i = 0; i < 100; i++) {
		event_count_prepare(&event->count, EVENT_COUNT_SLEEPING,
				    i % 2 ? TW_FOREVER : now_of(event) + TW_HOUR);
		assert_false(is_readable(descriptor, 0));
		event_count_notify(&event->count, EVENT_COUNT_SLEEPING);
		event_count_notify(&event->count, EVENT_COUNT_SLEEPING);
		assert_true(is_readable(descriptor, -1));
		event_count_cancel(&event->count);
		event_count_prepare(&event->count, EVENT_COUNT_SLEEPING, TW_FOREVER);
		assert_false(is_readable(descriptor, 0));
		event_count_cancel(&event->count);
		event_count_cancel(&event->count);
		assert_int_equal(atomic_load(&event->count.state), EVENT_COUNT_AWAKE);
	}
}

/* The clock's 0 is a deadline like any other. */
TEST(clocks, descriptor_is_readable_from_the_deadline_on)
{
	static const tw_duration past[] = {1, 0, -1, -TW_SECOND, -TW_FOREVER};
	struct event *event = *state;
	int descriptor;

	descriptor = descriptor_of(event);
	for (int i = 0; i < 10; i++) {
		tw_duration deadline = i < 5 ? past[i] : now_of(event) + i * TW_MILLISECOND / 2;

		event_count_prepare(&event->count, EVENT_COUNT_SLEEPING, deadline);
		assert_true(is_readable(descriptor, 10000));
		assert_true(now_of(event) >= deadline);
		event_count_cancel(&event->count);
		event_count_prepare(&event->count, EVENT_COUNT_SLEEPING, TW_FOREVER);
		assert_false(is_readable(descriptor, 0));
		event_count_cancel(&event->count);
	}
}
