/* SPDX-License-Identifier: MIT */
/*
 * Threads that share the keys of a wheel and give its commands, in three phases that all begin
 * together: each sets all of its share, moves the second of each four and removes the fourth, or
 * none of them. Every call is noted in the ledger; what was asked for is to be audited at the end.
 */
#ifndef BENCH_SUPPORT_SETTER_H
#define BENCH_SUPPORT_SETTER_H

#include "percentiles.h"
#include "witness.h"

#include <timingwheel/timingwheel.h>

#include <stdbool.h>
#include <stdint.h>

enum setter_phase { SETTER_SET, SETTER_MOVE, SETTER_REMOVE, SETTER_PHASES };

extern const char *const setter_phase_names[SETTER_PHASES];

struct setters_plan {
	int64_t count; /* timers */
	int64_t threads;
	int64_t rate; /* commands a second, of all of them; 0: as fast as they can */
	uint64_t seed;
	tw_duration shortest_delay;
	tw_duration longest_delay;
	bool set_only;
	struct witnesses *witnesses; /* know wheel and ledger; they are told when all is given */
};

/* What they did, of one phase: the rates include the flush at its end. */
struct setters_phase {
	uint64_t given;
	double per_second;
	/* Of one call in 64: what it took, overhead of the clock subtracted. free() it by
	 * percentiles_destroy(). */
	struct percentiles *call_times;
};

struct setters;

/* Starts them. Ends the program when something can't be had, or a call fails. */
struct setters *setters_start(const struct setters_plan *plan);
void setters_join(struct setters *setters);

/* After the join. */
struct setters_phase setters_phase(const struct setters *setters, enum setter_phase phase);
/* Bytes, of the process, when all had been set. */
int64_t setters_resident_when_set(const struct setters *setters);
void setters_destroy(struct setters *setters);

#endif
