/* SPDX-License-Identifier: MIT */
/* A wheel is driven from an event loop: tw_fd becomes readable when there is something to do. */
#include "support/test.h"

#include "support/script.h"
#include "support/stats.h"

#include <poll.h>
#include <sys/epoll.h>

#include <sys/timerfd.h>

#include <timingwheel/timingwheel.h>

#include "runtime/ask.h"

enum { LONG_MS = 10000 };

struct loop {
	struct tw_wheel *wheel;
	int descriptor;
	int fired;
	int inner_loops;
	tw_duration least_lateness;
};

static void count_fired(void *context, const struct tw_task *task)
{
	struct loop *loop = context;

	loop->fired++;
	if (tw_now(loop->wheel) < task->deadline)
		loop->least_lateness = -1;
}

static void loop_open(struct loop *loop, enum tw_clock clock)
{
	struct tw_options options = {.context = loop,
				     .clock = clock,
				     .drive = TW_DRIVE_CALLER,
				     .workers = TW_WORKERS_INLINE};

	*loop = (struct loop){0};
	assert_int_equal(tw_create(&loop->wheel, TW_MILLISECOND, 64, count_fired, &options), TW_OK);
	loop->descriptor = tw_fd(loop->wheel);
	assert_true(loop->descriptor >= 0);
}

/* LOOP(name, clock) { ... } is a case with an open `loop` on a wheel of that clock. */
#define LOOP(name, clock) TEST_GIVEN(once, name, struct loop *loop, loop_give(clock, name))

static void loop_give(enum tw_clock clock, void (*run)(struct loop *))
{
	static struct loop loop;

	loop_open(&loop, clock);
	run(&loop);
	tw_destroy(loop.wheel);
}

static int is_readable(const struct loop *loop, int wait_ms)
{
	struct pollfd descriptor = {.fd = loop->descriptor, .events = POLLIN};

	return poll(&descriptor, 1, wait_ms);
}

static void set_key(struct loop *loop, const char *key, tw_duration delay)
{
	assert_int_equal(tw_set_timer(loop->wheel, key, 1, NULL, delay), TW_OK);
}

SCRIPT(inline, command_makes_the_descriptor_readable_and_poll_makes_it_quiet,
       "rings = quiet; set a 1000; rings; poll = any; rings = quiet")

/* The task that polls runs in a call other than tw_poll. */
SCRIPT(inline, descriptor_rings_after_an_inner_loop_of_any_drive,
       "rings = quiet; in p: poll = INVALID; after p 0; idle -> p@0; poll = never; rings = quiet;"
       "in q: poll = INVALID; after q 0; idle -> q@0; set a 1; rings; poll = 1; rings = quiet")

SCRIPT(inline, poll_of_a_stopped_wheel_answers_closed_also_in_a_task,
       "in p: stop, poll = CLOSED; after p 0; poll = CLOSED -> p@0")

SCRIPT(inline, command_given_before_the_descriptor_was_asked_for_is_not_missed, "set a 2; rings")

SCRIPT(inline, stop_and_reset_of_a_handle_make_it_readable,
       "rings = quiet; after p 1h; poll = any; reset p 60000; rings; poll = any;"
       "rings = quiet; stop p; rings")

SCRIPT(inline, alarm_stopped_and_set_again_makes_it_readable_only_where_it_is_sooner,
       "rings = quiet; alarm x; set x 1000; rings; poll = any; stop x; set x 1000; rings = quiet;"
       "stop x; set x 2000; rings = quiet; stop x; set x 9000; rings = quiet; stop x; set x 999;"
       "rings; destroy x")

SCRIPT(inline, stops_and_earlier_deadlines_make_it_readable_and_later_ones_do_not,
       "rings = quiet; after a 1000; after b 1000; after c 1000; poll = any; rings = quiet;"
       "reset a 1h; reset b 1h; reset c 1h; reset a 2h; rings = quiet; reset c 60000; rings;"
       "poll = any; rings = quiet; reset a 1; rings; poll = any; rings = quiet; stop a; stop b;"
       "stop c; rings; poll = any; pending = 0")

/* Its next run is for the next turn. */
SCRIPT(inline, descriptor_rings_for_what_a_task_has_set_for_now,
       "rings = quiet; in p 1: reset p 0; in p 2: reset p 0; in p 3: reset p 0; after p 0; rings;"
       "poll = 0; events = 1; rings; poll = 0; events = 2; rings; poll = 0; events = 3;"
       "stop p -> p@0 p@0 p@0")

/* A call that sets a timer rings: its deadline may be the first. So does a command before a
 * question. */
SCRIPT(inline, question_does_not_make_it_readable,
       "rings = quiet; set k 1h; poll = any; rings = quiet; left k = any; take k = k;"
       "rings = quiet; add n 1000; rings; poll = any; rings = quiet; set m 1000; left m = any;"
       "rings")

/* An inner loop, such as a dialog's, has the program's descriptors. */
static void run_inner_loop(void *argument)
{
	struct loop *loop = argument;

	set_key(loop, "a", TW_MILLISECOND);
	for (int rings = 0; is_readable(loop, 20); rings++) {
		assert_true(rings < 3);
		assert_status(tw_poll(loop->wheel, NULL), TW_INVALID);
	}
	loop->inner_loops++;
}

LOOP(loop_inside_a_task_sleeps_until_the_task_returns, TW_CLOCK_MONOTONIC)
{
	assert_status(tw_after_func(loop->wheel, 0, run_inner_loop, loop, NULL), TW_OK);
	assert_int_equal(is_readable(loop, LONG_MS), 1);
	assert_status(tw_poll(loop->wheel, NULL), TW_OK);
	assert_int_equal(loop->inner_loops, 1);
	assert_int_equal(loop->fired, 0);
	while (loop->fired == 0) {
		assert_int_equal(is_readable(loop, LONG_MS), 1);
		assert_status(tw_poll(loop->wheel, NULL), TW_OK);
	}
}

/* Returns the lowest free descriptor. */
static int next_descriptor(void)
{
	int descriptor = dup(0);

	assert_true(descriptor >= 0);
	close(descriptor);
	return descriptor;
}

TEST(once, descriptor_is_closed_with_the_wheel)
{
	struct loop loop;
	int before = next_descriptor();

	loop_open(&loop, TW_CLOCK_MONOTONIC);
	assert_int_equal(loop.descriptor, before);
	tw_destroy(loop.wheel);
	assert_int_equal(next_descriptor(), before);
}

static void drain_function(void *context, const struct tw_task *task)
{
	++*(int *)context;
}

/* A poll hands over fewer timers. */
TEST(once, descriptor_rings_until_a_large_drain_is_over)
{
	enum { MANY = 100000 };
	struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = 1};
	struct loop loop = {0};
	int polls = 0;

	assert_int_equal(tw_create(&loop.wheel, TW_MILLISECOND, 64, ignore_task, &options), TW_OK);
	loop.descriptor = tw_fd(loop.wheel);
	for (int key = 0; key < MANY; key++)
		assert_int_equal(tw_set_timer(loop.wheel, &key, sizeof(key), NULL, TW_SECOND),
				 TW_OK);
	assert_int_equal(tw_drain(loop.wheel, ignore_task, NULL), TW_OK);
	assert_int_equal(tw_flush(loop.wheel), TW_OK);
	for (; stats_of_wheel(loop.wheel).drained < MANY; polls++) {
		assert_int_equal(is_readable(&loop, 0), 1);
		assert_int_equal(tw_poll(loop.wheel, NULL), TW_OK);
	}
	assert_true(polls > 1);
	tw_destroy(loop.wheel);
}

/* The calls before it do less at once: the descriptor rings for the rest. */
LOOP(descriptor_asked_for_again_still_rings_for_work_left, TW_CLOCK_MONOTONIC)
{
	enum { COUNT = 200000 };
	int drained = 0;

	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(tw_set_timer(loop->wheel, &i, sizeof(i), NULL, TW_HOUR), TW_OK);
		if (i % 1000 == 0)
			assert_int_equal(tw_poll(loop->wheel, NULL), TW_OK);
	}
	assert_int_equal(tw_drain(loop->wheel, drain_function, &drained), TW_OK);
	assert_int_equal(tw_flush(loop->wheel), TW_OK);
	while (drained < COUNT) {
		assert_int_equal(tw_fd(loop->wheel), loop->descriptor);
		assert_int_equal(is_readable(loop, LONG_MS), 1);
		assert_int_equal(tw_poll(loop->wheel, NULL), TW_OK);
	}
}

TEST(once, deadline_makes_the_descriptor_readable_in_epoll)
{
	enum tw_clock clocks[] = {TW_CLOCK_MONOTONIC, TW_CLOCK_BOOTTIME};

	for (int i = 0; i < 2; i++) {
		struct epoll_event event = {.events = EPOLLIN};
		int epoll = epoll_create1(EPOLL_CLOEXEC);
		struct loop loop;
		int turns = 0;

		loop_open(&loop, clocks[i]);
		assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, loop.descriptor, &event), 0);
		for (int key = 0; key < 5; key++)
			set_key(&loop, &"abcde"[key], (key + 1) * 10 * TW_MILLISECOND);
		for (; loop.fired < 5; turns++) {
			/* It returns -1 where the process was stopped meanwhile. */
			assert_int_not_equal(epoll_wait(epoll, &event, 1, LONG_MS), 0);
			assert_int_equal(tw_poll(loop.wheel, NULL), TW_OK);
		}
		assert_int_equal(loop.least_lateness, 0);
		/* The loop turns once for the commands and once or twice a deadline: it doesn't
		 * spin. */
		assert_true(turns <= 20);
		close(epoll);
		tw_destroy(loop.wheel);
	}
}

static void *set_from_elsewhere(void *argument)
{
	struct loop *loop = argument;

	may_fail(tw_set_timer(loop->wheel, "x", 1, NULL, TW_MILLISECOND));
	return NULL;
}

LOOP(command_of_another_thread_ends_the_sleep, TW_CLOCK_MONOTONIC)
{
	pthread_t thread;

	assert_int_equal(tw_poll(loop->wheel, NULL), TW_OK);
	assert_int_equal(pthread_create(&thread, NULL, set_from_elsewhere, loop), 0);
	while (loop->fired == 0) {
		assert_int_equal(is_readable(loop, LONG_MS), 1);
		assert_int_equal(tw_poll(loop->wheel, NULL), TW_OK);
	}
	pthread_join(thread, NULL);
}

static void ignore_run(void *argument)
{
}

/* Stops wait for the owner in several places, and it looks into each. */
TEST(once, stop_given_before_the_descriptor_was_asked_for_is_not_missed)
{
	enum { TIMERS = 64 };
	struct tw_options options = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};

	for (int i = 0; i < TIMERS; i++) {
		struct tw_timer timers[TIMERS];
		struct loop loop = {0};

		assert_int_equal(tw_create(&loop.wheel, TW_MILLISECOND, 64, count_fired, &options),
				 TW_OK);
		for (int k = 0; k < TIMERS; k++)
			assert_int_equal(
				tw_after_func(loop.wheel, TW_HOUR, ignore_run, NULL, &timers[k]),
				TW_OK);
		assert_int_equal(tw_poll(loop.wheel, NULL), TW_OK);
		assert_int_equal(tw_timer_stop(loop.wheel, timers[i]), TW_OK);
		loop.descriptor = tw_fd(loop.wheel);
		assert_int_equal(is_readable(&loop, 0), 1);
		assert_int_equal(tw_poll(loop.wheel, NULL), TW_OK);
		assert_int_equal(is_readable(&loop, 0), 0);
		assert_int_equal(tw_pending(loop.wheel), TIMERS - 1);
		tw_destroy(loop.wheel);
	}
}

TEST(once, wheel_with_an_owner_thread_has_no_descriptor)
{
	struct tw_wheel *wheel;

	assert_int_equal(tw_create(&wheel, TW_MILLISECOND, 64, count_fired, NULL), TW_OK);
	errno = 0;
	assert_int_equal(tw_fd(wheel), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(tw_fd(NULL), -1);
	tw_destroy(wheel);
}

static void count_run(void *argument)
{
	++*(int *)argument;
}

LOOP(poll_of_some_runs_no_more_than_that, TW_CLOCK_MANUAL)
{
	enum { TIMERS = 5000 };
	tw_duration until = 7;
	int runs = 0;
	int polls = 0;

	for (int i = 0; i < TIMERS; i++)
		assert_int_equal(tw_after_func(loop->wheel, 0, count_run, &runs, NULL), TW_OK);
	assert_int_equal(tw_poll_some(loop->wheel, 0, &until), TW_INVALID);
	assert_int_equal(tw_poll_some(NULL, 1, &until), TW_INVALID);
	assert_int_equal(until, 7);
	for (until = 0; until == 0; polls++) {
		int before = runs;
		size_t most = polls % 2 == 0 ? 1 : 700;

		assert_int_equal(tw_poll_some(loop->wheel, most, &until), TW_OK);
		assert_in_range(runs - before, 0, (int)most);
		assert_int_equal(is_readable(loop, 0), until == 0);
		assert_in_range(polls, 0, 100);
	}
	assert_int_equal(runs, TIMERS);
	assert_true(until == TW_FOREVER);
	/* A poll without a bound follows one with a bound, which is gone. */
	for (int i = 0; i < TIMERS; i++)
		assert_int_equal(tw_after_func(loop->wheel, 0, count_run, &runs, NULL), TW_OK);
	assert_int_equal(tw_poll_some(loop->wheel, 3, &until), TW_OK);
	assert_int_equal(until, 0);
	assert_int_equal(tw_poll(loop->wheel, &until), TW_OK);
	assert_int_equal(runs, 2 * TIMERS);
	assert_true(until == TW_FOREVER);
}

LOOP(late_ring_does_not_leave_it_readable, TW_CLOCK_MONOTONIC)
{
	const struct itimerspec at_once = {.it_value.tv_nsec = 1};
	struct event_count *event;

	event = &loop->wheel->owner.event;
	set_key(loop, "a", TW_HOUR);
	assert_int_equal(tw_poll(loop->wheel, NULL), TW_OK);
	assert_int_equal(is_readable(loop, 0), 0);
	/* A notifier was held up between its exchange and this. */
	assert_int_equal(timerfd_settime(loop->descriptor, 0, &at_once, NULL), 0);
	atomic_store(&event->is_rung, true);
	assert_int_equal(is_readable(loop, LONG_MS), 1);
	assert_int_equal(tw_poll(loop->wheel, NULL), TW_OK);
	assert_int_equal(is_readable(loop, 0), 0);
}
