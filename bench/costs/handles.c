/* SPDX-License-Identifier: MIT */
/* What do timers by handle cost, on a wheel that the caller drives, with inline runs? */
#include "costs.h"

static struct tw_timer *timers; /* 2 × costs_n */
static tw_duration least_delay;

static void set_resident(unsigned i)
{
	MUST(tw_after_func(wheel, draw_delay(least_delay), count_run, NULL, &timers[i]));
	drive(i);
}

static void set_one(unsigned i)
{
	MUST(tw_after_func(wheel, draw_delay(least_delay), count_run, NULL, &timers[costs_n + i]));
	drive(i);
}

static void reset_one(unsigned i)
{
	MUST(tw_timer_reset(wheel, timers[costs_n + shuffled(i)], draw_delay(least_delay)));
	drive(i);
}

static void stop_one(unsigned i)
{
	MUST(tw_timer_stop(wheel, timers[costs_n + shuffled(i)]));
	drive(i);
}

static void set_all(void)
{
	for (unsigned i = 0; i < costs_n; i++)
		set_one(i);
	MUST(tw_advance(wheel, 0));
}

static void expire(void)
{
	tasks_ran = 0;
	phase_begin();
	MUST(tw_advance(wheel, 23 * TW_SECOND));
	phase_end("handles.expire", costs_n);
	expect(tasks_ran == costs_n, "all have expired");
}

static void run_periodically(void)
{
	enum { RUNS = 16 };

	for (unsigned i = 0; i < costs_n / RUNS; i++)
		MUST(tw_every(wheel, TW_SECOND + (tw_duration)draw(1000) * TW_MILLISECOND,
			      TW_SECOND, TW_MISSED_BURST, count_run, NULL, &timers[costs_n + i]));
	MUST(tw_advance(wheel, 0));
	tasks_ran = 0;
	phase_begin();
	MUST(tw_advance(wheel, RUNS * TW_SECOND + TW_SECOND - 1));
	phase_end("handles.periodic_expire", tasks_ran);
	expect(tasks_ran == costs_n, "each has run 16 times");
}

static void drain(void)
{
	tasks_ran = 0;
	phase_begin();
	MUST(tw_drain(wheel, count_task, NULL));
	MUST(tw_wait_idle(wheel));
	phase_end("handles.drain", tasks_ran);
}

int main(void)
{
	const struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	int64_t memory;

	costs_init();
	timers = calloc(2 * (size_t)costs_n, sizeof(*timers));
	expect(timers != NULL, "calloc");
	memset(timers, 1, 2 * (size_t)costs_n * sizeof(*timers));
	MUST(tw_create(&wheel, TW_MILLISECOND, 512, count_task, &options));
	MUST(tw_advance(wheel, TW_SECOND));
	memory = memory_begin();
	least_delay = 3600 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_resident(i);
	MUST(tw_advance(wheel, 0));
	memory_end("handles", memory, costs_n);

	least_delay = 40 * TW_SECOND;
	measure("handles.set_new", costs_n, set_one);
	least_delay = 90 * TW_SECOND;
	measure("handles.reset_later", costs_n, reset_one);
	least_delay = 30 * TW_SECOND;
	measure("handles.reset_sooner", costs_n, reset_one);
	measure("handles.stop", costs_n, stop_one);
	least_delay = 2 * TW_SECOND;
	set_all();
	expire();
	run_periodically();
	drain();
	tw_destroy(wheel);
	free(timers);
	return 0;
}
