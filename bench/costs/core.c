/* SPDX-License-Identifier: MIT */
/* What do calls by key cost, on a wheel that the caller drives, with inline tasks? */
#include "costs.h"

static const tw_duration tick = TW_MILLISECOND;
static tw_duration least_delay;

static void set(unsigned first, unsigned i)
{
	MUST(tw_set_timer(wheel, keys[first + shuffled(i)], KEY_SIZE, NULL,
			  draw_delay(least_delay)));
	drive(i);
}

static void set_resident(unsigned i)
{
	set(0, i);
}

static void set_one(unsigned i)
{
	set(costs_n, i);
}

static void add_one(unsigned i)
{
	MUST(tw_add_timer(wheel, keys[2 * costs_n + shuffled(i)], KEY_SIZE, NULL,
			  draw_delay(least_delay)));
}

static void move_one(unsigned i)
{
	MUST(tw_move_timer(wheel, keys[costs_n + shuffled(i)], KEY_SIZE, draw_delay(least_delay)));
	drive(i);
}

static void ask_for_one(unsigned i)
{
	MUST(tw_contains(wheel, keys[costs_n + shuffled(i)], KEY_SIZE, NULL));
}

static void take_one(unsigned i)
{
	void *value;

	MUST(tw_take_timer(wheel, keys[2 * costs_n + shuffled(i)], KEY_SIZE, &value));
}

static void remove_one(unsigned i)
{
	MUST(tw_remove_timer(wheel, keys[costs_n + shuffled(i)], KEY_SIZE));
	drive(i);
}

static void poll_once(unsigned i)
{
	(void)i;
	MUST(tw_poll(wheel, NULL));
}

static int visit(void *context, const struct tw_pending_timer *timer)
{
	(void)timer;
	++*(unsigned *)context;
	return 1;
}

static void walk(void)
{
	unsigned seen = 0;

	phase_begin();
	MUST(tw_each(wheel, visit, &seen));
	phase_end("core.each", seen);
}

static void expire(const char *name, tw_duration length)
{
	tasks_ran = 0;
	phase_begin();
	MUST(tw_advance(wheel, length));
	phase_end(name, costs_n);
	expect(tasks_ran == costs_n, "all have expired");
}

/* Sets all of the second quarter of the keys for the same tick. */
static void set_crowd(void)
{
	for (unsigned i = 0; i < costs_n; i++) {
		MUST(tw_set_timer(wheel, keys[costs_n + shuffled(i)], KEY_SIZE, NULL, TW_SECOND));
		drive(i);
	}
	MUST(tw_advance(wheel, 0));
}

static void drain(void)
{
	tasks_ran = 0;
	phase_begin();
	MUST(tw_drain(wheel, count_task, NULL));
	MUST(tw_wait_idle(wheel));
	phase_end("core.drain", tasks_ran);
}

/* Counts a released value like a task. */
static void release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	(void)reason;
	count_task(context, task);
}

/* Measures the additional cost of releasing values. */
static void measure_releases(struct tw_options options)
{
	options.release = release;
	MUST(tw_create(&wheel, tick, 512, count_task, &options));
	least_delay = 40 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_one(i);
	measure("core.replace_released", costs_n, set_one);
	measure("core.remove_released", costs_n / 2, remove_one);
	MUST(tw_advance(wheel, 0));
	tasks_ran = 0;
	phase_begin();
	MUST(tw_stop(wheel));
	MUST(tw_wait_idle(wheel));
	phase_end("core.stop", tasks_ran);
	expect(tasks_ran == costs_n / 2, "all were released");
	tw_destroy(wheel);
}

int main(void)
{
	const struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	int64_t memory;

	costs_init();
	MUST(tw_create(&wheel, tick, 512, count_task, &options));
	MUST(tw_advance(wheel, TW_SECOND));
	memory = memory_begin();
	least_delay = 3600 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_resident(i);
	MUST(tw_advance(wheel, 0));
	memory_end("core", memory, costs_n);

	least_delay = 40 * TW_SECOND;
	measure("core.set_new", costs_n, set_one);
	measure("core.set_existing", costs_n, set_one);
	least_delay = 90 * TW_SECOND;
	measure("core.move_later", costs_n, move_one);
	least_delay = 30 * TW_SECOND;
	measure("core.move_sooner", costs_n, move_one);
	measure("core.contains", costs_n / 4, ask_for_one);
	walk();
	measure("core.remove", costs_n, remove_one);
	least_delay = 2 * TW_SECOND;
	for (unsigned i = 0; i < costs_n; i++)
		set_one(i);
	MUST(tw_advance(wheel, 0));
	expire("core.expire", 23 * TW_SECOND);
	set_crowd();
	expire("core.expire_crowd", 2 * TW_SECOND);
	measure("core.poll_idle", costs_n / 4, poll_once);
	measure("core.add_new", costs_n / 4, add_one);
	measure("core.take", costs_n / 4, take_one);
	drain();
	tw_destroy(wheel);
	measure_releases(options);
	return 0;
}
