/* SPDX-License-Identifier: MIT */
#include "job.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/trace.h"

/* The innermost of those that this thread is doing, each of another wheel. */
static _Thread_local const struct job_call *innermost;

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

/* Begins the thread's job, with what is the same for every task. */
static void job_set(struct job_call *job, const struct job_target *target,
		    const struct timer *timer, tw_duration now)
{
	struct tw_task *task = &job->task;

	task->key = NULL;
	task->key_size = 0;
	task->value = timer->value;
	task->deadline = timer->deadline;
	task->lateness = lateness_at(now, timer->deadline);
	task->timer.id = 0;
	task->run = NULL;
	task->wheel = target->wheel;
	job->timer = timer;
	job->outer = innermost;
	innermost = job;
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

/* Shows the run to others. A thread that sees a part of it sees that the one before has ended. */
static void job_show(struct job_run *run, const struct tw_task *task, tw_duration began)
{
	const char *key = task->key;
	uint64_t word;

	/* release, all: after the store to `began` at the end of the run before; pairs with the
	 * loads in job_sums_add_run(). */
	if (key) {
		atomic_store_explicit(&run->key_size, task->key_size, memory_order_release);
		/* A key has that much memory, or is longer. */
		_Static_assert(TIMER_SMALL_KEY >= TW_RUNNING_KEY_SIZE, "");
		for (size_t i = 0; i < JOB_RUN_WORDS; i++) {
			memcpy(&word, key + i * sizeof(word), sizeof(word));
			atomic_store_explicit(&run->words[i], word, memory_order_release);
		}
	} else {
		atomic_store_explicit(&run->key_size, 0, memory_order_release);
		atomic_store_explicit(&run->words[0], task->timer.id, memory_order_release);
	}
	/* release: publishes the run; pairs with job_sums_add_run() and job_report_slow(). */
	atomic_store_explicit(&run->began, began, memory_order_release);
}

/* A task is about to be called; `now` is the wheel's time. Returns when that was, in real time. */
static tw_duration job_begin(const struct job_target *target, struct job_thread *thread,
			     const struct tw_task *task, tw_duration now)
{
	const struct clock *clock = target->clock;
	tw_duration began = clock->kind == TW_CLOCK_MANUAL ? clock_read_real(clock->id) : now;

	histogram_record(&thread->lateness, task->lateness);
	job_show(&thread->run, task, began);
	return began;
}

/* It has been called; returns how long it took. */
static tw_duration job_end(const struct job_target *target, struct job_thread *thread,
			   tw_duration began)
{
	tw_duration took = time_since(clock_read_real(target->clock->id), began);

	job_end_in_child(target);
	/* relaxed: see job_show(). */
	atomic_store_explicit(&thread->run.began, 0, memory_order_relaxed);
	histogram_record(&thread->duration, took);
	return took;
}

/* Calls the hook for the innermost job. Alarms are not reported: one may be a cache's. */
static void job_call_hook(struct job_target *target, tw_duration took)
{
	const struct job_call *job = innermost;

	if (timer_is_alarm(job->timer))
		return;
	TRACE_SLOW_TASK(job->timer, took);
	target->slow_task.hook(target->context, &job->task, job->task.timer, took);
	job_end_in_child(target);
}

/* Calls the hook for the run that has ended, unless the task was quick or another thread did. */
static void job_end_report(struct job_target *target, struct job_thread *thread, tw_duration began,
			   tw_duration took)
{
	/* A thread that has seen the run is done with it, and others see that it has ended. */
	pthread_mutex_lock(&thread->lock);
	pthread_mutex_unlock(&thread->lock);
	if (took > target->slow_task.threshold && thread->reported != began)
		job_call_hook(target, took);
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
	if (target->slow_task.hook)
		job_end_report(target, thread, began, took);
}

tw_duration job_time_to_slow(const struct job_target *target, const struct job_thread *thread)
{
	/* relaxed: job_report_slow() looks itself. */
	tw_duration began = atomic_load_explicit(&thread->run.began, memory_order_relaxed);
	tw_duration slow = time_add(target->slow_task.threshold, 1);

	if (began == 0 || began == thread->reported)
		return slow;
	return time_left(slow, time_since(clock_read_real(target->clock->id), began));
}

void job_report_slow(struct job_target *target, struct job_thread *thread)
{
	tw_duration began;
	tw_duration took;

	pthread_mutex_lock(&thread->lock);
	/* acquire: sees what the thread does; pairs with the store in job_show(). */
	began = atomic_load_explicit(&thread->run.began, memory_order_acquire);
	took = time_since(clock_read_real(target->clock->id), began);
	if (began != 0 && took > target->slow_task.threshold) {
		const struct job_call *outer = innermost;

		thread->reported = began;
		innermost = &thread->job;
		job_call_hook(target, took);
		innermost = outer;
	}
	pthread_mutex_unlock(&thread->lock);
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
	if (job_may_run(target) && alarm_begin(alarm, tick_before(&target->clock->ticks, due)))
		job_run(target, thread, &alarm->timer, task, now);
	if (alarm_end(target->alarms, alarm))
		event_count_notify(target->owner, EVENT_COUNT_SLEEPING);
}

void job_finish(struct job_target *target, struct timer *timer, struct job_thread *thread)
{
	tw_duration now = clock_now(target->clock);
	bool has_key = timer_has_key(timer);
	struct job_call *job = &thread->job;

	job_set(job, target, timer, now);
	if (has_key)
		job_finish_keyed(target, timer_keyed(timer), thread, &job->task, now);
	else if (timer_is_handle(timer))
		job_finish_handle(target, timer_handle(timer), thread, &job->task, now);
	else
		job_finish_alarm(target, timer_alarm(timer), thread, &job->task, now);
	innermost = job->outer;
	if (!has_key)
		handle_table_tell(target->handles);
}

const struct tw_task *tw_current_task(void)
{
	return innermost ? &innermost->task : NULL;
}

bool job_is_here(const struct timer *timer)
{
	for (const struct job_call *job = innermost; job; job = job->outer)
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

void job_thread_init(struct job_thread *thread, struct timer_bin *bin)
{
	thread->bin = bin;
	pthread_mutex_init(&thread->lock, NULL);
}

void job_thread_destroy(struct job_thread *thread)
{
	pthread_mutex_destroy(&thread->lock);
}

/* Adds the run, if there is one, and has not ended by the time that it has been read. */
static void job_sums_add_run(struct job_sums *sums, const struct job_run *run)
{
	uint64_t words[JOB_RUN_WORDS];
	struct tw_running running = {0};
	/* acquire, and for the loads that follow: sees that run, or a later one and so a change of
	 * `began`; pairs with the stores in job_show(). */
	tw_duration began = atomic_load_explicit(&run->began, memory_order_acquire);

	if (began == 0)
		return;
	sums->runs++;
	if (sums->began != 0 && sums->began <= began)
		return;
	running.key_size = atomic_load_explicit(&run->key_size, memory_order_acquire);
	for (size_t i = 0; i < JOB_RUN_WORDS; i++)
		words[i] = atomic_load_explicit(&run->words[i], memory_order_acquire);
	/* relaxed: after the loads above. */
	if (atomic_load_explicit(&run->began, memory_order_relaxed) != began)
		return;
	if (running.key_size == 0)
		running.timer.id = words[0];
	memcpy(running.key, words,
	       running.key_size < sizeof(words) ? running.key_size : sizeof(words));
	sums->began = began;
	sums->longest = running;
}

void job_sums_add(struct job_sums *sums, const struct job_thread *thread)
{
	for (int count = 0; count < JOB_COUNTS; count++)
		sums->counts[count] += counter_read(&thread->counts[count]);
	histogram_add(&sums->lateness, &thread->lateness);
	histogram_add(&sums->duration, &thread->duration);
	job_sums_add_run(sums, &thread->run);
}
