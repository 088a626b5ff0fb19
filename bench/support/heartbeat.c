/* SPDX-License-Identifier: MIT */
#include "heartbeat.h"

#include "percentiles.h"
#include "process.h"

#include <stdbool.h>
#include <stdlib.h>

#define MAX_BEATS 65536

void heartbeat_create(struct heartbeat *heartbeat, int64_t period)
{
	*heartbeat = (struct heartbeat){
		.period = period,
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
		heartbeat->deadline += heartbeat->period;
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
	heartbeat->deadline += heartbeat->period;
}

/* A timer that was stopped while it ran may not have planned the next beat. */
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

int64_t heartbeat_set_at(const struct heartbeat *heartbeat, size_t beat)
{
	if (beat == 0)
		return heartbeat->beats[0].deadline - heartbeat->period;
	return heartbeat->beats[beat - 1].deadline + heartbeat->beats[beat - 1].lateness;
}

/* A percentile may be 0.4 % too great. */
static double percentile_of(const struct percentiles *histogram, double percent)
{
	int64_t most = percentiles_most(histogram), value = percentiles_at(histogram, percent);

	return (double)(value < most ? value : most);
}

struct lateness lateness_of(const struct percentiles *histogram)
{
	return (struct lateness){
		.beats = (double)percentiles_count(histogram),
		.p50 = percentile_of(histogram, 50),
		.p90 = percentile_of(histogram, 90),
		.p99 = percentile_of(histogram, 99),
		.most = (double)percentiles_most(histogram),
	};
}
