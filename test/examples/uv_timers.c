/* SPDX-License-Identifier: MIT */
/*
 * libuv's timers on a wheel: start, again and stop as those of uv_timer_t, for a loop that has very
 * many of them. libuv keeps its timers in a heap, where each start and stop walks up and down; here
 * a start to a later time is one store.
 *
 * The wheel is the loop's thread's (TW_DRIVE_LOOP). Before the loop sleeps, a uv_prepare_t asks for
 * the earliest deadline and sets one uv_timer_t to it, whose callback polls the wheel. As with
 * libuv's own timers, a loop with no timer left, and nothing else, ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <timingwheel/timingwheel.h>
#include <uv.h>

/* The timers of a loop. */
struct timers {
	uv_loop_t *loop;
	struct tw_wheel *wheel;
	uv_prepare_t prepare;
	uv_timer_t wake;
	size_t active;
};

struct timer {
	struct timers *timers;
	void (*callback)(struct timer *timer);
	struct tw_alarm alarm;
	uint64_t repeat; /* milliseconds; 0: it runs once */
	int is_active;
};

/* The loop goes on for as long as there are active timers. */
static void timer_set_active(struct timer *timer, int is_active)
{
	struct timers *timers = timer->timers;

	timers->active += (size_t)is_active - (size_t)timer->is_active;
	timer->is_active = is_active;
	if (timers->active > 0)
		uv_ref((uv_handle_t *)&timers->prepare);
	else
		uv_unref((uv_handle_t *)&timers->prepare);
}

static void timer_run(void *argument)
{
	struct timer *timer = argument;

	if (timer->repeat > 0)
		tw_alarm_set(&timer->alarm, (tw_duration)timer->repeat * TW_MILLISECOND);
	else
		timer_set_active(timer, 0);
	timer->callback(timer);
}

static int timer_init(struct timers *timers, struct timer *timer)
{
	*timer = (struct timer){.timers = timers};
	return tw_alarm_init(timers->wheel, &timer->alarm, timer_run, timer) == TW_OK ? 0
										      : UV_EINVAL;
}

static int timer_start(struct timer *timer, void (*callback)(struct timer *timer), uint64_t timeout,
		       uint64_t repeat)
{
	timer->callback = callback;
	timer->repeat = repeat;
	timer_set_active(timer, 1);
	tw_alarm_set(&timer->alarm, (tw_duration)timeout * TW_MILLISECOND);
	return 0;
}

static int timer_again(struct timer *timer)
{
	if (!timer->callback)
		return UV_EINVAL;
	if (timer->repeat > 0)
		timer_start(timer, timer->callback, timer->repeat, timer->repeat);
	return 0;
}

static int timer_stop(struct timer *timer)
{
	tw_alarm_stop(&timer->alarm);
	timer_set_active(timer, 0);
	return 0;
}

/* The timer's memory is the program's again once `closed` is called. */
static void timer_close(struct timer *timer, void (*closed)(void *timer))
{
	timer_stop(timer);
	tw_alarm_close(&timer->alarm, closed);
}

/* Where libuv runs its own timers. */
static void poll_wheel(uv_timer_t *wake)
{
	struct timers *timers = wake->data;

	tw_poll(timers->wheel, NULL);
}

static void set_wake(uv_prepare_t *prepare)
{
	struct timers *timers = prepare->data;
	tw_duration left = 0;
	tw_duration next;

	if (tw_next(timers->wheel, &next) != TW_OK || next == TW_FOREVER) {
		uv_timer_stop(&timers->wake);
		return;
	}
	if (next > tw_now(timers->wheel))
		left = next - tw_now(timers->wheel) + TW_MILLISECOND - 1;
	uv_update_time(timers->loop);
	uv_timer_start(&timers->wake, poll_wheel, (uint64_t)(left / TW_MILLISECOND), 0);
}

static int timers_open(struct timers *timers, uv_loop_t *loop)
{
	const struct tw_options options = {.drive = TW_DRIVE_LOOP};

	*timers = (struct timers){.loop = loop};
	if (tw_create(&timers->wheel, TW_MILLISECOND, 512, NULL, &options) != TW_OK)
		return UV_ENOMEM;
	uv_timer_init(loop, &timers->wake);
	timers->wake.data = timers;
	uv_unref((uv_handle_t *)&timers->wake);
	uv_prepare_init(loop, &timers->prepare);
	timers->prepare.data = timers;
	uv_prepare_start(&timers->prepare, set_wake);
	uv_unref((uv_handle_t *)&timers->prepare);
	return 0;
}

/* Also calls what closes were given. */
static void timers_close(struct timers *timers)
{
	tw_destroy(timers->wheel);
	uv_close((uv_handle_t *)&timers->prepare, NULL);
	uv_close((uv_handle_t *)&timers->wake, NULL);
	uv_run(timers->loop, UV_RUN_NOWAIT);
}

/* ---- What it is for ---- */

enum { CONNECTIONS = 100000, PACKETS = 1000000 };

static struct timer connections[CONNECTIONS];
static struct timer traffic;
static int idle;
static int ticks;
static int closed;

static void is_idle(struct timer *connection)
{
	(void)connection;
	idle++;
}

static void count_closed(void *connection)
{
	(void)connection;
	closed++;
}

/* Packets of all connections but each tenth. */
static void receive(struct timer *timer)
{
	static unsigned next;

	for (int i = 0; i < PACKETS / 10; i++) {
		next = (next + 7919) % CONNECTIONS;
		if (next % 10 != 0)
			timer_start(&connections[next], is_idle, 60000, 0);
	}
	if (++ticks == 10)
		timer_stop(timer);
}

int main(void)
{
	struct timers timers;

	if (timers_open(&timers, uv_default_loop()) != 0)
		return 1;
	for (int i = 0; i < CONNECTIONS; i++) {
		timer_init(&timers, &connections[i]);
		timer_start(&connections[i], is_idle, i % 10 == 0 ? 50 : 60000, 0);
	}
	timer_init(&timers, &traffic);
	timer_start(&traffic, receive, 10, 10);
	timer_again(&traffic);
	while (ticks < 10 || idle < CONNECTIONS / 10)
		uv_run(timers.loop, UV_RUN_ONCE);
	printf("%d ticks of traffic, %d connections were idle, %d others\n", ticks, idle,
	       (int)timers.active);
	for (int i = 0; i < CONNECTIONS; i++)
		timer_close(&connections[i], count_closed);
	timer_close(&traffic, count_closed);
	/* Nothing is active any more. */
	uv_run(timers.loop, UV_RUN_DEFAULT);
	timers_close(&timers);
	printf("%d are closed\n", closed);
	return 0;
}
