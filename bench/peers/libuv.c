/* SPDX-License-Identifier: MIT */
/*
 * This is libuv. A loop and its timers are one thread's, and count whole milliseconds. Its clock is
 * read once a turn of the loop, or when a program asks.
 */
#include "peers/timers.h"

#include "support/process.h"

#include <uv.h>

static uv_loop_t loop;
static uv_timer_t *timers;

static void open_loop(size_t count, bool many)
{
	(void)many;
	timers = process_allocate(count * sizeof(*timers));
	uv_loop_init(&loop);
	for (size_t i = 0; i < count; i++)
		uv_timer_init(&loop, &timers[i]);
}

static void on_timer(uv_timer_t *timer)
{
	timers_ran((size_t)(timer - timers));
}

static void start(size_t i, int64_t delay)
{
	uv_timer_start(&timers[i], on_timer, (uint64_t)delay, 0);
}

static void cancel(size_t i, int64_t delay)
{
	(void)delay;
	uv_timer_stop(&timers[i]);
}

static void look(void)
{
	uv_update_time(&loop);
}

static void turn(void)
{
	uv_run(&loop, UV_RUN_ONCE);
}

int main(int argc, char **argv)
{
	return timers_ask(&(struct timers_peer){.name = "libuv",
						.open = open_loop,
						.start = start,
						.restart = start,
						.cancel = cancel,
						.look = look,
						.turn = turn},
			  argv[argc - 1]);
}
