/* SPDX-License-Identifier: MIT */
/*
 * This is libev. A loop and its timers are one thread's. Restarts are by ev_timer_again, its fast
 * way. Its clock is read once a turn of the loop, or when a program asks.
 */
#include "peers/timers.h"

#include "support/process.h"

/* Its header has casts that gcc warns of. */
#pragma GCC diagnostic ignored "-Wstrict-aliasing"
#include <ev.h>

static struct ev_loop *loop;
static struct ev_timer *timers;

static void on_timer(struct ev_loop *own, struct ev_timer *timer, int events)
{
	(void)own;
	(void)events;
	timers_ran((size_t)(timer - timers));
}

static void open_loop(size_t count, bool many)
{
	(void)many;
	timers = process_allocate(count * sizeof(*timers));
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!loop)
		process_fail("ev_loop_new failed");
	for (size_t i = 0; i < count; i++)
		ev_timer_init(&timers[i], on_timer, 0, 0);
}

static void start(size_t i, int64_t delay)
{
	ev_timer_set(&timers[i], (double)delay / 1e3, 0);
	ev_timer_start(loop, &timers[i]);
}

static void restart(size_t i, int64_t delay)
{
	timers[i].repeat = (double)delay / 1e3;
	ev_timer_again(loop, &timers[i]);
}

static void cancel(size_t i, int64_t delay)
{
	(void)delay;
	ev_timer_stop(loop, &timers[i]);
}

static void look(void)
{
	ev_now_update(loop);
}

static void turn(void)
{
	ev_run(loop, EVRUN_ONCE);
}

int main(int argc, char **argv)
{
	return timers_ask(&(struct timers_peer){.name = "libev",
						.open = open_loop,
						.start = start,
						.restart = restart,
						.cancel = cancel,
						.look = look,
						.turn = turn},
			  argv[argc - 1]);
}
