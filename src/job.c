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

static void job_run(struct job_target *target, const struct tw_task *task)
{
	/* seq_cst: after a tw_stop that came before, the task must not start; pairs with the store
	 * in tw_stop(). */
	if (!atomic_load_explicit(&target->stopped, memory_order_seq_cst)) {
		target->execute(target->context, task);
		return;
	}
	/* relaxed: statistic, orders nothing. */
	atomic_fetch_add_explicit(&target->released, 1, memory_order_relaxed);
	job_release(target, task, TW_STOPPED);
}

/* now - deadline, at least 0 and at most TW_FOREVER. */
static tw_duration lateness_at(tw_duration now, tw_duration deadline)
{
	if (now <= deadline)
		return 0;
	return deadline < now - TW_FOREVER ? TW_FOREVER : now - deadline;
}

void job_finish(struct job_target *target, struct timer *timer, struct timer_bin *bin)
{
	tw_duration now = clock_now(target->clock);
	struct tw_task task = {.key = timer->hh.key,
			       .key_size = timer->hh.keylen,
			       .value = timer->value,
			       .deadline = timer->deadline,
			       .lateness = lateness_at(now, timer->deadline)};

	if (timer->job == TIMER_RUN) {
		job_run(target, &task);
	} else if (timer->job == TIMER_RELEASE) {
		job_release(target, &task, (enum tw_reason)timer->reason);
	} else {
		timer->drain->each(timer->drain->context, &task);
		drain_release(timer->drain);
	}
	timer_free(target->store, bin, timer);
}
