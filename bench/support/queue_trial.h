/* SPDX-License-Identifier: MIT */
/*
 * A trial is one run of a queue: producers push, a consumer reads and checks. Threads are pinned,
 * the consumer to the first core, the producers from the second on, round robin.
 */
#ifndef BENCH_SUPPORT_QUEUE_TRIAL_H
#define BENCH_SUPPORT_QUEUE_TRIAL_H

#include "queue_designs.h"

#include <stdbool.h>
#include <stddef.h>

enum queue_rest { REST_NONE, REST_PAUSE, REST_NAP };

struct queue_setting {
	const char *name;     /* in the CSV file */
	enum queue_rest rest; /* what the consumer does after a short batch */
	size_t producers;
	bool is_paced;
};

/* All are nanoseconds except the retries; calls are measured only in the paced setting. */
enum queue_measure {
	MEASURE_COMMAND,
	MEASURE_RETRIES, /* for each claim */
	MEASURE_P50,
	MEASURE_P99,
	MEASURE_P999,
	MEASURE_TRIP,
	MEASURES
};

enum queue_distance { DISTANCE_NEAR, DISTANCE_FAR, DISTANCE_UNSETTLED };

struct queue_result {
	double values[MEASURES];
	enum queue_distance distance;
};

struct queue_plan {
	const struct queue_design *design;
	const struct queue_setting *setting;
	size_t capacity;
	size_t count; /* commands of each producer */
};

/* Runs a trial, for process_run_trial(), of a struct queue_plan with a struct queue_result. */
void queue_trial_run(const void *plan, void *result);

#endif
