/* SPDX-License-Identifier: MIT */
/*
 * Witnesses are what the threads that run a wheel's tasks see: each value that comes back is noted
 * in the ledger, and counted with its lateness. Give tw_create witnesses_execute() and
 * witnesses_release(), with the struct witnesses as context; values are ledger entries, set under
 * key_of() their number.
 *
 * Any thread may read the counts while they grow.
 */
#ifndef BENCH_SUPPORT_WITNESS_H
#define BENCH_SUPPORT_WITNESS_H

#include "ledger.h"
#include "percentiles.h"

#include <timingwheel/timingwheel.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct witness;

struct witnesses {
	/* These are constant once the wheel runs. */
	struct tw_wheel *wheel;
	struct ledger_entry *ledger;
	uint64_t seed; /* the seed of the keys */
	/* Any thread may use these. */
	atomic_bool are_after; /* all commands were made: lateness is counted separately */
	_Atomic(struct witness *) first;
};

struct witness_counts {
	uint64_t fired;
	uint64_t returned;
	uint64_t strangers; /* values that came with another's key */
};

tw_execute_fn witnesses_execute;
tw_release_fn witnesses_release;

/* Counts lateness separately from now on. */
void witnesses_begin_after(struct witnesses *witnesses);
bool witnesses_are_after(const struct witnesses *witnesses);

struct witness_counts witnesses_counts(const struct witnesses *witnesses);

/* Adds the lateness of the timers that fired before, or after witnesses_begin_after(). */
void witnesses_add_lateness(const struct witnesses *witnesses, bool after,
			    struct percentiles *lateness);

#endif
