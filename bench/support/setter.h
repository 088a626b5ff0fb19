/* SPDX-License-Identifier: MIT */
/*
 * Setters are threads that share the keys of a wheel and make its commands, in three phases that
 * all begin together: each sets all of its share, moves the second of each four and removes the
 * fourth. Every call is noted in the ledger, for an audit at the end.
 */
#ifndef BENCH_SUPPORT_SETTER_H
#define BENCH_SUPPORT_SETTER_H

#include "percentiles.h"
#include "witness.h"

#include <timingwheel/timingwheel.h>

#include <stdint.h>

enum setter_phase { SETTER_SET, SETTER_MOVE, SETTER_REMOVE, SETTER_PHASES };

extern const char *const setter_phase_names[SETTER_PHASES];

struct setters_plan {
	int64_t count; /* timers */
	int64_t threads;
	int64_t rate; /* commands a second, of all threads; 0 for as fast as they can */
	uint64_t seed;
	tw_duration shortest_delay;
	tw_duration longest_delay;
	struct witnesses *witnesses; /* have wheel and ledger; notified after the last command */
};

/* These are the results of one phase: the rates include the flush at its end. */
struct setters_phase {
	uint64_t given;
	double per_second;
	/* times of one call in 64, without the clock's overhead; freed by percentiles_destroy() */
	struct percentiles *call_times;
};

struct setters;

/* Starts them. Ends the program when memory is out or a call fails. */
struct setters *setters_start(const struct setters_plan *plan);
void setters_join(struct setters *setters);

/* Returns a phase's results, after the join. */
struct setters_phase setters_phase(const struct setters *setters, enum setter_phase phase);
/* Returns the bytes of the process when all timers had been set. */
int64_t setters_resident_when_set(const struct setters *setters);
void setters_destroy(struct setters *setters);

#endif
