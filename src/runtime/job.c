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

#include "base/counter.h"
#include "base/inlined.h"

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

/* Ends the call of a release, drain or close function, which has returned. */
static INLINED void job_end_call(const struct job_target *target, struct job_thread *thread)
{
	job_end_in_child(target);
	counter_subtract(&thread->counts[JOB_RUNNING], 1);
}

static INLINED void job_release(struct work *work, enum tw_reason reason)
{
	if (!work->target->release)
		return;
	counter_add(&work->thread->counts[JOB_RUNNING], 1);
	work->target->release(work->target->context, work->task, reason);
	job_end_call(work->target, work->thread);
}

static INLINED void job_drain(struct work *work)
{
	struct drain *drain = work->timer->drain;

	counter_add(&work->thread->counts[JOB_RUNNING], 1);
	drain->each(drain->context, work->task);
	job_end_call(work->target, work->thread);
	drain_release(drain);
}

/* Does what job_close() does. Not inlined: the other ways need no registers for it. */
static __attribute__((noinline)) void job_close_apart(struct job_target *target,
						      struct timer *timer,
						      struct job_thread *thread,
						      struct tw_task *task)
{
	/* The function may free the alarm. */
	task->run = timer_alarm(timer)->function;
	counter_add(&thread->counts[JOB_RUNNING], 1);
	task->run(task->value);
	job_end_call(target, thread);
	alarm_table_end_close(target->alarms);
}

/* Calls a close's function. */
static INLINED void job_close(struct work *work)
{
	work->took = -work->began;
	job_close_apart(work->target, work->timer, work->thread, work->task);
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

/* Returns what every task gets. */
static struct tw_task job_task(const struct job_target *target, const struct timer *timer,
			       tw_duration now)
{
	return (struct tw_task){.value = timer->value,
				.deadline = timer->deadline,
				.lateness = lateness_at(now, timer->deadline),
				.wheel = target->wheel};
}

/* Calls the release or drain function. */
static INLINED void job_return(struct work *work)
{
	if (work->timer->job == TIMER_RELEASE)
		job_release(work, (enum tw_reason)work->timer->reason);
	else
		job_drain(work);
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

/* Begins a task, which is about to be called. */
static INLINED void job_begin(struct work *work)
{
	histogram_record(&work->thread->lateness, work->task->lateness);
	job_show(&work->thread->run, work->task, work->began);
}

/* Ends a task, which has returned. */
static INLINED void job_end(struct work *work)
{
	struct job_thread *thread = work->thread;

	work->took = time_since(clock_read_real(work->target->clock->id), work->began);
	job_end_in_child(work->target);
	/* relaxed: see job_show(). */
	atomic_store_explicit(&thread->run.began, 0, memory_order_relaxed);
	histogram_record(&thread->duration, work->took);
}

/* Runs the task. A handle's or an alarm's has begun, and has not ended. */
static INLINED void job_run(struct work *work)
{
	job_begin(work);
	if (work->task->run)
		work->task->run(work->task->value);
	else
		work->target->execute(work->target->context, work->task);
	job_end(work);
}

static INLINED void job_finish_keyed(struct work *work)
{
	struct keyed_timer *timer = timer_keyed(work->timer);

	work->task->key = timer->hh.key;
	work->task->key_size = timer->hh.keylen;
	if (timer->timer.job != TIMER_RUN) {
		job_return(work);
	} else if (job_may_run(work->target)) {
		job_run(work);
	} else {
		counter_add(&work->thread->counts[JOB_UNBEGUN_STOPPED], 1);
		job_release(work, TW_STOPPED);
	}
	timer_free(work->target->store, work->thread->bin, timer);
	limit_give(work->target->places);
}

/* Frees the alarm, or leaves it to its owner, as its end says. */
static INLINED void job_end_alarm(struct work *work, enum alarm_end end)
{
	struct job_target *target = work->target;

	if (end == ALARM_GONE)
		handle_free(target->handles, &work->thread->bin->handles, timer_alarm(work->timer));
	if (end == ALARM_BACK || end == ALARM_BACK_NOW)
		work->thread->back = timer_alarm(work->timer);
	if (end == ALARM_BACK_NOW)
		event_count_hurry(target->owner);
	else if (end == ALARM_BACK)
		event_count_notify(target->owner, EVENT_COUNT_SLEEPING);
}

/* Ends an alarm that has not begun: it was stopped, or set later, since it was claimed. */
static INLINED void job_pass_alarm(struct work *work, bool is_handle)
{
	enum alarm_end end = alarm_end(work->target->alarms, timer_alarm(work->timer),
				       ALARM_NOT_RUN, work->target->places);
	bool is_set = end != ALARM_ENDED && end != ALARM_GONE;

	if (is_handle)
		counter_add(&work->thread->counts[is_set ? JOB_UNBEGUN_RESET : JOB_UNBEGUN_REMOVED],
			    1);
	job_end_alarm(work, end);
}

/* Runs the alarm. */
static INLINED void job_run_alarm(struct work *work)
{
	struct job_target *target = work->target;
	struct alarm *alarm = timer_alarm(work->timer);
	bool is_handle = timer_is_handle(work->timer);
	bool is_periodic = work->timer->class == TIMER_PERIODIC;
	enum alarm_end end;

	if (!alarm_begin(alarm, work->now, &work->task->run)) {
		job_pass_alarm(work, is_handle);
		return;
	}
	work->task->deadline = work->timer->deadline;
	work->task->lateness = lateness_at(work->now, work->timer->deadline);
	if (is_periodic && alarm_only_looks(alarm))
		counter_add(&work->thread->counts[JOB_UNBEGUN_RESET], 1);
	else
		job_run(work);
	/* The end may ask the schedule, which may fork. */
	if (is_periodic)
		work->took = -work->began;
	end = alarm_end(target->alarms, alarm, work->now, target->places);
	job_end_in_child(target);
	job_end_alarm(work, end);
}

/* Gives back the value of a handle that does not run, unless a stop has given it to its caller. */
static INLINED void job_return_handle(struct work *work)
{
	struct alarm *alarm = timer_alarm(work->timer);

	if (work->timer->job != TIMER_RUN) {
		job_return(work);
		limit_give(work->target->places);
	} else if (alarm_take(alarm)) {
		work->task->deadline = work->timer->deadline;
		counter_add(&work->thread->counts[JOB_UNBEGUN_STOPPED], 1);
		job_release(work, TW_STOPPED);
		limit_give(work->target->places);
	} else {
		counter_add(&work->thread->counts[JOB_UNBEGUN_REMOVED], 1);
	}
}

static INLINED void job_finish_alarm(struct work *work)
{
	bool is_handle = timer_is_handle(work->timer);

	if (is_handle)
		handle_describe(timer_alarm(work->timer), work->task);
	if (work->timer->job == TIMER_RUN && job_may_run(work->target)) {
		job_run_alarm(work);
		return;
	}
	if (is_handle)
		job_return_handle(work);
	job_end_alarm(work, alarm_end(work->target->alarms, timer_alarm(work->timer), ALARM_NOT_RUN,
				      work->target->places));
}

tw_duration job_finish(struct job_target *target, struct timer *timer, struct job_thread *thread)
{
	tw_duration began = clock_read_real(target->clock->id);
	tw_duration now = clock_now_at(target->clock, began);
	struct guard guard __attribute__((cleanup(guard_end))) = {.target = target};
	struct tw_task task = job_task(target, timer, now);
	const struct tw_task *outer = innermost;
	struct work work = {.target = target,
			    .thread = thread,
			    .timer = timer,
			    .task = &task,
			    .now = now,
			    .began = began,
			    .took = -began};

	innermost = &task;
	if (timer_has_key(timer))
		job_finish_keyed(&work);
	else if (timer->job == TIMER_CLOSE)
		job_close(&work);
	else
		job_finish_alarm(&work);
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

void job_begin_thread(const struct job_target *target, const struct thread_setup *setup,
		      const char *name)
{
	struct guard guard __attribute__((cleanup(guard_end))) = {.target = target};

	thread_begin_calls(setup, name);
	job_end_in_child(target);
	guard.has_returned = true;
}

void job_end_thread(const struct job_target *target, const struct thread_setup *setup,
		    const char *name)
{
	struct guard guard __attribute__((cleanup(guard_end))) = {.target = target};

	thread_end_calls(setup, name);
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
