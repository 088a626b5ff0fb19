/* SPDX-License-Identifier: MIT */
#include "job.h"

#include <stdlib.h>

void drain_release(struct drain *drain)
{
	/* acq_rel: the last one frees after all others have used it; pairs with itself. */
	if (atomic_fetch_sub_explicit(&drain->references, 1, memory_order_acq_rel) == 1)
		free(drain);
}

static void job_release(struct job_target *target, const struct tw_task *task,
			enum tw_reason reason)
{
	if (target->release)
		target->release(target->context, task, reason);
}

/* Whether a task may start. */
static bool job_may_run(struct job_target *target)
{
	/* seq_cst: after a tw_stop that came before, the task must not start; pairs with the store
	 * in tw_stop(). */
	if (!atomic_load_explicit(&target->stopped, memory_order_seq_cst))
		return true;
	/* relaxed: statistic, orders nothing. */
	atomic_fetch_add_explicit(&target->released, 1, memory_order_relaxed);
	return false;
}

/* now - deadline, at least 0 and at most TW_FOREVER. */
static tw_duration lateness_at(tw_duration now, tw_duration deadline)
{
	if (now <= deadline)
		return 0;
	return deadline < now - TW_FOREVER ? TW_FOREVER : now - deadline;
}

static struct tw_task job_task(const struct job_target *target, const struct timer *timer)
{
	tw_duration now = clock_now(target->clock);

	return (struct tw_task){.value = timer->value,
				.deadline = timer->deadline,
				.lateness = lateness_at(now, timer->deadline)};
}

/* Calls the release or drain function. */
static void job_return(struct job_target *target, struct timer *timer, const struct tw_task *task)
{
	if (timer->job == TIMER_RELEASE) {
		job_release(target, task, (enum tw_reason)timer->reason);
		return;
	}
	timer->drain->each(timer->drain->context, task);
	drain_release(timer->drain);
}

static void job_finish_keyed(struct job_target *target, struct keyed_timer *timer,
			     struct timer_bin *bin)
{
	struct tw_task task = job_task(target, &timer->timer);

	task.key = timer->hh.key;
	task.key_size = timer->hh.keylen;
	if (timer->timer.job != TIMER_RUN)
		job_return(target, &timer->timer, &task);
	else if (job_may_run(target))
		target->execute(target->context, &task);
	else
		job_release(target, &task, TW_STOPPED);
	timer_free(target->store, bin, timer);
}

static void job_finish_handle(struct job_target *target, struct handle *handle,
			      struct timer_bin *bin)
{
	struct tw_task task = job_task(target, &handle->timer);
	tw_duration began = clock_now(target->clock);

	if (handle->timer.job != TIMER_RUN) {
		job_return(target, &handle->timer, &task);
	} else if (job_may_run(target)) {
		if (handle_run(target->handles, &bin->handles, handle, began))
			event_count_notify(target->owner, EVENT_COUNT_SLEEPING);
		return;
	} else if (handle_claim(handle)) {
		job_release(target, &task, TW_STOPPED);
	}
	handle_let_go(target->handles, &bin->handles, handle);
}

void job_finish(struct job_target *target, struct timer *timer, struct timer_bin *bin)
{
	if (timer_is_handle(timer))
		job_finish_handle(target, timer_handle(timer), bin);
	else
		job_finish_keyed(target, timer_keyed(timer), bin);
}

void job_flush(struct job_target *target, struct timer_bin *bin)
{
	timer_store_flush(target->store, bin);
	slab_flush(&target->handles->slab, &bin->handles);
}
