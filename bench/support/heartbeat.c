/* SPDX-License-Identifier: MIT */
#include "heartbeat.h"

#include "percentiles.h"
#include "process.h"

#include <stdbool.h>
#include <stdlib.h>

#define MAX_BEATS 65536

void heartbeat_create(struct heartbeat *heartbeat)
{
	*heartbeat = (struct heartbeat){
		.beats = process_allocate(MAX_BEATS * sizeof(struct beat)),
	};
}

void heartbeat_destroy(struct heartbeat *heartbeat)
{
	free(heartbeat->beats);
}

void heartbeat_plan(struct heartbeat *heartbeat, int64_t first, int64_t soon)
{
	if (heartbeat->deadline == 0)
		heartbeat->deadline = first;
	while (heartbeat->deadline < soon)
		heartbeat->deadline += HEARTBEAT_PERIOD;
}

static void note_beat(struct heartbeat *heartbeat, int64_t deadline, int64_t lateness)
{
	if (heartbeat->count == MAX_BEATS)
		process_fail("the run is too long: more than %d beats", MAX_BEATS);
	heartbeat->beats[heartbeat->count++] = (struct beat){deadline, lateness};
}

void heartbeat_beat(struct heartbeat *heartbeat)
{
	note_beat(heartbeat, heartbeat->deadline, stopwatch_now() - heartbeat->deadline);
}

void heartbeat_advance(struct heartbeat *heartbeat)
{
	heartbeat->deadline += HEARTBEAT_PERIOD;
}

/* A timer that is stopped while it runs may not have come to plan the next beat. */
static bool has_beaten(const struct heartbeat *heartbeat)
{
	return heartbeat->count > 0 &&
	       heartbeat->beats[heartbeat->count - 1].deadline == heartbeat->deadline;
}

void heartbeat_note_missed(struct heartbeat *heartbeat, int64_t now)
{
	if (has_beaten(heartbeat))
		heartbeat_advance(heartbeat);
	while (heartbeat->deadline < now) {
		note_beat(heartbeat, heartbeat->deadline, now - heartbeat->deadline);
		heartbeat_advance(heartbeat);
	}
}

struct lateness heartbeat_lateness(const struct heartbeat *heartbeat, int64_t begin, int64_t end)
{
	struct percentiles *histogram = percentiles_create();
	struct lateness lateness;

	for (size_t i = 0; i < heartbeat->count; i++) {
		const struct beat *beat = &heartbeat->beats[i];

		if (beat->deadline >= begin && beat->deadline < end)
			percentiles_record(histogram, beat->lateness);
	}
	lateness = (struct lateness){
		.p50 = (double)percentiles_at(histogram, 50),
		.p99 = (double)percentiles_at(histogram, 99),
		.most = (double)percentiles_most(histogram),
	};
	/* A percentile may be 0.4 % too great. */
	if (lateness.p50 > lateness.most)
		lateness.p50 = lateness.most;
	if (lateness.p99 > lateness.most)
		lateness.p99 = lateness.most;
	percentiles_destroy(histogram);
	return lateness;
}
