/* SPDX-License-Identifier: MIT */
#include "summary.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { NAMES_MOST = 32 };

/* This counts each name. */
struct counts {
	const char *names[NAMES_MOST];
	unsigned long counts[NAMES_MOST];
	size_t size;
};

static void count(struct counts *counts, const char *name)
{
	size_t i = 0;

	while (i < counts->size && strcmp(counts->names[i], name))
		i++;
	if (i == NAMES_MOST)
		return;
	counts->names[i] = name;
	counts->size += i == counts->size;
	counts->counts[i]++;
}

static void counts_write(FILE *file, const char *title, unsigned long all,
			 const struct counts *counts)
{
	fprintf(file, "| %s | %lu |\n", title, all);
	for (size_t i = 0; i < counts->size; i++)
		fprintf(file, "| … %s | %lu |\n", counts->names[i], counts->counts[i]);
}

static void write_calls(FILE *file, const struct story *story)
{
	static const char *const titles[] = {[CALL_ADD] = "adds",
					     [CALL_MOVE] = "moves",
					     [CALL_CANCEL] = "cancels",
					     [CALL_GET] = "gets",
					     [CALL_END] = "ends of recurring tasks",
					     [CALL_PAUSE] = "pauses",
					     [CALL_RESUME] = "resumptions"};

	for (enum call_kind kind = CALL_ADD; kind < CALL_KINDS; kind++) {
		struct counts counts = {.size = 0};
		unsigned long all = 0;

		for (size_t i = 0; i < story->calls.count; i++) {
			const struct call *call = story->calls.items[i];

			if (call->kind != kind)
				continue;
			all++;
			count(&counts, call->status ? call->status : "no answer");
		}
		counts_write(file, titles[kind], all, &counts);
	}
}

static void write_runs(FILE *file, const struct story *story)
{
	static const char *const titles[] = {
		[RUN_NO_END] = "did not end",    [RUN_DONE] = "done",
		[RUN_RETRIED] = "to be retried", [RUN_DEAD] = "dead letters",
		[RUN_STALE] = "overtaken",       [RUN_UNCONFIRMED] = "could not be reported"};
	struct counts counts = {.size = 0};
	unsigned long sure = 0;

	for (size_t i = 0; i < story->runs.count; i++) {
		const struct run *run = story->runs.items[i];

		count(&counts, titles[run->outcome]);
		sure += run_end_is_sure(run);
	}
	counts_write(file, "runs", story->runs.count, &counts);
	fprintf(file, "| … whose end Redis has accepted for certain | %lu |\n", sure);
}

static void write_groups(FILE *file, const struct story *story)
{
	unsigned long grouped = 0;

	for (const struct task *task = story->tasks; task; task = task->hh.next)
		grouped += task->group != NULL;
	fprintf(file, "| … of groups | %lu |\n", grouped);
}

/* Writes how near the tasks on lease have come to each limit. */
static void write_limits(FILE *file, const struct story *story)
{
	for (size_t i = 0; i < story->limits.count; i++) {
		const struct limit *limit = story->limits.items[i];

		fprintf(file, "| most at once of %s (limit %zu) | %zu |\n",
			*limit->group ? limit->group : "all", limit->most, limit->reached);
	}
}

static void write_recurring(FILE *file, const struct story *story)
{
	unsigned long recurring = 0;
	unsigned long runs = 0;

	for (const struct task *task = story->tasks; task; task = task->hh.next)
		recurring += task->period_ms > 0;
	for (size_t i = 0; i < story->runs.count; i++)
		runs += ((const struct run *)story->runs.items[i])->task->period_ms > 0;
	fprintf(file, "| … recurring | %lu |\n| … … their runs | %lu |\n", recurring, runs);
}

static void write_deeds(FILE *file, const struct story *story)
{
	struct counts counts = {.size = 0};

	for (size_t i = 0; i < story->deeds.count; i++)
		count(&counts, ((const struct deed *)story->deeds.items[i])->name);
	counts_write(file, "deeds of the nemesis", story->deeds.count, &counts);
}

void summary_write(FILE *file, const struct story *story, const struct faults *faults)
{
	unsigned long tasks = HASH_COUNT(story->tasks);
	unsigned long keys = HASH_COUNT(story->keys);
	char date[16] = "";
	time_t start = 0;
	int64_t real_us = 0;
	struct counts counts = {.size = 0};

	if (story->lines.count)
		sscanf(story->lines.items[0], "%*s %" SCNd64, &real_us);
	start = (time_t)(real_us / 1000000);
	strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&start));
	fprintf(file,
		"| Torture of %s, commit %s, MODE=%s, %" PRId64 " s, SEED=%" PRId64
		" | |\n|---|--:|\n",
		date, story->commit ? story->commit : "unknown", story->mode ? story->mode : "?",
		story->seconds, story->seed);
	fprintf(file, "| keys | %lu |\n| tasks | %lu |\n", keys, tasks);
	write_groups(file, story);
	write_recurring(file, story);
	write_calls(file, story);
	write_runs(file, story);
	write_limits(file, story);
	write_deeds(file, story);
	for (size_t i = 0; i < faults->count; i++)
		count(&counts, faults->items[i].name);
	counts_write(file, "**faults**", faults->count, &counts);
}
