/* SPDX-License-Identifier: MIT */
/* check_all.c checks all runs together: pauses and limits. */
#include "checker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/sockets.h"

/* A token's clock and a line's clock may differ by this much. */
static const int64_t slack = 2000000;

/* Finds runs claimed between the answer to the pause and the call that resumes. */
static void check_pause(const struct story *story, const struct call *pause, int64_t until,
			struct faults *faults)
{
	for (size_t i = 0; i < story->runs.count; i++) {
		const struct run *run = story->runs.items[i];

		if (!run->is_unclear && run->claim > pause->end + slack &&
		    run->claim < until - slack)
			fault_add(faults, "paused", run->task->key, run->task->id, pause->answer,
				  run->begin_line);
	}
}

/* Calls that pause and resume share one key, so they are in the order of their begin. */
void check_pauses(const struct story *story, struct faults *faults)
{
	const struct call *pause = NULL;

	for (size_t i = 0; i < story->calls.count; i++) {
		const struct call *call = story->calls.items[i];

		if (call->kind == CALL_PAUSE && call_certainty(call) == CERTAIN_YES && !pause)
			pause = call;
		if (call->kind != CALL_RESUME || !pause)
			continue;
		check_pause(story, pause, call->begin, faults);
		pause = NULL;
	}
	if (pause)
		check_pause(story, pause, INT64_MAX, faults);
}

/* A change is a run's lease that begins or ends. */
struct change {
	int64_t time;
	int by; /* 1 or -1 */
	const struct run *run;
};

static int change_compare(const void *one, const void *other)
{
	const struct change *a = one;
	const struct change *b = other;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->by - b->by;
}

/*
 * Returns until when the run's worker certainly held the lease. The history does not show
 * extensions, and a killed worker has no lease.
 */
static int64_t leased_until(const struct story *story, const struct run *run)
{
	int64_t until = run->claim + story->lease_ms * 1000000;
	int64_t last = run->end == INT64_MAX ? run->begin : run->end;

	return (last < until ? last : until) - slack;
}

/* Returns whether the limit covers the task: by all tasks or its group. */
static bool limit_has(const struct limit *limit, const struct task *task)
{
	return !*limit->group || (task->group && !strcmp(task->group, limit->group));
}

/* Returns all changes of runs under the limit, by time. The caller frees them. */
static struct change *changes_of(const struct story *story, const struct limit *limit,
				 size_t *count)
{
	struct change *changes = calloc(2 * story->runs.count + 1, sizeof(*changes));

	if (!changes)
		support_failed("calloc");
	*count = 0;
	for (size_t i = 0; i < story->runs.count; i++) {
		const struct run *run = story->runs.items[i];
		int64_t from = run->claim + slack;
		int64_t until = leased_until(story, run);

		if (*run->actor->name != 'w' || run->is_unclear || until <= from ||
		    !limit_has(limit, run->task))
			continue;
		changes[(*count)++] = (struct change){from, 1, run};
		changes[(*count)++] = (struct change){until, -1, run};
	}
	qsort(changes, *count, sizeof(*changes), change_compare);
	return changes;
}

static void check_limit(const struct story *story, struct limit *limit, struct faults *faults)
{
	size_t count;
	struct change *changes = changes_of(story, limit, &count);
	size_t leased = 0;
	char text[320];

	for (size_t i = 0; i < count; i++) {
		leased += (size_t)changes[i].by;
		if (leased > limit->reached)
			limit->reached = leased;
		if (changes[i].by < 0 || leased <= limit->most)
			continue;
		snprintf(text, sizeof(text), "%zu of \"%s\" are on lease", leased, limit->group);
		fault_add(faults, "over the limit", changes[i].run->task->key, text,
			  changes[i].run->begin_line, NULL);
	}
	free(changes);
}

void check_limits(const struct story *story, struct faults *faults)
{
	for (size_t i = 0; i < story->limits.count; i++)
		check_limit(story, story->limits.items[i], faults);
}
