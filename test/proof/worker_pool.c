/* SPDX-License-Identifier: MIT */
/*
 * This harness runs the worker pool. Each submitted job is done once, by a worker that sees the
 * writes before the submission; no worker sleeps while a job waits for one; a wait ends after the
 * jobs submitted before it; the pool ends.
 * SHOWS selects a part:
 *
 *   BATCH    a worker fills its batch twice and claims from it; OTHERS claim, too
 *   SLEEP    a worker fills its batch and is held up by its first job, which waits for the second:
 *            another worker, that is about to sleep, does it
 *   WHOLE    a worker sleeps or not, does a job, is waited for, and ends
 *   WAITS    a thread waits for the first of two jobs, another for both
 *
 * A job's memory is plain: doing it twice, or before its writes are visible, is a race. A lost
 * wake-up leaves a thread in a wait that never ends, which is a liveness violation.
 */
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef SHOWS
#define SHOWS BATCH
#endif
#ifndef OTHERS
#define OTHERS 1
#endif

/* A batch's lock is one of GenMC's here; own_lock.c shows that ours is a lock. */
#define OWN_LOCK_H
struct own_lock {
	pthread_mutex_t mutex;
};

static inline void own_lock_take(struct own_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
}

static inline void own_lock_let_go(struct own_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

#include "runtime/worker_pool.c"

enum shows { BATCH, SLEEP, WHOLE, WAITS };

enum { SLOTS_MOST = 2, TIMERS = 4 };

/* This is the pool with its slots: the second is where the first one's array begins. */
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
static struct {
	struct worker_pool pool;
	struct worker workers[SLOTS_MOST];
} memory;

static struct worker_pool *const pool = &memory.pool;
static struct job_target target;
static struct timer timers[TIMERS];
/* The submitter writes these plain words, then the thread that does the job. */
static int given[TIMERS];
static int done[TIMERS];
static atomic_bool is_done[TIMERS];

/* ---- Calls from the pool ---- */

/* The pool assigns structs of whole words. */
void *memcpy(void *to, const void *from, size_t size)
{
	assert(size % sizeof(void *) == 0);
	for (size_t i = 0; i < size / sizeof(void *); i++)
		((void **)to)[i] = ((void *const *)from)[i];
	return to;
}

/* No time passes here. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now->tv_sec = 0;
	now->tv_nsec = 1;
	return 0;
}

void condition_init(pthread_cond_t *condition)
{
	(void)condition;
}

bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, tw_duration until)
{
	assert(until == TW_FOREVER);
	return pthread_cond_wait(condition, lock) == 0;
}

bool clock_wait(const struct clock *clock, pthread_cond_t *condition, pthread_mutex_t *lock,
		tw_duration deadline)
{
	(void)clock;
	return condition_wait(condition, lock, deadline);
}

void thread_join(const struct thread *thread)
{
	pthread_join(thread->id, NULL);
}

void job_flush(struct job_target *unused, struct timer_bin *bin)
{
	(void)unused;
	(void)bin;
}

/* The task waits for another one: without an end, if no worker does that. */
static void job_wait_for_second(void)
{
	__VERIFIER_loop_begin();
	__VERIFIER_spin_start();
	/* acquire: pairs with the store in job_finish(). */
	__VERIFIER_spin_end(atomic_load_explicit(&is_done[1], memory_order_acquire));
}

tw_duration job_finish(struct job_target *unused, struct timer *timer, struct job_thread *thread)
{
	int number = (int)(timer - timers);

	(void)unused;
	(void)thread;
	assert(given[number] == 1);
	given[number] = 2;
	if (SHOWS == SLEEP && number == 0)
		job_wait_for_second();
	done[number]++;
	/* release: pairs with job_wait_for_second(). */
	if (SHOWS == SLEEP)
		atomic_store_explicit(&is_done[number], true, memory_order_release);
	return 0;
}

/* ---- Threads ---- */

static struct timer *timers_give(struct job_batches *batches, int first, int count)
{
	for (int i = first; i < first + count; i++) {
		given[i] = 1;
		job_batches_add(batches, &timers[i]);
	}
	return batches->first;
}

static void submit(int first, int count)
{
	struct job_batches batches = {0};

	(void)timers_give(&batches, first, count);
	worker_pool_submit(pool, JOB_LANE_PROMPT, &batches);
}

/* Does the jobs of the worker's batch that no other worker claims. */
static void batch_empty(struct worker *worker)
{
	struct timer *timer;

	while ((timer = batch_claim(&worker->batch)))
		(void)job_finish(&target, timer, NULL);
}

static void *filler_run(void *argument)
{
	struct worker *worker = argument;

	for (int i = 0; i < 2; i++) {
		struct job_batches batches = {0};

		pthread_mutex_lock(&pool->lock);
		batch_fill(&worker->batch, timers_give(&batches, 2 * i, 2));
		pthread_mutex_unlock(&pool->lock);
		batch_empty(worker);
	}
	return NULL;
}

static void *helper_run(void *argument)
{
	for (int i = 0; i < 2; i++) {
		struct timer *timer;

		pthread_mutex_lock(&pool->lock);
		timer = batch_claim(&((struct worker *)argument)->batch);
		pthread_mutex_unlock(&pool->lock);
		if (timer)
			(void)job_finish(&target, timer, NULL);
	}
	return NULL;
}

/* The worker fills its batch as worker_find_job() does. */
static void *first_run(void *argument)
{
	struct worker *worker = argument;
	struct job_batches batches = {0};

	pthread_mutex_lock(&pool->lock);
	batch_fill(&worker->batch, timers_give(&batches, 0, 2));
	(void)worker_pool_wake(pool);
	pthread_mutex_unlock(&pool->lock);
	batch_empty(worker);
	return NULL;
}

/* This worker ends when it has done a job. */
static void *sleeper_run(void *argument)
{
	(void)job_finish(&target, worker_wait_for_job(argument, NULL), NULL);
	return NULL;
}

static void *worker_loop(void *argument)
{
	static struct job_thread counts;

	worker_do_jobs(argument, &counts);
	worker_leave(argument);
	return NULL;
}

static void *waiter_run(void *argument)
{
	(void)worker_pool_wait_until(pool, TW_FOREVER);
	assert(done[0] == 1);
	return argument;
}

/* ---- The parts ---- */

static void threads_run(void *(*first)(void *), void *one, void *(*second)(void *), void *other)
{
	pthread_t threads[1 + OTHERS];

	pthread_create(&threads[0], NULL, first, one);
	for (int i = 0; i < OTHERS; i++)
		pthread_create(&threads[1 + i], NULL, second, other);
	for (int i = 0; i <= OTHERS; i++)
		pthread_join(threads[i], NULL);
}

static void show_batch(void)
{
	struct worker *worker = worker_enter(pool);

	threads_run(filler_run, worker, helper_run, worker);
}

static void show_sleep(void)
{
	struct worker *first = worker_enter(pool);

	threads_run(first_run, first, sleeper_run, worker_enter(pool));
}

static void worker_begin(void)
{
	struct worker *worker = worker_enter(pool);

	pthread_create(&worker->thread.id, NULL, worker_loop, worker);
}

static void show_pool(void)
{
	worker_begin();
	submit(0, 1);
	worker_pool_end_threads(pool);
}

/* The second job comes before or after the begin of the thread's wait. */
static void show_waits(void)
{
	pthread_t waiter;

	submit(0, 1);
	pthread_create(&waiter, NULL, waiter_run, NULL);
	submit(1, 1);
	worker_begin();
	worker_pool_end_threads(pool);
	pthread_join(waiter, NULL);
}

int main(void)
{
	/* worker_pool_create() does this. */
	list_init(&pool->sleepers);
	pool->target = &target;
	pool->least = SLOTS_MOST;
	pool->most = SLOTS_MOST;
	if (SHOWS == BATCH)
		show_batch();
	else if (SHOWS == SLEEP)
		show_sleep();
	else if (SHOWS == WHOLE)
		show_pool();
	else
		show_waits();
	for (int i = 0; i < (SHOWS == BATCH ? 4 : SHOWS == WHOLE ? 1 : 2); i++)
		assert(done[i] == 1);
	return 0;
}
