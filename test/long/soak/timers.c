/* SPDX-License-Identifier: MIT */
#include "timers.h"

#include "checks.h"
#include "lateness.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <stdlib.h>

/* One task in so many takes long, so that the pool needs further workers. */
#define SLOW_ONE_IN 20000
#define SLOW_TIME (20 * TW_MILLISECOND)

/* The argument of a timer that runs more than once. The runs own it, one after the other, or
 * else what takes the timer away. */
struct repeat {
	void *value;
	enum timer_kind kind;
	tw_duration delay;
	int64_t left;         /* runs; not of a periodic one */
	tw_duration deadline; /* of the last run */
	atomic_int runs;      /* at the moment */
};

static void look_at_time(const struct tw_task *task)
{
	if (tw_now(task->wheel) < task->deadline)
		check_failed("runs before their deadline");
	lateness_record(task->lateness);
}

void timers_execute(void *account, const struct tw_task *task)
{
	struct account *of_wheel = account;

	/* No deadline: that of a move under one interval is still to come. */
	lateness_record(task->lateness);
	book_return(task->value, FIRED, tw_now(task->wheel));
	if (atomic_load(&of_wheel->back[FIRED]) % SLOW_ONE_IN == 0)
		stopwatch_sleep(SLOW_TIME);
}

void timers_run_once(void *value)
{
	const struct tw_task *task = tw_current_task();

	look_at_time(task);
	book_return(value, FIRED, tw_now(task->wheel));
}

static void repeat_end(struct repeat *repeat, enum way way)
{
	book_return(repeat->value, way, TW_FOREVER);
	free(repeat);
}

/* A run that has re-armed its timer leaves the argument alone. */
static void run_repeat(void *argument)
{
	struct repeat *repeat = argument;
	const struct tw_task *task = tw_current_task();
	bool is_retried = repeat->kind == RETRIED;

	if (atomic_fetch_add(&repeat->runs, 1) != 0)
		check_failed("runs of one timer at a time");
	look_at_time(task);
	if (task->deadline <= repeat->deadline)
		check_failed("runs of one timer out of order");
	repeat->deadline = task->deadline;
	atomic_fetch_sub(&repeat->runs, 1);
	if (!is_retried)
		return;
	if (--repeat->left <= 0 || tw_timer_reset(task->wheel, task->timer, repeat->delay) != TW_OK)
		repeat_end(repeat, FIRED);
}

static tw_duration next_time(void *argument, tw_duration previous)
{
	struct repeat *repeat = argument;
	const struct tw_task *task = tw_current_task();
	tw_duration next = previous + repeat->delay;

	if (!task) /* the first time, in tw_schedule_func */
		return next;
	if (--repeat->left > 0 || tw_timer_stop(task->wheel, task->timer) != TW_REARMED)
		return next;
	repeat_end(repeat, FIRED);
	return previous;
}

static void give_back(const struct tw_task *task, enum way way)
{
	if (!task->key && task->run == run_repeat)
		repeat_end(task->value, way);
	else
		book_return(task->value, way, TW_FOREVER);
}

void timers_release(void *account, const struct tw_task *task, enum tw_reason reason)
{
	static const enum way ways[] = {
		[TW_REPLACED] = REPLACED, [TW_REMOVED] = REMOVED, [TW_STOPPED] = STOPPED};

	(void)account;
	give_back(task, ways[reason]);
}

void timers_drain(void *account, const struct tw_task *task)
{
	(void)account;
	give_back(task, DRAINED);
}

static tw_duration draw_delay(struct generator *generator)
{
	return generator_range(generator, 1, generator_range(generator, 0, 8) == 0 ? 5000 : 300) *
	       TW_MILLISECOND;
}

static enum tw_status start_once(struct held *held, struct book *book, tw_duration delay)
{
	tw_duration now = tw_now(held->place->wheel);
	enum tw_status status;

	held->argument = book_give(book, &held->place->account, now + delay);
	if (!held->argument)
		return TW_FULL;
	status = tw_after_func(held->place->wheel, delay, timers_run_once, held->argument,
			       &held->timer);
	if (status != TW_OK)
		book_refuse(held->argument);
	return status;
}

static struct repeat *repeat_create(enum timer_kind kind, void *value, struct generator *generator)
{
	struct repeat *repeat = malloc(sizeof(*repeat));

	if (!repeat)
		process_fail("out of memory");
	*repeat = (struct repeat){
		.value = value,
		.kind = kind,
		.delay = draw_delay(generator),
		.left = generator_range(generator, 1, 6),
		.deadline = -1,
	};
	return repeat;
}

/* The repeat may be gone when these return with TW_OK. */
static enum tw_status arm_repeat(struct tw_wheel *wheel, struct repeat *repeat,
				 struct generator *generator, struct tw_timer *timer)
{
	enum tw_missed missed = (enum tw_missed)generator_range(generator, 0, 3);
	tw_duration delay = repeat->delay;

	switch (repeat->kind) {
	case PERIODIC:
		return tw_every(wheel, delay, delay, missed, run_repeat, repeat, timer);
	case SCHEDULED:
		return tw_schedule_func(wheel, next_time, run_repeat, repeat, timer);
	default:
		return tw_after_func(wheel, delay, run_repeat, repeat, timer);
	}
}

static enum tw_status start_repeat(struct held *held, struct book *book,
				   struct generator *generator)
{
	void *value = book_give(book, &held->place->account, 0);
	struct repeat *repeat;
	enum tw_status status;

	if (!value)
		return TW_FULL;
	held->argument = repeat = repeat_create(held->kind, value, generator);
	status = arm_repeat(held->place->wheel, repeat, generator, &held->timer);
	if (status != TW_OK) {
		free(repeat);
		book_refuse(value);
	}
	return status;
}

struct held held_start(struct place *place, struct book *book, struct generator *generator,
		       enum timer_kind kind)
{
	struct held held = {.place = place, .kind = kind};
	enum tw_status status = kind == ONCE ? start_once(&held, book, draw_delay(generator))
					     : start_repeat(&held, book, generator);

	place_judge_status(place, status);
	return status == TW_OK ? held : (struct held){0};
}

void held_reset(struct held *held, struct generator *generator)
{
	if (held->kind == PERIODIC)
		place_judge_status(held->place, tw_timer_reset(held->place->wheel, held->timer,
							       draw_delay(generator)));
}

void held_stop(struct held *held)
{
	struct tw_wheel *wheel = held->place ? held->place->wheel : NULL;

	if (!wheel)
		return;
	if (held->kind == ONCE) {
		if (tw_timer_stop(wheel, held->timer) == TW_OK)
			book_return(held->argument, REMOVED, TW_FOREVER);
	} else if (tw_timer_stop_wait(wheel, held->timer) == TW_OK) {
		repeat_end(held->argument, REMOVED);
	}
	*held = (struct held){0};
}
