/* SPDX-License-Identifier: MIT */
#include "job.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/counter.h"
#include "base/trace.h"

/*
 * A job is what its thread knows of it from the call of job_finish() to its end. Each part of it
 * that a user's function can leave by an exception or by pthread_exit() ends in a cleanup, which is
 * also how it ends otherwise. In a fork's child the cleanups do nothing.
 */
struct job {
	struct job_target *target;
	struct job_thread *thread;
	struct timer *timer;
	struct tw_task task; /* what the user's function is told */
	tw_duration now;     /* the wheel's time when the job began */
	tw_duration began;   /* the task's call, in real time */
	tw_duration took;
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

static bool job_is_in_child(const struct job *job)
{
	return fork_guard_state(job->target->guard) == FORK_GUARD_CHILD;
}

/*
 * A user's function has been called. In a fork's child, where it forked and came back, nothing of
 * the wheel may be touched any more: locks may be held by threads that are not there, and the
 * descriptors are the parent's too. So the thread ends.
 */
static void job_end_in_child(const struct job *job)
{
	if (job_is_in_child(job))
		pthread_exit(NULL);
}

/* A release or drain function has been called. */
static inline void job_end_return(struct job **job)
{
	job_end_in_child(*job);
	counter_subtract(&(*job)->thread->counts[JOB_RUNNING], 1);
}

static void job_call_release(struct job *job, enum tw_reason reason)
{
	_Atomic uint64_t *counts = job->thread->counts;
	struct job *call __attribute__((cleanup(job_end_return))) = job;

	counter_add(&counts[JOB_RELEASED + reason], 1);
	counter_add(&counts[JOB_RUNNING], 1);
	job->target->release(job->target->context, &call->task, reason);
}

static void job_release(struct job *job, enum tw_reason reason)
{
	if (job->target->release)
		job_call_release(job, reason);
}

static inline void job_end_drain(struct job **job)
{
	job_end_return(job);
	drain_release((*job)->timer->drain);
}

static void job_drain(struct job *job)
{
	struct job *call __attribute__((cleanup(job_end_drain))) = job;
	const struct drain *drain = job->timer->drain;

	counter_add(&job->thread->counts[JOB_RUNNING], 1);
	drain->each(drain->context, &call->task);
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
static void job_return(struct job *job)
{
	if (job->timer->job == TIMER_RELEASE)
		job_release(job, (enum tw_reason)job->timer->reason);
	else
		job_drain(job);
}

/* A task is about to be called. */
static void job_begin(struct job *job)
{
	const struct clock *clock = job->target->clock;

	histogram_record(&job->thread->lateness, job->task.lateness);
	counter_add(&job->thread->counts[JOB_RUNNING], 1);
	job->began = clock->kind == TW_CLOCK_MANUAL ? clock_read_real(clock->id) : job->now;
	TRACE_TASK_BEGIN(job->timer);
}

/* It has been called. */
static inline void job_end(struct job **ended)
{
	struct job *job = *ended;

	job->took = time_since(clock_read_real(job->target->clock->id), job->began);
	job_end_in_child(job);
	counter_subtract(&job->thread->counts[JOB_RUNNING], 1);
	histogram_record(&job->thread->duration, job->took);
	TRACE_TASK_END(job->timer, job->took);
}

static void job_call(struct job *job)
{
	struct job *call __attribute__((cleanup(job_end))) = job;

	job_begin(job);
	if (job->task.run)
		job->task.run(job->task.value);
	else
		job->target->execute(job->target->context, &call->task);
}

static bool job_was_slow(const struct job_target *target, tw_duration took)
{
	return took > target->slow_task.threshold && target->slow_task.hook;
}

/* Of a handle or an alarm: between its begin and end. */
static void job_run(struct job *job)
{
	job_call(job);
	/* An alarm may be a cache's, of which no function of the program's is told. */
	if (!job_was_slow(job->target, job->took) || timer_is_alarm(job->timer))
		return;
	TRACE_SLOW_TASK(job->timer, job->took);
	job->target->slow_task.hook(job->target->context, &job->task, job->task.timer, job->took);
	job_end_in_child(job);
}

static inline void job_free_keyed(struct job **job)
{
	if (!job_is_in_child(*job))
		timer_free((*job)->target->store, (*job)->thread->bin, timer_keyed((*job)->timer));
}

static void job_finish_keyed(struct job *job)
{
	struct keyed_timer *timer = timer_keyed(job->timer);
	struct job *end __attribute__((cleanup(job_free_keyed))) = job;

	job->task.key = timer->hh.key;
	job->task.key_size = timer->hh.keylen;
	if (timer->timer.job != TIMER_RUN) {
		job_return(end);
	} else if (job_may_run(job->target)) {
		job_run(job);
	} else {
		counter_add(&job->thread->counts[JOB_UNBEGUN_STOPPED], 1);
		job_release(job, TW_STOPPED);
	}
}

static void job_wake_owner(const struct job *job)
{
	event_count_notify(job->target->owner, EVENT_COUNT_SLEEPING);
}

/* A handle's run. `is_over` says whether it has ended as it should. */
struct job_handle_run {
	struct job *job;
	bool is_over;
};

static inline void job_end_handle(struct job_handle_run **ended)
{
	struct job_handle_run *run = *ended;
	struct job_target *target = run->job->target;

	if (job_is_in_child(run->job))
		return;
	if (handle_end(target->handles, &run->job->thread->bin->handles,
		       timer_handle(run->job->timer), run->job->now))
		job_wake_owner(run->job);
	job_end_in_child(run->job);
	run->is_over = true;
}

/* Ends the schedule where its `next` did not return. */
static inline void job_end_schedule(struct job_handle_run *run)
{
	struct job_target *target = run->job->target;

	if (job_is_in_child(run->job))
		return;
	if (!run->is_over)
		handle_end_schedule(target->handles, &run->job->thread->bin->handles,
				    timer_handle(run->job->timer));
	handle_table_tell(target->handles);
}

static void job_run_begun_handle(struct job *job)
{
	struct job_handle_run run __attribute__((cleanup(job_end_schedule))) = {.job = job};
	struct job_handle_run *end __attribute__((cleanup(job_end_handle))) = &run;

	job_run(end->job);
}

/* Runs it, unless it was stopped or reset before. */
static void job_run_handle(struct job *job, struct handle *handle)
{
	switch (handle_begin(job->target->handles, &job->thread->bin->handles, handle)) {
	case HANDLE_BEGUN:
		job_run_begun_handle(job);
		break;
	case HANDLE_STOPPED:
		counter_add(&job->thread->counts[JOB_UNBEGUN_REMOVED], 1);
		break;
	case HANDLE_RESET:
		counter_add(&job->thread->counts[JOB_UNBEGUN_RESET], 1);
		job_wake_owner(job);
		break;
	}
}

static inline void job_let_go(struct job **job)
{
	if (!job_is_in_child(*job))
		handle_let_go((*job)->target->handles, &(*job)->thread->bin->handles,
			      timer_handle((*job)->timer));
}

/* A handle that does not run. */
static void job_return_handle(struct job *job, struct handle *handle)
{
	struct job *end __attribute__((cleanup(job_let_go))) = job;

	if (handle->timer.job != TIMER_RUN) {
		job_return(end);
	} else if (handle_claim(handle)) {
		counter_add(&job->thread->counts[JOB_UNBEGUN_STOPPED], 1);
		job_release(job, TW_STOPPED);
	} else {
		counter_add(&job->thread->counts[JOB_UNBEGUN_REMOVED], 1);
	}
}

static void job_finish_handle(struct job *job)
{
	struct handle *handle = timer_handle(job->timer);

	handle_describe(handle, &job->task);
	if (handle->timer.job == TIMER_RUN && job_may_run(job->target))
		job_run_handle(job, handle);
	else
		job_return_handle(job, handle);
}

static inline void job_end_alarm(struct job **job)
{
	struct job_target *target = (*job)->target;

	if (job_is_in_child(*job))
		return;
	if (alarm_end(target->alarms, timer_alarm((*job)->timer)))
		job_wake_owner(*job);
	handle_table_tell(target->handles);
}

static void job_finish_alarm(struct job *job)
{
	struct job *end __attribute__((cleanup(job_end_alarm))) = job;
	struct tw_alarm *alarm = timer_alarm(job->timer);
	/* The clock may have gone back since the owner claimed the alarm for this deadline. */
	tw_duration due = job->now > job->task.deadline ? job->now : job->task.deadline;

	job->task.run = alarm->run;
	if (job_may_run(job->target) &&
	    alarm_begin(alarm, tick_before(&job->target->clock->ticks, due)))
		job_run(end);
}

static inline void job_leave(struct job *job)
{
	innermost = job->outer;
}

void job_finish(struct job_target *target, struct timer *timer, struct job_thread *thread)
{
	tw_duration now = clock_now(target->clock);
	struct job job __attribute__((cleanup(job_leave))) = {.target = target,
							      .thread = thread,
							      .timer = timer,
							      .task = job_task(target, timer, now),
							      .now = now,
							      .outer = innermost};

	innermost = &job;
	if (timer_has_key(timer))
		job_finish_keyed(&job);
	else if (timer_is_handle(timer))
		job_finish_handle(&job);
	else
		job_finish_alarm(&job);
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
