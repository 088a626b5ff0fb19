/* SPDX-License-Identifier: MIT */
/*
 * The owner hands jobs over in batches of up to 32 timers, linked through the timers themselves: in
 * a batch link.next leads to the next timer, and in its first timer link.previous leads to the
 * first timer of the next batch. So a lock held for a few instructions passes 32 jobs, both ways.
 *
 * A worker that takes a batch lays it out on its tray, and takes its jobs from there one at a time.
 * So may every other worker: a job is claimed by advancing the tray's word with compare-and-swap. A
 * worker looks at one other tray, each time the next, before it takes a new batch, and at all of
 * them before it sleeps; whoever leaves jobs on a tray while others sleep wakes one. So a slow task
 * holds up only itself, and a batch behind it is finished by the others.
 *
 * The tray's word holds the next job's place, the end, and a generation that changes with each
 * filling, so that a claim made from an old look fails. (It comes round after 2^32 fillings, within
 * one claim.)
 *
 * There are two lanes of batches: jobs that have just become due, and bulk, of which there may be a
 * million. A worker takes a prompt batch if there is one, so that a crowd delays what comes after it
 * by a batch or two; one batch in eight comes from the bulk lane all the same.
 *
 * Waiting until idle. Jobs submitted while others run must not be waited for, so they are counted
 * by epoch, of which there are two: each job counts into the current one, and is counted out by who
 * did it. A waiter waits until the other epoch is empty, makes it the current one, and waits until
 * the former is empty: then all that was submitted before is done. One waiter at a time does so.
 *
 * May run together: submit by one thread, wait by any number, with all workers.
 * Linearization: a job is handed over at the unlock in submit, claimed at the exchange of the
 * tray's word, done at the addition to `finished`.
 */
#include "worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "thread.h"

enum { BULK_SHARE = 8 }; /* one batch in so many is taken from the bulk lane first */

struct worker {
	/* Constant. */
	struct worker_pool *pool;
	pthread_t thread;
	/* Filled by the worker, emptied by all. */
	_Alignas(CACHE_LINE) _Atomic uint64_t tray; /* generation, end, next: 32, 16 and 16 bits */
	_Atomic(struct timer *) jobs[WORKER_BATCH];
	/* The worker's own; `finished` is read by who waits. */
	_Alignas(CACHE_LINE) _Atomic uint64_t finished[2]; /* by epoch */
	int victim;                                        /* whose tray to look at next */
	struct timer_bin bin;
	struct job_seat seat;
};

/* Batches nobody has taken. */
struct lane {
	struct timer *first;
	struct timer *last;
};

struct worker_pool {
	/* Constant. */
	struct job_target *target;
	int worker_count;
	/* Any thread, under the lock. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	pthread_cond_t work; /* jobs, or the end */
	pthread_cond_t epoch_is_empty;
	struct lane lanes[JOB_LANES];
	unsigned batches_taken;
	uint64_t submitted[2];
	uint8_t epoch;
	bool waiter_is_waiting;
	bool ending;
	/* Written under the lock, read by workers. */
	_Alignas(CACHE_LINE) atomic_int sleepers;
	atomic_int waiters;
	struct worker workers[];
};

void job_batches_add(struct job_batches *batches, struct timer *timer)
{
	batches->count++;
	timer->link.next = NULL;
	if (batches->last && batches->last->batch_size < WORKER_BATCH) {
		batches->last->batch_size++;
		batches->newest->link.next = &timer->link;
	} else {
		timer->batch_size = 1;
		timer->link.previous = NULL;
		if (batches->last)
			batches->last->link.previous = &timer->link;
		else
			batches->first = timer;
		batches->last = timer;
	}
	batches->newest = timer;
}

static struct timer *timer_or_null(struct list *link)
{
	return link ? timer_of_link(link) : NULL;
}

static bool tray_is_empty(uint64_t tray)
{
	return (tray & 0xffff) == (tray >> 16 & 0xffff);
}

static bool worker_tray_is_empty(struct worker *worker)
{
	/* seq_cst: the sleeper's second look; pairs with the store in worker_fill_tray(). */
	return tray_is_empty(atomic_load_explicit(&worker->tray, memory_order_seq_cst));
}

/* Claims the next job of the worker's tray, for the worker or for another; NULL: none. */
static struct timer *worker_claim(struct worker *worker)
{
	/* acquire: sees the jobs and their timers; pairs with the store in worker_fill_tray(). */
	uint64_t tray = atomic_load_explicit(&worker->tray, memory_order_acquire);
	struct timer *timer;

	do {
		if (tray_is_empty(tray))
			return NULL;
		/* relaxed: if it is of a later filling, the exchange fails. */
		timer = atomic_load_explicit(&worker->jobs[tray & 0xffff], memory_order_relaxed);
		/* acq_rel: our look at the job comes before it is seen as claimed, so before the
		 * next filling; acquire as above. */
	} while (!atomic_compare_exchange_weak_explicit(
		&worker->tray, &tray, tray + 1, memory_order_acq_rel, memory_order_acquire));
	return timer;
}

/* Wakes a sleeping worker, if there is one, to help with what lies on a tray. */
static void worker_pool_call_help(struct worker_pool *pool)
{
	/* seq_cst: after the tray was filled; pairs with the addition in worker_sleep(). */
	if (atomic_load_explicit(&pool->sleepers, memory_order_seq_cst) == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

/* Lays a batch out on the worker's empty tray. */
static void worker_fill_tray(struct worker *worker, struct timer *batch)
{
	/* relaxed: others only claim, and the tray is empty. */
	uint64_t tray = atomic_load_explicit(&worker->tray, memory_order_relaxed);
	uint8_t epoch = batch->epoch;
	uint64_t count = 0;

	for (struct timer *timer = batch; timer; timer = timer_or_null(timer->link.next)) {
		__builtin_prefetch(timer + 1);
		timer->epoch = epoch;
		/* relaxed: published by the tray's word. */
		atomic_store_explicit(&worker->jobs[count++], timer, memory_order_relaxed);
	}
	tray = ((tray >> 32) + 1) << 32 | count << 16;
	/* seq_cst, as a release: publishes jobs and timers to worker_claim(); and before the look
	 * for sleepers; pairs with the load in worker_tray_is_empty(). */
	atomic_store_explicit(&worker->tray, tray, memory_order_seq_cst);
	if (count > 1)
		worker_pool_call_help(worker->pool);
}

/* Under the lock: whose turn it is. The bulk lane comes last, but now and then it comes first. */
static struct lane *worker_pool_next_lane(struct worker_pool *pool)
{
	struct lane *prompt = &pool->lanes[JOB_LANE_PROMPT];
	struct lane *bulk = &pool->lanes[JOB_LANE_BULK];

	if (!bulk->first)
		return prompt;
	if (!prompt->first)
		return bulk;
	return ++pool->batches_taken % BULK_SHARE == 0 ? bulk : prompt;
}

/* Takes the oldest batch that nobody has; false: there is none. */
static bool worker_take_batch(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct timer *batch;
	struct lane *lane;

	pthread_mutex_lock(&pool->lock);
	lane = worker_pool_next_lane(pool);
	batch = lane->first;
	if (batch)
		lane->first = timer_or_null(batch->link.previous);
	pthread_mutex_unlock(&pool->lock);
	if (!batch)
		return false;
	worker_fill_tray(worker, batch);
	return true;
}

/* Claims a job from the tray of the next of the other workers. */
static struct timer *worker_help(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct worker *victim;
	struct timer *timer;

	worker->victim = (worker->victim + 1) % pool->worker_count;
	victim = &pool->workers[worker->victim];
	if (victim == worker)
		return NULL;
	timer = worker_claim(victim);
	if (timer && !worker_tray_is_empty(victim))
		worker_pool_call_help(pool);
	return timer;
}

static struct timer *worker_next_job(struct worker *worker)
{
	struct timer *timer = worker_claim(worker);

	if (!timer)
		timer = worker_help(worker);
	while (!timer && worker_take_batch(worker))
		timer = worker_claim(worker);
	for (int i = 0; !timer && i < worker->pool->worker_count; i++)
		timer = worker_help(worker);
	return timer;
}

static bool worker_pool_has_batches(const struct worker_pool *pool)
{
	return pool->lanes[JOB_LANE_PROMPT].first || pool->lanes[JOB_LANE_BULK].first;
}

static bool worker_pool_has_jobs(struct worker_pool *pool)
{
	for (int i = 0; i < pool->worker_count; i++)
		if (!worker_tray_is_empty(&pool->workers[i]))
			return true;
	return worker_pool_has_batches(pool);
}

/* Sleeps until there may be jobs; false: the pool ends and there are none. */
static bool worker_sleep(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	bool ending;

	job_flush(pool->target, &worker->bin);
	pthread_mutex_lock(&pool->lock);
	/* seq_cst: the announcement, before the second look; pairs with the load in
	 * worker_pool_call_help(). */
	atomic_fetch_add_explicit(&pool->sleepers, 1, memory_order_seq_cst);
	ending = pool->ending && !worker_pool_has_batches(pool);
	if (!pool->ending && !worker_pool_has_jobs(pool))
		pthread_cond_wait(&pool->work, &pool->lock);
	/* relaxed: a wake too many harms nobody. */
	atomic_fetch_sub_explicit(&pool->sleepers, 1, memory_order_relaxed);
	pthread_mutex_unlock(&pool->lock);
	return !ending;
}

/* Under the lock. */
static uint64_t worker_pool_unfinished_in(struct worker_pool *pool, int epoch)
{
	uint64_t unfinished = pool->submitted[epoch];

	for (int i = 0; i < pool->worker_count; i++) {
		/* seq_cst: the waiter's look after its announcement; sees what the tasks did; pairs
		 * with the addition in worker_finish(). */
		unfinished -= atomic_load_explicit(&pool->workers[i].finished[epoch],
						   memory_order_seq_cst);
	}
	return unfinished;
}

static void worker_finish(struct worker *worker, struct timer *timer)
{
	struct worker_pool *pool = worker->pool;
	uint8_t epoch = timer->epoch;

	job_finish(pool->target, timer, &worker->seat);
	/* seq_cst: before the look for waiters; pairs with the load in worker_pool_unfinished_in(). */
	atomic_fetch_add_explicit(&worker->finished[epoch], 1, memory_order_seq_cst);
	/* seq_cst: pairs with the addition in worker_pool_wait(). */
	if (atomic_load_explicit(&pool->waiters, memory_order_seq_cst) == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	if (worker_pool_unfinished_in(pool, epoch) == 0)
		pthread_cond_broadcast(&pool->epoch_is_empty);
	pthread_mutex_unlock(&pool->lock);
}

static void *worker_run(void *argument)
{
	struct worker *worker = argument;

	do {
		struct timer *timer;

		while ((timer = worker_next_job(worker)))
			worker_finish(worker, timer);
	} while (worker_sleep(worker));
	return NULL;
}

/* Ends and joins the first `started` workers, frees the pool. */
static void worker_pool_end(struct worker_pool *pool, int started)
{
	pthread_mutex_lock(&pool->lock);
	pool->ending = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < started; i++)
		pthread_join(pool->workers[i].thread, NULL);
	pthread_cond_destroy(&pool->epoch_is_empty);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

static int worker_start(struct worker *worker, struct worker_pool *pool, const char *name,
			int number)
{
	char role[12];

	worker->pool = pool;
	worker->victim = number;
	worker->seat.bin = &worker->bin;
	snprintf(role, sizeof(role), "%d", number);
	return thread_start(&worker->thread, worker_run, worker, name, role);
}

struct worker_pool *worker_pool_create(int workers, const char *name, struct job_target *target)
{
	size_t size = sizeof(struct worker_pool) + (size_t)workers * sizeof(struct worker);
	struct worker_pool *pool = aligned_alloc(CACHE_LINE, size);

	if (!pool)
		return NULL;
	memset(pool, 0, size);
	pool->target = target;
	pool->worker_count = workers;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->epoch_is_empty, NULL);
	for (int i = 0; i < workers; i++) {
		int error = worker_start(&pool->workers[i], pool, name, i);

		if (error != 0) {
			worker_pool_end(pool, i);
			errno = error;
			return NULL;
		}
	}
	return pool;
}

void worker_pool_destroy(struct worker_pool *pool)
{
	worker_pool_end(pool, pool->worker_count);
}

void worker_pool_submit(struct worker_pool *pool, enum job_lane lane_number,
			struct job_batches *batches)
{
	struct lane *lane = &pool->lanes[lane_number];
	int wake = 0;

	if (batches->count == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	for (struct timer *batch = batches->first; batch;
	     batch = timer_or_null(batch->link.previous)) {
		batch->epoch = pool->epoch;
		wake++;
	}
	pool->submitted[pool->epoch] += batches->count;
	if (lane->first)
		lane->last->link.previous = &batches->first->link;
	else
		lane->first = batches->first;
	lane->last = batches->last;
	for (int i = 0; i < wake && i < pool->worker_count; i++)
		pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	*batches = (struct job_batches){0};
}

static void worker_pool_wait_for(struct worker_pool *pool, int epoch)
{
	while (worker_pool_unfinished_in(pool, epoch) != 0)
		pthread_cond_wait(&pool->epoch_is_empty, &pool->lock);
}

void worker_pool_wait(struct worker_pool *pool)
{
	uint8_t epoch;

	pthread_mutex_lock(&pool->lock);
	/* seq_cst: the announcement, before the look; pairs with the load in worker_finish(). */
	atomic_fetch_add_explicit(&pool->waiters, 1, memory_order_seq_cst);
	while (pool->waiter_is_waiting)
		pthread_cond_wait(&pool->epoch_is_empty, &pool->lock);
	pool->waiter_is_waiting = true;
	epoch = pool->epoch;
	worker_pool_wait_for(pool, !epoch);
	pool->epoch = !epoch;
	worker_pool_wait_for(pool, epoch);
	pool->waiter_is_waiting = false;
	/* relaxed: a broadcast too many harms nobody. */
	atomic_fetch_sub_explicit(&pool->waiters, 1, memory_order_relaxed);
	pthread_cond_broadcast(&pool->epoch_is_empty);
	pthread_mutex_unlock(&pool->lock);
}

bool worker_pool_is_here(const struct worker_pool *pool)
{
	pthread_t self = pthread_self();

	for (int i = 0; i < pool->worker_count; i++)
		if (pthread_equal(pool->workers[i].thread, self))
			return true;
	return false;
}

void worker_pool_sum(const struct worker_pool *pool, struct job_sums *sums)
{
	for (int i = 0; i < pool->worker_count; i++)
		job_sums_add(sums, &pool->workers[i].seat);
}

uint64_t worker_pool_unfinished(struct worker_pool *pool)
{
	uint64_t unfinished;

	pthread_mutex_lock(&pool->lock);
	unfinished = worker_pool_unfinished_in(pool, 0) + worker_pool_unfinished_in(pool, 1);
	pthread_mutex_unlock(&pool->lock);
	return unfinished;
}
