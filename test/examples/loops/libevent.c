/* SPDX-License-Identifier: MIT */
/* This program drives a wheel from a loop of libevent. timers.h says how, in general. */
#include "timers.h"

#include <event2/event.h>

static void start(evutil_socket_t descriptor, short what, void *unused)
{
	(void)descriptor;
	(void)what;
	(void)unused;
	set_timers();
}

static void descriptor_is_readable(evutil_socket_t descriptor, short what, void *base)
{
	(void)descriptor;
	(void)what;
	tw_poll(wheel, NULL);
	if (is_done)
		event_base_loopbreak(base);
}

static void wait_at_descriptor(struct event_base *base)
{
	struct event *readable =
		event_new(base, tw_fd(wheel), EV_READ | EV_PERSIST, descriptor_is_readable, base);

	check(readable && event_add(readable, NULL) == 0, "event_add");
	event_base_dispatch(base);
	event_free(readable);
}

static void wake_up(evutil_socket_t descriptor, short what, void *unused)
{
	(void)descriptor;
	(void)what;
	(void)unused;
}

static void set_wake(struct event *wake, tw_duration left)
{
	tw_duration microseconds = left / TW_MICROSECOND + (left % TW_MICROSECOND > 0);
	struct timeval time = {.tv_sec = microseconds / 1000000, .tv_usec = microseconds % 1000000};

	if (left == TW_FOREVER)
		evtimer_del(wake);
	else
		check(evtimer_add(wake, &time) == 0, "evtimer_add");
}

/* libevent calls nothing before it sleeps, so the program makes the turns itself. */
static void sleep_until_deadlines(struct event_base *base)
{
	struct event *wake = evtimer_new(base, wake_up, NULL);
	tw_duration left;

	check(wake, "evtimer_new");
	while (tw_poll(wheel, &left) == TW_OK && !is_done) {
		set_wake(wake, left);
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
	}
	event_free(wake);
}

static void run(bool with_worker, void (*run_loop)(struct event_base *base))
{
	struct event_base *base = event_base_new();

	check(base && event_base_once(base, -1, EV_TIMEOUT, start, NULL, NULL) == 0, "event_base");
	open_wheel(with_worker);
	run_loop(base);
	close_wheel();
	event_base_free(base);
}

int main(void)
{
	run(true, wait_at_descriptor);
	run(false, sleep_until_deadlines);
	libevent_global_shutdown();
	return 0;
}
