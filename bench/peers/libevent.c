/* SPDX-License-Identifier: MIT */
/*
 * This is libevent. A base has locks only for the calls of several threads. Events lie in our
 * memory. Its clock is the coarse one, the default.
 */
#include "peers/timers.h"

#include "support/process.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

static struct event_base *base;
static struct event *timers;

static void on_timer(evutil_socket_t none, short events, void *timer)
{
	(void)none;
	(void)events;
	timers_ran((size_t)((struct event *)timer - timers));
}

static void open_base(size_t count, bool many)
{
	if (many && evthread_use_pthreads() != 0)
		process_fail("evthread_use_pthreads failed");
	timers = process_allocate(count * sizeof(*timers));
	base = event_base_new();
	if (!base)
		process_fail("event_base_new failed");
	for (size_t i = 0; i < count; i++)
		evtimer_assign(&timers[i], base, on_timer, &timers[i]);
}

static void start(size_t i, int64_t delay)
{
	struct timeval time = {delay / 1000, delay % 1000 * 1000};

	if (evtimer_add(&timers[i], &time) != 0)
		process_fail("evtimer_add failed");
}

static void cancel(size_t i, int64_t delay)
{
	(void)delay;
	evtimer_del(&timers[i]);
}

static void turn(void)
{
	event_base_loop(base, EVLOOP_ONCE);
}

int main(int argc, char **argv)
{
	return timers_ask(&(struct timers_peer){.name = "libevent",
						.has_producers = true,
						.open = open_base,
						.start = start,
						.restart = start,
						.cancel = cancel,
						.turn = turn},
			  argv[argc - 1]);
}
