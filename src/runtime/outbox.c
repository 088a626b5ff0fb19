/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "owner_state.h"

static enum tw_status outbox_init_pool(struct outbox *outbox, const struct tw_options *options)
{
	if (options->workers == TW_WORKERS_INLINE)
		return TW_OK;
	outbox->pool = worker_pool_create(options, &outbox->target);
	if (outbox->pool)
		return TW_OK;
	return errno == ENOMEM ? TW_NO_MEMORY : TW_SYSTEM;
}

static void outbox_init_target(struct outbox *outbox, tw_execute_fn *execute,
			       const struct tw_options *options)
{
	struct job_target *target = &outbox->target;

	snprintf(target->name, sizeof(target->name), "%s", options->name);
	target->store = &outbox->store;
	target->handles = &outbox->handles;
	target->alarms = &outbox->alarms;
	target->places = &outbox->places;
	target->execute = execute;
	target->release = options->release;
	target->context = options->context;
}

enum tw_status outbox_init(struct outbox *outbox, tw_execute_fn *execute,
			   const struct tw_options *options)
{
	enum tw_status status;

	outbox_init_target(outbox, execute, options);
	outbox->places.most = options->max_pending;
	outbox->thread.bin = &outbox->bin;
	list_init(&outbox->jobs);
	outbox->jobs_end = &outbox->jobs;
	if (!handle_table_init(&outbox->handles))
		return TW_NO_MEMORY;
	outbox->alarms.is_here = options->workers == TW_WORKERS_INLINE;
	waiting_init(&outbox->alarms.waiting);
	timer_store_init(&outbox->store);
	status = outbox_init_pool(outbox, options);
	if (status != TW_OK)
		outbox_destroy(outbox);
	return status;
}

void outbox_end_threads(struct outbox *outbox)
{
	if (outbox->pool)
		worker_pool_end_threads(outbox->pool);
}

void outbox_destroy(struct outbox *outbox)
{
	if (outbox->pool)
		worker_pool_destroy(outbox->pool);
	timer_store_flush(&outbox->store, &outbox->bin);
	timer_store_destroy(&outbox->store);
	waiting_destroy(&outbox->alarms.waiting);
	handle_table_destroy(&outbox->handles);
}

static void outbox_add(struct outbox *outbox, struct timer *timer, enum job_lane lane,
		       struct list *inline_jobs)
{
	if (outbox->pool)
		job_batches_add(&outbox->batches[lane], timer);
	else
		list_append(inline_jobs, &timer->link);
}

void outbox_run(struct outbox *outbox, struct timer *timer, enum job_lane lane)
{
	timer->job = TIMER_RUN;
	outbox_add(outbox, timer, lane, outbox->jobs_end);
}

void outbox_free(struct outbox *outbox, struct keyed_timer *timer)
{
	timer_free(&outbox->store, &outbox->bin, timer);
	limit_give(&outbox->places);
}

void outbox_release(struct outbox *outbox, struct timer *timer, enum tw_reason reason)
{
	if (!outbox->target.release) {
		outbox_free(outbox, timer_keyed(timer));
		return;
	}
	timer->job = TIMER_RELEASE;
	timer->reason = (uint8_t)reason;
	outbox_add(outbox, timer, JOB_LANE_PROMPT, outbox->jobs_end);
}

void outbox_close(struct outbox *outbox, struct timer *timer)
{
	timer->job = TIMER_CLOSE;
	outbox_add(outbox, timer, JOB_LANE_PROMPT, outbox->jobs_end);
}

/* Ends a timer that no drain or release function gets: gives back its memory and its place. */
static void outbox_end(struct outbox *outbox, struct timer *timer)
{
	if (timer_has_key(timer)) {
		outbox_free(outbox, timer_keyed(timer));
		return;
	}
	if (alarm_end(&outbox->alarms, timer_alarm(timer), ALARM_NOT_RUN, NULL) == ALARM_GONE)
		handle_free(&outbox->handles, &outbox->bin.handles, timer_alarm(timer));
	limit_give(&outbox->places);
}

void outbox_retire(struct outbox *outbox, struct timer *timer, struct drain *drain,
		   struct list *inline_jobs)
{
	counter_add_ordered(drain ? &outbox->counts.drained : &outbox->counts.stopped, 1);
	if (!drain && !outbox->target.release) {
		outbox_end(outbox, timer);
		return;
	}
	timer->job = drain ? TIMER_DRAIN : TIMER_RELEASE;
	timer->reason = TW_STOPPED;
	if (drain)
		timer->drain = drain;
	outbox_add(outbox, timer, JOB_LANE_BULK, inline_jobs);
}

void outbox_submit(struct outbox *outbox)
{
	for (int lane = 0; lane < JOB_LANES; lane++)
		worker_pool_submit(outbox->pool, (enum job_lane)lane, &outbox->batches[lane]);
}
