/* SPDX-License-Identifier: MIT */
/*
 * The harnesses handle.c and alarm.c run the owner's own code on an alarm's word. This has what
 * that code calls beside it: a wheel whose slots have a timer each, and the pool. Includers define
 * alarm_number(), the alarm's place in these, owner_close(), for an alarm that was closed,
 * owner_tick(), the owner's present tick, and a turn of the owner and of the worker.
 */
#ifndef PROOF_ALARM_H
#define PROOF_ALARM_H

#include <assert.h>
#include <genmc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* One chunk holds two handles. */
#define CHUNK_SIZE ((size_t)512)
#define CHUNK_PAGE ((size_t)256)
#define CHUNK_FIRST ((size_t)1)
#define SLAB_BATCH 0

void *calloc(size_t count, size_t size);

#include "base/event_count.c"
#include "runtime/alarm.c"
#include "runtime/handle.c"
#include "runtime/keyless.c"

#include "proof_threads.h"

#ifndef ROUNDS
#define ROUNDS 2
#endif

enum { ALARMS = 2 };

static struct wheel wheel; /* a tick is a nanosecond */
static struct owner owner = {.pending.wheel = &wheel};
static struct alarm *in_wheel[ALARMS];
/* The pool has these, by alarm. */
static _Atomic(struct alarm *) in_pool[ALARMS];

static int alarm_number(const struct alarm *alarm);
static void owner_close(struct alarm *alarm);
static uint64_t owner_tick(void);
static void run_turn(void);
static void worker_turn(void);

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

bool clock_wait(const struct clock *clock, pthread_cond_t *condition, pthread_mutex_t *lock,
		tw_duration deadline)
{
	assert(!clock && deadline == TW_FOREVER);
	return pthread_cond_wait(condition, lock) == 0;
}

void condition_init(pthread_cond_t *condition)
{
	pthread_cond_init(condition, NULL);
}

void pending_add_without_key(struct pending *pending, struct timer *timer)
{
	int number = alarm_number(timer_alarm(timer));

	assert(!in_wheel[number]);
	timer->epoch = pending->epoch;
	list_init(&timer->link); /* wheel_prefetch() looks at it */
	in_wheel[number] = timer_alarm(timer);
}

void pending_remove_without_key(struct pending *pending, struct timer *timer)
{
	int number = alarm_number(timer_alarm(timer));

	(void)pending;
	assert(in_wheel[number] == timer_alarm(timer));
	in_wheel[number] = NULL;
}

/* No drain and no stop come here. */
void outbox_retire(struct outbox *outbox, struct timer *timer, struct drain *drain,
		   struct list *inline_jobs)
{
	(void)outbox;
	(void)timer;
	(void)drain;
	(void)inline_jobs;
	assert(false);
}

void drain_release(struct drain *drain)
{
	(void)drain;
	assert(false);
}

static void pool_submit(struct alarm *alarm, enum timer_job job)
{
	alarm->timer.job = (uint8_t)job;
	/* release: like the unlock in worker_pool_submit(); pairs with pool_take(). */
	(void)atomic_exchange_explicit(&in_pool[alarm_number(alarm)], alarm, memory_order_release);
}

static struct alarm *pool_take(int number)
{
	/* acquire: pairs with pool_submit(). */
	return atomic_exchange_explicit(&in_pool[number], NULL, memory_order_acquire);
}

void outbox_close(struct outbox *outbox, struct timer *timer)
{
	(void)outbox;
	owner_close(timer_alarm(timer));
}

/* The timer's tick has come: does what the owner does. Returns whether it is to run here. */
static bool owner_hand_over(struct alarm *alarm)
{
	owner_unplace(&owner, &alarm->timer);
	wheel.now = owner_tick();
	if (!owner_claim_alarm(&owner, alarm))
		return false;
	timer_set_place(&alarm->timer, TIMER_AWAY);
	alarm->timer.job = TIMER_RUN;
	if (!owner.out.alarms.is_here)
		pool_submit(alarm, TIMER_RUN);
	return owner.out.alarms.is_here;
}

static void *owner_run(void *argument)
{
	for (int i = 0; i < ROUNDS; i++)
		run_turn();
	return argument;
}

static void *worker_run(void *argument)
{
	worker_turn();
	return argument;
}

#endif
