/* SPDX-License-Identifier: MIT */
/*
 * This file calls the program's functions. They return: an exception, pthread_exit() or a
 * cancellation that leaves one unwinds to its guard, which ends the process.
 */
#include "job.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/counter.h"

/* What a job needs from its begin to its end. All functions with a `work` are inlined: it stays in
 * registers. */
struct work {
	struct job_target *target;
	struct job_thread *thread;
	struct timer *timer;
	struct tw_task *task;
	tw_duration now;   /* the wheel's time when the job began */
	tw_duration began; /* in real time */
	tw_duration took;  /* what job_finish() returns */
};

/* The task of the innermost job that this thread is doing; it lies on the thread's stack. */
static _Thread_local const struct tw_task *innermost;

void drain_release(struct drain *drain)
{
	/* acq_rel: the last one frees after all others have used it; pairs with itself. */
	if (atomic_fetch_sub_explicit(&drain->references, 1, memory_order_acq_rel) == 1)
		free(drain);
}

static INLINED bool job_is_in_child(const struct job_target *target)
{
	return fork_guard_is_left_behind(target->guard);
}

/*
 * A user's function has been called. In a fork's child, where it forked and came back, nothing of
 * the wheel may be touched any more: locks may be held by threads that are not there, and the
 * descriptors are the parent's too. So the thread ends.
 */
static INLINED void job_end_in_child(const struct job_target *target)
{
	if (job_is_in_child(target))
		pthread_exit(NULL);
}

/* A guard is a scope in which functions of the program are called. It is left by a return. */
struct guard {
	const struct job_target *target;
	bool has_returned; /* constant in each of the two copies of guard_end() */
};

/* Ends the process, as a function has not returned. In a fork's child, where job_end_in_child()
 * ends the thread, it does nothing. */
static __attribute__((cold, noinline)) void guard_break(const struct job_target *target)
{
	if (job_is_in_child(target))
		return;
	fprintf(stderr,
		"timingwheel: a callback of the wheel \"%s\" has not returned: it threw an "
		"exception or ended its thread\n",
		target->name);
	abort();
}

static INLINED void guard_end(const struct guard *guard)
{
	if (!guard->has_returned)
		guard_break(guard->target);
}

/* now - deadline, at least 0 and at most TW_FOREVER. */
static tw_duration lateness_at(tw_duration now, tw_duration deadline)
{
	if (now <= deadline)
		return 0;
	return deadline < now - TW_FOREVER ? TW_FOREVER : now - deadline;
}

/* Whether a task may start. */
static bool job_may_run(struct job_target *target)
{
	/* seq_cst: after a tw_stop that came before, the task must not start; pairs with the store
	 * in tw_stop(). */
	return !atomic_load_explicit(&target->stopped, memory_order_seq_cst);
}

/* Shows the run to others. A thread that sees a part of it sees that the one before has ended. */
static INLINED void job_show(struct job_run *run, const struct tw_task *task, tw_duration began)
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
	/* release: publishes the run; pairs with job_sums_add_run(). */
	atomic_store_explicit(&run->began, began, memory_order_release);
}

/* Calls the program's function for a job, and shows meanwhile that it runs; of a task it shows the
 * key or id, too. A handle's or an alarm's task has begun, and has not ended. */
static INLINED void job_call(struct work *work, enum timer_job job)
{
	struct job_target *target = work->target;
	struct job_thread *thread = work->thread;
	struct timer *timer = work->timer;
	struct tw_task *task = work->task;

	task->deadline = timer->deadline;
	task->lateness = lateness_at(work->now, timer->deadline);
	if (job == TIMER_RUN) {
		histogram_record(&thread->lateness, task->lateness);
		job_show(&thread->run, task, work->began);
	} else {
		/* relaxed: publishes nothing. */
		atomic_store_explicit(&thread->run.began, JOB_NO_TASK, memory_order_relaxed);
	}
	if (job == TIMER_DRAIN)
		timer->drain->each(timer->drain->context, task);
	else if (job == TIMER_RELEASE)
		target->release(target->context, task, (enum tw_reason)timer->reason);
	else if (task->run)
		task->run(task->value);
	else
		target->execute(target->context, task);
	job_end_in_child(target);
	if (job == TIMER_RUN) {
		work->took = time_since(clock_read_real(target->clock->id), work->began);
		histogram_record(&thread->duration, work->took);
	}
	/* relaxed: see job_show(). */
	atomic_store_explicit(&thread->run.began, 0, memory_order_relaxed);
}

/* Passes on the value of a task that does not run, as it was drained, released or stopped. */
static INLINED void job_return(struct work *work)
{
	struct timer *timer = work->timer;

	if (timer->job == TIMER_DRAIN) {
		job_call(work, TIMER_DRAIN);
		drain_release(timer->drain);
		return;
	}
	if (timer->job == TIMER_RUN) {
		timer->reason = TW_STOPPED;
		counter_add(&work->thread->counts[JOB_UNBEGUN_STOPPED], 1);
	}
	if (work->target->release)
		job_call(work, TIMER_RELEASE);
}

static INLINED void job_finish_keyed(struct work *work)
{
	struct job_target *target = work->target;
	struct keyed_timer *timer = timer_keyed(work->timer);

	work->task->key = timer->hh.key;
	work->task->key_size = timer->hh.keylen;
	if (timer->timer.job == TIMER_RUN && job_may_run(target))
		job_call(work, TIMER_RUN);
	else
		job_return(work);
	timer_free(target->store, work->thread->bin, timer);
	limit_give(target->places);
}

/* Does an alarm's job. A handle's value goes back where the task does not run, unless the handle
 * was stopped, or set later, since it was claimed. */
static INLINED void job_finish_alarm(struct work *work)
{
	struct job_target *target = work->target;
	struct alarm *alarm = timer_alarm(work->timer);
	bool is_handle = timer_is_handle(work->timer);
	bool is_periodic = work->timer->class == TIMER_PERIODIC;
	bool is_task = work->timer->job == TIMER_RUN;
	bool may_run = is_task && job_may_run(target);
	bool begins;
	bool goes_back = false;
	enum alarm_end end;

	if (is_handle)
		handle_describe(alarm, work->task);
	begins = may_run && alarm_begin(alarm, work->now, &work->task->run);
	if (begins && is_periodic && alarm_only_looks(alarm)) {
		counter_add(&work->thread->counts[JOB_UNBEGUN_RESET], 1);
	} else if (begins) {
		job_call(work, TIMER_RUN);
	} else if (is_handle && (!is_task || (!may_run && alarm_take(alarm)))) {
		goes_back = true;
		job_return(work);
		limit_give(target->places);
	}
	end = alarm_end(target->alarms, alarm, begins ? work->now : ALARM_NOT_RUN, target->places);
	if (is_periodic) {
		/* It may have asked the schedule, which may fork. */
		job_end_in_child(target);
		work->took = -work->began;
	}
	if (is_handle && !begins && !goes_back)
		counter_add(&work->thread->counts[end == ALARM_ENDED || end == ALARM_GONE
							  ? JOB_UNBEGUN_REMOVED
							  : JOB_UNBEGUN_RESET],
			    1);
	/* It is freed, or left to its owner. */
	if (end == ALARM_GONE)
		handle_free(target->handles, &work->thread->bin->handles, alarm);
	if (end == ALARM_BACK || end == ALARM_BACK_NOW)
		work->thread->back = alarm;
	if (end == ALARM_BACK_NOW)
		event_count_hurry(target->owner);
	else if (end == ALARM_BACK)
		event_count_notify(target->owner, EVENT_COUNT_SLEEPING);
}

tw_duration job_finish(struct job_target *target, struct timer *timer, struct job_thread *thread)
{
	tw_duration began = clock_read_real(target->clock->id);
	bool is_manual = target->clock->kind == TW_CLOCK_MANUAL;
	struct guard guard __attribute__((cleanup(guard_end))) = {.target = target};
	struct tw_task task = {.value = timer->value, .wheel = target->wheel};
	const struct tw_task *outer = innermost;
	struct work work = {.target = target,
			    .thread = thread,
			    .timer = timer,
			    .task = &task,
			    .now = is_manual ? clock_now(target->clock) : began,
			    .began = began,
			    .took = -began};

	innermost = &task;
	if (timer_has_key(timer)) {
		job_finish_keyed(&work);
	} else if (timer->job == TIMER_CLOSE) {
		/* The function may free the alarm. */
		task.run = timer_alarm(timer)->function;
		job_call(&work, TIMER_CLOSE);
		alarm_table_end_close(target->alarms);
	} else {
		job_finish_alarm(&work);
	}
	innermost = outer;
	guard.has_returned = true;
	return work.took;
}

bool job_visit(const struct job_target *target, tw_visit_fn *visit, void *context,
	       const struct tw_pending_timer *timers, size_t count)
{
	struct guard guard __attribute__((cleanup(guard_end))) = {.target = target};
	bool goes_on = true;

	for (size_t i = 0; i < count && goes_on; i++)
		goes_on = visit(context, &timers[i]);
	guard.has_returned = true;
	return goes_on;
}

void job_call_for_thread(const struct job_target *target, const struct thread_setup *setup,
			 const char *name, bool begins)
{
	struct guard guard __attribute__((cleanup(guard_end))) = {.target = target};

	if (begins)
		thread_begin_calls(setup, name);
	else
		thread_end_calls(setup, name);
	job_end_in_child(target);
	guard.has_returned = true;
}

const struct tw_task *tw_current_task(void)
{
	return innermost;
}

void job_flush(struct job_target *target, struct timer_bin *bin)
{
	timer_store_flush(target->store, bin);
	slab_flush(&target->handles->slab, &bin->handles);
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
	if (began == JOB_NO_TASK || (sums->began != 0 && sums->began <= began))
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
