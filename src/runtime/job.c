/* SPDX-License-Identifier: MIT */
#include "job.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/counter.h"
#include "base/trace.h"

struct job {
	const struct timer *timer;
	struct tw_task task;     /* what the user's function is told */
	const struct job *outer; /* which called what does this one */
};

/* The innermost of those that this thread is doing; it lies on the thread's stack. */
static _Thread_local const struct job *innermost;

void drain_release(struct drain *drain)
{
	/* acq_rel: the last one frees after all others have used it; pairs with itself. */
	if (atomic_fetch_sub_explicit(&drain->references, 1, memory_order_acq_rel) == 1)
		free(drain);
}

/*
 * A user's function has been called. In a fork's child, where it forked and came back, nothing of
 * the wheel may be touched any more: locks may be held by threads that are not there, and the
 * descriptors are the parent's too. So the thread ends.
 */
static void job_end_in_child(const struct job_target *target)
{
	if (fork_guard_state(target->guard) == FORK_GUARD_CHILD)
		pthread_exit(NULL);
}

static void job_release(struct job_target *target, struct job_thread *thread,
			const struct tw_task *task, enum tw_reason reason)
{
	if (!target->release)
		return;
	counter_add(&thread->counts[JOB_RELEASED + reason], 1);
	counter_add(&thread->counts[JOB_RUNNING], 1);
	target->release(target->context, task, reason);
	job_end_in_child(target);
	counter_subtract(&thread->counts[JOB_RUNNING], 1);
}

static void job_drain(struct job_target *target, struct job_thread *thread, struct drain *drain,
		      const struct tw_task *task)
{
	counter_add(&thread->counts[JOB_RUNNING], 1);
	drain->each(drain->context, task);
	job_end_in_child(target);
	counter_subtract(&thread->counts[JOB_RUNNING], 1);
	drain_release(drain);
}

/* Whether a task may start. */
static bool job_may_run(struct job_target *target)
{
	/* seq_cst: after a tw_stop that came before, the task must not start; pairs with the store
	 * in tw_stop(). */
	return !atomic_load_explicit(&target->stopped, memory_order_seq_cst);
}

/* now - deadline, at least 0 and at most TW_FOREVER. */
static tw_duration lateness_at(tw_duration now, tw_duration deadline)
{
	if (now <= deadline)
		return 0;
	return deadline < now - TW_FOREVER ? TW_FOREVER : now - deadline;
}

/* What every task is told. */
static struct tw_task job_task(const struct job_target *target, const struct timer *timer,
			       tw_duration now)
{
	return (struct tw_task){.value = timer->value,
				.deadline = timer->deadline,
				.lateness = lateness_at(now, timer->deadline),
				.wheel = target->wheel};
}

/* Calls the release or drain function. */
static void job_return(struct job_target *target, struct job_thread *thread, struct timer *timer,
		       const struct tw_task *task)
{
	if (timer->job == TIMER_RELEASE)
		job_release(target, thread, task, (enum tw_reason)timer->reason);
	else
		job_drain(target, thread, timer->drain, task);
}

/* A task is about to be called; `now` is the wheel's time. Returns when that was, in real time. */
static tw_duration job_begin(const struct job_target *target, struct job_thread *thread,
			     const struct tw_task *task, tw_duration now)
{
	const struct clock *clock = target->clock;

	histogram_record(&thread->lateness, task->lateness);
	counter_add(&thread->counts[JOB_RUNNING], 1);
	return clock->kind == TW_CLOCK_MANUAL ? clock_read_real(clock->id) : now;
}

/* It has been called; returns how long it took. */
static tw_duration job_end(const struct job_target *target, struct job_thread *thread,
			   tw_duration began)
{
	tw_duration took = time_since(clock_read_real(target->clock->id), began);

	job_end_in_child(target);
	counter_subtract(&thread->counts[JOB_RUNNING], 1);
	histogram_record(&thread->duration, took);
	return took;
}

static bool job_was_slow(const struct job_target *target, tw_duration took)
{
	return took > target->slow_task.threshold && target->slow_task.hook;
}

/* Of a handle or an alarm: between its begin and end. */
static void job_run(struct job_target *target, struct job_thread *thread, const struct timer *timer,
		    const struct tw_task *task, tw_duration now)
{
	tw_duration began = job_begin(target, thread, task, now);
	tw_duration took;

	TRACE_TASK_BEGIN(timer);
	if (task->run)
		task->run(task->value);
	else
		target->execute(target->context, task);
	took = job_end(target, thread, began);
	TRACE_TASK_END(timer, took);
	/* An alarm may be a cache's, of which no function of the program's is told. */
	if (!job_was_slow(target, took) || timer_is_alarm(timer))
		return;
	TRACE_SLOW_TASK(timer, took);
	target->slow_task.hook(target->context, task, task->timer, took);
	job_end_in_child(target);
}

static void job_finish_keyed(struct job_target *target, struct keyed_timer *timer,
			     struct job_thread *thread, struct tw_task *task, tw_duration now)
{
	task->key = timer->hh.key;
	task->key_size = timer->hh.keylen;
	if (timer->timer.job != TIMER_RUN) {
		job_return(target, thread, &timer->timer, task);
	} else if (job_may_run(target)) {
		job_run(target, thread, &timer->timer, task, now);
	} else {
		counter_add(&thread->counts[JOB_UNBEGUN_STOPPED], 1);
		job_release(target, thread, task, TW_STOPPED);
	}
	timer_free(target->store, thread->bin, timer);
}

/* Runs it, unless it was stopped or reset before. */
static void job_run_handle(struct job_target *target, struct job_thread *thread,
			   struct handle *handle, const struct tw_task *task, tw_duration now)
{
	struct slab_bin *bin = &thread->bin->handles;
	bool wake = false;

	switch (handle_begin(target->handles, bin, handle)) {
	case HANDLE_BEGUN:
		job_run(target, thread, &handle->timer, task, now);
		wake = handle_end(target->handles, bin, handle, now);
		job_end_in_child(target);
		break;
	case HANDLE_STOPPED:
		counter_add(&thread->counts[JOB_UNBEGUN_REMOVED], 1);
		break;
	case HANDLE_RESET:
		counter_add(&thread->counts[JOB_UNBEGUN_RESET], 1);
		wake = true;
		break;
	}
	if (wake)
		event_count_notify(target->owner, EVENT_COUNT_SLEEPING);
}

static void job_finish_handle(struct job_target *target, struct handle *handle,
			      struct job_thread *thread, struct tw_task *task, tw_duration now)
{
	handle_describe(handle, task);
	if (handle->timer.job != TIMER_RUN) {
		job_return(target, thread, &handle->timer, task);
	} else if (job_may_run(target)) {
		job_run_handle(target, thread, handle, task, now);
		return;
	} else if (handle_claim(handle)) {
		counter_add(&thread->counts[JOB_UNBEGUN_STOPPED], 1);
		job_release(target, thread, task, TW_STOPPED);
	} else {
		counter_add(&thread->counts[JOB_UNBEGUN_REMOVED], 1);
	}
	handle_let_go(target->handles, &thread->bin->handles, handle);
}

static void job_finish_alarm(struct job_target *target, struct tw_alarm *alarm,
			     struct job_thread *thread, struct tw_task *task, tw_duration now)
{
	/* The clock may have gone back since the owner claimed the alarm for this deadline. */
	tw_duration due = now > task->deadline ? now : task->deadline;

	task->run = alarm->run;
	if (job_may_run(target) &&
	    alarm_begin(alarm, tick_before(&target->clock->ticks, due)))
		job_run(target, thread, &alarm->timer, task, now);
	if (alarm_end(target->alarms, alarm))
		event_count_notify(target->owner, EVENT_COUNT_SLEEPING);
}

void job_finish(struct job_target *target, struct timer *timer, struct job_thread *thread)
{
	tw_duration now = clock_now(target->clock);
	bool has_key = timer_has_key(timer);
	struct job job = {.timer = timer, .task = job_task(target, timer, now), .outer = innermost};

	innermost = &job;
	if (has_key)
		job_finish_keyed(target, timer_keyed(timer), thread, &job.task, now);
	else if (timer_is_handle(timer))
		job_finish_handle(target, timer_handle(timer), thread, &job.task, now);
	else
		job_finish_alarm(target, timer_alarm(timer), thread, &job.task, now);
	innermost = job.outer;
	if (!has_key)
		handle_table_tell(target->handles);
}

const struct tw_task *tw_current_task(void)
{
	return innermost ? &innermost->task : NULL;
}

bool job_is_here(const struct timer *timer)
{
	for (const struct job *job = innermost; job; job = job->outer)
		if (job->timer == timer)
			return true;
	return false;
}

void job_flush(struct job_target *target, struct timer_bin *bin)
{
	timer_store_flush(target->store, bin);
	slab_flush(&target->handles->slab, &bin->handles);
	slab_flush(&target->alarms->slab, &bin->alarms);
}

void job_sums_add(struct job_sums *sums, const struct job_thread *thread)
{
	for (int count = 0; count < JOB_COUNTS; count++)
		sums->counts[count] += counter_read(&thread->counts[count]);
	histogram_add(&sums->lateness, &thread->lateness);
	histogram_add(&sums->duration, &thread->duration);
}
