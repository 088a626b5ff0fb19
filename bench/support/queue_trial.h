/* SPDX-License-Identifier: MIT */
/*
 * One run of a queue: producers push, a consumer reads and checks. Threads stay on their cores, the
 * consumer on the first, the producers from the second on, round and round.
 */
#ifndef BENCH_SUPPORT_QUEUE_TRIAL_H
#define BENCH_SUPPORT_QUEUE_TRIAL_H

#include "queue_designs.h"

#include <stdbool.h>
#include <stddef.h>

enum queue_rest { REST_NONE, REST_PAUSE, REST_NAP };

struct queue_setting {
	const char *name;     /* in the CSV file */
	enum queue_rest rest; /* of the consumer, after a batch that came up short */
	size_t producers;
	bool is_paced;
};

/* In nanoseconds but for the retries; of the calls only in the paced setting. */
enum queue_measure {
	MEASURE_COMMAND,
	MEASURE_RETRIES, /* a claim */
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
	size_t count; /* commands of each producer; a multiple of the group */
};

/* One run, for process_run_trial(): a struct queue_plan, a struct queue_result. */
void queue_trial_run(const void *plan, void *result);

#endif
