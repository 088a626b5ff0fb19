/* SPDX-License-Identifier: MIT */
/* Each thread has a witness of its own, created with its first value and never freed. */
#include "witness.h"

#include "keys.h"
#include "process.h"

#include <string.h>

/* A witness is what one thread saw. That thread writes it, any thread reads it. */
struct witness {
	struct witness *next;
	struct percentiles *lateness_setting;
	struct percentiles *lateness_after;
	_Atomic uint64_t fired;
	_Atomic uint64_t returned;
	_Atomic uint64_t strangers;
};

/* A process has one struct witnesses. */
static _Thread_local struct witness *own_witness;

static struct witness *witness_of_thread(struct witnesses *witnesses)
{
	struct witness *witness = own_witness;

	if (witness)
		return witness;
	witness = process_allocate(sizeof(*witness));
	witness->lateness_setting = percentiles_create();
	witness->lateness_after = percentiles_create();
	/* relaxed: a guess, which the exchange checks */
	witness->next = atomic_load_explicit(&witnesses->first, memory_order_relaxed);
	/*
	 * release: publishes the witness; pairs with the acquire in first_witness().
	 * relaxed, if it fails: only another guess.
	 */
	while (!atomic_compare_exchange_weak_explicit(&witnesses->first, &witness->next, witness,
						      memory_order_release, memory_order_relaxed))
		;
	own_witness = witness;
	return witness;
}

static struct witness *first_witness(const struct witnesses *witnesses)
{
	/* acquire: sees the witnesses whole; pairs with the release in witness_of_thread() */
	return atomic_load_explicit(&witnesses->first, memory_order_acquire);
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
	/* relaxed: a statistic with one writer, orders nothing */
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_one(_Atomic uint64_t *counter)
{
	/* relaxed: a statistic with one writer, orders nothing */
	atomic_store_explicit(counter, read_counter(counter) + 1, memory_order_relaxed);
}

static bool key_is_its_own(const struct witnesses *witnesses, const struct tw_task *task)
{
	const struct ledger_entry *entry = task->value;
	struct random_key key = key_of((uint64_t)(entry - witnesses->ledger), witnesses->seed);

	return task->key_size == sizeof(key) && !memcmp(task->key, &key, sizeof(key));
}

static void take_back(struct witnesses *witnesses, const struct tw_task *task,
		      enum ledger_fate fate, tw_duration now)
{
	struct witness *witness = witness_of_thread(witnesses);

	if (!key_is_its_own(witnesses, task))
		add_one(&witness->strangers);
	if (ledger_return(task->value, fate, task->deadline, now))
		add_one(&witness->returned);
}

void witnesses_execute(void *context, const struct tw_task *task)
{
	struct witnesses *witnesses = context;
	struct witness *witness = witness_of_thread(witnesses);
	tw_duration now = tw_now(witnesses->wheel);
	bool after = witnesses_are_after(witnesses);

	/* The lateness is the worse of two readings: this one and the wheel's own. */
	take_back(witnesses, task, LEDGER_FIRED, task->lateness < 0 ? task->deadline - 1 : now);
	percentiles_record(after ? witness->lateness_after : witness->lateness_setting,
			   now - task->deadline);
	add_one(&witness->fired);
}

void witnesses_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	static const enum ledger_fate fates[] = {
		[TW_REPLACED] = LEDGER_REPLACED,
		[TW_REMOVED] = LEDGER_REMOVED,
		[TW_STOPPED] = LEDGER_STOPPED,
	};

	take_back(context, task, fates[reason], task->deadline);
}

void witnesses_begin_after(struct witnesses *witnesses)
{
	/* relaxed: a timer on the boundary may count in either histogram */
	atomic_store_explicit(&witnesses->are_after, true, memory_order_relaxed);
}

bool witnesses_are_after(const struct witnesses *witnesses)
{
	/* relaxed: see witnesses_begin_after() */
	return atomic_load_explicit(&witnesses->are_after, memory_order_relaxed);
}

struct witness_counts witnesses_counts(const struct witnesses *witnesses)
{
	struct witness_counts counts = {0};
	const struct witness *witness;

	for (witness = first_witness(witnesses); witness; witness = witness->next) {
		counts.fired += read_counter(&witness->fired);
		counts.returned += read_counter(&witness->returned);
		counts.strangers += read_counter(&witness->strangers);
	}
	return counts;
}

void witnesses_add_lateness(const struct witnesses *witnesses, bool after,
			    struct percentiles *lateness)
{
	const struct witness *witness;

	for (witness = first_witness(witnesses); witness; witness = witness->next)
		percentiles_merge(lateness,
				  after ? witness->lateness_after : witness->lateness_setting);
}
