/* SPDX-License-Identifier: MIT */
/*
 * This harness runs the worker pool. Each submitted job is done once, by a worker that sees the
 * writes before the submission; no worker sleeps while a job waits for one; the counts of an ended
 * worker are added once to the pool's; the pool ends.
 * SHOWS selects a part:
 *
 *   TRAYS    the first worker fills its batch twice and takes from it; OTHERS help
 *   SLEEP    the first worker fills its batch and is held up by its first job, which waits for the
 *            second: another, that is about to sleep, does it
 *   SLOTS    a second worker takes a slot and fills its batch, the first helps it
 *   LEAVE    a worker that has done its jobs leaves its slot, the watcher clears it, another thread
 *            sums up; the pool ends
 *   WHOLE    a pool of WORKERS does BATCHES batches of JOBS jobs, is waited for and destroyed
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
#include <string.h>

#ifndef SHOWS
#define SHOWS TRAYS
#endif
#ifndef OTHERS
#define OTHERS 1
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef BATCHES
#define BATCHES 1
#endif
#ifndef JOBS
#define JOBS 2
#endif

#include "base/clock.c"
#include "base/thread.c"
#include "runtime/worker_pool.h"

/* The pool's memory is static here: zero at first, and never freed. */
static void proof_keep(const void *memory)
{
	(void)memory;
}

/* Clears the word of a slot that other threads look at; a slot has many words. */
static void proof_clear_slot(void *memory);

#define memset(memory, value, size) \
	_Generic((memory), struct worker * : proof_clear_slot, default : proof_keep)(memory)
#define free(memory) proof_keep(memory)
#include "runtime/worker_pool.c"
#undef free
#undef memset

enum shows { TRAYS, SLEEP, SLOTS, LEAVE, WHOLE };

enum { SEATS_MOST = 3, TIMERS = 4 };

/* This is the pool with its slots: the second is where the first one's array begins. */
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
static struct {
	struct worker_pool pool;
	struct worker workers[SEATS_MOST];
} memory;

static void proof_clear_slot(void *memory)
{
	struct worker *worker = memory;

	*(uint64_t *)(void *)&worker->batch = 0;
}

static struct worker_pool *const pool = &memory.pool;
static struct job_target target;
static struct timer timers[TIMERS];
/* The submitter writes these plain words, then the thread that does the job. */
static int given[TIMERS];
static int done[TIMERS];
static atomic_bool is_done[TIMERS];

/* ---- Calls from the pool ---- */

/* The pool assigns structs: all batches, a thread, and sums, whose counts are enough here. */
void *memcpy(void *to, const void *from, size_t size)
{
	if (size == sizeof(struct job_sums))
		size = sizeof(((struct job_sums *)NULL)->counts);
	else
		assert(size == sizeof(struct job_batches) || size == sizeof(struct thread));
	for (size_t i = 0; i < size / sizeof(void *); i++)
		((void **)to)[i] = ((void *const *)from)[i];
	return to;
}

int snprintf(char *text, size_t size, const char *format, ...)
{
	(void)text;
	(void)size;
	(void)format;
	return 0;
}

/* Naming threads does nothing. */
int prctl(int option, ...)
{
	(void)option;
	return 0;
}

/* No time passes here. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	now->tv_sec = 0;
	now->tv_nsec = 1;
	return 0;
}

size_t processors_available(void)
{
	return 1;
}

tw_duration processor_time(pthread_t thread)
{
	(void)thread;
	return 0;
}

void job_begin_thread(const struct job_target *unused, const struct thread_setup *setup,
		      const char *name)
{
	(void)unused;
	(void)setup;
	(void)name;
}

void job_end_thread(const struct job_target *unused, const struct thread_setup *setup,
		    const char *name)
{
	(void)unused;
	(void)setup;
	(void)name;
}

void job_flush(struct job_target *unused, struct timer_bin *bin)
{
	(void)unused;
	(void)bin;
}

/* No worker has these counts yet. */
static struct worker_counts counts[SEATS_MOST];
static int counts_taken;

/* One thread at a time calls this: the creator, or a worker that takes a slot. */
void *pages_map_untouched(size_t size)
{
	assert(size == sizeof(*counts));
	return &counts[counts_taken++];
}

/* These plain writes race with any reader that is left. */
void pages_unmap_aligned(void *memory, size_t size)
{
	(void)size;
	((struct worker_counts *)memory)->thread.bin = NULL;
}

void job_sums_add(struct job_sums *sums, const struct job_thread *thread)
{
	assert(thread->bin != NULL);
	sums->counts[JOB_UNBEGUN_REMOVED] +=
		atomic_load_explicit(&thread->counts[JOB_UNBEGUN_REMOVED], memory_order_relaxed);
}

static bool job_is_held_up(int number)
{
	return SHOWS == SLEEP && number == 0;
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
	if (job_is_held_up(number))
		job_wait_for_second();
	done[number]++;
	/* release: pairs with job_wait_for_second(). */
	atomic_store_explicit(&is_done[number], true, memory_order_release);
	return 0;
}

/* ---- Threads ---- */

static void batch_fill(struct job_batches *batches, int first, int count)
{
	for (int i = first; i < first + count; i++) {
		given[i] = 1;
		job_batches_add(batches, &timers[i]);
	}
}

/* Takes a slot as worker_pool_add_worker() does. */
static struct worker *slot_take(void)
{
	struct worker *worker = worker_pool_free_slot(pool);

	worker->is_taken = true;
	worker->wait_group = NO_WAIT_GROUP;
	worker->counts = pages_map_untouched(sizeof(*worker->counts));
	worker->counts->thread.bin = &worker->counts->bin;
	pool->live++;
	return worker;
}

/* Lays timers onto the first worker's batch, and does its jobs. */
static void batch_empty(struct worker *worker, int first)
{
	struct job_batches batches = {0};
	struct timer *timer;

	batch_fill(&batches, first, 2);
	pool->submitted[0] += 2;
	worker_fill_batch(worker, batches.first);
	while ((timer = worker_claim(worker, CLAIM_BY_ITSELF)))
		(void)job_finish(&target, timer, &worker->counts->thread);
}

static void *batch_owner_run(void *argument)
{
	batch_empty(argument, 0);
	batch_empty(argument, 2);
	return NULL;
}

static void *batch_helper_run(void *argument)
{
	for (int i = 0; i < 2; i++) {
		struct timer *timer = worker_claim(argument, CLAIM_BY_OTHER);

		if (timer)
			job_finish(&target, timer, NULL);
	}
	return NULL;
}

/* This worker has the batch. */
static void *first_run(void *argument)
{
	batch_empty(argument, 0);
	return NULL;
}

/* This worker ends when it has done a job. */
static void *sleeper_run(void *argument)
{
	struct worker *worker = argument;
	struct timer *timer;

	while (!(timer = worker_next_job(worker)))
		(void)worker_sleep(worker);
	worker_finish(worker, timer);
	return NULL;
}

static void threads_run(void *(*first)(void *), void *one, void *(*second)(void *), void *other)
{
	pthread_t threads[1 + OTHERS];

	pthread_create(&threads[0], NULL, first, one);
	for (int i = 0; i < OTHERS; i++)
		pthread_create(&threads[1 + i], NULL, second, other);
	for (int i = 0; i <= OTHERS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- The parts ---- */

static void show_trays(void)
{
	struct worker *worker = slot_take();

	threads_run(batch_owner_run, worker, batch_helper_run, worker);
}

static void show_sleep(void)
{
	struct worker *first = slot_take();

	threads_run(first_run, first, sleeper_run, slot_take());
}

/* Does what worker_pool_add_worker() and its new thread do. */
static void *second_run(void *argument)
{
	struct worker *worker;

	pthread_mutex_lock(&pool->lock);
	worker = slot_take();
	pthread_mutex_unlock(&pool->lock);
	batch_empty(worker, 0);
	return argument;
}

/* Helps the workers that it finds. */
static void *helping_run(void *argument)
{
	struct worker *worker = argument;
	struct timer *timer;

	for (size_t i = 0; i < worker_pool_slots(pool); i++) {
		timer = worker_help(worker);
		if (timer)
			(void)job_finish(&target, timer, &worker->counts->thread);
	}
	return NULL;
}

/* The worker has done two jobs, and a third that was removed. */
static void *leaving_run(void *argument)
{
	struct worker *worker = argument;

	atomic_store_explicit(&worker->counts->finished[0], 2, memory_order_seq_cst);
	atomic_store_explicit(&worker->counts->thread.counts[JOB_UNBEGUN_REMOVED], 1,
			      memory_order_relaxed);
	pthread_mutex_lock(&pool->lock);
	worker_leave_slot(worker);
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static uint64_t removed_by_all(void)
{
	static struct job_sums sums;

	sums.counts[JOB_UNBEGUN_REMOVED] = 0;
	worker_pool_sum(pool, &sums);
	return sums.counts[JOB_UNBEGUN_REMOVED];
}

static uint64_t unfinished_by_all(void)
{
	uint64_t unfinished;

	pthread_mutex_lock(&pool->lock);
	unfinished = worker_pool_unfinished_in_all(pool);
	pthread_mutex_unlock(&pool->lock);
	return unfinished;
}

static void show_leave(void)
{
	struct worker *worker = slot_take();
	uint64_t removed;
	uint64_t unfinished;

	pool->most = pool->least + 1;
	pool->has_watcher = true;
	pool->submitted[0] = 2;
	worker->is_joinable = true;
	pthread_create(&worker->thread.id, NULL, leaving_run, worker);
	pthread_create(&pool->watcher.id, NULL, worker_pool_watch, pool);
	unfinished = unfinished_by_all();
	assert(unfinished == 2 || (unfinished == 0 && unfinished_by_all() == 0));
	removed = removed_by_all();
	assert(removed == 0 || (removed == 1 && removed_by_all() == 1));
	worker_pool_end(pool);
}

static void show_pool(void)
{
	int error = worker_pool_start(pool);

	assert(error == 0);
	for (int i = 0; i < BATCHES; i++) {
		struct job_batches batches = {0};

		batch_fill(&batches, i * JOBS, JOBS);
		worker_pool_submit(pool, JOB_LANE_PROMPT, &batches);
	}
	worker_pool_wait(pool);
	for (int i = 0; i < BATCHES * JOBS; i++)
		assert(done[i] == 1);
	worker_pool_end(pool);
}

int main(void)
{
	int jobs = SHOWS == TRAYS ? 4 : SHOWS == LEAVE ? 0 : BATCHES * JOBS;

	/* worker_pool_create() does this. */
	list_init(&pool->sleepers);
	pool->target = &target;
	pool->least = WORKERS;
	pool->most = WORKERS;
	if (SHOWS == TRAYS)
		show_trays();
	else if (SHOWS == SLEEP)
		show_sleep();
	else if (SHOWS == SLOTS)
		threads_run(second_run, NULL, helping_run, slot_take());
	else if (SHOWS == LEAVE)
		show_leave();
	else
		show_pool();
	for (int i = 0; i < jobs; i++)
		assert(done[i] == 1);
	return 0;
}
