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
 * Growth. Where there may be more workers than at the start, one thread of the pool does no jobs:
 * the watcher. While a worker is idle or no job waits, it sleeps. Else it starts one more worker
 * once the job that has waited longest, in a lane or on a tray, has done so for the patience. When
 * the new worker has claimed its first job, the watcher looks again, so that as many start at once
 * as are held up; but where others have taken a batch meanwhile, they are not held up but have much
 * to do, and the next one starts a patience later. So does one that could not be started. The idle
 * worker of the lowest number is woken first, so those that the pool grew by come to rest; each
 * ends when it has been idle for 10 s, with nothing on its tray. Its seat, with all that was
 * counted there, is for the next one that starts.
 *
 * Room. Where the number of unfinished jobs has a limit, the submitter asks for room. If there was
 * none, a worker tells it: once half of the limit is free, or sooner, where no job waits. So a
 * worker that claims the last job of its tray looks whether that is wanted, as each does before it
 * sleeps.
 *
 * May run together: submit by one thread, wait by any number, with all workers and the watcher.
 * Linearization: a job is handed over at the unlock in submit, claimed at the exchange of the
 * tray's word, done at the store to `finished`.
 */
#include "worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "prefetch.h"
#include "slot_set.h"
#include "thread.h"

enum {
	BULK_SHARE = 8, /* one batch in so many is taken from the bulk lane first */
	EPOCHS = 256    /* at a time; as many as there are values of struct timer's `epoch` */
};

/* So long a worker that the pool grew by may be idle. */
static const tw_duration idle_time = 10 * TW_SECOND;

/* What is added to a tray's word. */
enum claim { CLAIM_BY_OTHER = 0x001, CLAIM_BY_ITSELF = 0x101 };

/* A seat, and the thread that works there, if there is one. */
struct worker {
	/* Constant. */
	struct worker_pool *pool;
	size_t number;
	/* The pool's creator's and destroyer's, between them the watcher's. */
	pthread_t thread;
	bool is_joinable;
	_Atomic uintptr_t self; /* the thread's name, which it writes; 0: none */
	/* Any thread, under the lock. */
	bool is_taken;
	bool is_idle;
	pthread_cond_t wake; /* no longer idle */
	/* Filled by the worker, emptied by all. */
	_Alignas(CACHE_LINE) _Atomic uint64_t
		tray; /* generation, end, own, next: 32, 16, 8, 8 bits */
	_Atomic(struct timer *) jobs[WORKER_BATCH];
	_Atomic tw_duration submitted_at; /* those jobs; where the pool may grow */
	/* The worker's own; `finished` is read by all. */
	_Alignas(CACHE_LINE) _Atomic uint64_t finished[EPOCHS]; /* since ever, by timer.epoch */
	size_t victim;                                          /* whose tray it looked at last */
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
	char name[16];
	size_t least; /* workers */
	size_t most;
	tw_duration patience;
	size_t max_unfinished; /* jobs; 0: no limit */
	pthread_t watcher;     /* where most > least */
	/* Any thread, under the lock. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	pthread_cond_t epoch_is_over; /* the oldest is another */
	pthread_cond_t watch;         /* the watcher is to look, or to end */
	bool is_unwatched;            /* the watcher sleeps until then */
	bool is_starting;             /* a worker that has not looked for a job yet */
	size_t live;                  /* workers */
	uint64_t not_started;         /* since ever */
	struct slot_set idle;         /* workers, by number */
	struct lane lanes[JOB_LANES];
	unsigned batches_taken;
	/* Epochs are numbered from 0; timer.epoch is the lower 8 bits. */
	uint64_t oldest_epoch;      /* all before it are empty and closed */
	uint64_t epoch;             /* the current one, in which submitted jobs count */
	uint64_t submitted[EPOCHS]; /* since ever, by timer.epoch */
	bool ending;
	/* Written under the lock, read by any thread. */
	_Alignas(CACHE_LINE) atomic_int sleepers; /* idle workers; the watcher while unwatched */
	atomic_bool room_is_wanted;
	atomic_size_t seats; /* that a worker has had; those behind them are not initialized */
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

static size_t worker_pool_seats(const struct worker_pool *pool)
{
	/* acquire: sees the seats; pairs with the store in worker_pool_take_seat(). */
	return atomic_load_explicit(&pool->seats, memory_order_acquire);
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

/* Under the lock. */
static void worker_pool_count_sleeper(struct worker_pool *pool, bool sleeps)
{
	/* seq_cst: the announcement, before the sleeper's second look; pairs with the load in
	 * worker_pool_call_help(). */
	atomic_fetch_add_explicit(&pool->sleepers, sleeps ? 1 : -1, memory_order_seq_cst);
}

/* Under the lock. */
static void worker_set_idle(struct worker *worker, bool is_idle)
{
	struct worker_pool *pool = worker->pool;

	worker->is_idle = is_idle;
	if (is_idle)
		slot_set_add(&pool->idle, worker->number);
	else
		slot_set_remove(&pool->idle, worker->number);
	worker_pool_count_sleeper(pool, is_idle);
}

/* Under the lock. */
static void worker_pool_set_unwatched(struct worker_pool *pool, bool is_unwatched)
{
	if (pool->is_unwatched == is_unwatched)
		return;
	pool->is_unwatched = is_unwatched;
	worker_pool_count_sleeper(pool, is_unwatched);
}

/*
 * Under the lock, when there are jobs: wakes an idle worker; false: there is none. Where no other
 * is idle, the watcher looks after the jobs.
 */
static bool worker_pool_wake(struct worker_pool *pool)
{
	size_t number = slot_set_next(&pool->idle, 0);

	if (number != SLOT_NONE) {
		worker_set_idle(&pool->workers[number], false);
		pthread_cond_signal(&pool->workers[number].wake);
	}
	if (pool->is_unwatched && slot_set_next(&pool->idle, 0) == SLOT_NONE) {
		worker_pool_set_unwatched(pool, false);
		pthread_cond_signal(&pool->watch);
	}
	return number != SLOT_NONE;
}

/* Wakes an idle worker or the watcher, if one of them sleeps, for what lies on a tray. */
static void worker_pool_call_help(struct worker_pool *pool)
{
	/* seq_cst: after the tray was filled; pairs with worker_pool_count_sleeper(). */
	if (atomic_load_explicit(&pool->sleepers, memory_order_seq_cst) == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	(void)worker_pool_wake(pool);
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
	/* relaxed: the same; the watcher may read that of a later filling, and then looks again. */
	atomic_store_explicit(&worker->submitted_at, batch->submitted_at, memory_order_relaxed);
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
	return pool->batches_taken % BULK_SHARE == 0 ? bulk : prompt;
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
	if (batch) {
		lane->first = timer_or_null(batch->link.previous);
		pool->batches_taken++;
	}
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
	worker->victim = (worker->victim + 1) % worker_pool_seats(pool);
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
	for (size_t i = 0; !timer && i < worker_pool_seats(worker->pool); i++)
		timer = worker_help(worker);
	return timer;
}

static bool worker_pool_has_batches(const struct worker_pool *pool)
{
	return pool->lanes[JOB_LANE_PROMPT].first || pool->lanes[JOB_LANE_BULK].first;
}

static bool worker_pool_has_jobs(struct worker_pool *pool)
{
	for (size_t i = 0; i < worker_pool_seats(pool); i++)
		if (!worker_tray_is_empty(&pool->workers[i]))
			return true;
	return worker_pool_has_batches(pool);
}

/* Under the lock. */
static uint64_t worker_pool_unfinished_in(struct worker_pool *pool, uint64_t epoch)
{
	uint64_t unfinished = pool->submitted[epoch % EPOCHS];

	for (size_t i = 0; i < worker_pool_seats(pool); i++) {
		/* seq_cst, as an acquire: sees what the tasks did; and after the store in
		 * worker_pool_room(); pairs with those in worker_finish(). */
		unfinished -= atomic_load_explicit(&pool->workers[i].finished[epoch % EPOCHS],
						   memory_order_seq_cst);
	}
	return unfinished;
}

/* Under the lock. */
static uint64_t worker_pool_unfinished_in_all(struct worker_pool *pool)
{
	uint64_t unfinished = 0;

	for (uint64_t epoch = pool->oldest_epoch; epoch <= pool->epoch; epoch++)
		unfinished += worker_pool_unfinished_in(pool, epoch);
	return unfinished;
}

/* Under the lock: tells the submitter, if it waits for that, that there is room. */
static void worker_pool_tell_room(struct worker_pool *pool)
{
	uint64_t unfinished;

	/* relaxed: written under the lock. */
	if (!atomic_load_explicit(&pool->room_is_wanted, memory_order_relaxed))
		return;
	unfinished = worker_pool_unfinished_in_all(pool);
	if (unfinished >= pool->max_unfinished ||
	    (unfinished > pool->max_unfinished / 2 && worker_pool_has_jobs(pool)))
		return;
	/* relaxed: a look too many harms nobody. */
	atomic_store_explicit(&pool->room_is_wanted, false, memory_order_relaxed);
	event_count_notify(pool->target->owner, EVENT_COUNT_NAPPING);
}

/* Under the lock: tells those that wait for room, or for epochs that have become empty. */
static void worker_pool_tell(struct worker_pool *pool)
{
	uint64_t oldest = pool->oldest_epoch;

	worker_pool_tell_room(pool);
	while (oldest != pool->epoch && worker_pool_unfinished_in(pool, oldest) == 0)
		oldest++;
	if (oldest == pool->oldest_epoch)
		return;
	pool->oldest_epoch = oldest;
	pthread_cond_broadcast(&pool->epoch_is_over);
}

/* Under the lock. */
static void worker_leave_seat(struct worker *worker)
{
	worker->is_taken = false;
	worker->pool->live--;
}

/* Sleeps until there may be jobs; false: the worker has left its seat. */
static bool worker_sleep(struct worker *worker)
{
	struct worker_pool *pool = worker->pool;
	tw_duration until = TW_FOREVER;
	bool stays;

	job_flush(pool->target, &worker->bin);
	if (worker->number >= pool->least)
		until = clock_read_real(CLOCK_MONOTONIC) + idle_time;
	pthread_mutex_lock(&pool->lock);
	worker_pool_tell(pool);
	worker_set_idle(worker, true);
	if (worker_pool_has_jobs(pool))
		worker_set_idle(worker, false);
	while (worker->is_idle && !pool->ending &&
	       condition_wait(&worker->wake, &pool->lock, until))
		continue;
	stays = !worker->is_idle;
	if (!stays) {
		worker_set_idle(worker, false);
		worker_leave_seat(worker);
	}
	pthread_mutex_unlock(&pool->lock);
	return stays;
}

/* Before a job: whether somebody may be waiting for what this worker has done. */
static bool worker_may_tell(struct worker *worker, const struct timer *timer)
{
	if (timer->epoch != worker->epoch)
		return true;
	/* seq_cst: after the store in worker_finish(); pairs with the one in worker_pool_room(). */
	return atomic_load_explicit(&worker->pool->room_is_wanted, memory_order_seq_cst) &&
	       worker_tray_is_empty(worker);
}

static void worker_tell(struct worker *worker, uint8_t epoch)
{
	struct worker_pool *pool = worker->pool;

	worker->epoch = epoch;
	pthread_mutex_lock(&pool->lock);
	worker_pool_tell(pool);
	pthread_mutex_unlock(&pool->lock);
}

static void worker_finish(struct worker *worker, struct timer *timer)
{
	_Atomic uint64_t *finished = &worker->finished[timer->epoch];
	uint64_t count;

	if (worker_may_tell(worker, timer))
		worker_tell(worker, timer->epoch);
	job_finish(worker->pool->target, timer, &worker->seat);
	/* relaxed: written by this thread alone. */
	count = atomic_load_explicit(finished, memory_order_relaxed) + 1;
	/* release: publishes what the task did; seq_cst: and before the load in worker_may_tell().
	 * Pairs with the load in worker_pool_unfinished_in(). */
	if (worker->pool->max_unfinished > 0)
		atomic_store_explicit(finished, count, memory_order_seq_cst);
	else
		atomic_store_explicit(finished, count, memory_order_release);
}

/* A new worker has claimed a job, or found none. */
static void worker_pool_note_start(struct worker_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->is_starting = false;
	pthread_cond_signal(&pool->watch);
	pthread_mutex_unlock(&pool->lock);
}

static void *worker_run(void *argument)
{
	struct worker *worker = argument;
	struct timer *timer;

	/* relaxed, twice: only this thread itself looks for its name. */
	atomic_store_explicit(&worker->self, (uintptr_t)pthread_self(), memory_order_relaxed);
	timer = worker_next_job(worker);
	worker_pool_note_start(worker->pool);
	if (timer)
		worker_finish(worker, timer);
	do {
		while ((timer = worker_next_job(worker)))
			worker_finish(worker, timer);
	} while (worker_sleep(worker));
	atomic_store_explicit(&worker->self, 0, memory_order_relaxed);
	return NULL;
}

/* Under the lock: the first free seat, of which there must be one. */
static struct worker *worker_pool_take_seat(struct worker_pool *pool)
{
	size_t seats = worker_pool_seats(pool);
	size_t number = 0;
	struct worker *worker;

	while (number < seats && pool->workers[number].is_taken)
		number++;
	worker = &pool->workers[number];
	if (number == seats) {
		memset(worker, 0, sizeof(*worker));
		worker->pool = pool;
		worker->number = number;
		worker->victim = number;
		worker->seat.bin = &worker->bin;
		condition_init(&worker->wake);
		/* release: publishes the seat; pairs with the load in worker_pool_seats(). */
		atomic_store_explicit(&pool->seats, seats + 1, memory_order_release);
	}
	worker->is_taken = true;
	pool->live++;
	return worker;
}

/* Under the lock, which it leaves meanwhile: one more worker starts; 0 or an errno value. */
static int worker_pool_add_worker(struct worker_pool *pool)
{
	struct worker *worker = worker_pool_take_seat(pool);
	char role[12];
	int error;

	pool->is_starting = true;
	pthread_mutex_unlock(&pool->lock);
	if (worker->is_joinable)
		pthread_join(worker->thread, NULL);
	snprintf(role, sizeof(role), "%d", (int)worker->number);
	error = thread_start(&worker->thread, worker_run, worker, pool->name, role);
	worker->is_joinable = error == 0;
	pthread_mutex_lock(&pool->lock);
	if (error != 0)
		worker_leave_seat(worker);
	return error;
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
	for (size_t i = 0; i < worker_pool_seats(pool); i++) {
		struct worker *worker = &pool->workers[i];
		/* relaxed: see worker_fill_tray(). */
		tw_duration at = atomic_load_explicit(&worker->submitted_at, memory_order_relaxed);

		if (at < since && !worker_tray_is_empty(worker))
			since = at;
	}
	return since;
}

/* Under the lock, which it leaves meanwhile: one more worker, and a pause where one is enough. */
static void worker_pool_grow(struct worker_pool *pool)
{
	tw_duration pause_end = clock_add(clock_read_real(CLOCK_MONOTONIC), pool->patience);
	unsigned taken = pool->batches_taken;

	if (worker_pool_add_worker(pool) == 0) {
		while (pool->is_starting)
			pthread_cond_wait(&pool->watch, &pool->lock);
		/* One may be the new worker's. */
		if (pool->batches_taken - taken <= 1)
			return;
	} else {
		pool->not_started++;
	}
	while (!pool->ending && condition_wait(&pool->watch, &pool->lock, pause_end))
		continue;
}

static void *worker_pool_watch(void *argument)
{
	struct worker_pool *pool = argument;

	pthread_mutex_lock(&pool->lock);
	while (!pool->ending) {
		tw_duration time = TW_FOREVER;

		/* Before the look at the trays, as a worker does. */
		worker_pool_set_unwatched(pool, true);
		if (pool->live < pool->most && slot_set_next(&pool->idle, 0) == SLOT_NONE)
			time = clock_add(worker_pool_waits_since(pool), pool->patience);
		worker_pool_set_unwatched(pool, time == TW_FOREVER);
		if (time <= clock_read_real(CLOCK_MONOTONIC))
			worker_pool_grow(pool);
		else
			(void)condition_wait(&pool->watch, &pool->lock, time);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* Ends and joins the threads, frees the pool; no job is unfinished. */
static void worker_pool_end(struct worker_pool *pool, bool has_watcher)
{
	pthread_mutex_lock(&pool->lock);
	pool->ending = true;
	for (size_t i = 0; i < worker_pool_seats(pool); i++)
		pthread_cond_signal(&pool->workers[i].wake);
	pthread_cond_signal(&pool->watch);
	pthread_mutex_unlock(&pool->lock);
	if (has_watcher)
		pthread_join(pool->watcher, NULL);
	for (size_t i = 0; i < worker_pool_seats(pool); i++) {
		if (pool->workers[i].is_joinable)
			pthread_join(pool->workers[i].thread, NULL);
		pthread_cond_destroy(&pool->workers[i].wake);
	}
	slot_set_destroy(&pool->idle);
	pthread_cond_destroy(&pool->watch);
	pthread_cond_destroy(&pool->epoch_is_over);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Starts the threads there are from the beginning; 0 or an errno value. */
static int worker_pool_start(struct worker_pool *pool)
{
	int error = 0;

	pthread_mutex_lock(&pool->lock);
	while (error == 0 && pool->live < pool->least)
		error = worker_pool_add_worker(pool);
	pthread_mutex_unlock(&pool->lock);
	if (error == 0 && pool->most > pool->least)
		error = thread_start(&pool->watcher, worker_pool_watch, pool, pool->name, "watch");
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
	if (!slot_set_init(&pool->idle, most)) {
		free(pool);
		return NULL;
	}
	pool->target = target;
	snprintf(pool->name, sizeof(pool->name), "%s", options->name);
	pool->least = (size_t)options->workers;
	pool->most = most;
	pool->patience = options->patience_for_worker;
	pool->max_unfinished = options->max_unfinished;
	pthread_mutex_init(&pool->lock, NULL);
	condition_init(&pool->watch);
	pthread_cond_init(&pool->epoch_is_over, NULL);
	error = worker_pool_start(pool);
	if (error == 0)
		return pool;
	worker_pool_end(pool, false);
	errno = error;
	return NULL;
}

void worker_pool_destroy(struct worker_pool *pool)
{
	/* With all workers: a job may need others to be done beside it. */
	worker_pool_wait(pool);
	worker_pool_end(pool, pool->most > pool->least);
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
		batch->epoch = (uint8_t)(pool->epoch % EPOCHS);
		batch->submitted_at = now;
		wake++;
	}
	pool->submitted[pool->epoch % EPOCHS] += batches->count;
	if (lane->first)
		lane->last->link.previous = &batches->first->link;
	else
		lane->first = batches->first;
	lane->last = batches->last;
	while (wake > 0 && worker_pool_wake(pool))
		wake--;
	pthread_mutex_unlock(&pool->lock);
	*batches = (struct job_batches){0};
}

/* Under the lock, which it may leave meanwhile: begins a new epoch. */
static void worker_pool_begin_epoch(struct worker_pool *pool)
{
	while (pool->epoch - pool->oldest_epoch == EPOCHS - 1)
		condition_wait(&pool->epoch_is_over, &pool->lock, TW_FOREVER);
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
	worker_pool_tell(pool);
	while (pool->oldest_epoch < epoch)
		condition_wait(&pool->epoch_is_over, &pool->lock, TW_FOREVER);
	pthread_mutex_unlock(&pool->lock);
}

size_t worker_pool_room(struct worker_pool *pool)
{
	uint64_t unfinished;

	if (pool->max_unfinished == 0)
		return SIZE_MAX;
	pthread_mutex_lock(&pool->lock);
	/* seq_cst: before the look at what is finished; pairs with worker_may_tell(). */
	atomic_store_explicit(&pool->room_is_wanted, true, memory_order_seq_cst);
	unfinished = worker_pool_unfinished_in_all(pool);
	if (unfinished < pool->max_unfinished) {
		/* relaxed: a look too many harms nobody. */
		atomic_store_explicit(&pool->room_is_wanted, false, memory_order_relaxed);
	}
	pthread_mutex_unlock(&pool->lock);
	return unfinished < pool->max_unfinished ? pool->max_unfinished - unfinished : 0;
}

bool worker_pool_is_here(const struct worker_pool *pool)
{
	uintptr_t self = (uintptr_t)pthread_self();

	for (size_t i = 0; i < worker_pool_seats(pool); i++) {
		/* relaxed: only the calling thread itself can have written its own name. */
		if (atomic_load_explicit(&pool->workers[i].self, memory_order_relaxed) == self)
			return true;
	}
	return false;
}

void worker_pool_sum(const struct worker_pool *pool, struct job_sums *sums)
{
	for (size_t i = 0; i < worker_pool_seats(pool); i++)
		job_sums_add(sums, &pool->workers[i].seat);
}

void worker_pool_count(struct worker_pool *pool, struct tw_stats *stats)
{
	pthread_mutex_lock(&pool->lock);
	stats->unfinished = worker_pool_unfinished_in_all(pool);
	stats->workers = pool->live;
	stats->workers_most = worker_pool_seats(pool);
	stats->workers_not_started = pool->not_started;
	pthread_mutex_unlock(&pool->lock);
}
