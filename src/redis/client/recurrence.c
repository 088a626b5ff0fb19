/* SPDX-License-Identifier: MIT */
/*
 * recurrence.c computes the times of recurring tasks.
 *
 * Invariants:
 *  - A script decides which occurrence is the present one and when it is due, or writes it if the
 *    entry is as it was when this was computed. So a time that is computed twice, late or by a
 *    worker that dies is written once or not at all.
 *  - An entry with "-" or "*" in place of the next time stays so until a worker writes it. A task
 *    that ends meanwhile has no due time ("*"), and always an entry. The time depends on the entry
 *    alone, not on when a worker computes it.
 *
 * Times of the calendar are whole seconds; tasks' are milliseconds. A time counts as passed from
 * its second's end on.
 */
#include "recurrence.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/wire/settings.h"

static const char *const missed_names[] = {"one", "skip", "all"};

/* This is an entry that recurs by the calendar, taken apart. */
struct entry {
	enum tw_redis_missed missed;
	int64_t at_ms;
	char next[24]; /* a time, "-", or "*" and when the occurrence ended */
	char zone[TW_CRON_ZONE_MAX + 1];
	const char *expression;
};

static enum tw_redis_missed missed_of(const char *name)
{
	for (unsigned i = 0; i <= TW_REDIS_MISSED_ALL; i++)
		if (!strcmp(name, missed_names[i]))
			return (enum tw_redis_missed)i;
	return TW_REDIS_MISSED_ONE;
}

static bool entry_read(struct entry *entry, const char *text)
{
	char missed[8];
	int head = 0;

	_Static_assert(TW_CRON_ZONE_MAX == 255, "as the format below says");
	if (sscanf(text, "%7s %" SCNd64 " cron %23s %255s %n", missed, &entry->at_ms, entry->next,
		   entry->zone, &head) != 4 ||
	    !text[head] || strlen(text + head) > TW_REDIS_CRON_MAX)
		return false;
	entry->missed = missed_of(missed);
	entry->expression = text + head;
	return true;
}

/* Returns when the occurrence of an entry with "*" ended, in seconds. */
static int64_t entry_end(const struct entry *entry)
{
	return strtoll(entry->next + 1, NULL, 10) / 1000;
}

static enum tw_status cron_of(struct tw_cron **cron, const struct tw_redis_task *task,
			      struct tw_redis_error *error)
{
	struct tw_cron_error wrong;
	enum tw_status status = tw_cron_create(cron, task->cron, task->zone, &wrong);

	if (status == TW_NO_MEMORY || status == TW_SYSTEM)
		return error_set(error, status, "the time zone: %s", tw_status_text(status));
	if (status != TW_OK)
		return error_set(error, TW_REDIS_BAD_DATA, "%s, at byte %zu: %s",
				 wrong.in_zone ? "the time zone" : "the cron expression",
				 wrong.position, wrong.text);
	return TW_OK;
}

enum tw_status recurrence_first(const struct tw_redis_task *task, int64_t now_ms, int64_t *at_ms,
				struct tw_redis_error *error)
{
	int64_t from_ms = task->at_ms;
	struct tw_cron *cron;
	enum tw_status status;
	int64_t first_s;

	if (strlen(task->cron) > TW_REDIS_CRON_MAX)
		return error_set(error, TW_REDIS_BAD_DATA, "the cron expression is too long");
	status = cron_of(&cron, task, error);
	if (status != TW_OK)
		return status;
	if (!from_ms && task->delay > 0)
		from_ms = time_add(now_ms, task->delay / TW_MILLISECOND);
	if (from_ms < now_ms)
		from_ms = now_ms;
	/* The first time that is not before from_ms. */
	status = tw_cron_next(cron, (from_ms - 1) / 1000, &first_s);
	tw_cron_destroy(cron);
	if (status != TW_OK)
		return error_set(error, TW_REDIS_BAD_DATA,
				 "the cron expression has no future time");
	*at_ms = first_s * 1000;
	return TW_OK;
}

/* Writes what an entry has after its time. */
static void rhythm_write(const struct tw_redis_task *task, char *text, size_t room)
{
	if (task->cron)
		/* entry_read() passes over leading blanks, too. */
		snprintf(text, room, "cron - %s %s", task->zone ? task->zone : "UTC",
			 task->cron + strspn(task->cron, " \t"));
	else
		snprintf(text, room, "%" PRId64,
			 (task->every + TW_MILLISECOND - 1) / TW_MILLISECOND);
}

void recurrence_write(const struct tw_redis_task *task, struct eval *eval)
{
	/* A delay of one period ends where a period begins, unless another time is given. */
	bool delayed = !task->at_ms && task->delay > 0 && task->delay != task->every;
	char text[RECURRENCE_SIZE];

	eval_text(eval, missed_names[task->missed]);
	rhythm_write(task, text, sizeof(text));
	eval_text(eval, text);
	eval_number(eval, delayed ? -1 : task->at_ms);
}

void recurrence_write_entry(const struct tw_redis_task *task, int64_t at_ms,
			    char entry[RECURRENCE_SIZE])
{
	int size;

	*entry = '\0';
	if (!task->cron && !task->every)
		return;
	size = snprintf(entry, RECURRENCE_SIZE, "%s %" PRId64 " ", missed_names[task->missed],
			at_ms);
	rhythm_write(task, entry + size, RECURRENCE_SIZE - (size_t)size);
}

/* Returns the last time after at_s that is not after end_s; if there is none, the first after at_s,
 * which there is. */
static int64_t latest(const struct tw_cron *cron, int64_t at_s, int64_t end_s)
{
	int64_t before = at_s;
	int64_t after = end_s;
	int64_t found_s = end_s;
	enum tw_status status;

	while (after - before > 1) {
		int64_t middle = before + (after - before) / 2;
		bool passed = tw_cron_next(cron, middle, &found_s) == TW_OK && found_s <= end_s;

		*(passed ? &before : &after) = middle;
	}
	status = tw_cron_next(cron, before, &found_s);
	assert(status == TW_OK);
	(void)status;
	return found_s;
}

/* Computes the occurrence after the one at at_s, which ended at end_s, as again.lua does with
 * periods. */
static enum tw_status following(const struct tw_cron *cron, enum tw_redis_missed missed,
				int64_t at_s, int64_t end_s, int64_t *next_s)
{
	enum tw_status status = tw_cron_next(cron, at_s, next_s);

	if (status != TW_OK || *next_s > end_s || missed == TW_REDIS_MISSED_ALL)
		return status;
	if (missed == TW_REDIS_MISSED_SKIP)
		return tw_cron_next(cron, end_s, next_s);
	*next_s = latest(cron, at_s, end_s);
	return TW_OK;
}

/* Finds the occurrence after one that has ended. Returns false if the entry's has not, or if the
 * calendar is not known here or has no further time. */
static bool ended_read(const struct entry *entry, int64_t *next_ms)
{
	const struct tw_redis_task task = {.cron = entry->expression, .zone = entry->zone};
	struct tw_cron *cron;
	enum tw_status status;

	if (*entry->next != '*' || cron_of(&cron, &task, NULL) != TW_OK)
		return false;
	status = following(cron, entry->missed, entry->at_ms / 1000, entry_end(entry), next_ms);
	tw_cron_destroy(cron);
	*next_ms *= 1000;
	return status == TW_OK;
}

void recurrence_read(char *text, struct tw_redis_task *task, int64_t *due_ms)
{
	char missed[8];
	int64_t period;
	struct entry entry;
	int64_t at_ms;
	char *zone;

	task->at_ms = *due_ms;
	if (entry_read(&entry, text)) {
		task->missed = entry.missed;
		task->at_ms = entry.at_ms;
		if (ended_read(&entry, &at_ms))
			task->at_ms = *due_ms = at_ms;
		task->cron = entry.expression;
		zone = text + (entry.expression - text) - strlen(entry.zone) - 1;
		zone[strlen(entry.zone)] = '\0';
		task->zone = zone;
	} else if (sscanf(text, "%7s %" SCNd64 " %" SCNd64, missed, &at_ms, &period) == 3 &&
		   period > 0) {
		task->missed = missed_of(missed);
		task->at_ms = at_ms;
		task->every = period < TW_REDIS_DELAY_MAX / TW_MILLISECOND ? period * TW_MILLISECOND
									   : TW_REDIS_DELAY_MAX;
	}
}

/* Computes the entry's missing time, and writes the new entry. */
static void schedule_work_out(struct schedule *schedule, const struct entry *entry,
			      const struct tw_cron *cron)
{
	bool no_time = *entry->next == '*';
	int64_t at_s = entry->at_ms / 1000;
	int64_t next_s;
	enum tw_status status =
		no_time ? following(cron, entry->missed, at_s, entry_end(entry), &next_s)
			: tw_cron_next(cron, at_s, &next_s);
	char after[24] = "-";

	schedule->due_ms = -1;
	*schedule->is = '\0';
	if (no_time)
		schedule->due_ms = status == TW_OK ? next_s * 1000 : 0;
	if (status != TW_OK)
		return;
	if (!no_time)
		snprintf(after, sizeof(after), "%" PRId64, next_s * 1000);
	snprintf(schedule->is, RECURRENCE_SIZE, "%s %" PRId64 " cron %s %s %s",
		 missed_names[entry->missed], no_time ? next_s * 1000 : entry->at_ms, after,
		 entry->zone, entry->expression);
}

enum tw_status schedule_create(struct schedule **schedule, const char *key, size_t key_size,
			       const char *text)
{
	size_t size = strlen(text) + 1;
	struct tw_redis_task task = {0};
	struct entry entry;
	struct tw_cron *cron;
	enum tw_status status;
	char *was;

	*schedule = NULL;
	if (!entry_read(&entry, text))
		return TW_REDIS_BAD_DATA;
	task.cron = entry.expression;
	task.zone = entry.zone;
	status = cron_of(&cron, &task, NULL);
	if (status != TW_OK)
		return status == TW_NO_MEMORY ? status : TW_REDIS_BAD_DATA;
	*schedule = malloc(sizeof(**schedule) + key_size + size + RECURRENCE_SIZE);
	if (*schedule) {
		was = (*schedule)->key + key_size;
		(*schedule)->key_size = key_size;
		(*schedule)->was = memcpy(was, text, size);
		(*schedule)->is = was + size;
		memcpy((*schedule)->key, key, key_size);
		schedule_work_out(*schedule, &entry, cron);
	}
	tw_cron_destroy(cron);
	return *schedule ? TW_OK : TW_NO_MEMORY;
}

void schedules_write(struct eval *eval, const struct space *space, unsigned shard,
		     struct list *schedules)
{
	size_t count = 0;

	for (struct list *at = schedules->next; at != schedules; at = at->next)
		count++;
	eval_begin(eval, &script_schedule, space, shard);
	eval->answers = count;
	eval_number(eval, (int64_t)count);
	while (count--) {
		struct schedule *schedule =
			list_entry(list_take_first(schedules), struct schedule, link);

		eval_argument(eval, schedule->key, schedule->key_size);
		eval_text(eval, schedule->was);
		eval_text(eval, schedule->is);
		if (schedule->due_ms < 0)
			eval_text(eval, "");
		else
			eval_number(eval, schedule->due_ms);
		free(schedule);
	}
	eval_hint(eval);
}

void schedules_free(struct list *schedules)
{
	struct list *link;

	while ((link = list_take_first(schedules)))
		free(list_entry(link, struct schedule, link));
}
