/* SPDX-License-Identifier: MIT */
/*
 * check_recurring.c checks the occurrences of a recurring task. Runs are taken in the order of
 * their tokens, which rise with time. The due time of a first attempt identifies its occurrence.
 * Between two identified occurrences, all from the first to the one before the second must have
 * ended. A later attempt may belong to an occurrence whose first attempt was claimed and never
 * began.
 */
#include "checker.h"

#include <stdlib.h>

#include "support/sockets.h"

enum { FOLLOWING = 16 }; /* later runs that each run is compared with */
static const int64_t slack = 2000000;
static const int64_t slack_ms = 2;

/* Returns whether a call has ended the task for good, or its present run will. */
static bool ends_for_certain(const struct call *call)
{
	return call->kind == CALL_END &&
	       (call_certainty(call) == CERTAIN_YES || (call->status && call_says_some(call)));
}

static bool may_end(const struct call *call)
{
	return call->kind == CALL_END &&
	       (ends_for_certain(call) || call_certainty(call) == UNCERTAIN);
}

struct life life_of_recurring(const struct task *task)
{
	struct life life = {.from = INT64_MAX, .seen = INT64_MAX, .gone = INT64_MAX};

	if (call_certainty(task->added) == CERTAIN_YES)
		life.from = task->added->end;
	life.seen_line = task->added->line;
	for (size_t i = task->key->calls.count; i > 0; i--) {
		const struct call *call = task->key->calls.items[i - 1];

		if (may_end(call)) {
			life.seen = call->begin;
			life.seen_line = call->line;
		}
	}
	return life;
}

/* Progress is the last identified occurrence before a run, and the ends since. */
struct progress {
	bool has_begun;      /* and the begin is not lost */
	int64_t due_ms;      /* the occurrence's */
	int64_t since;       /* when it was claimed, or earlier */
	int64_t may_have;    /* ends that Redis may have accepted */
	int64_t have;        /* ends that Redis has accepted for certain */
	int64_t last_end_ms; /* the latest end, by the server's clock */
	const char *line;    /* the line of its begin */
};

/* Returns the latest time by Redis's clock at which Redis learnt of the run's end, or INT64_MAX. */
static int64_t reported_ms(const struct run *run)
{
	if (run->report == INT64_MAX)
		return INT64_MAX;
	return (run->end_real_us + (run->report - run->end) / 1000) / 1000 + slack_ms;
}

static void note_end(struct progress *progress, const struct run *run)
{
	if (run->end == INT64_MAX || run->outcome == RUN_STALE || run->outcome == RUN_RETRIED)
		return;
	progress->may_have++;
	progress->have += run_end_is_sure(run);
	if (reported_ms(run) > progress->last_end_ms)
		progress->last_end_ms = reported_ms(run);
}

/* Counts cancels that may have ended an occurrence between the two moments. */
static void note_cancels(struct progress *progress, const struct key *key, int64_t until)
{
	for (size_t i = 0; i < key->calls.count; i++) {
		const struct call *call = key->calls.items[i];
		int64_t took_us = call->end == INT64_MAX ? 0 : (call->end - call->begin) / 1000;
		int64_t end_ms = (call->begin_real_us + took_us) / 1000 + slack_ms;

		if (call->kind != CALL_CANCEL || call_certainty(call) == CERTAIN_NO ||
		    call->begin >= until || call->end <= progress->since)
			continue;
		progress->may_have++;
		if (call->end == INT64_MAX)
			progress->last_end_ms = INT64_MAX;
		else if (end_ms > progress->last_end_ms)
			progress->last_end_ms = end_ms;
	}
}

/*
 * Returns the latest due time of the next occurrence. If times were missed, the schedule may have
 * continued from the time of any of the ends; the ends after it ended later occurrences.
 */
static int64_t due_most(const struct progress *progress, const struct task *task)
{
	int64_t due_ms = progress->due_ms + progress->may_have * task->period_ms;
	int64_t missed_ms = progress->last_end_ms;
	int64_t others = progress->may_have - (task->missed == MISSED_ONE);

	if (task->missed == MISSED_ALL || !progress->may_have)
		return due_ms;
	if (missed_ms == INT64_MAX)
		return INT64_MAX;
	missed_ms += others * task->period_ms;
	return missed_ms > due_ms ? missed_ms : due_ms;
}

/* Checks the first attempt of an occurrence. */
static void check_occurrence(struct progress *progress, const struct run *run,
			     struct faults *faults)
{
	const struct task *task = run->task;
	int64_t later_ms = run->due_ms - progress->due_ms;

	note_cancels(progress, task->key, run->claim);
	if (later_ms % task->period_ms)
		fault_add(faults, "unplanned", task->key, task->id, progress->line,
			  run->begin_line);
	else if (later_ms < progress->have * task->period_ms ||
		 (progress->has_begun && later_ms <= 0))
		fault_add(faults, "twice", task->key, task->id, progress->line, run->begin_line);
	else if (progress->due_ms + later_ms > due_most(progress, task) &&
		 (task->missed == MISSED_ALL || !run->is_unclear))
		fault_add(faults, "skipped", task->key, task->id, progress->line, run->begin_line);
	*progress = (struct progress){.has_begun = !run->may_be_lost,
				      .due_ms = progress->due_ms + later_ms,
				      .since = run->is_unclear ? progress->since : run->claim,
				      .line = run->begin_line};
}

static void check_occurrences(const struct task *task, struct run *const runs[], size_t count,
			      struct faults *faults)
{
	struct progress progress = {.since = task->added->begin, .line = task->added->answer};
	bool is_known = call_certainty(task->added) == CERTAIN_YES;

	progress.due_ms = task->added->due_ms;
	for (size_t i = 0; i < count; i++) {
		const struct run *run = runs[i];

		if (run->attempt == 1 && !is_known)
			progress.due_ms = run->due_ms;
		is_known |= run->attempt == 1;
		if (run->attempt == 1 && !run->is_unclear &&
		    (int64_t)run->token < run->due_ms * 1000)
			fault_add(faults, "early", task->key, task->id, run->begin_line, NULL);
		if (run->attempt == 1)
			check_occurrence(&progress, run, faults);
		note_end(&progress, run);
	}
}

/* Checks that no occurrence follows the task's end, and no run at all if the call answered
 * TW_OK. */
static void check_end(const struct task *task, struct faults *faults)
{
	for (size_t i = 0; i < task->key->calls.count; i++) {
		const struct call *call = task->key->calls.items[i];
		bool is_over = call_certainty(call) == CERTAIN_YES;

		for (size_t k = 0; k < task->runs.count && ends_for_certain(call); k++) {
			const struct run *run = task->runs.items[k];

			if (!run->is_unclear && run->claim > call->end + slack &&
			    (is_over || run->attempt == 1))
				fault_add(faults, "comes back", task->key, task->id, call->answer,
					  run->begin_line);
		}
		if (ends_for_certain(call) && task->rest == REST_TASK)
			fault_add(faults, "stays", task->key, task->id, call->answer,
				  task->rest_line);
	}
}

static int run_compare(const void *one, const void *other)
{
	const struct run *a = *(struct run *const *)one;
	const struct run *b = *(struct run *const *)other;

	return (a->token > b->token) - (a->token < b->token);
}

void check_recurring(const struct story *story, const struct task *task, const struct life *life,
		     struct faults *faults)
{
	size_t count = task->runs.count;
	struct run **runs = calloc(count + 1, sizeof(*runs));

	if (!runs)
		support_failed("calloc");
	for (size_t i = 0; i < count; i++)
		runs[i] = task->runs.items[i];
	qsort(runs, count, sizeof(struct run *), run_compare);
	if (call_certainty(task->added) == CERTAIN_NO && (count || task->rest != REST_NONE))
		fault_add(faults, "refused", task->key, task->id, task->added->answer,
			  count ? runs[0]->begin_line : task->rest_line);
	if (call_certainty(task->added) == CERTAIN_YES && life->seen == INT64_MAX &&
	    task->rest != REST_TASK)
		fault_add(faults, "lost", task->key, task->id, task->added->line, NULL);
	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count && k <= i + FOLLOWING; k++)
			check_pair(story, runs[i], runs[k], faults);
	check_occurrences(task, runs, count, faults);
	check_end(task, faults);
	free(runs);
}
