/* SPDX-License-Identifier: MIT */
/*
 * Each task has an id of its own and is added once, so it is in Redis for one interval. Whatever
 * finds the task there proves that the interval lasts at least until then; an acknowledgement, a
 * cancel, or another task with its key proves that it has ended. A proof that the task exists after
 * a proof of its end is a fault; so is an answer that fits no interval.
 */
#include "checker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/sockets.h"

enum { PRINTED_MOST = 5 };
/* A token and a line read one clock at two moments, which differ by at most this. */
static const int64_t slack = 2000000;
/* A worker that is not frozen notices a broken connection within this time. */
static const int64_t notice_time = 2000000000;

void fault_add(struct faults *faults, const char *name, const struct key *key, const char *text,
	       const char *one_line, const char *other_line)
{
	struct fault *fault;

	faults->items = realloc(faults->items, (faults->count + 1) * sizeof(*faults->items));
	if (!faults->items)
		support_failed("realloc");
	fault = &faults->items[faults->count++];
	fault->name = name;
	fault->key = key;
	snprintf(fault->text, sizeof(fault->text), "%s\n    %s\n    %s", text,
		 one_line ? one_line : "", other_line ? other_line : "");
}

/* Returns whether the deed breaks the worker's connections. */
static bool deed_breaks(const struct deed *deed, const struct actor *worker)
{
	if (!strcmp(deed->name, "cut") || !strcmp(deed->name, "lose"))
		return !strcmp(deed->target, worker->name);
	return !strcmp(deed->name, "server") || !strcmp(deed->name, "master") ||
	       !strcmp(deed->name, "drop") || !strcmp(deed->name, "fail-over");
}

/* Returns the latest time at which the worker notices the broken connection. It may have been
 * frozen. */
static int64_t last_notice(const struct story *story, const struct deed *deed,
			   const struct actor *worker)
{
	int64_t last = deed->end;

	for (size_t i = 0; i < story->deeds.count; i++) {
		const struct deed *other = story->deeds.items[i];

		if (!strcmp(other->name, "freeze") && !strcmp(other->target, worker->name) &&
		    other->begin <= deed->end && other->end >= deed->begin && other->end > last)
			last = other->end;
	}
	return last > INT64_MAX - notice_time ? INT64_MAX : last + notice_time;
}

static void find_breaks(const struct story *story, struct actor *worker)
{
	for (size_t i = 0; i < story->deeds.count; i++) {
		const struct deed *deed = story->deeds.items[i];
		struct interval *interval;

		if (!deed_breaks(deed, worker))
			continue;
		interval = malloc(sizeof(*interval));
		if (!interval)
			support_failed("malloc");
		interval->begin = deed->begin;
		interval->end = last_notice(story, deed, worker);
		list_add(&worker->breaks, interval);
	}
}

bool run_end_is_sure(const struct run *run)
{
	const struct list_of *breaks = &run->actor->breaks;

	if (run->report == INT64_MAX || run->end == INT64_MAX ||
	    (run->outcome != RUN_DONE && run->outcome != RUN_RETRIED && run->outcome != RUN_DEAD))
		return false;
	for (size_t i = 0; i < breaks->count && !run->is_exact; i++) {
		const struct interval *interval = breaks->items[i];

		if (interval->begin < run->report && interval->end > run->end)
			return false;
	}
	return true;
}

static bool run_is_final(const struct run *run)
{
	return run->outcome == RUN_DONE || run->outcome == RUN_DEAD;
}

static void life_seen(struct life *life, int64_t at, const char *line)
{
	/* If the time of the add is unknown, the life begins when the task was first seen. */
	if (at < life->from)
		life->from = at;
	if (at > life->seen) {
		life->seen = at;
		life->seen_line = line;
	}
}

static void life_gone(struct life *life, int64_t at, const char *line)
{
	if (at < life->gone) {
		life->gone = at;
		life->gone_line = line;
	}
}

/* Finds the first later call that certainly removed the task. */
static void life_find_removal(struct life *life, const struct task *task)
{
	for (size_t i = task->added ? task->added->index : 0; i < task->key->calls.count; i++) {
		const struct call *call = task->key->calls.items[i];
		bool removes =
			call->kind == CALL_CANCEL || (call->kind == CALL_ADD && call->task != task);

		if (removes && call->begin > life->from && call_certainty(call) == CERTAIN_YES) {
			life_gone(life, call->end, call->answer);
			return;
		}
	}
}

struct life life_of(const struct task *task)
{
	struct life life = {.from = INT64_MAX, .seen = INT64_MIN, .gone = INT64_MAX};

	for (size_t i = 0; i < task->gets.count; i++) {
		const struct call *get = task->gets.items[i];

		life_seen(&life, get->begin, get->answer);
	}
	for (size_t i = 0; i < task->runs.count; i++) {
		const struct run *run = task->runs.items[i];

		if (!run->is_unclear)
			life_seen(&life, run->claim - slack, run->begin_line);
		if (!run_end_is_sure(run))
			continue;
		life_seen(&life, run->end, run->report_line);
		if (run_is_final(run))
			life_gone(&life, run->report, run->report_line);
	}
	if (task->rest == REST_TASK)
		life_seen(&life, INT64_MAX, task->rest_line);
	if (task->added && call_certainty(task->added) == CERTAIN_YES)
		life.from = task->added->end;
	life_find_removal(&life, task);
	return life;
}

/*
 * Returns whether a run has ended so that Redis may count the task as done. A dead letter is in
 * Redis at the end.
 */
static bool task_may_be_done(const struct task *task)
{
	for (size_t i = 0; i < task->runs.count; i++) {
		const struct run *run = task->runs.items[i];

		if (run->end != INT64_MAX &&
		    (run->report == INT64_MAX || run->outcome == RUN_DONE ||
		     run->outcome == RUN_UNCONFIRMED))
			return true;
	}
	return false;
}

/* Returns whether a call may have removed the task. */
static bool task_may_be_removed(const struct task *task)
{
	for (size_t i = 0; i < task->key->calls.count; i++) {
		const struct call *call = task->key->calls.items[i];
		bool removes =
			call->kind == CALL_CANCEL ||
			(call->kind == CALL_ADD && call->mode != ADD_NEW && call->task != task);

		if (removes && call->end >= task->added->begin &&
		    call_certainty(call) != CERTAIN_NO)
			return true;
	}
	return false;
}

static void check_task(const struct story *story, const struct task *task, const struct life *life,
		       struct faults *faults)
{
	const struct call *added = task->added;

	if (!added) {
		fault_add(faults, "unknown", task->key, task->id, life->seen_line, NULL);
		return;
	}
	if (call_certainty(added) == CERTAIN_NO && (life->seen_line || task->rest != REST_NONE))
		fault_add(faults, "refused", task->key, task->id, added->answer,
			  life->seen_line ? life->seen_line : task->rest_line);
	if (call_certainty(added) == CERTAIN_YES && task->rest == REST_NONE &&
	    !task_may_be_done(task) && !task_may_be_removed(task))
		fault_add(faults, "lost", task->key, task->id, added->line, added->answer);
	if (task->rest == REST_TASK)
		fault_add(faults, "stays", task->key, task->id, task->rest_line, NULL);
	if (life->gone < life->seen)
		fault_add(faults, "comes back", task->key, task->id, life->gone_line,
			  life->seen_line);
	check_runs(story, task, life, faults);
}

static void check_key(const struct story *story, const struct key *key, struct faults *faults)
{
	struct life *lives = calloc(key->tasks.count + 1, sizeof(*lives));

	if (!lives)
		support_failed("calloc");
	for (size_t i = 0; i < key->tasks.count; i++) {
		const struct task *task = key->tasks.items[i];

		lives[i] = task->period_ms ? life_of_recurring(task) : life_of(task);
		if (task->period_ms)
			check_recurring(story, task, &lives[i], faults);
		else
			check_task(story, task, &lives[i], faults);
	}
	check_tokens(key, faults);
	check_answers(story, key, lives, faults);
	free(lives);
}

void story_check(struct story *story, struct faults *faults)
{
	memset(faults, 0, sizeof(*faults));
	for (size_t i = 0; i < story->wrong.count; i++)
		fault_add(faults, "unread", NULL, "", story->wrong.items[i], NULL);
	if (!story->has_rest)
		fault_add(faults, "unread", NULL, "the inventory at the end is missing", NULL,
			  NULL);
	for (struct actor *actor = story->actors; actor; actor = actor->hh.next)
		find_breaks(story, actor);
	for (const struct key *key = story->keys; key; key = key->hh.next)
		check_key(story, key, faults);
	check_pauses(story, faults);
	check_limits(story, faults);
}

void faults_free(struct faults *faults)
{
	free(faults->items);
	memset(faults, 0, sizeof(*faults));
}

void faults_print(const struct faults *faults, const struct story *story)
{
	for (size_t i = 0; i < faults->count; i++) {
		const struct fault *fault = &faults->items[i];

		printf("FAULT %s: %s: %s\n", fault->name, fault->key ? fault->key->name : "-",
		       fault->text);
	}
	for (size_t i = 0; i < faults->count && i < PRINTED_MOST; i++) {
		const struct key *key = faults->items[i].key;

		if (!key || (i && key == faults->items[i - 1].key))
			continue;
		printf("the whole history of %s:\n", key->name);
		for (size_t line = 0; line < key->lines.count; line++)
			printf("    %s\n", (const char *)key->lines.items[line]);
		puts("and of the nemesis:");
		for (size_t deed = 0; deed < story->deeds.count; deed++)
			printf("    %s\n", ((const struct deed *)story->deeds.items[deed])->line);
	}
}
