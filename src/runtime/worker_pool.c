/* SPDX-License-Identifier: MIT */
/*
 * The worker pool is a set of threads that do jobs, which the owner hands over in batches.
 *
 * Invariants; worker_pool_check() asserts most of them under TW_DEBUG:
 *   a job is claimed once, by the exchange that moves a batch's word past it
 *   a worker fills its own batch, and only when all jobs in it are claimed
 *   for each wait group, the jobs submitted are not fewer than those that workers have finished
 *   no wait group before the oldest one has an unfinished job
 *   at most WAIT_GROUPS wait groups are in use
 *   `live` is the number of slots taken, and at most `most`
 *   has_sleepers says whether `sleepers` has a member; each member of it is asleep
 *   while jobs wait, a worker is awake, or all workers are busy
 *
 * Which calls may run together: worker_pool_submit() by one thread, all others
 * by any number of threads, with all workers and the watcher. Before worker_pool_destroy()
 * all other calls must have returned. Linearization: a job is handed over at the unlock in submit,
 * claimed at the exchange of the batch's word, and done at the store to `finished`.
 *
 * Batches. A batch has up to 32 timers, linked through the timers themselves: link.next leads to
 * the next timer of the batch, and link.previous of its first timer leads to the first timer of the
 * next batch. So a lock held for a few instructions passes 32 jobs, both ways.
 *
 * A worker has one batch at a time and claims its jobs one by one. So may every other worker: a job
 * is claimed by advancing the batch's word with compare-and-swap. A worker examines the batch of
 * one other worker, each time the next, before it takes a new one, and the batches of all before it
 * sleeps. A worker that leaves jobs in its batch while others sleep wakes one of them. So a slow
 * task delays only itself, and other workers finish the batch behind it. They do so soon: a worker
 * that has helped, and finds that the batch's own worker took no job since, helps there again
 * before it takes a new batch.
 *
 * The batch's word has the place of the next job, the number of jobs the worker took itself, the
 * end, and a generation that changes with each filling, so that a claim based on an old load fails.
 * (The generation repeats after 2^32 fillings within one claim.)
 *
 * Lanes. There are two lanes of batches: jobs that have just become due, and bulk, which may be a
 * million jobs. A worker takes a prompt batch if there is one, so that a crowd delays later jobs by
 * a batch or two. One batch in eight comes from the bulk lane first.
 *
 * Waiting. A waiter must not wait for jobs submitted after its call, so jobs are counted by wait
 * group. A submitted job counts in the current group; a finished one is counted by its worker. A
 * waiter that finds unfinished jobs in the current group closes it by beginning the next, and waits
 * until that is the oldest. Waiters with no jobs between them share a group. At most 256 groups are
 * in use. So a wait that begins while 255 others wait, with unfinished jobs between any two of
 * them, also waits for jobs submitted after it, up to the end of the first of the others.
 *
 * A worker checks whether a group has become empty only when it begins a job of another group, and
 * before it sleeps. Until then it has, or just had, an unfinished job of that group.
 *
 * Growth. A pool that may grow has one more thread, the watcher. For this it sleeps until a batch,
 * or the rest of a batch, finds no idle worker. Then it waits until the oldest waiting job has
 * waited for the patience, and starts a worker if those there are blocked. They are not if there
 * are at least as many as processors, and they had most of these meanwhile, as the clocks of their
 * processor times say: more threads would do no more. (Beside other programs they have less, and
 * the pool may grow. And if no batch was taken for a second, tasks compute for very long, and those
 * behind them get a worker after all.) When the new worker has claimed a job, the watcher checks
 * again, so that it starts as many workers as are blocked. But if others computed or took a batch
 * meanwhile, not all are blocked, and the next worker starts a patience later; so does one that
 * could not be started. The worker that became idle last is woken first, so workers that are not
 * needed stay asleep, and end after 10 s, down to the number at the start. The watcher adds the
 * counts of such a worker to the sums of those before it, gives the counts' memory back and joins
 * the thread. The next worker that starts takes the slot, and the batch with it: a slow helper may
 * still compare the generation.
 */
#include "worker_pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pages.h"
#include "base/prefetch.h"
#include "base/processor.h"
#include "base/thread.h"

enum {
	BULK_SHARE = 8,    /* one batch in 8 is taken from the bulk lane first */
	WAIT_GROUPS = 256, /* in use at a time; struct timer's `wait_group` has 8 bits */
	NO_WAIT_GROUP = -1
};

/* How long a worker may be idle before it ends, if there are more than at the start. */
static const tw_duration idle_time = 10 * TW_SECOND;

/* How long tasks may compute before the pool grows for the next, if no batch is taken meanwhile. */
static const tw_duration stall_time = TW_SECOND;

/* A claim is a number added to a batch's word. */
enum claim { CLAIM_BY_OTHER = 0x001, CLAIM_BY_ITSELF = 0x101 };

/* A sleeper is an idle worker, or the watcher while it has nothing to do. */
struct sleeper {
	bool is_asleep;
	struct list link;    /* in the pool's `sleepers` while asleep */
	pthread_cond_t wake; /* signalled after is_asleep was cleared */
};

/* The counts of a worker, and its bin. The worker writes, any thread reads the counts. */
struct worker_counts {
	_Atomic uint64_t finished[WAIT_GROUPS]; /* by timer.wait_group, since the start */
	struct job_thread thread;
	struct timer_bin bin; /* the worker's own */
};

/* A worker slot, and the thread that works in it, if there is one. */
struct worker {
	/* Constant. */
	struct worker_pool *pool;
	/* Read by the worker, or under either lock; changed under both. NULL after the slot was
	 * cleared. */
	struct worker_counts *counts;
	/* The pool's creator's and destroyer's, between them the watcher's. */
	struct thread thread;
	bool is_joinable;
	/* Any thread, under the lock. */
	bool is_taken;
	struct sleeper sleeper;
	/* Filled by the worker, emptied by all. */
	_Alignas(CACHE_LINE) _Atomic uint64_t
		batch; /* generation, end, own, next: 32, 16, 8, 8 bits */
	_Atomic(struct timer *) jobs[WORKER_BATCH];
	_Atomic tw_duration submitted_at; /* those jobs; where the pool may grow */
	/* The worker's own. */
	_Alignas(CACHE_LINE) size_t victim; /* the worker examined last */
	uint64_t victim_progress;           /* progress of the victim's batch at that time */
	int wait_group; /* that of its last job, or NO_WAIT_GROUP before the first */
};

/* The load is how much the workers have done since the watcher began to compare. */
struct worker_load {
	tw_duration since;      /* real time of the begin; TW_FOREVER: nothing is compared */
	tw_duration used;       /* processor time that the workers had by then */
	tw_duration process;    /* and all threads of the program */
	tw_duration taken_at;   /* when a batch was last seen to have been taken */
	unsigned batches_taken; /* the pool's, at that time */
};

/* The slot that the calling thread works in, or NULL. */
static _Thread_local struct worker *worker_here;

/* A lane is a queue of batches that no worker has taken. */
struct lane {
	struct timer *first;
	struct timer *last;
};

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
	pthread_cond_t group_is_over; /* the oldest group has changed */
	struct worker *starting;      /* a worker that has not looked for a job yet, or NULL */
	size_t live;                  /* workers */
	struct list sleepers;         /* the watcher first, the worker that fell asleep last */
	struct sleeper watching;      /* the watcher also waits at its `wake` for other news */
	struct lane lanes[JOB_LANES];
	unsigned batches_taken;
	/* Wait groups are numbered from 0; timer.wait_group is the lower 8 bits. */
	uint64_t oldest_group;           /* all groups before it are empty and closed */
	uint64_t wait_group;             /* the current group, in which submitted jobs count */
	uint64_t submitted[WAIT_GROUPS]; /* by timer.wait_group, less the jobs of ended workers */
	bool ending;
	/* Any thread, under this lock, which is taken before the other. */
	_Alignas(CACHE_LINE) pthread_mutex_t sums_lock;
	struct job_sums ended; /* the sums of ended workers */
	/* Written under the lock, read by any thread. */
	_Alignas(CACHE_LINE) atomic_bool has_sleepers;
	atomic_size_t slots; /* number of initialized slots in `workers` */
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

static size_t worker_pool_slots(const struct worker_pool *pool)
{
	/* acquire: sees the slots; pairs with the store in worker_pool_free_slot(). */
	return atomic_load_explicit(&pool->slots, memory_order_acquire);
}

static bool batch_is_empty(uint64_t word)
{
	return (word & 0xff) == (word >> 16 & 0xffff);
}

/* Changes when the worker itself takes a job or fills its batch, not when others help. */
static uint64_t batch_progress(uint64_t word)
{
	return word >> 8;
}

static bool worker_batch_is_empty(struct worker *worker)
{
	/* seq_cst: the sleeper's second look; pairs with the store in worker_fill_batch(). */
	return batch_is_empty(atomic_load_explicit(&worker->batch, memory_order_seq_cst));
}

/* Claims the next job of the worker's batch. Returns NULL if there is none. */
static struct timer *worker_claim(struct worker *worker, enum claim claim)
{
	/* acquire: sees the jobs and their timers; pairs with the store in worker_fill_batch(). */
	uint64_t word = atomic_load_explicit(&worker->batch, memory_order_acquire);
	struct timer *timer;

	do {
		if (batch_is_empty(word))
			return NULL;
		/* relaxed: if it is of a later filling, the exchange fails. */
		timer = atomic_load_explicit(&worker->jobs[word & 0xff], memory_order_relaxed);
		/* acq_rel: our look at the job comes before it is seen as claimed, so before the
		 * next filling; acquire as above. */
	} while (!atomic_compare_exchange_weak_explicit(
		&worker->batch, &word, word + claim, memory_order_acq_rel, memory_order_acquire));
	return timer;
}

/* Under the lock. */
static void worker_pool_set_asleep(struct worker_pool *pool, struct sleeper *sleeper, bool asleep)
{
	if (sleeper->is_asleep == asleep)
		return;
	sleeper->is_asleep = asleep;
	if (!asleep)
		list_remove(&sleeper->link);
	else
		list_append(sleeper == &pool->watching ? pool->sleepers.next : &pool->sleepers,
			    &sleeper->link);
	/* seq_cst: the announcement, before the sleeper's second look; pairs with the load in
	 * worker_pool_call_help(). */
	atomic_store_explicit(&pool->has_sleepers, !list_is_empty(&pool->sleepers),
			      memory_order_seq_cst);
}

/*
 * Under the lock: wakes an idle worker for a batch or the rest of one. Returns false if there is
 * none; then it wakes the watcher, if there is one that has to know.
 */
static bool worker_pool_wake(struct worker_pool *pool)
{
	struct sleeper *sleeper = list_entry(pool->sleepers.previous, struct sleeper, link);

	if (list_is_empty(&pool->sleepers))
		return false;
	worker_pool_set_asleep(pool, sleeper, false);
	pthread_cond_signal(&sleeper->wake);
	return sleeper != &pool->watching;
}

/* Wakes an idle worker or the watcher, if one of them sleeps, for what is left of a batch. */
static void worker_pool_call_help(struct worker_pool *pool)
{
	/* seq_cst: after the batch was filled; pairs with worker_pool_set_asleep(). */
	if (!atomic_load_explicit(&pool->has_sleepers, memory_order_seq_cst))
		return;
	pthread_mutex_lock(&pool->lock);
	(void)worker_pool_wake(pool);
	pthread_mutex_unlock(&pool->lock);
}

/* Makes it the worker's batch, all of whose jobs are taken. */
static void worker_fill_batch(struct worker *worker, struct timer *batch)
{
	/* relaxed: others only claim, and the batch is empty. */
	uint64_t word = atomic_load_explicit(&worker->batch, memory_order_relaxed);
	uint8_t wait_group = batch->wait_group;
	uint64_t count = 0;

	for (struct timer *timer = batch; timer; timer = timer_or_null(timer->link.next)) {
		prefetch_to_read(timer + 1);
		timer->wait_group = wait_group;
		/* relaxed: published by the batch's word. */
		atomic_store_explicit(&worker->jobs[count++], timer, memory_order_relaxed);
	}
	atomic_store_explicit(&worker->submitted_at, batch->submitted_at, memory_order_relaxed);
	word = ((word >> 32) + 1) << 32 | count << 16;
	/* seq_cst, as a release: publishes jobs and timers to worker_claim(); and before the look
	 * for sleepers; pairs with the load in worker_batch_is_empty(). */
	atomic_store_explicit(&worker->batch, word, memory_order_seq_cst);
	if (count > 1)
		worker_pool_call_help(worker->pool);
}

/* Under the lock: which lane is next. The bulk lane comes last, but now and then it comes first. */
static struct lane *worker_pool_next_lane(struct worker_pool *pool)
{
	struct lane *prompt = &pool->lanes[JOB_LANE_PROMPT];
	struct lane *bulk = &pool->lanes[JOB_LANE_BULK];

	if (!bulk->first)
		return prompt;
	if (!prompt->first)
		return bulk;
	return pool->batches_taken % BULK_SHARE == 0 ? bulk : prompt;
}

/* Takes the oldest batch of a lane. Returns false if there is none. */
static bool worker_take_batch(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct timer *batch;
	struct lane *lane;

	pthread_mutex_lock(&pool->lock);
	lane = worker_pool_next_lane(pool);
	batch = lane->first;
	if (batch) {
		lane->first = timer_or_null(batch->link.previous);
		pool->batches_taken++;
	}
	pthread_mutex_unlock(&pool->lock);
	if (!batch)
		return false;
	worker_fill_batch(worker, batch);
	return true;
}

/* The worker to help: the same while it is busy with one job and more lie behind, else the next. */
static struct worker *worker_next_victim(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct worker *victim = &pool->workers[worker->victim];
	/* relaxed, both: a guess; worker_claim() looks for itself. */
	uint64_t word = atomic_load_explicit(&victim->batch, memory_order_relaxed);

	if (!batch_is_empty(word) && batch_progress(word) == worker->victim_progress)
		return victim;
	worker->victim = (worker->victim + 1) % worker_pool_slots(pool);
	victim = &pool->workers[worker->victim];
	word = atomic_load_explicit(&victim->batch, memory_order_relaxed);
	worker->victim_progress = batch_progress(word);
	return victim;
}

/* Claims a job from another's batch. */
static struct timer *worker_help(struct worker *worker)
{
	struct worker *victim = worker_next_victim(worker);
	struct timer *timer;

	if (victim == worker)
		return NULL;
	timer = worker_claim(victim, CLAIM_BY_OTHER);
	if (timer && !worker_batch_is_empty(victim))
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
	for (size_t i = 0; !timer && i < worker_pool_slots(worker->pool); i++)
		timer = worker_help(worker);
	return timer;
}

/* Under the lock: since when the job waits that has waited longest; TW_FOREVER: none waits. */
static tw_duration worker_pool_waits_since(struct worker_pool *pool)
{
	tw_duration since = TW_FOREVER;

	for (int lane = 0; lane < JOB_LANES; lane++) {
		const struct timer *first = pool->lanes[lane].first;

		if (first && first->submitted_at < since)
			since = first->submitted_at;
	}
	for (size_t i = 0; i < worker_pool_slots(pool); i++) {
		struct worker *worker = &pool->workers[i];
		tw_duration at = TW_FOREVER;

		/* relaxed: after the look at the batch, so of that filling or a later one. */
		if (!worker_batch_is_empty(worker))
			at = atomic_load_explicit(&worker->submitted_at, memory_order_relaxed);
		if (at < since)
			since = at;
	}
	return since;
}

/* Under the lock. */
static uint64_t worker_pool_unfinished_in(struct worker_pool *pool, uint64_t wait_group)
{
	uint64_t unfinished = pool->submitted[wait_group % WAIT_GROUPS];

	for (size_t i = 0; i < worker_pool_slots(pool); i++) {
		const struct worker_counts *counts = pool->workers[i].counts;

		/* acquire: sees what the tasks did; pairs with the store in worker_finish(). */
		if (counts)
			unfinished -= atomic_load_explicit(
				&counts->finished[wait_group % WAIT_GROUPS], memory_order_acquire);
	}
	return unfinished;
}

/* Under the lock. */
static uint64_t worker_pool_unfinished_in_all(struct worker_pool *pool)
{
	uint64_t unfinished = 0;

	for (uint64_t wait_group = pool->oldest_group; wait_group <= pool->wait_group; wait_group++)
		unfinished += worker_pool_unfinished_in(pool, wait_group);
	return unfinished;
}

#ifdef TW_DEBUG
/* Returns the number of jobs in a lane, counting at most 1024 batches. */
static uint64_t lane_check(const struct lane *lane)
{
	enum { BATCHES_MOST = 1024 };
	const struct timer *batch = lane->first;
	uint64_t jobs = 0;

	for (int i = 0; batch && i < BATCHES_MOST; i++) {
		assert(batch->batch_size >= 1 && batch->batch_size <= WORKER_BATCH);
		assert(batch->link.previous || batch == lane->last);
		jobs += batch->batch_size;
		batch = timer_or_null(batch->link.previous);
	}
	return jobs;
}

/* Asserts that `sleepers` has the workers that are asleep, and the watcher if it is. Returns the
 * number of these workers. */
static size_t worker_pool_check_sleepers(const struct worker_pool *pool)
{
	size_t asleep = pool->watching.is_asleep;
	size_t listed = 0;

	for (size_t i = 0; i < worker_pool_slots(pool); i++) {
		assert(!pool->workers[i].sleeper.is_asleep || pool->workers[i].is_taken);
		asleep += pool->workers[i].sleeper.is_asleep;
	}
	for (const struct list *link = pool->sleepers.next; link != &pool->sleepers;
	     link = link->next, listed++)
		assert(list_entry(link, struct sleeper, link)->is_asleep);
	assert(asleep == listed);
	/* relaxed: written under the lock. */
	assert(atomic_load_explicit(&pool->has_sleepers, memory_order_relaxed) == (listed > 0));
	return asleep - pool->watching.is_asleep;
}

/* Asserts the invariants. Under the lock. At the end the counts of joined workers are gone. */
static void worker_pool_check(struct worker_pool *pool)
{
	size_t asleep = worker_pool_check_sleepers(pool);
	uint64_t waiting = 0;
	size_t live = 0;

	if (pool->ending)
		return;
	for (size_t i = 0; i < worker_pool_slots(pool); i++)
		live += pool->workers[i].is_taken;
	assert(live == pool->live && live <= pool->most);
	assert(pool->wait_group - pool->oldest_group < WAIT_GROUPS);
	for (uint64_t group = pool->oldest_group; group <= pool->wait_group; group++)
		assert(worker_pool_unfinished_in(pool, group) <= INT64_MAX);
	if (pool->oldest_group > 0 && pool->wait_group - pool->oldest_group < WAIT_GROUPS - 1)
		assert(worker_pool_unfinished_in(pool, pool->oldest_group - 1) == 0);
	for (int i = 0; i < JOB_LANES; i++)
		waiting += lane_check(&pool->lanes[i]);
	assert(waiting <= worker_pool_unfinished_in_all(pool));
	assert(waiting == 0 || asleep < live);
}
#else
static void worker_pool_check(struct worker_pool *pool)
{
	(void)pool;
}
#endif

/* Under the lock: notifies those that wait for wait groups that have become empty. */
static void worker_pool_tell(struct worker_pool *pool)
{
	uint64_t oldest = pool->oldest_group;

	while (oldest != pool->wait_group && worker_pool_unfinished_in(pool, oldest) == 0)
		oldest++;
	if (oldest == pool->oldest_group)
		return;
	pool->oldest_group = oldest;
	pthread_cond_broadcast(&pool->group_is_over);
	worker_pool_check(pool);
}

/* Under the lock, when the worker has claimed a job or found none: reports what was done before. */
static void worker_tell(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;

	worker_pool_tell(pool);
	if (pool->starting != worker)
		return;
	pool->starting = NULL;
	pthread_cond_signal(&pool->watching.wake);
}

/* Under the lock. */
static void worker_leave_slot(struct worker *worker)
{
	worker->is_taken = false;
	worker->pool->live--;
	/* The watcher waits for that: it clears the slot. */
	pthread_cond_signal(&worker->pool->watching.wake);
}

/* Sleeps until there may be jobs. Returns false if the worker has left its slot. */
static bool worker_sleep(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct sleeper *sleeper = &worker->sleeper;
	tw_duration end = clock_read_real(CLOCK_MONOTONIC) + idle_time;
	bool in_time = true;
	bool stays;

	job_flush(pool->target, &worker->counts->bin);
	pthread_mutex_lock(&pool->lock);
	worker_tell(worker);
	worker_pool_set_asleep(pool, sleeper, true);
	if (worker_pool_waits_since(pool) != TW_FOREVER)
		worker_pool_set_asleep(pool, sleeper, false);
	while (sleeper->is_asleep && !pool->ending && (in_time || pool->live <= pool->least)) {
		/* A worker that is idle sees no other one start. */
		tw_duration until = pool->live > pool->least ? end : TW_FOREVER;

		in_time = condition_wait(&sleeper->wake, &pool->lock, until);
	}
	stays = !sleeper->is_asleep;
	worker_pool_set_asleep(pool, sleeper, false);
	if (!stays)
		worker_leave_slot(worker);
	worker_pool_check(pool);
	pthread_mutex_unlock(&pool->lock);
	return stays;
}

static void worker_finish(struct worker *worker, struct timer *timer)
{
	_Atomic uint64_t *finished = &worker->counts->finished[timer->wait_group];
	uint64_t count;

	/* A thread may be waiting for what this worker has done. */
	if (timer->wait_group != worker->wait_group) {
		worker->wait_group = timer->wait_group;
		pthread_mutex_lock(&worker->pool->lock);
		worker_tell(worker);
		pthread_mutex_unlock(&worker->pool->lock);
	}
	(void)job_finish(worker->pool->target, timer, &worker->counts->thread);
	/* relaxed: written by this thread alone. */
	count = atomic_load_explicit(finished, memory_order_relaxed) + 1;
	/* release: publishes what the task did; pairs with the load in
	 * worker_pool_unfinished_in(). */
	atomic_store_explicit(finished, count, memory_order_release);
}

/* Does jobs until the worker ends. Not inlined, so that what it calls is, and each job costs no
 * calls. */
static __attribute__((noinline)) void worker_do_jobs(struct worker *worker)
{
	struct timer *timer;

	do {
		while ((timer = worker_next_job(worker)))
			worker_finish(worker, timer);
	} while (worker_sleep(worker));
}

static void *worker_run(void *argument)
{
	struct worker *worker = argument;

	worker_here = worker;
	job_begin_thread(worker->pool->target, &worker->pool->setup, worker->thread.name);
	worker_do_jobs(worker);
	job_end_thread(worker->pool->target, &worker->pool->setup, worker->thread.name);
	return NULL;
}

/* Returns the first free slot, which is cleared. There must be one. Under the lock. */
static struct worker *worker_pool_free_slot(struct worker_pool *pool)
{
	size_t slots = worker_pool_slots(pool);
	size_t number = 0;
	struct worker *worker;

	while (number < slots && pool->workers[number].is_taken)
		number++;
	worker = &pool->workers[number];
	if (number < slots)
		return worker;
	memset(worker, 0, sizeof(*worker));
	worker->pool = pool;
	worker->victim = number;
	condition_init(&worker->sleeper.wake);
	/* release: publishes the slot; pairs with the load in worker_pool_slots(). */
	atomic_store_explicit(&pool->slots, slots + 1, memory_order_release);
	return worker;
}

static void worker_set_counts(struct worker *worker, struct worker_counts *counts)
{
	struct worker_pool *pool = worker->pool;

	pthread_mutex_lock(&pool->sums_lock);
	pthread_mutex_lock(&pool->lock);
	worker->counts = counts;
	pthread_mutex_unlock(&pool->lock);
	pthread_mutex_unlock(&pool->sums_lock);
}

/* 0 or an errno value. */
static int worker_start(struct worker *worker)
{
	struct worker_counts *counts = pages_map_untouched(sizeof(*counts));
	char role[12];
	int error;

	if (!counts)
		return ENOMEM;
	counts->thread.bin = &counts->bin;
	worker_set_counts(worker, counts);
	snprintf(role, sizeof(role), "%d", (int)(worker - worker->pool->workers));
	error = thread_start(&worker->thread, worker_run, worker, worker->pool->target->name, role,
			     &worker->pool->setup);
	worker->is_joinable = error == 0;
	return error;
}

/* Under the lock, which it leaves meanwhile: one more worker starts; 0 or an errno value. */
static int worker_pool_add_worker(struct worker_pool *pool)
{
	struct worker *worker = worker_pool_free_slot(pool);
	int error;

	worker->is_taken = true;
	worker->wait_group = NO_WAIT_GROUP;
	pool->live++;
	pool->starting = worker;
	pthread_mutex_unlock(&pool->lock);
	error = worker_start(worker);
	pthread_mutex_lock(&pool->lock);
	if (error != 0)
		worker_leave_slot(worker);
	return error;
}

/* Adds what a worker that has ended counted to the pool's own, and gives it back. */
static void worker_fold_counts(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	struct worker_counts *counts = worker->counts;

	pthread_mutex_lock(&pool->sums_lock);
	job_sums_add(&pool->ended, &counts->thread);
	pthread_mutex_lock(&pool->lock);
	/* relaxed: the worker wrote them before it left its slot, under the lock. */
	for (int i = 0; i < WAIT_GROUPS; i++)
		pool->submitted[i] -=
			atomic_load_explicit(&counts->finished[i], memory_order_relaxed);
	worker->counts = NULL;
	pthread_mutex_unlock(&pool->lock);
	pthread_mutex_unlock(&pool->sums_lock);
	pages_unmap_aligned(counts, sizeof(*counts));
}

/* Clears the first slot that a worker has left. Returns false if there is none. Under the lock,
 * which it leaves and takes again. */
static bool worker_pool_clear_slot(struct worker_pool *pool)
{
	struct worker *worker = pool->workers;
	const struct worker *end = worker + worker_pool_slots(pool);

	while (worker < end && (worker->is_taken || !worker->counts))
		worker++;
	if (worker == end)
		return false;
	pthread_mutex_unlock(&pool->lock);
	worker_fold_counts(worker);
	if (worker->is_joinable)
		thread_join(&worker->thread);
	worker->is_joinable = false;
	pthread_mutex_lock(&pool->lock);
	return true;
}

/* Reads how much the workers have done so far. The watcher's; not under the lock. */
static struct worker_load worker_pool_load(struct worker_pool *pool)
{
	struct worker_load load = {.since = clock_read_real(CLOCK_MONOTONIC),
				   .process = clock_read_real(CLOCK_PROCESS_CPUTIME_ID)};

	for (size_t i = 0; i < worker_pool_slots(pool); i++)
		if (pool->workers[i].is_joinable)
			load.used += processor_time(pool->workers[i].thread.id);
	return load;
}

/* Returns whether the workers computed from `begin` to `end`, rather than been blocked: they had
 * more than half of the processors, and the program left less than one of them idle. */
static bool worker_load_is_full(const struct worker_load *begin, const struct worker_load *end,
				tw_duration processors)
{
	tw_duration elapsed = end->since - begin->since;
	tw_duration used = end->used - begin->used;
	/* The system counts the time of all threads more coarsely than that of one. */
	tw_duration by_all = end->process - begin->process;
	tw_duration idle = elapsed * processors - (by_all > used ? by_all : used);

	return used > elapsed * processors / 16 * 9 && idle < elapsed / 8 * 7;
}

/*
 * Returns whether the workers have computed since `load`, and taken batches; if so, `load` begins
 * again. *blocked becomes whether they did nothing at all. Under the lock, which it leaves and
 * takes again.
 */
static bool worker_pool_computes(struct worker_pool *pool, struct worker_load *load, bool *blocked)
{
	size_t processors = processors_available();
	struct worker_load now;

	pthread_mutex_unlock(&pool->lock);
	now = worker_pool_load(pool);
	pthread_mutex_lock(&pool->lock);
	*blocked = now.used - load->used < (now.since - load->since) / 2;
	if (pool->live < processors || !worker_load_is_full(load, &now, (tw_duration)processors))
		return false;
	now.batches_taken = pool->batches_taken;
	now.taken_at = now.batches_taken == load->batches_taken ? load->taken_at : now.since;
	*load = now;
	if (now.since - now.taken_at < stall_time)
		return true;
	load->taken_at = now.since;
	return false;
}

/* One more worker starts, unless those there compute. Under the lock, which it leaves and takes
 * again. */
static void worker_pool_grow(struct worker_pool *pool, struct worker_load *load)
{
	unsigned taken;
	bool blocked;

	if (worker_pool_computes(pool, load, &blocked))
		return;
	taken = pool->batches_taken;
	if (worker_pool_add_worker(pool) == 0) {
		while (pool->starting)
			(void)condition_wait(&pool->watching.wake, &pool->lock, TW_FOREVER);
		/* One may be the new worker's. */
		if (blocked && pool->batches_taken - taken <= 1)
			return;
	}
	load->since = TW_FOREVER;
}

/* Returns since when a job waits for want of a worker; TW_FOREVER if none does, or if the pool may
 * not grow. Under the lock. */
static tw_duration worker_pool_lacks_since(struct worker_pool *pool)
{
	tw_duration since = TW_FOREVER;

	if (pool->live >= pool->most)
		return since;
	/* Before the look at the batches, as a worker does. */
	worker_pool_set_asleep(pool, &pool->watching, true);
	if (pool->sleepers.previous == &pool->watching.link)
		since = worker_pool_waits_since(pool);
	worker_pool_set_asleep(pool, &pool->watching, since == TW_FOREVER);
	return since;
}

/* Returns when the watcher is to look at growth again, having added a worker if it was time; 0
 * means at once. Under the lock, which it leaves and takes again if it returns 0. */
static tw_duration worker_pool_look_at_growth(struct worker_pool *pool, struct worker_load *load)
{
	tw_duration since = worker_pool_lacks_since(pool);
	tw_duration time;

	if (since == TW_FOREVER) {
		load->since = TW_FOREVER;
		return TW_FOREVER;
	}
	if (load->since == TW_FOREVER) {
		pthread_mutex_unlock(&pool->lock);
		*load = worker_pool_load(pool);
		pthread_mutex_lock(&pool->lock);
		load->batches_taken = pool->batches_taken;
		load->taken_at = load->since;
		return 0;
	}
	time = time_add(since > load->since ? since : load->since, pool->patience);
	if (time > clock_read_real(CLOCK_MONOTONIC))
		return time;
	worker_pool_grow(pool, load);
	return 0;
}

static void *worker_pool_watch(void *argument)
{
	struct worker_pool *pool = argument;
	struct worker_load load = {.since = TW_FOREVER};

	pthread_mutex_lock(&pool->lock);
	while (!pool->ending) {
		tw_duration growth;

		if (worker_pool_clear_slot(pool))
			continue;
		growth = worker_pool_look_at_growth(pool, &load);
		if (growth > 0)
			(void)condition_wait(&pool->watching.wake, &pool->lock, growth);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* Ends and joins the threads; no job is unfinished. Nothing is freed: a thread's destructors of
 * specific data may make calls until it is joined. */
static void worker_pool_join(struct worker_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->ending = true;
	for (size_t i = 0; i < worker_pool_slots(pool); i++)
		pthread_cond_signal(&pool->workers[i].sleeper.wake);
	pthread_cond_signal(&pool->watching.wake);
	pthread_mutex_unlock(&pool->lock);
	if (pool->has_watcher)
		thread_join(&pool->watcher);
	for (size_t i = 0; i < worker_pool_slots(pool); i++)
		if (pool->workers[i].is_joinable)
			thread_join(&pool->workers[i].thread);
}

static void worker_pool_free(struct worker_pool *pool)
{
	for (size_t i = 0; i < worker_pool_slots(pool); i++) {
		struct worker *worker = &pool->workers[i];

		if (worker->counts)
			pages_unmap_aligned(worker->counts, sizeof(*worker->counts));
		pthread_cond_destroy(&worker->sleeper.wake);
	}
	pthread_cond_destroy(&pool->watching.wake);
	pthread_cond_destroy(&pool->group_is_over);
	pthread_mutex_destroy(&pool->sums_lock);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Ends and joins the threads, frees the pool; no job is unfinished. */
static void worker_pool_end(struct worker_pool *pool)
{
	worker_pool_join(pool);
	worker_pool_free(pool);
}

/* Starts the threads there are from the beginning; 0 or an errno value. */
static int worker_pool_start(struct worker_pool *pool)
{
	int error = 0;

	pthread_mutex_lock(&pool->lock);
	while (error == 0 && pool->live < pool->least)
		error = worker_pool_add_worker(pool);
	pthread_mutex_unlock(&pool->lock);
	if (error != 0 || pool->most == pool->least)
		return error;
	error = thread_start(&pool->watcher, worker_pool_watch, pool, pool->target->name, "watch",
			     &pool->setup);
	pool->has_watcher = error == 0;
	return error;
}

struct worker_pool *worker_pool_create(const struct tw_options *options, struct job_target *target)
{
	size_t most = (size_t)options->max_workers;
	size_t size = sizeof(struct worker_pool) + most * sizeof(struct worker);
	struct worker_pool *pool = aligned_alloc(CACHE_LINE, size);
	int error;

	if (!pool)
		return NULL;
	memset(pool, 0, sizeof(*pool));
	list_init(&pool->sleepers);
	pool->target = target;
	thread_setup_init(&pool->setup, options);
	pool->least = (size_t)options->workers;
	pool->most = most;
	pool->patience = options->patience_for_worker;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_mutex_init(&pool->sums_lock, NULL);
	condition_init(&pool->watching.wake);
	condition_init(&pool->group_is_over);
	error = worker_pool_start(pool);
	if (error == 0)
		return pool;
	worker_pool_end(pool);
	errno = error;
	return NULL;
}

void worker_pool_end_threads(struct worker_pool *pool)
{
	if (pool->ending)
		return;
	/* With all workers: a job may need others to be done beside it. */
	worker_pool_wait(pool);
	worker_pool_join(pool);
}

void worker_pool_destroy(struct worker_pool *pool)
{
	worker_pool_end_threads(pool);
	worker_pool_free(pool);
}

void worker_pool_submit(struct worker_pool *pool, enum job_lane lane_number,
			struct job_batches *batches)
{
	struct lane *lane = &pool->lanes[lane_number];
	tw_duration now = 0;
	size_t wake = 0;

	if (batches->count == 0)
		return;
	if (pool->most > pool->least)
		now = clock_read_real(CLOCK_MONOTONIC);
	pthread_mutex_lock(&pool->lock);
	for (struct timer *batch = batches->first; batch;
	     batch = timer_or_null(batch->link.previous)) {
		batch->wait_group = (uint8_t)(pool->wait_group % WAIT_GROUPS);
		batch->submitted_at = now;
		wake++;
	}
	pool->submitted[pool->wait_group % WAIT_GROUPS] += batches->count;
	if (lane->first)
		lane->last->link.previous = &batches->first->link;
	else
		lane->first = batches->first;
	lane->last = batches->last;
	while (wake > 0 && worker_pool_wake(pool))
		wake--;
	worker_pool_check(pool);
	pthread_mutex_unlock(&pool->lock);
	*batches = (struct job_batches){0};
}

/* Waits until the oldest group may have changed. Returns false if the deadline has come. Under the
 * lock, which it leaves meanwhile. */
static bool worker_pool_await_group(struct worker_pool *pool, tw_duration deadline)
{
	return clock_wait(pool->target->clock, &pool->group_is_over, &pool->lock, deadline);
}

/* Closes the current group if a job of it is unfinished. Returns false on timeout. Under the lock,
 * which it leaves meanwhile. */
static bool worker_pool_close_group(struct worker_pool *pool, tw_duration deadline)
{
	if (worker_pool_unfinished_in(pool, pool->wait_group) == 0)
		return true;
	while (pool->wait_group - pool->oldest_group == WAIT_GROUPS - 1)
		if (!worker_pool_await_group(pool, deadline))
			return false;
	pool->wait_group++;
	return true;
}

/* Waits until all groups before `group` are over. Returns false on timeout. Under the lock. */
static bool worker_pool_await_groups(struct worker_pool *pool, uint64_t group, tw_duration deadline)
{
	while (pool->oldest_group < group)
		if (!worker_pool_await_group(pool, deadline))
			return false;
	return true;
}

bool worker_pool_wait_until(struct worker_pool *pool, tw_duration deadline)
{
	bool in_time;

	pthread_mutex_lock(&pool->lock);
	in_time = worker_pool_close_group(pool, deadline);
	/* While this waited for a free group, the closed one may have become empty unnoticed. */
	worker_pool_tell(pool);
	if (in_time)
		in_time = worker_pool_await_groups(pool, pool->wait_group, deadline);
	pthread_mutex_unlock(&pool->lock);
	return in_time;
}

void worker_pool_wait(struct worker_pool *pool)
{
	(void)worker_pool_wait_until(pool, TW_FOREVER);
}

bool worker_pool_is_here(const struct worker_pool *pool)
{
	return worker_here && worker_here->pool == pool;
}

void worker_pool_sum(struct worker_pool *pool, struct job_sums *sums)
{
	pthread_mutex_lock(&pool->sums_lock);
	*sums = pool->ended;
	for (size_t i = 0; i < worker_pool_slots(pool); i++)
		if (pool->workers[i].counts)
			job_sums_add(sums, &pool->workers[i].counts->thread);
	pthread_mutex_unlock(&pool->sums_lock);
}

void worker_pool_count(struct worker_pool *pool, struct tw_stats *stats)
{
	pthread_mutex_lock(&pool->lock);
	stats->unfinished = worker_pool_unfinished_in_all(pool);
	stats->workers = pool->live;
	pthread_mutex_unlock(&pool->lock);
}
