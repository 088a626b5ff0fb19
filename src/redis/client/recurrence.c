/* SPDX-License-Identifier: MIT */
/*
 * recurrence.c computes the times of recurring tasks.
 *
 * Times of the calendar are whole seconds; tasks' are milliseconds. A time counts as passed from
 * its second's end on.
 */
#include "recurrence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/wire/settings.h"

/* A time that was computed by a clock this much later is one of a clock that was ahead (time.lua).
 */
static const int64_t ahead_ms = 5000;
static const char *const missed_names[] = {"one", "skip", "all"};

void recurrence_write(const struct tw_redis_task *task, char text[RECURRENCE_SIZE])
{
	const char *missed = missed_names[task->missed];

	*text = '\0';
	if (task->cron)
		snprintf(text, RECURRENCE_SIZE, "%s cron %s %s", missed,
			 task->zone ? task->zone : "UTC", task->cron);
	else if (task->every)
		snprintf(text, RECURRENCE_SIZE, "%s %" PRId64, missed,
			 (task->every + TW_MILLISECOND - 1) / TW_MILLISECOND);
}

/* Takes a word from the text, which a blank or the end follows. */
static char *word_take(char **text)
{
	char *word = *text;

	*text += strcspn(word, " ");
	if (**text)
		*(*text)++ = '\0';
	return word;
}

bool recurrence_read(struct recurrence *how, char *entry)
{
	const char *word;

	*how = (struct recurrence){.at_ms = strtoll(word_take(&entry), NULL, 10)};
	how->computed_ms = strtoll(word_take(&entry), NULL, 10);
	word = word_take(&entry);
	while (how->missed < TW_REDIS_MISSED_ALL && strcmp(word, missed_names[how->missed]) != 0)
		how->missed++;
	word = word_take(&entry);
	if (strcmp(word, "cron") != 0) {
		how->period_ms = strtoll(word, NULL, 10);
		return how->at_ms >= 0 && how->period_ms > 0 &&
		       how->period_ms <= TW_REDIS_DELAY_MAX / TW_MILLISECOND;
	}
	how->zone = word_take(&entry);
	how->cron = entry;
	return how->at_ms >= 0 && *entry && strlen(entry) <= TW_REDIS_CRON_MAX &&
	       strlen(how->zone) <= TW_CRON_ZONE_MAX;
}

static enum tw_status cron_of(struct tw_cron **cron, const char *expression, const char *zone,
			      struct tw_redis_error *error)
{
	struct tw_cron_error wrong;
	enum tw_status status = tw_cron_create(cron, expression, zone, &wrong);

	if (status == TW_NO_MEMORY || status == TW_SYSTEM)
		return error_set(error, status, "the time zone: %s", tw_status_text(status));
	if (status != TW_OK)
		return error_set(error, TW_REDIS_BAD_DATA, "%s, at byte %zu: %s",
				 wrong.in_zone ? "the time zone" : "the cron expression",
				 wrong.position, wrong.text);
	return TW_OK;
}

/* Returns the first time of a series after t_ms. */
static int64_t period_after(int64_t at_ms, int64_t period_ms, int64_t t_ms)
{
	int64_t past = (t_ms - at_ms) % period_ms;

	return t_ms + period_ms - (past < 0 ? past + period_ms : past);
}

static int64_t cron_after(const struct tw_cron *cron, int64_t t_s)
{
	int64_t next_s;

	return tw_cron_next(cron, t_s, &next_s) == TW_OK ? next_s * 1000 : recurrence_end;
}

/* Returns the last time of a calendar after at_s and not after now_s, where there is one. */
static int64_t cron_latest(const struct tw_cron *cron, int64_t at_s, int64_t now_s)
{
	int64_t before = at_s;
	int64_t after = now_s;

	while (after - before > 1) {
		int64_t middle = before + (after - before) / 2;
		bool passed = cron_after(cron, middle) <= now_s * 1000;

		*(passed ? &before : &after) = middle;
	}
	return cron_after(cron, before);
}

enum tw_status recurrence_first(const struct tw_redis_task *task, int64_t now_ms, int64_t *at_ms,
				struct tw_redis_error *error)
{
	int64_t from_ms = task->at_ms;
	struct tw_cron *cron;
	enum tw_status status;

	if (!task->cron) {
		int64_t period_ms = (task->every + TW_MILLISECOND - 1) / TW_MILLISECOND;

		*at_ms = from_ms < now_ms ? period_after(from_ms, period_ms, now_ms - 1) : from_ms;
		return TW_OK;
	}
	if (strlen(task->cron) > TW_REDIS_CRON_MAX)
		return error_set(error, TW_REDIS_BAD_DATA, "the cron expression is too long");
	status = cron_of(&cron, task->cron, task->zone, error);
	if (status != TW_OK)
		return status;
	if (!from_ms && task->delay > 0)
		from_ms = time_add(now_ms, task->delay / TW_MILLISECOND);
	*at_ms = cron_after(cron, ((from_ms > now_ms ? from_ms : now_ms) - 1) / 1000);
	tw_cron_destroy(cron);
	if (*at_ms == recurrence_end)
		return error_set(error, TW_REDIS_BAD_DATA,
				 "the cron expression has no future time");
	return TW_OK;
}

bool recurrence_is_ahead(const struct recurrence *how, int64_t now_ms)
{
	return how->computed_ms - ahead_ms > now_ms;
}

/* Computes the time after t_ms. */
static int64_t time_after(const struct recurrence *how, const struct tw_cron *cron, int64_t t_ms)
{
	return cron ? cron_after(cron, t_ms / 1000)
		    : period_after(how->at_ms, how->period_ms, t_ms);
}

/* Computes the latest time that is not after now. There is one after the present occurrence. */
static int64_t time_latest(const struct recurrence *how, const struct tw_cron *cron, int64_t now_ms)
{
	return cron ? cron_latest(cron, how->at_ms / 1000, now_ms / 1000)
		    : now_ms - (now_ms - how->at_ms) % how->period_ms;
}

enum tw_status recurrence_next(const struct recurrence *how, int64_t now_ms, int64_t oldest_ms,
			       int64_t *next_ms)
{
	int64_t from_ms = recurrence_is_ahead(how, now_ms) ? now_ms : how->at_ms;
	struct tw_cron *cron = NULL;
	enum tw_status status = how->cron ? cron_of(&cron, how->cron, how->zone, NULL) : TW_OK;

	if (status != TW_OK)
		return status;
	if (how->period_ms && oldest_ms > from_ms)
		from_ms = oldest_ms - 1;
	*next_ms = time_after(how, cron, from_ms);
	if (*next_ms <= now_ms && how->missed != TW_REDIS_MISSED_ALL)
		*next_ms = how->missed == TW_REDIS_MISSED_SKIP ? time_after(how, cron, now_ms)
							       : time_latest(how, cron, now_ms);
	tw_cron_destroy(cron);
	return TW_OK;
}
