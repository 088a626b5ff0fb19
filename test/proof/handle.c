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
 *   HERE                   1: the owner runs what is due, and there is no pool
 *   ASKS                   1: the owner is asked for the deadline in each of its rounds
 *   ROUNDS                 the owner's rounds while the others run
 *
 * The argument is plain memory. Its holder writes to it: a run, a caller that was answered TW_OK or
 * TW_REARMED, or a drain. Two holders at a time are therefore a data race, which GenMC finds;
 * assert() checks each state. When all threads have ended, the main thread is owner and worker
 * until nothing is left to do. Then the timer must have been freed, once, and its argument given to
 * one party.
 */
#include "proof_alarm.h"

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
#ifndef HERE
#define HERE 0
#endif

enum { THREADS = 3, SOONER_DEADLINE = 5, FIRST_DEADLINE = 10, NEW_DEADLINE = 20 };

/* ---- Calls from the word's code ---- */

/* This is a slab of two handles: each is taken and given back. */
static struct alarm *handles[ALARMS];
static atomic_int handle_is_taken[ALARMS];
static atomic_int freed;

/* Returns the handle's place in the chunk, without an access to memory. */
static int alarm_number(const struct alarm *alarm)
{
	return ((uintptr_t)alarm & (CHUNK_SIZE - 1)) != CHUNK_FIRST * CHUNK_PAGE;
}

static void owner_close(struct alarm *alarm)
{
	(void)alarm;
	assert(false);
}

/* All that is in the wheel is due: the next of its timers is looked at. */
static tw_duration due_deadline;

static uint64_t owner_tick(void)
{
	return (uint64_t)due_deadline;
}

void *slab_take(struct slab *slab)
{
	(void)slab;
	for (int i = 0; i < ALARMS; i++)
		/* acquire: earlier use of the block; pairs with slab_give_to_full_bin(). */
		if (!atomic_exchange_explicit(&handle_is_taken[i], 1, memory_order_acquire))
			return handles[i];
	return NULL;
}

/* No bin has room: all blocks come here. */
void slab_give_to_full_bin(struct slab *slab, struct slab_bin *bin, void *block)
{
	int i = alarm_number(block);
	/* release: pairs with slab_take(). */
	int was_taken = atomic_exchange_explicit(&handle_is_taken[i], 0, memory_order_release);

	(void)slab;
	(void)bin;
	assert(was_taken);
	/* relaxed: read when all threads have ended. */
	atomic_fetch_add_explicit(&freed, 1, memory_order_relaxed);
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

/* ---- Queue, owner and worker ---- */

static uint64_t timer_id;

/* Does what job_finish_alarm() does. */
static void alarm_do_job(struct alarm *alarm)
{
	struct alarm_table *table = &owner.out.alarms;
	struct slab_bin bin = {0};
	struct argument *argument = alarm->timer.value;
	tw_duration began = ALARM_NOT_RUN;
	enum alarm_end end;
	run_fn *run;

	/* The owner's tick is all the time that there is. */
	if (alarm_begin(alarm, 0, &run)) {
		began = 0;
		run(argument);
		argument->last_deadline = alarm->timer.deadline;
	}
	end = alarm_end(table, alarm, began, &owner.out.places);
	if (end == ALARM_GONE)
		handle_free(&owner.out.handles, &bin, alarm);
	else if (HERE && (end == ALARM_BACK || end == ALARM_BACK_NOW))
		owner_settle_alarm(&owner, alarm);
}

static void owner_take_due(int number)
{
	struct alarm *alarm = in_wheel[number];

	if (!alarm)
		return;
	if (TAKES == RUNS) {
		due_deadline = alarm->timer.deadline;
		if (owner_hand_over(alarm))
			alarm_do_job(alarm);
		return;
	}
	/* owner_hand_over_stale() and job_finish() do this. */
	owner_unplace(&owner, &alarm->timer);
	if (!alarm_take(alarm)) {
		owner_settle_alarm(&owner, alarm);
		return;
	}
	argument_give(alarm->timer.value);
	if (alarm_end(&owner.out.alarms, alarm, ALARM_NOT_RUN, &owner.out.places) == ALARM_GONE)
		handle_free(&owner.out.handles, &owner.out.bin.handles, alarm);
}

/* The answer is one of the timer's deadlines, whatever is done to it meanwhile. */
static void owner_ask(void)
{
	struct alarm *alarm = handle_find(&owner.out.handles, timer_id);
	tw_duration deadline;
	uint64_t generation;
	enum alarm_state state = alarm_state(alarm, &generation, &deadline);

	if (generation == handle_generation(timer_id) &&
	    (state == ALARM_IS_FILED || state == ALARM_IS_AWAY))
		assert(deadline == FIRST_DEADLINE || deadline == NEW_DEADLINE ||
		       deadline == SOONER_DEADLINE);
}

/* Set commands are on their way here, by the thread that gives them, and taken once. */
static _Atomic(struct alarm *) commands[THREADS + 1];

static void command_publish(int number, struct alarm *alarm)
{
	/* release: like command_queue_publish(); pairs with owner_apply_one(). */
	atomic_store_explicit(&commands[number], alarm, memory_order_release);
}

static void owner_apply_one(int number)
{
	/* acquire: like command_queue_peek(); pairs with command_publish(). */
	struct alarm *alarm = atomic_load_explicit(&commands[number], memory_order_acquire);

	if (!alarm)
		return;
	/* relaxed: the owner alone takes it. */
	atomic_store_explicit(&commands[number], NULL, memory_order_relaxed);
	owner_begin_alarm(&owner, alarm);
}

static void run_turn(void)
{
	if (ASKS)
		owner_ask();
	for (int i = 0; i <= THREADS; i++)
		owner_apply_one(i);
	owner_apply_changes(&owner, 4);
	for (int i = 0; i < ALARMS; i++)
		owner_take_due(i);
}

static void worker_turn(void)
{
	for (int i = 0; i < ALARMS; i++) {
		struct alarm *alarm = pool_take(i);

		if (alarm)
			alarm_do_job(alarm);
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

static enum tw_status timer_end_life(uint64_t id)
{
	bool changed = false;
	void *value;

	return alarm_end_life(&owner.out.alarms, handle_find(&owner.out.handles, id),
			      handle_generation(id), &value, &changed);
}

/* Does what tw_timer_stop_wait() does, or the same without the wait. */
static void timer_stop(int number, bool waits)
{
	enum tw_status status = timer_end_life(timer_id);

	if (waits && (status == TW_RUNNING || status == TW_REARMED)) {
		struct run run = alarm_run(handle_find(&owner.out.handles, timer_id),
					   handle_generation(timer_id));

		alarm_table_wait(&owner.out.alarms, &run);
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
	bool changed = false;

	has_reset[number] =
		alarm_set(&owner.out.alarms, handle_find(&owner.out.handles, timer_id),
			  handle_generation(timer_id), deadline, false, &changed) == TW_OK;
}

/* Does what tw_after_func() does, or tw_schedule_func(). */
static uint64_t timer_set_up(int number, struct argument *argument, struct schedule *schedule)
{
	uint64_t id;
	struct alarm *alarm = handle_new(&owner.out.handles, &id);

	alarm->timer.class = schedule ? TIMER_PERIODIC : TIMER_HANDLE;
	alarm->timer.value = argument;
	if (schedule)
		alarm->schedule = schedule;
	else
		alarm->function = argument_run;
	alarm_begin_life(alarm, FIRST_DEADLINE, false);
	command_publish(number, alarm);
	return id;
}

/* Makes a timer, maybe in memory that the first one leaves. */
static void timer_set_up_another(int number, bool stops)
{
	uint64_t id = timer_set_up(number, &arguments[1], NULL);

	assert(id != timer_id);
	if (stops && timer_end_life(id) == TW_OK)
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
	assert(alarm_table_is_empty(&owner.out.alarms));
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

	table->chunks = chunks;
	chunk->number = 0;
	(void)handle_table_begin_chunk(table, chunk);
	for (int i = 0; i < ALARMS; i++) {
		handles[i] = chunk_block(chunk, sizeof(struct alarm),
					 CHUNK_FIRST * CHUNK_PAGE_BLOCKS + (size_t)i);
		atomic_init(&handles[i]->word, 0);
	}
	owner.clock.kind = TW_CLOCK_MANUAL;
	owner.clock.ticks.interval = 1;
	owner.out.alarms.is_here = HERE;
	timer_id = timer_set_up(0, &arguments[0], PERIODIC_RUNS > 0 ? schedule_make() : NULL);
	if (PLACE != IN_QUEUE)
		owner_apply_one(0);
	if (PLACE == IN_POOL)
		owner_take_due(0);
}

int main(void)
{
	int turns = 3 + PERIODIC_RUNS + 2 * resets();
	void *(*parties[THREADS + 2])(void *) = {owner_run};

	begin();
	for (int i = 1; i <= THREADS; i++)
		if (event_of(i) != DO_NOTHING)
			parties[i] = thread_run;
	if (TAKES == RUNS)
		parties[THREADS + 1] = worker_run;
	proof_run(parties, THREADS + 2);
	for (int i = 0; freed < timers() && i < turns; i++) {
		run_turn();
		worker_turn();
	}
	judge();
	free(owner.out.handles.chunks[0]);
	return 0;
}
