/* SPDX-License-Identifier: MIT */
/*
 * The worker pool is a set of threads that do jobs, which the owner hands over in batches.
 *
 * Invariants:
 *   a job is claimed once, by the worker that takes it out of a batch, under the batch's lock
 *   a worker fills its own batch, and only when all jobs in it are claimed; it claims from others'
 *     batches under the pool's lock alone
 *   all jobs of a batch are of one wait group; at most two groups have unfinished jobs
 *   for each group, the jobs submitted are not fewer than those finished
 *   `sleepers` has the workers that are asleep; one falls asleep only while no job waits
 *   while jobs wait, a worker is on its way to them, or all workers are busy
 *
 * Which calls may run together: worker_pool_submit() by one thread, all others by any number of
 * threads, with all workers and the watcher. Before worker_pool_destroy() all other calls must have
 * returned. Linearization: a job is handed over at the unlock in submit, claimed at the store to
 * the batch's `next`, and done at the store to `finished`.
 *
 * Batches. A batch has up to 32 timers, linked through the timers themselves: link.next leads to
 * the next timer of the batch, and link.previous of its first timer leads to the first timer of the
 * next batch. So a lock held for a few instructions passes 32 jobs.
 *
 * A worker takes a batch; then it claims the jobs one by one. One that finds no batch in the lanes
 * claims a job wherever one is left. And each time that a worker needs a new batch, it looks first
 * at one other worker's: if no job of it was claimed since the last look, a task holds its worker
 * up, and the jobs behind it come before a new batch. So a slow task delays itself alone. (One
 * batch shared by all would be simpler, but costs a third more for each short task: its timers and
 * its lock go from processor to processor.)
 *
 * Orders. All is read and written under a lock, except `finished`: the worker's release publishes
 * what a task did to the waiter, which acquires it. A batch's `next` is also looked at without the
 * batch's lock.
 *
 * Waking. A batch that is submitted wakes one worker. A worker that finds a job wakes another one
 * if it leaves jobs behind that. So as many workers wake as there are jobs, and none for jobs that
 * are done by then. Batches are filled under the pool's lock, under which a worker looks at all of
 * them before it sleeps: it sees the jobs, or the filler sees it asleep. The worker that became
 * idle last is woken first: those that are not needed stay asleep.
 *
 * Lanes. There are two lanes of batches: jobs that have just become due, and bulk, which may be a
 * million jobs. The next batch is a prompt one if there is one, so that a crowd delays later jobs
 * by a batch or two. One batch in eight comes from the bulk lane first.
 *
 * Waiting. Jobs are counted by the parity of the current wait group when they are submitted;
 * finished ones are counted by their worker. A waiter begins the next group when the other parity
 * has no unfinished jobs, and returns when two groups have begun since its call, or one where the
 * current group had no unfinished jobs: as with grace periods, each parity was empty since. It
 * waits for jobs submitted after its call only if they come before the first of the two begins.
 * A worker checks whether the other parity is empty before it sleeps, and when it claims a job of
 * another parity. Until then it has, or just had, an unfinished job of that parity.
 *
 * Growth. A pool that may grow has one more thread, the watcher. It is woken where jobs wait and no
 * worker sleeps. If jobs still wait after the patience, and no worker has slept meanwhile, it
 * counts the workers that run: those that the system does not show as blocked. While fewer run than
 * there are processors, at two looks in a row, it starts one more; at a single look workers may
 * seem blocked that wait for a lock whose holder has no processor. So work that blocks gets as many
 * workers as it needs, and work that computes about as many as there are processors, whatever other
 * programs do. If no batch was taken for a second, long computations hold up others: then up to two
 * workers more may run.
 *
 * A worker that has been idle for 10 s ends, unless as many as at the start are left. Its
 * statistics lie on its stack; at its end it adds them to the sums of those before it. The watcher
 * joins it; then another worker may take the slot, with the batch and the counts of finished jobs.
 */
#include "worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/counter.h"
#include "base/own_lock.h"
#include "base/pages.h"
#include "base/thread.h"
#include "processor.h"

enum {
	BULK_SHARE = 8,   /* one batch in 8 is taken from the bulk lane first */
	PARITIES = 2,     /* wait groups that may have unfinished jobs */
	STALL_WORKERS = 2 /* may run beside as many as processors, if no batch was taken */
};

/* How long a worker may be idle before it ends, if there are more than at the start. */
static const tw_duration idle_time = 10 * TW_SECOND;

/* How long no batch may be taken before STALL_WORKERS may run, too. */
static const tw_duration stall_time = TW_SECOND;

/* How long the watcher pauses after a look that found few workers running, or enough. */
static const tw_duration short_pause = 100 * TW_MICROSECOND;
static const tw_duration long_pause = 5 * TW_MILLISECOND;

/* The batch of a worker. Its lock is held for a few instructions. */
struct batch {
	struct own_lock lock;
	uint8_t wait_group;
	/* The first job that is not claimed, or NULL. */
	_Atomic(struct timer *) next;
};

/* A worker slot, and the thread that works in it, if there is one. */
struct worker {
	/* Constant. */
	struct worker_pool *pool;
	/* The pool's creator's, then the watcher's. */
	struct thread thread;
	/* Any thread, under the lock. */
	bool is_taken;       /* until its thread is joined */
	bool has_left;       /* the thread is to be joined */
	struct list link;    /* in the pool's `sleepers` while asleep, or alone */
	pthread_cond_t wake; /* signalled after it was taken out there */
	/* Any thread, under the lock of the sums. NULL while no thread has any. */
	const struct job_thread *counts;
	/* Filled by the worker, emptied by all. */
	_Alignas(CACHE_LINE) struct batch batch;
	/* Written by the worker, read by any thread: jobs by parity, since the pool's begin. */
	_Alignas(CACHE_LINE) _Atomic uint64_t finished[PARITIES];
	/* The worker's own. */
	uint8_t wait_group;       /* that of its last job */
	size_t victim;            /* the worker looked at last */
	const struct timer *seen; /* that worker's next job */
};

/* The slot that the calling thread works in, or NULL. */
static _Thread_local struct worker *worker_here;

struct worker_pool {
	/* Constant. */
	struct job_target *target;
	struct thread_setup setup;
	size_t least; /* workers */
	size_t most;
	tw_duration patience;
	bool has_watcher; /* where most > least */
	struct thread watcher;
	/* Any thread, under the lock. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	struct job_batches lanes[JOB_LANES]; /* batches that no worker has taken */
	uint64_t batches_taken;
	struct list sleepers; /* the worker that fell asleep last is the last */
	pthread_cond_t watch; /* the watcher waits for news */
	bool is_watched;      /* it has to know when jobs wait and no worker sleeps */
	uint64_t rests;       /* how often a worker has fallen asleep */
	size_t slots;         /* that have had a worker */
	size_t live;          /* workers that are not ending */
	bool ending;
	uint64_t group; /* the number of wait groups begun; submitted jobs count in it */
	uint64_t submitted[PARITIES]; /* jobs since the pool's begin, by the group's parity */
	pthread_cond_t group_begins;
	/* Any thread, under this lock, which is never taken with the other. */
	_Alignas(CACHE_LINE) pthread_mutex_t sums_lock;
	struct job_sums ended; /* the sums of ended workers */
	struct worker workers[];
};

/* Appends the batches from the one that begins with timer `first` to the one with `last`. */
static void job_batches_append(struct job_batches *batches, struct timer *first, struct timer *last)
{
	if (batches->first)
		batches->last->link.previous = &first->link;
	else
		batches->first = first;
	batches->last = last;
}

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
		job_batches_append(batches, timer, timer);
	}
	batches->newest = timer;
}

static struct timer *timer_or_null(struct list *link)
{
	return link ? timer_of_link(link) : NULL;
}

/* ---- Batches ---- */

/* Returns the next job, or NULL. Others may claim it meanwhile. */
static inline struct timer *batch_next(const struct batch *batch)
{
	/* relaxed: the lock that the caller has, or takes before it touches the job, orders it. */
	return atomic_load_explicit(&batch->next, memory_order_relaxed);
}

/* Claims the next job, whose link leads to the one behind it. Returns NULL if there is none. */
static inline struct timer *batch_claim(struct batch *batch)
{
	struct timer *timer;

	if (!batch_next(batch))
		return NULL;
	own_lock_take(&batch->lock);
	timer = batch_next(batch);
	if (timer) {
		struct timer *next = timer_or_null(timer->link.next);

		if (next) {
			prefetch_to_read(next);
			prefetch_to_read(next + 1);
		}
		timer->wait_group = batch->wait_group;
		/* relaxed: as in batch_next(). */
		atomic_store_explicit(&batch->next, next, memory_order_relaxed);
	}
	own_lock_let_go(&batch->lock);
	return timer;
}

/* Fills the worker's own batch, which is empty. Under the pool's lock. */
static void batch_fill(struct batch *batch, struct timer *first)
{
	batch->wait_group = first->wait_group;
	/* relaxed: as in batch_next(). */
	atomic_store_explicit(&batch->next, first, memory_order_relaxed);
}

/* ---- Wait groups ---- */

/* Returns the group's unfinished jobs. Under the lock. */
static uint64_t worker_pool_unfinished(const struct worker_pool *pool, uint64_t group)
{
	uint64_t unfinished = pool->submitted[group % PARITIES];

	for (size_t i = 0; i < pool->slots; i++)
		/* ordered: sees what the tasks did that worker_do() has counted. */
		unfinished -= counter_read_ordered(&pool->workers[i].finished[group % PARITIES]);
	return unfinished;
}

/* Wakes the threads that wait for the next group, if it can begin. Under the lock. */
static void worker_pool_wake_waiters(struct worker_pool *pool)
{
	if (worker_pool_unfinished(pool, pool->group + 1) == 0)
		pthread_cond_broadcast(&pool->group_begins);
}

bool worker_pool_wait_until(struct worker_pool *pool, tw_duration deadline)
{
	bool in_time = true;
	uint64_t last;

	pthread_mutex_lock(&pool->lock);
	last = pool->group + (worker_pool_unfinished(pool, pool->group) > 0 ? 2 : 1);
	while (pool->group < last && in_time) {
		worker_pool_wake_waiters(pool);
		if (worker_pool_unfinished(pool, pool->group + 1) == 0)
			pool->group++;
		else
			in_time = clock_wait(pool->target->clock, &pool->group_begins, &pool->lock,
					     deadline);
	}
	pthread_mutex_unlock(&pool->lock);
	return in_time;
}

/* ---- Sleep and wake ---- */

/* Wakes the worker that fell asleep last. Returns false if there is none; then it wakes the
 * watcher, if that has to know. Under the lock. */
static bool worker_pool_wake(struct worker_pool *pool)
{
	struct worker *worker = list_entry(pool->sleepers.previous, struct worker, link);

	if (!list_is_empty(&pool->sleepers)) {
		list_remove(&worker->link);
		list_init(&worker->link);
		pthread_cond_signal(&worker->wake);
		return true;
	}
	if (pool->is_watched) {
		pool->is_watched = false;
		pthread_cond_signal(&pool->watch);
	}
	return false;
}

/* Returns whether a job waits. Under the lock. */
static bool worker_pool_has_jobs(const struct worker_pool *pool)
{
	bool has_jobs = pool->lanes[JOB_LANE_PROMPT].first || pool->lanes[JOB_LANE_BULK].first;

	for (size_t i = 0; !has_jobs && i < pool->slots; i++)
		has_jobs = batch_next(&pool->workers[i].batch);
	return has_jobs;
}

void worker_pool_submit(struct worker_pool *pool, enum job_lane lane, struct job_batches *batches)
{
	size_t wake = 0;

	if (batches->count == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	for (struct timer *batch = batches->first; batch;
	     batch = timer_or_null(batch->link.previous)) {
		batch->wait_group = pool->group % PARITIES;
		wake++;
	}
	pool->submitted[pool->group % PARITIES] += batches->count;
	job_batches_append(&pool->lanes[lane], batches->first, batches->last);
	while (wake > 0 && worker_pool_wake(pool))
		wake--;
	pthread_mutex_unlock(&pool->lock);
	*batches = (struct job_batches){0};
}

/* ---- A worker ---- */

/* Claims a job of the worker looked at last, if none was claimed there since. Else it looks at the
 * next worker. Under the lock, as the next two. */
static struct timer *worker_help_next(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct batch *batch = &pool->workers[worker->victim].batch;
	struct timer *timer = NULL;

	if (batch_next(batch) == worker->seen)
		timer = batch_claim(batch);
	if (!timer) {
		worker->victim = (worker->victim + 1) % pool->slots;
		batch = &pool->workers[worker->victim].batch;
	}
	worker->seen = batch_next(batch);
	return timer;
}

/* Fills the worker's batch if one waits in a lane: from the bulk lane last, but now and then
 * first. */
static void worker_take_batch(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct job_batches *lane = &pool->lanes[JOB_LANE_PROMPT];
	struct job_batches *bulk = &pool->lanes[JOB_LANE_BULK];

	if (bulk->first && (!lane->first || pool->batches_taken % BULK_SHARE == 0))
		lane = bulk;
	if (!lane->first)
		return;
	batch_fill(&worker->batch, lane->first);
	lane->first = timer_or_null(lane->first->link.previous);
	pool->batches_taken++;
}

/* Finds a job where the worker's batch is empty, and wakes another worker for those behind it.
 * Returns NULL if no job waits. */
static struct timer *worker_find_job(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct timer *timer = worker_help_next(worker);

	if (!timer) {
		worker_take_batch(worker);
		timer = batch_claim(&worker->batch);
	}
	for (size_t i = 0; !timer && i < pool->slots; i++)
		timer = batch_claim(&pool->workers[i].batch);
	if (timer && timer->link.next)
		(void)worker_pool_wake(pool);
	return timer;
}

/* Claims the next job. Returns NULL if there is none. */
static inline struct timer *worker_next_job(struct worker *worker)
{
	struct timer *timer = batch_claim(&worker->batch);

	if (timer)
		return timer;
	pthread_mutex_lock(&worker->pool->lock);
	timer = worker_find_job(worker);
	pthread_mutex_unlock(&worker->pool->lock);
	return timer;
}

/* Sleeps until there is a job, and claims it. Returns NULL if the worker is to end. */
static struct timer *worker_wait_for_job(struct worker *worker, struct timer_bin *bin)
{
	struct worker_pool *pool = worker->pool;
	tw_duration end = clock_read_real(CLOCK_MONOTONIC) + idle_time;
	bool in_time = true;
	struct timer *timer;

	job_flush(pool->target, bin);
	pthread_mutex_lock(&pool->lock);
	worker_pool_wake_waiters(pool);
	while (!(timer = worker_find_job(worker)) && !pool->ending &&
	       (in_time || pool->live <= pool->least)) {
		list_append(&pool->sleepers, &worker->link);
		pool->rests++;
		in_time = condition_wait(&worker->wake, &pool->lock,
					 pool->live > pool->least ? end : TW_FOREVER);
		list_remove(&worker->link);
	}
	pool->live -= !timer;
	pthread_mutex_unlock(&pool->lock);
	return timer;
}

/* Does the job. */
static inline void worker_do(struct worker *worker, struct timer *timer, struct job_thread *counts)
{
	struct worker_pool *pool = worker->pool;
	uint8_t wait_group = timer->wait_group;

	/* A thread may be waiting for what this worker has done. */
	if (wait_group != worker->wait_group) {
		worker->wait_group = wait_group;
		pthread_mutex_lock(&pool->lock);
		worker_pool_wake_waiters(pool);
		pthread_mutex_unlock(&pool->lock);
	}
	(void)job_finish(pool->target, timer, counts);
	/* ordered: publishes what the task did to worker_pool_unfinished(). */
	counter_add_ordered(&worker->finished[wait_group], 1);
}

/* Does jobs until the worker is to end. It is not inlined, so that what it calls is, and each job
 * costs no calls. */
static __attribute__((noinline)) void worker_do_jobs(struct worker *worker,
						     struct job_thread *counts)
{
	struct timer *timer;

	while ((timer = worker_next_job(worker)) ||
	       (timer = worker_wait_for_job(worker, counts->bin)))
		worker_do(worker, timer, counts);
}

/* Takes the first free slot. Returns NULL if there is none. */
static struct worker *worker_enter(struct worker_pool *pool)
{
	struct worker *worker = pool->workers;

	pthread_mutex_lock(&pool->lock);
	while (worker < pool->workers + pool->slots && worker->is_taken)
		worker++;
	if (worker == pool->workers + pool->most) {
		worker = NULL;
	} else {
		if (!worker->pool) {
			worker->pool = pool;
			condition_init(&worker->wake);
			pool->slots++;
		}
		worker->is_taken = true;
		pool->live++;
	}
	pthread_mutex_unlock(&pool->lock);
	return worker;
}

/* Leaves the slot, as the thread's last step. */
static void worker_leave(struct worker *worker)
{
	pthread_mutex_lock(&worker->pool->lock);
	worker->has_left = true;
	pthread_cond_signal(&worker->pool->watch);
	pthread_mutex_unlock(&worker->pool->lock);
}

static void *worker_run(void *argument)
{
	struct worker *worker = argument;
	struct worker_pool *pool = worker->pool;
	struct timer_bin bin = {0};
	struct job_thread counts = {.bin = &bin};

	worker_here = worker;
	pthread_mutex_lock(&pool->sums_lock);
	worker->counts = &counts;
	pthread_mutex_unlock(&pool->sums_lock);
	job_call_for_thread(pool->target, &pool->setup, worker->thread.name, true);
	worker_do_jobs(worker, &counts);
	job_call_for_thread(pool->target, &pool->setup, worker->thread.name, false);
	pthread_mutex_lock(&pool->sums_lock);
	job_sums_add(&pool->ended, &counts);
	worker->counts = NULL;
	pthread_mutex_unlock(&pool->sums_lock);
	worker_leave(worker);
	return NULL;
}

/* Starts one more worker. Returns 0 or an errno value. */
static int worker_pool_start_worker(struct worker_pool *pool)
{
	struct worker *worker = worker_enter(pool);
	char role[12];
	int error;

	if (!worker)
		return EAGAIN;
	snprintf(role, sizeof(role), "%d", (int)(worker - pool->workers));
	error = thread_start(&worker->thread, worker_run, worker, pool->target->name, role,
			     &pool->setup);
	if (error == 0)
		return 0;
	pthread_mutex_lock(&pool->lock);
	worker->is_taken = false;
	pool->live--;
	pthread_mutex_unlock(&pool->lock);
	return error;
}

/* ---- The watcher ---- */

/* Returns whether jobs wait for want of a worker, and the pool may grow. If not, the watcher is
 * woken when they do. Under the lock. */
static bool worker_pool_lacks_worker(struct worker_pool *pool)
{
	bool may_grow = !pool->ending && pool->live < pool->most;
	bool lacks_worker =
		may_grow && list_is_empty(&pool->sleepers) && worker_pool_has_jobs(pool);

	pool->is_watched = may_grow && !lacks_worker;
	return lacks_worker;
}

/* Waits until the pool lacks a worker, then for `time`. Returns whether it lacks one all that time.
 * Under the lock. */
static bool worker_pool_lacks_still(struct worker_pool *pool, tw_duration time)
{
	bool lacks_worker = worker_pool_lacks_worker(pool);
	tw_duration until =
		lacks_worker ? time_add(clock_read_real(CLOCK_MONOTONIC), time) : TW_FOREVER;
	uint64_t rests = pool->rests;

	while (!pool->ending && condition_wait(&pool->watch, &pool->lock, until) && lacks_worker)
		continue;
	return lacks_worker && rests == pool->rests && worker_pool_lacks_worker(pool);
}

/* Returns the number of workers that compute or wait for a processor. The system does not know
 * those that have ended. */
static size_t worker_pool_running(const struct worker_pool *pool)
{
	size_t running = 0;

	for (size_t i = 0; i < pool->slots; i++)
		running += thread_is_running(&pool->workers[i].thread);
	return running;
}

/* Joins threads that have left, so that their slots are free. Under the lock, which it lets go
 * meanwhile. */
static void worker_pool_join_left(struct worker_pool *pool)
{
	size_t i = 0;

	while (i < pool->slots) {
		struct worker *worker = &pool->workers[i++];

		if (!worker->has_left)
			continue;
		pthread_mutex_unlock(&pool->lock);
		thread_join(&worker->thread);
		pthread_mutex_lock(&pool->lock);
		worker->has_left = false;
		worker->is_taken = false;
		/* Others may have left meanwhile. */
		i = 0;
	}
}

static void *worker_pool_watch(void *argument)
{
	struct worker_pool *pool = argument;
	size_t processors = processors_available();
	tw_duration pause = pool->patience;
	tw_duration waited = 0; /* for a batch to be taken */
	uint64_t taken = 0;     /* batches, at the last look */
	bool ran_few = false;   /* at the last look */

	pthread_mutex_lock(&pool->lock);
	while (!pool->ending) {
		bool lacks_worker;
		bool runs_few;

		worker_pool_join_left(pool);
		lacks_worker = worker_pool_lacks_still(pool, pause);
		waited = lacks_worker && taken == pool->batches_taken ? waited + pause : 0;
		taken = pool->batches_taken;
		pthread_mutex_unlock(&pool->lock);
		runs_few = lacks_worker &&
			   worker_pool_running(pool) <
				   processors + (waited >= stall_time ? STALL_WORKERS : 0);
		if (runs_few && ran_few)
			runs_few = worker_pool_start_worker(pool) == 0;
		if (!lacks_worker)
			processors = processors_available();
		ran_few = runs_few;
		pause = !lacks_worker ? pool->patience : runs_few ? short_pause : long_pause;
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* ---- The pool ---- */

void worker_pool_end_threads(struct worker_pool *pool)
{
	if (pool->ending)
		return;
	/* With all workers: a job may need others to be done beside it. */
	(void)worker_pool_wait_until(pool, TW_FOREVER);
	pthread_mutex_lock(&pool->lock);
	pool->ending = true;
	for (size_t i = 0; i < pool->slots; i++)
		pthread_cond_signal(&pool->workers[i].wake);
	pthread_cond_signal(&pool->watch);
	pthread_mutex_unlock(&pool->lock);
	if (pool->has_watcher)
		thread_join(&pool->watcher);
	for (size_t i = 0; i < pool->slots; i++)
		if (pool->workers[i].is_taken)
			thread_join(&pool->workers[i].thread);
}

/* Returns the bytes of a pool of `most` workers. */
static size_t worker_pool_size(size_t most)
{
	return sizeof(struct worker_pool) + most * sizeof(struct worker);
}

void worker_pool_destroy(struct worker_pool *pool)
{
	worker_pool_end_threads(pool);
	for (size_t i = 0; i < pool->slots; i++)
		pthread_cond_destroy(&pool->workers[i].wake);
	pthread_cond_destroy(&pool->watch);
	pthread_cond_destroy(&pool->group_begins);
	pthread_mutex_destroy(&pool->sums_lock);
	pthread_mutex_destroy(&pool->lock);
	pages_unmap_aligned(pool, worker_pool_size(pool->most));
}

struct worker_pool *worker_pool_create(const struct tw_options *options, struct job_target *target)
{
	size_t most = (size_t)options->max_workers;
	struct worker_pool *pool = pages_map_untouched(worker_pool_size(most));
	int error = 0;

	if (!pool)
		return NULL;
	pool->target = target;
	thread_setup_init(&pool->setup, options);
	pool->least = (size_t)options->workers;
	pool->most = most;
	pool->patience = options->patience_for_worker;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_mutex_init(&pool->sums_lock, NULL);
	list_init(&pool->sleepers);
	condition_init(&pool->watch);
	condition_init(&pool->group_begins);
	while (error == 0 && pool->live < pool->least)
		error = worker_pool_start_worker(pool);
	if (error == 0 && pool->most > pool->least) {
		error = thread_start(&pool->watcher, worker_pool_watch, pool, target->name, "watch",
				     &pool->setup);
		pool->has_watcher = error == 0;
	}
	if (error == 0)
		return pool;
	worker_pool_destroy(pool);
	errno = error;
	return NULL;
}

bool worker_pool_is_here(const struct worker_pool *pool)
{
	return worker_here && worker_here->pool == pool;
}

void worker_pool_read(struct worker_pool *pool, struct tw_stats *stats, struct job_sums *sums)
{
	pthread_mutex_lock(&pool->lock);
	stats->workers = pool->live;
	for (uint64_t group = 0; group < PARITIES; group++)
		stats->unfinished += worker_pool_unfinished(pool, group);
	pthread_mutex_unlock(&pool->lock);
	pthread_mutex_lock(&pool->sums_lock);
	*sums = pool->ended;
	/* A slot that had no worker yet is zeroed. */
	for (size_t i = 0; i < pool->most; i++)
		if (pool->workers[i].counts)
			job_sums_add(sums, pool->workers[i].counts);
	pthread_mutex_unlock(&pool->sums_lock);
}
