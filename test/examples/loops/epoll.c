/* SPDX-License-Identifier: MIT */
/* This program drives a wheel from a loop of epoll. timers.h says how, in general. */
#include "timers.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { EVENTS = 64 };

/* Waits for events, and does what those of others than the wheel want. Returns whether one is the
 * wheel's, which comes last: a timer may free what another event of the batch concerns. */
static bool run_events(int epoll, int timeout)
{
	struct epoll_event events[EVENTS];
	int count = epoll_wait(epoll, events, EVENTS, timeout); /* -1 after a signal */
	bool is_due = false;

	for (int i = 0; i < count; i++)
		if (events[i].data.ptr == wheel)
			is_due = true;
		else
			set_timers();
	return is_due;
}

static void wait_at_descriptor(int epoll)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = wheel};

	check(epoll_ctl(epoll, EPOLL_CTL_ADD, tw_fd(wheel), &event) == 0, "epoll_ctl");
	while (!is_done)
		if (run_events(epoll, -1))
			tw_poll(wheel, NULL);
	epoll_ctl(epoll, EPOLL_CTL_DEL, tw_fd(wheel), NULL);
}

static void sleep_until_deadlines(int epoll)
{
	tw_duration left;

	while (tw_poll(wheel, &left) == TW_OK && !is_done)
		run_events(epoll, milliseconds(left));
}

static void run(bool with_worker, void (*run_loop)(int epoll))
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
	int start = eventfd(1, EFD_CLOEXEC);
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	check(epoll_ctl(epoll, EPOLL_CTL_ADD, start, &event) == 0, "epoll_ctl");
	open_wheel(with_worker);
	run_loop(epoll);
	close_wheel();
	close(epoll);
	close(start);
}

int main(void)
{
	run(true, wait_at_descriptor);
	run(false, sleep_until_deadlines);
	return 0;
}
