/* SPDX-License-Identifier: MIT */
/* This program drives a wheel from a loop of libuv. timers.h says how, in general. */
#include "timers.h"

#include <uv.h>

static void start(uv_timer_t *timer)
{
	(void)timer;
	set_timers();
}

static void descriptor_is_readable(uv_poll_t *descriptor, int status, int events)
{
	(void)status;
	(void)events;
	tw_poll(wheel, NULL);
	if (is_done)
		uv_stop(descriptor->loop);
}

static void wait_at_descriptor(uv_loop_t *loop)
{
	uv_poll_t descriptor;

	check(uv_poll_init(loop, &descriptor, tw_fd(wheel)) == 0, "uv_poll_init");
	uv_poll_start(&descriptor, UV_READABLE, descriptor_is_readable);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&descriptor, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
}

static void wake_up(uv_timer_t *wake)
{
	(void)wake;
}

/* Runs before the loop sleeps. */
static void poll_wheel(uv_prepare_t *prepare)
{
	tw_duration left = TW_FOREVER;

	tw_poll(wheel, &left);
	if (is_done)
		uv_stop(prepare->loop);
	if (left == TW_FOREVER) {
		uv_timer_stop(prepare->data);
		return;
	}
	/* A timer of libuv counts from the loop's time, which is that of the turn's begin. */
	uv_update_time(prepare->loop);
	uv_timer_start(prepare->data, wake_up, (uint64_t)milliseconds(left), 0);
}

static void sleep_until_deadlines(uv_loop_t *loop)
{
	uv_prepare_t prepare;
	uv_timer_t wake;

	uv_timer_init(loop, &wake);
	uv_prepare_init(loop, &prepare);
	prepare.data = &wake;
	uv_prepare_start(&prepare, poll_wheel);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&prepare, NULL);
	uv_close((uv_handle_t *)&wake, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
}

static void run(bool with_worker, void (*run_loop)(uv_loop_t *loop))
{
	uv_timer_t first;
	uv_loop_t loop;

	check(uv_loop_init(&loop) == 0, "uv_loop_init");
	uv_timer_init(&loop, &first);
	uv_timer_start(&first, start, 0, 0);
	open_wheel(with_worker);
	run_loop(&loop);
	close_wheel();
	uv_close((uv_handle_t *)&first, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	check(uv_loop_close(&loop) == 0, "uv_loop_close");
}

int main(void)
{
	run(true, wait_at_descriptor);
	run(false, sleep_until_deadlines);
	return 0;
}
