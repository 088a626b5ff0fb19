/* SPDX-License-Identifier: MIT */
/*
 * This harness runs the owner's own code on a handle's word: one timer, the owner, a worker, and up
 * to three threads that stop, reset or wait. Bounds:
 *
 *   FIRST, SECOND, THIRD   what these threads do: DO_NOTHING, DO_STOP, DO_STOP_WAIT, DO_RESET (to
 *                          a later deadline), DO_RESET_SOONER, DO_MAKE (another timer, maybe in
 *                          its memory), DO_MAKE_STOP (and stop it)
 *   PLACE                  where the timer is when they begin: IN_QUEUE, IN_WHEEL, IN_POOL
 *   PERIODIC_RUNS          0: it runs once; else its schedule ends after this number of runs
 *   TAKES                  RUNS: due timers run; DRAINS: a drain takes them
 *   ASKS                   1: the owner is asked for the deadline in each of its rounds
 *   ROUNDS                 the owner's rounds while the others run
 *
 * The argument is plain memory. Its holder writes to it: a run, a caller that was answered TW_OK or
 * TW_REARMED, or a drain. Two holders at a time are therefore a data race, which GenMC finds;
 * assert() checks each state. When all threads have ended, the main thread is owner and worker
 * until nothing is left to do. Then the timer must have been freed, once, and its argument given to
 * one party.
 */
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* One chunk holds two handles. */
#define CHUNK_SIZE ((size_t)512)
#define CHUNK_HEADER ((size_t)256)

void *calloc(size_t count, size_t size);

#include "runtime/handle.c"

#include "runtime/handle_changes.c"
#include "runtime/keyless.c"

enum event { DO_NOTHING, DO_STOP, DO_STOP_WAIT, DO_RESET, DO_RESET_SOONER, DO_MAKE, DO_MAKE_STOP };
enum first_place { IN_QUEUE, IN_WHEEL, IN_POOL };
enum take { RUNS, DRAINS };

#ifndef FIRST
#define FIRST DO_STOP
#endif
#ifndef SECOND
#define SECOND DO_RESET
#endif
#ifndef THIRD
#define THIRD DO_NOTHING
#endif
#ifndef PLACE
#define PLACE IN_WHEEL
#endif
#ifndef PERIODIC_RUNS
#define PERIODIC_RUNS 0
#endif
#ifndef TAKES
#define TAKES RUNS
#endif
#ifndef ASKS
#define ASKS 0
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

enum { THREADS = 3, SOONER_DEADLINE = 5, FIRST_DEADLINE = 10, NEW_DEADLINE = 20 };

/* ---- Calls from the word's code ---- */

/* This is a slab of two handles: each is taken and given back. */
static struct handle *handles[2];
static atomic_int handle_is_taken[2];
static atomic_int freed;

/* Returns the handle's place in the chunk, without an access to memory. */
static int handle_number(const struct handle *handle)
{
	return ((uintptr_t)handle & (CHUNK_SIZE - 1)) != CHUNK_HEADER;
}

void *slab_take(struct slab *slab)
{
	(void)slab;
	for (int i = 0; i < 2; i++)
		/* acquire: earlier use of the block; pairs with slab_give_to_full_bin(). */
		if (!atomic_exchange_explicit(&handle_is_taken[i], 1, memory_order_acquire))
			return handles[i];
	return NULL;
}

/* No bin has room: all blocks come here. */
void slab_give_to_full_bin(struct slab *slab, struct slab_bin *bin, void *block)
{
	int i = handle_number(block);
	/* release: pairs with slab_take(). */
	int was_taken = atomic_exchange_explicit(&handle_is_taken[i], 0, memory_order_release);

	(void)slab;
	(void)bin;
	assert(was_taken);
	/* relaxed: read when all threads have ended. */
	atomic_fetch_add_explicit(&freed, 1, memory_order_relaxed);
}

/* This variable keeps GenMC from taking a loop around it for one that waits, and from looking for
 * its end. */
static _Thread_local bool backed_off;

/* A second look is as good as a later first one: this execution ends here. */
void thread_back_off(unsigned *tries)
{
	++*tries;
	backed_off = true;
	__VERIFIER_assume(false);
}

bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, tw_duration until)
{
	assert(until == TW_FOREVER);
	return pthread_cond_wait(condition, lock) == 0;
}

/* ---- A wheel with one slot for each timer ---- */

static struct owner owner;
static struct handle *in_wheel[2];

/* No task of the owner sets a timer here. */
bool wheel_is_due(const struct wheel *wheel, const struct timer *timer)
{
	(void)wheel;
	(void)timer;
	assert(false);
	return false;
}

void pending_add_without_key(struct pending *pending, struct timer *timer)
{
	struct handle *handle = timer_handle(timer);

	assert(!in_wheel[handle_number(handle)]);
	timer->pending_set = pending->number;
	list_init(&timer->link); /* wheel_prefetch() looks at it */
	in_wheel[handle_number(handle)] = handle;
}

void pending_remove_without_key(struct pending *pending, struct timer *timer)
{
	struct handle *handle = timer_handle(timer);

	(void)pending;
	assert(in_wheel[handle_number(handle)] == handle);
	in_wheel[handle_number(handle)] = NULL;
}

void wheel_moved(struct wheel *wheel, struct timer *timer, tw_duration before, bool by_tick)
{
	struct handle *handle = timer_handle(timer);

	(void)wheel;
	assert(before >= SOONER_DEADLINE);
	assert(!by_tick);
	assert(in_wheel[handle_number(handle)] == handle);
}

void owner_retire_timer(struct owner *unused, struct timer *timer, struct drain *drain)
{
	(void)unused;
	(void)timer;
	(void)drain;
	assert(false);
}

/* No alarm is set here. */
struct alarm *alarm_take_changed(struct alarm_table *table)
{
	(void)table;
	return NULL;
}

enum alarm_action alarm_apply_change(struct alarm *alarm)
{
	(void)alarm;
	return ALARM_KEEP;
}

enum alarm_action alarm_look(struct alarm *alarm)
{
	(void)alarm;
	return ALARM_KEEP;
}

bool alarm_claim(struct alarm *alarm)
{
	(void)alarm;
	return false;
}

/* ---- Arguments ---- */

struct argument {
	int runs;
	bool is_given; /* to a caller or to a drain */
	tw_duration last_deadline;
};

/* The first is the timer's, the second is for one that DO_MAKE sets. */
static struct argument arguments[2];

static void argument_give(struct argument *argument)
{
	assert(!argument->is_given);
	argument->is_given = true;
}

static void argument_run(void *value)
{
	struct argument *argument = value;

	assert(!argument->is_given);
	argument->runs++;
}

static tw_duration argument_next(void *value, tw_duration previous)
{
	const struct argument *argument = value;

	assert(!argument->is_given);
	return argument->runs < PERIODIC_RUNS ? previous + 1 : previous;
}

static struct schedule *schedule_make(void)
{
	struct schedule *schedule = malloc(sizeof(*schedule));

	schedule->run = argument_run;
	schedule->next = argument_next;
	return schedule;
}

/* ---- Queue and pool ---- */

static uint64_t timer_id;

/* Set commands are on their way here, by the thread that gives them, and taken once. */
static _Atomic(struct handle *) commands[THREADS + 1];
/* The pool has these, by timer. */
static _Atomic(struct handle *) in_pool[2];

static void pool_submit(struct handle *handle, enum timer_job job)
{
	handle->timer.job = (uint8_t)job;
	/* release: like the unlock in worker_pool_submit(); pairs with worker_turn(). */
	(void)atomic_exchange_explicit(&in_pool[handle_number(handle)], handle,
				       memory_order_release);
}

static void command_publish(int number, struct handle *handle)
{
	/* release: like command_queue_publish(); pairs with owner_apply_one(). */
	atomic_store_explicit(&commands[number], handle, memory_order_release);
}

static void owner_apply_one(int number)
{
	/* acquire: like command_queue_peek(); pairs with command_publish(). */
	struct handle *handle = atomic_load_explicit(&commands[number], memory_order_acquire);

	if (!handle)
		return;
	/* relaxed: the owner alone takes it. */
	atomic_store_explicit(&commands[number], NULL, memory_order_relaxed);
	owner_set_handle(&owner, handle, false);
}

static void owner_take_due(int number)
{
	struct handle *handle = in_wheel[number];

	if (!handle)
		return;
	owner_unplace(&owner, &handle->timer);
	timer_set_place(&handle->timer, TIMER_AWAY);
	if (TAKES == RUNS) {
		/* owner_hand_over_expired() does this. */
		if (!handle_looks_reset(handle) || owner_claim_handle(&owner, handle))
			pool_submit(handle, TIMER_RUN);
		return;
	}
	/* outbox_retire() and job_finish() do this. */
	if (handle_claim(handle))
		argument_give(handle->timer.value);
	handle_let_go(&owner.out.handles, &owner.out.bin.handles, handle);
}

/* The answer is one of the timer's deadlines, whatever is done to it meanwhile. */
static void owner_ask(void)
{
	tw_duration deadline;

	if (handle_deadline(&owner.out.handles, timer_id, owner.pending.number, &deadline) == TW_OK)
		assert(deadline == FIRST_DEADLINE || deadline == NEW_DEADLINE ||
		       deadline == SOONER_DEADLINE);
}

static void owner_turn(void)
{
	if (ASKS)
		owner_ask();
	for (int i = 0; i <= THREADS; i++)
		owner_apply_one(i);
	owner_see_handles(&owner, 4);
	for (int i = 0; i < 2; i++)
		owner_take_due(i);
}

/* Does what job_finish() does. */
static void worker_do(struct handle *handle)
{
	struct handle_table *table = &owner.out.handles;
	struct slab_bin bin = {0};
	struct tw_task task = {.value = handle->timer.value};
	struct argument *argument = task.value;

	if (handle_begin(table, &bin, handle) == HANDLE_BEGUN) {
		task.run = argument_run;
		task.run(task.value);
		argument->last_deadline = handle->timer.deadline;
		(void)handle_end(table, &bin, handle, &owner.out.places, 0);
	}
	handle_table_tell(table);
}

static void worker_turn(void)
{
	for (int i = 0; i < 2; i++) {
		/* acquire: pairs with pool_submit(). */
		struct handle *handle =
			atomic_exchange_explicit(&in_pool[i], NULL, memory_order_acquire);

		if (handle)
			worker_do(handle);
	}
}

/* ---- Threads ---- */

static int count_of(enum event event)
{
	return (FIRST == event) + (SECOND == event) + (THIRD == event);
}

static int resets(void)
{
	return count_of(DO_RESET) + count_of(DO_RESET_SOONER);
}

/* A table would not do: each access to one would be an event of the model. */
static enum event event_of(int number)
{
	return number == 1 ? FIRST : number == 2 ? SECOND : THIRD;
}

static enum tw_status stops[THREADS + 1];
static bool has_reset[THREADS + 1];

/* Does what tw_timer_stop_wait() does, or the same without the wait. */
static void timer_stop(int number, bool waits)
{
	struct handle_table *table = &owner.out.handles;
	enum tw_status status = handle_stop(table, timer_id);

	if (waits && (status == TW_RUNNING || status == TW_REARMED)) {
		struct run run;

		(void)handle_find_run(table, timer_id, &run);
		handle_table_wait(table, &run);
		if (status == TW_REARMED)
			argument_give(&arguments[0]);
		else
			assert(arguments[0].runs > 0 && !arguments[0].is_given);
	}
	/* It has run if no other call has stopped it, and the run is visible. */
	if (status == TW_NOT_FOUND && TAKES == RUNS &&
	    count_of(DO_STOP) + count_of(DO_STOP_WAIT) == 1)
		assert(arguments[0].runs > 0);
	if (status == TW_OK)
		argument_give(&arguments[0]);
	stops[number] = status;
}

/* Does what tw_timer_reset() does. */
static void timer_reset(int number, tw_duration deadline)
{
	struct handle_table *table = &owner.out.handles;
	bool changed = false;

	has_reset[number] = handle_reset(table, handle_fetch(table, timer_id), timer_id, deadline,
					 false, &changed) == TW_OK;
}

static struct handle *timer_set_up(uint64_t *id, struct argument *argument)
{
	struct handle *handle = handle_new(&owner.out.handles, id);

	handle->timer.value = argument;
	handle_arm(handle, FIRST_DEADLINE, false);
	handle->run = argument_run;
	return handle;
}

/* Makes a timer, maybe in memory that the first one leaves. */
static void timer_set_up_another(int number, bool stops)
{
	enum tw_status status;
	uint64_t id;

	command_publish(number, timer_set_up(&id, &arguments[1]));
	assert(id != timer_id);
	if (!stops)
		return;
	status = handle_stop(&owner.out.handles, id);
	if (status == TW_OK)
		argument_give(&arguments[1]);
}

static void *thread_run(void *argument)
{
	int number = (int)(intptr_t)argument;

	switch (event_of(number)) {
	case DO_NOTHING:
		break;
	case DO_STOP:
	case DO_STOP_WAIT:
		timer_stop(number, event_of(number) == DO_STOP_WAIT);
		break;
	case DO_RESET:
		timer_reset(number, NEW_DEADLINE);
		break;
	case DO_RESET_SOONER:
		timer_reset(number, SOONER_DEADLINE);
		break;
	case DO_MAKE:
	case DO_MAKE_STOP:
		timer_set_up_another(number, event_of(number) == DO_MAKE_STOP);
		break;
	}
	return NULL;
}

static void *owner_run(void *argument)
{
	for (int i = 0; i < ROUNDS; i++)
		owner_turn();
	return argument;
}

static void *worker_run(void *argument)
{
	worker_turn();
	return argument;
}

/* ---- The end ---- */

static int stops_answered(enum tw_status status)
{
	int count = 0;

	for (int i = 1; i <= THREADS; i++)
		count += (event_of(i) == DO_STOP || event_of(i) == DO_STOP_WAIT) &&
			 stops[i] == status;
	return count;
}

static int timers(void)
{
	return 1 + count_of(DO_MAKE) + count_of(DO_MAKE_STOP);
}

static bool was_reset(void)
{
	bool was = false;

	for (int i = 1; i <= THREADS; i++)
		was = was || has_reset[i];
	return was;
}

static void judge(void)
{
	const struct argument *argument = &arguments[0];
	int ended = stops_answered(TW_OK) + stops_answered(TW_REARMED);
	int runs = PERIODIC_RUNS > 0 ? PERIODIC_RUNS : 1;

	assert(freed == timers());
	assert(!handle_table_has_some(&owner.out.handles));
	assert(ended <= 1);
	/* A drain, or the stop before it, has the argument. */
	assert(argument->is_given || (TAKES == RUNS && ended == stops_answered(TW_REARMED)));
	/* A stop that came first cancels all runs; after one that found it running, no run
	 * begins. */
	if (stops_answered(TW_OK) > 0 && PERIODIC_RUNS == 0 && resets() == 0)
		assert(argument->runs == 0);
	if (ended == 0 && TAKES == RUNS)
		assert(argument->runs > 0);
	if (stops_answered(TW_RUNNING) > 0)
		assert(argument->runs > 0);
	assert(argument->runs <= runs + resets());
	if (ended + stops_answered(TW_RUNNING) == 0 && TAKES == RUNS)
		assert(argument->runs >= runs);
	/* The last reset has its run, unless that was cancelled. After TW_RUNNING none counts. */
	if (was_reset() && ended == 0 && PERIODIC_RUNS == 0 && TAKES == RUNS)
		assert((argument->last_deadline == NEW_DEADLINE && count_of(DO_RESET) > 0) ||
		       (argument->last_deadline == SOONER_DEADLINE &&
			count_of(DO_RESET_SOONER) > 0));
	if (count_of(DO_MAKE) > 0) {
		assert(arguments[1].runs == (TAKES == RUNS));
		assert(arguments[1].is_given == (TAKES == DRAINS));
	}
	/* It either ran, or its argument was given back. */
	if (count_of(DO_MAKE_STOP) > 0)
		assert(arguments[1].runs + arguments[1].is_given == 1);
}

static void begin(void)
{
	struct handle_table *table = &owner.out.handles;
	struct chunk *chunk = aligned_alloc(CHUNK_SIZE, CHUNK_SIZE);
	static _Atomic(struct chunk *) chunks[1];
	struct handle *handle;

	table->chunks = chunks;
	chunk->number = 0;
	(void)handle_table_begin_chunk(table, chunk);
	for (int i = 0; i < 2; i++) {
		handles[i] = chunk_handle(chunk, (size_t)i);
		atomic_init(&handles[i]->state, 0);
	}
	owner.clock.kind = TW_CLOCK_MANUAL;
	owner.clock.ticks.interval = 1;
	handle = timer_set_up(&timer_id, &arguments[0]);
	if (PERIODIC_RUNS > 0)
		handle_make_periodic(handle, schedule_make());
	command_publish(0, handle);
	if (PLACE != IN_QUEUE)
		owner_apply_one(0);
	if (PLACE == IN_POOL)
		owner_take_due(0);
}

int main(void)
{
	int turns = 3 + PERIODIC_RUNS + 2 * resets();
	pthread_t threads[THREADS + 2];

	begin();
	pthread_create(&threads[0], NULL, owner_run, NULL);
	for (intptr_t i = 1; i <= THREADS; i++)
		if (event_of((int)i) != DO_NOTHING)
			pthread_create(&threads[i], NULL, thread_run, (void *)i);
	if (TAKES == RUNS)
		pthread_create(&threads[THREADS + 1], NULL, worker_run, NULL);
	pthread_join(threads[0], NULL);
	for (int i = 1; i <= THREADS; i++)
		if (event_of(i) != DO_NOTHING)
			pthread_join(threads[i], NULL);
	if (TAKES == RUNS)
		pthread_join(threads[THREADS + 1], NULL);
	for (int i = 0; freed < timers() && i < turns; i++) {
		owner_turn();
		worker_turn();
	}
	judge();
	free(owner.out.handles.chunks[0]);
	return 0;
}
