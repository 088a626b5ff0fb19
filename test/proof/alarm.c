/* SPDX-License-Identifier: MIT */
/*
 * This harness runs the owner's own code on an alarm's word: one alarm, the owner, a worker, and
 * two threads that set, stop or destroy it. Bounds:
 *
 *   FIRST, SECOND   calls that one thread makes in turn: DO_NOTHING, DO_SET_SOONER, DO_SET_LATER,
 *                   DO_STOP, DO_DESTROY or DO_CLOSE (the last call on the alarm)
 *   THIRD           the other thread's call
 *   ARMED_BEFORE    1: the alarm is set, and in the wheel, when they begin
 *   PLACE           IN_WHEEL, or IN_POOL: it has been handed over by then
 *   HERE            1: the owner runs it, and there is no pool
 *   ROUNDS          the owner's rounds while the others run; each is a tick
 *
 * The alarm goes to the model's free() by the end of a destroy, or by a close's function, so GenMC
 * reports later accesses. Its argument is plain memory: a run that goes on, or begins, after a
 * destroy has returned is a race, and so is one during or after a stop that returned TW_OK or
 * TW_NOT_FOUND, if no set can come after that stop.
 * No run comes before its tick. When all threads have ended, the main thread is owner and worker
 * for some more ticks. Then an alarm that was destroyed or closed must have been freed, after its
 * one call of the close's function, and no run may come during or after that call. Any other must
 * be unarmed. Its runs and the stops that cancelled one are together as many as the times that it
 * was armed: at most once for each set, and at least once for the sets between two stops of one
 * thread, before its first, or after its last.
 */
#include "proof_alarm.h"

#ifndef FIRST
#define FIRST DO_SET_SOONER
#endif
#ifndef SECOND
#define SECOND DO_NOTHING
#endif
#ifndef THIRD
#define THIRD DO_NOTHING
#endif
#ifndef ARMED_BEFORE
#define ARMED_BEFORE 1
#endif
#ifndef PLACE
#define PLACE IN_WHEEL
#endif
#ifndef HERE
#define HERE 0
#endif

enum event { DO_NOTHING, DO_SET_SOONER, DO_SET_LATER, DO_STOP, DO_DESTROY, DO_CLOSE };
enum first_place { IN_WHEEL, IN_POOL };
enum { SOON = 1, FIRST_TICK = 2, LATE = 3, LAST_TICK = 8 }; /* a tick is a nanosecond */

static struct own_alarm *own;
static struct alarm *alarm;
static atomic_int now;
static int freed;

/* ---- Calls from the sources ---- */

void *slab_take(struct slab *slab)
{
	(void)slab;
	return NULL;
}

void slab_give_to_full_bin(struct slab *slab, struct slab_bin *bin, void *block)
{
	(void)slab;
	(void)bin;
	(void)block;
}

static int alarm_number(const struct alarm *one)
{
	(void)one;
	return 0;
}

/* relaxed: only the owner writes it. */
static tw_duration time_now(void)
{
	return atomic_load_explicit(&now, memory_order_relaxed);
}

static uint64_t owner_tick(void)
{
	return (uint64_t)time_now();
}

/* ---- The argument ---- */

/* A run writes to these plain variables, and so does a destroy that has returned. */
static int runs;
static bool is_destroyed;
/* This counts calls of a close's function; it is plain. */
static int closings;
/* A thread's flag says that its stop has returned and no run is to come or under way; it is
 * plain. */
static bool is_over[2];

static void argument_run(void *argument)
{
	(void)argument;
	assert(!is_destroyed && closings == 0);
	assert(!is_over[0] && !is_over[1]);
	runs++;
}

static void alarm_end_here(void)
{
	free(own);
	freed++;
}

static void argument_closed(void *argument)
{
	(void)argument;
	closings++;
	alarm_end_here();
}

/* ---- Owner and worker ---- */

static void owner_close(struct alarm *closed)
{
	pool_submit(closed, TIMER_CLOSE);
}

/* Does what job_finish() does. */
static enum alarm_end alarm_do_job(struct alarm *due)
{
	tw_duration began = ALARM_NOT_RUN;
	tw_duration time;
	run_fn *run;

	if (due->timer.job == TIMER_CLOSE) {
		due->function(due->timer.value);
		alarm_table_end_close(&owner.out.alarms);
		return ALARM_ENDED;
	}
	/* A clock; at least the owner's time. */
	time = time_now();
	if (alarm_begin(due, time, &run)) {
		assert(due->timer.deadline <= time);
		began = time;
		run(due->timer.value);
	}
	return alarm_end(&owner.out.alarms, due, began, &owner.out.places);
}

static void owner_take_due(void)
{
	struct alarm *due = in_wheel[0];

	enum alarm_end end = ALARM_ENDED;

	if (due && due->timer.deadline <= time_now() && owner_hand_over(due))
		end = alarm_do_job(due);
	if (end == ALARM_BACK || end == ALARM_BACK_NOW)
		owner_settle_alarm(&owner, due);
}

/* A destroy asks for the alarm, and main goes on with it where the owner was not quick enough. */
static _Atomic(struct alarm *) asked_for;

static void owner_answer(void)
{
	/* acquire: like the lock of the requests; pairs with alarm_do_destroy(). */
	struct alarm *taken = atomic_load_explicit(&asked_for, memory_order_acquire);
	struct run hold;

	if (!taken)
		return;
	hold = alarm_hold(taken, !HERE);
	if (run_is_under_way(&hold))
		return;
	(void)owner_apply_changes(&owner, 4);
	owner_take_out_alarm(&owner, taken);
	if (alarm_is_known(taken))
		return;
	/* relaxed: the owner alone clears it. */
	atomic_store_explicit(&asked_for, NULL, memory_order_relaxed);
	is_destroyed = true;
	alarm_end_here();
}

static void run_turn(void)
{
	owner_answer();
	(void)owner_apply_changes(&owner, 4);
	/* relaxed: the owner alone writes it. */
	atomic_store_explicit(&now, (int)time_now() + 1, memory_order_relaxed);
	owner_take_due();
}

static void worker_turn(void)
{
	struct alarm *due = pool_take(0);

	if (due)
		(void)alarm_do_job(due);
}

/* ---- Threads ---- */

/* This counts a thread's stops that cancelled a run. */
static int taken[2];

static bool is_set(enum event event)
{
	return event == DO_SET_SOONER || event == DO_SET_LATER;
}

static void alarm_do_stop(int thread, bool is_last)
{
	enum tw_status status = alarm_stop(alarm);

	if (status == TW_OK || status == TW_REARMED)
		taken[thread]++;
	if (is_last && (status == TW_OK || status == TW_NOT_FOUND))
		is_over[thread] = true;
}

/* Does what tw_alarm_destroy() does, but leaves it to the owner to wait for a run that has not
 * begun, and to end what it is asked to end: the worker may not get on before this thread has
 * ended. */
static void alarm_do_destroy(void)
{
	struct run hold = alarm_hold(alarm, !HERE);
	struct run run = alarm_hold(alarm, false);

	(void)alarm_destroy(alarm, &hold, true);
	if (run_is_under_way(&run))
		alarm_table_wait(&owner.out.alarms, &run);
	if (alarm_is_known(alarm)) {
		/* release: pairs with owner_answer(). */
		atomic_store_explicit(&asked_for, alarm, memory_order_release);
		return;
	}
	is_destroyed = true;
	alarm_end_here();
}

/* With is_last, no set can come after this. */
static void alarm_do(enum event event, int thread, bool is_last)
{
	struct alarm_table *table = &owner.out.alarms;
	bool changed;

	switch (event) {
	case DO_NOTHING:
		break;
	case DO_SET_SOONER:
	case DO_SET_LATER:
		(void)alarm_set(table, alarm, 0, event == DO_SET_SOONER ? SOON : LATE, false,
				&changed);
		break;
	case DO_STOP:
		alarm_do_stop(thread, is_last);
		break;
	case DO_DESTROY:
		alarm_do_destroy();
		break;
	case DO_CLOSE:
		(void)alarm_close(table, alarm, argument_closed, &changed);
		break;
	}
}

static void *one_run(void *argument)
{
	alarm_do(FIRST, 0, !is_set(SECOND) && !is_set(THIRD));
	alarm_do(SECOND, 0, !is_set(THIRD));
	return argument;
}

static void *other_run(void *argument)
{
	alarm_do(THIRD, 1, !is_set(FIRST) && !is_set(SECOND));
	return argument;
}

/* ---- The end ---- */

static int count_of(enum event event)
{
	return (FIRST == event) + (SECOND == event) + (THIRD == event);
}

/* Returns a lower bound of how often it was armed: a set after a stop of its thread arms it, or
 * finds that the other thread has. */
static int armed_at_least(void)
{
	bool is_armed = ARMED_BEFORE;
	int count = is_armed;

	if (FIRST == DO_STOP)
		is_armed = false;
	if (is_set(FIRST) && !is_armed) {
		is_armed = true;
		count++;
	}
	if (SECOND == DO_STOP)
		is_armed = false;
	if (is_set(SECOND) && !is_armed)
		count++;
	return count == 0 && is_set(THIRD) ? 1 : count;
}

static void judge(void)
{
	int sets = ARMED_BEFORE + count_of(DO_SET_SOONER) + count_of(DO_SET_LATER);
	int ended = runs + taken[0] + taken[1];

	/* Each armed run either happened or was cancelled. */
	assert(ended <= sets);
	assert(freed == count_of(DO_DESTROY) + count_of(DO_CLOSE));
	assert(closings == count_of(DO_CLOSE));
	assert(!alarm_table_is_closing(&owner.out.alarms));
	if (freed > 0)
		return;
	/* All its ticks have passed. */
	assert(!(alarm_word(alarm) & ARMED));
	/* In any order, a set without a stop has its run. */
	assert(ended >= armed_at_least());
}

int main(void)
{
	void *(*const parties[])(void *) = {owner_run, one_run, worker_run,
					    THIRD == DO_NOTHING ? NULL : other_run};
	bool changed;

	own = malloc(sizeof(*own));
	alarm = &own->alarm;
	alarm_init(alarm, argument_run, NULL);
	owner.clock.ticks.interval = 1;
	owner.out.alarms.is_here = HERE;
	if (ARMED_BEFORE) {
		(void)alarm_set(&owner.out.alarms, alarm, 0, FIRST_TICK, false, &changed);
		(void)owner_apply_changes(&owner, 4);
	}
	for (int i = 0; PLACE == IN_POOL && i < FIRST_TICK; i++)
		run_turn();
	proof_run(parties, 4);
	/* An alarm that can't be destroyed would keep this going; LAST_TICK ticks are enough. */
	for (int i = 0; i < LAST_TICK; i++) {
		run_turn();
		worker_turn();
	}
	judge();
	if (freed == 0)
		free(own);
	return 0;
}
