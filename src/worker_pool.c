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
 * holds up only itself, and a batch behind it is finished by the others: soon, for who has helped
 * and finds that the tray's worker took no job meanwhile helps on there, before any new batch.
 *
 * The tray's word holds the next job's place, how many the worker took itself, the end, and a
 * generation that changes with each filling, so that a claim made from an old look fails. (It comes
 * round after 2^32 fillings, within one claim.)
 *
 * There are two lanes of batches: jobs that have just become due, and bulk, of which there may be a
 * million. A worker takes a prompt batch if there is one, so that a crowd delays what comes after
 * it by a batch or two; one batch in eight comes from the bulk lane all the same.
 *
 * Waiting. Jobs submitted after the call must not be waited for, so jobs are counted by epoch: each
 * counts into the current one, and is counted out by who did it. A waiter that finds unfinished
 * jobs in the current epoch closes it by beginning the next, and waits until that is the oldest:
 * all epochs before it are empty. Waiters with no jobs between them share an epoch. There are 256
 * of them at a time, so only a wait that begins while 255 others wait, with unfinished jobs between
 * any two of them, takes in jobs submitted after it, up to the end of the first of the others.
 *
 * To do a job tells nobody: a worker has a look whether an epoch has become empty when it is about
 * to begin a job of another epoch than its last one, and before it sleeps. Until then it has an
 * unfinished job of that epoch itself, or had one a moment ago.
 *
 * The end. A worker leaves when no job is unfinished, wherever jobs may lie, be it in the hands of
 * a worker that is just filling its tray: a job may need others to be done beside it.
 *
 * May run together: submit by one thread, wait by any number, with all workers.
 * Linearization: a job is handed over at the unlock in submit, claimed at the exchange of the
 * tray's word, done at the store to `finished`.
 */
#include "worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "prefetch.h"
#include "thread.h"

enum {
	BULK_SHARE = 8, /* one batch in so many is taken from the bulk lane first */
	EPOCHS = 256    /* at a time; as many as there are values of struct timer's `epoch` */
};

/* What is added to a tray's word. */
enum claim { CLAIM_BY_OTHER = 0x001, CLAIM_BY_ITSELF = 0x101 };

struct worker {
	/* Constant. */
	struct worker_pool *pool;
	pthread_t thread;
	/* Filled by the worker, emptied by all. */
	_Alignas(CACHE_LINE) _Atomic uint64_t
		tray; /* generation, end, own, next: 32, 16, 8, 8 bits */
	_Atomic(struct timer *) jobs[WORKER_BATCH];
	/* The worker's own; `finished` is read by all. */
	_Alignas(CACHE_LINE) _Atomic uint64_t finished[EPOCHS]; /* since ever, by timer.epoch */
	int victim;                                             /* whose tray it looked at last */
	uint64_t victim_progress; /* as it was when it came to that tray */
	uint8_t epoch;            /* of its last job */
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
	pthread_cond_t work;          /* jobs, or the end */
	pthread_cond_t epoch_is_over; /* the oldest is another */
	struct lane lanes[JOB_LANES];
	unsigned batches_taken;
	/* Epochs are numbered from 0; timer.epoch is the lower 8 bits. */
	uint64_t oldest_epoch;      /* all before it are empty and closed */
	uint64_t epoch;             /* the current one, in which submitted jobs count */
	uint64_t submitted[EPOCHS]; /* since ever, by timer.epoch */
	bool ending;
	/* Written under the lock, read by workers. */
	_Alignas(CACHE_LINE) atomic_int sleepers;
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
	return (tray & 0xff) == (tray >> 16 & 0xffff);
}

/* Changes when the worker itself takes a job or fills its tray, not when others help. */
static uint64_t tray_progress(uint64_t tray)
{
	return tray >> 8;
}

static bool worker_tray_is_empty(struct worker *worker)
{
	/* seq_cst: the sleeper's second look; pairs with the store in worker_fill_tray(). */
	return tray_is_empty(atomic_load_explicit(&worker->tray, memory_order_seq_cst));
}

/* Claims the next job of the worker's tray; NULL: none. */
static struct timer *worker_claim(struct worker *worker, enum claim claim)
{
	/* acquire: sees the jobs and their timers; pairs with the store in worker_fill_tray(). */
	uint64_t tray = atomic_load_explicit(&worker->tray, memory_order_acquire);
	struct timer *timer;

	do {
		if (tray_is_empty(tray))
			return NULL;
		/* relaxed: if it is of a later filling, the exchange fails. */
		timer = atomic_load_explicit(&worker->jobs[tray & 0xff], memory_order_relaxed);
		/* acq_rel: our look at the job comes before it is seen as claimed, so before the
		 * next filling; acquire as above. */
	} while (!atomic_compare_exchange_weak_explicit(
		&worker->tray, &tray, tray + claim, memory_order_acq_rel, memory_order_acquire));
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
		prefetch_to_read(timer + 1);
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

/* Whom to help: again the same while it is busy with one job and more lie behind, else the next. */
static struct worker *worker_next_victim(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct worker *victim = &pool->workers[worker->victim];
	/* relaxed, both: a guess; worker_claim() looks for itself. */
	uint64_t tray = atomic_load_explicit(&victim->tray, memory_order_relaxed);

	if (!tray_is_empty(tray) && tray_progress(tray) == worker->victim_progress)
		return victim;
	worker->victim = (worker->victim + 1) % pool->worker_count;
	victim = &pool->workers[worker->victim];
	tray = atomic_load_explicit(&victim->tray, memory_order_relaxed);
	worker->victim_progress = tray_progress(tray);
	return victim;
}

/* Claims a job from another's tray. */
static struct timer *worker_help(struct worker *worker)
{
	struct worker *victim = worker_next_victim(worker);
	struct timer *timer;

	if (victim == worker)
		return NULL;
	timer = worker_claim(victim, CLAIM_BY_OTHER);
	if (timer && !worker_tray_is_empty(victim))
		worker_pool_call_help(worker->pool);
	return timer;
}

static struct timer *worker_next_job(struct worker *worker)
{
	struct timer *timer = worker_claim(worker, CLAIM_BY_ITSELF);

	if (!timer)
		timer = worker_help(worker);
	while (!timer && worker_take_batch(worker))
		timer = worker_claim(worker, CLAIM_BY_ITSELF);
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

/* Under the lock. */
static uint64_t worker_pool_unfinished_in(struct worker_pool *pool, uint64_t epoch)
{
	uint64_t unfinished = pool->submitted[epoch % EPOCHS];

	for (int i = 0; i < pool->worker_count; i++) {
		/* acquire: sees what the tasks did; pairs with the store in worker_finish(). */
		unfinished -= atomic_load_explicit(&pool->workers[i].finished[epoch % EPOCHS],
						   memory_order_acquire);
	}
	return unfinished;
}

/* Under the lock: lets those go who wait for epochs that have become empty. */
static void worker_pool_end_epochs(struct worker_pool *pool)
{
	uint64_t oldest = pool->oldest_epoch;

	while (oldest != pool->epoch && worker_pool_unfinished_in(pool, oldest) == 0)
		oldest++;
	if (oldest == pool->oldest_epoch)
		return;
	pool->oldest_epoch = oldest;
	pthread_cond_broadcast(&pool->epoch_is_over);
}

/* Under the lock, after worker_pool_end_epochs(): whether a worker may leave; then all may. */
static bool worker_pool_is_over(struct worker_pool *pool)
{
	if (!pool->ending || pool->oldest_epoch != pool->epoch ||
	    worker_pool_unfinished_in(pool, pool->epoch) != 0)
		return false;
	pthread_cond_broadcast(&pool->work);
	return true;
}

/* Sleeps until there may be jobs; false: the pool ends and none is unfinished. */
static bool worker_sleep(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	bool over;

	job_flush(pool->target, &worker->bin);
	pthread_mutex_lock(&pool->lock);
	worker_pool_end_epochs(pool);
	over = worker_pool_is_over(pool);
	/* seq_cst: the announcement, before the second look; pairs with the load in
	 * worker_pool_call_help(). */
	atomic_fetch_add_explicit(&pool->sleepers, 1, memory_order_seq_cst);
	if (!over && !worker_pool_has_jobs(pool))
		pthread_cond_wait(&pool->work, &pool->lock);
	/* relaxed: a wake too many harms nobody. */
	atomic_fetch_sub_explicit(&pool->sleepers, 1, memory_order_relaxed);
	pthread_mutex_unlock(&pool->lock);
	return !over;
}

/* Between two jobs of different epochs: the former may have become empty. */
static void worker_enter_epoch(struct worker *worker, uint8_t epoch)
{
	struct worker_pool *pool = worker->pool;

	worker->epoch = epoch;
	pthread_mutex_lock(&pool->lock);
	worker_pool_end_epochs(pool);
	pthread_mutex_unlock(&pool->lock);
}

static void worker_finish(struct worker *worker, struct timer *timer)
{
	_Atomic uint64_t *finished = &worker->finished[timer->epoch];

	if (timer->epoch != worker->epoch)
		worker_enter_epoch(worker, timer->epoch);
	job_finish(worker->pool->target, timer, &worker->seat);
	/* relaxed: written by this thread alone. release: publishes what the task did; pairs with
	 * the load in worker_pool_unfinished_in(). */
	atomic_store_explicit(finished, atomic_load_explicit(finished, memory_order_relaxed) + 1,
			      memory_order_release);
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
	pthread_cond_destroy(&pool->epoch_is_over);
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
	pthread_cond_init(&pool->epoch_is_over, NULL);
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
		batch->epoch = (uint8_t)(pool->epoch % EPOCHS);
		wake++;
	}
	pool->submitted[pool->epoch % EPOCHS] += batches->count;
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

/* Under the lock, which it may leave meanwhile: begins a new epoch. */
static void worker_pool_begin_epoch(struct worker_pool *pool)
{
	while (pool->epoch - pool->oldest_epoch == EPOCHS - 1)
		thread_wait(&pool->epoch_is_over, &pool->lock, NULL);
	pool->epoch++;
}

void worker_pool_wait(struct worker_pool *pool)
{
	uint64_t epoch;

	pthread_mutex_lock(&pool->lock);
	if (worker_pool_unfinished_in(pool, pool->epoch) != 0)
		worker_pool_begin_epoch(pool);
	epoch = pool->epoch;
	/* While this waited for a free epoch, the one it closed may have become empty unseen. */
	worker_pool_end_epochs(pool);
	while (pool->oldest_epoch < epoch)
		thread_wait(&pool->epoch_is_over, &pool->lock, NULL);
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
	uint64_t unfinished = 0;

	pthread_mutex_lock(&pool->lock);
	for (uint64_t epoch = pool->oldest_epoch; epoch <= pool->epoch; epoch++)
		unfinished += worker_pool_unfinished_in(pool, epoch);
	pthread_mutex_unlock(&pool->lock);
	return unfinished;
}
