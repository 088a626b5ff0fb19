/* SPDX-License-Identifier: MIT */
/*
 * A zone is a chain of spans, in each of which local time is UTC and a constant. The search walks
 * along them. `shown` is the latest local time that the clocks have shown so far; it tells both
 * kinds of changes apart:
 *
 *     forward     the span begins after `shown`: the times from `shown` to there are skipped
 *     back        it begins before `shown`: the times from there to `shown` come again
 *
 * Invariants:
 *  - Each span that the search comes to begins at a later time than the one before it.
 *  - `shown` is right for all times after the one asked for: the walk begins so long before it that
 *    what the clocks showed still earlier is past, whatever the offsets were.
 */
#include <timingwheel/cron.h>

#include <stdlib.h>
#include <string.h>

#include "calendar.h"
#include "cron_fields.h"
#include "zone_file.h"

struct tw_cron {
	struct cron_fields fields;
	struct zone zone;
};

/* Offsets differ by less than 53 hours. */
static const int64_t look_back_s = 4 * (int64_t)DAY_SECONDS;
/* 1 January of the year 1, and that of the year 10000. */
static const int64_t first_s = -62135596800;
static const int64_t end_s = 253402300800;
static const int64_t horizon_s = TW_CRON_YEARS_MAX * (int64_t)(366 * DAY_SECONDS);

static enum tw_status zone_open(struct zone *zone, const char *name, struct tw_cron_error *error)
{
	zone_init(zone);
	if (!name || strcmp(name, "UTC") == 0)
		return TW_OK;
	*error = (struct tw_cron_error){.in_zone = true};
	error->text = zone_name_check(name, &error->position);
	if (error->text)
		return TW_INVALID;
	error->position = 0;
	return zone_load(zone, name, &error->text);
}

static enum tw_status cron_init(struct tw_cron *cron, const char *expression, const char *zone,
				struct tw_cron_error *error)
{
	*error = (struct tw_cron_error){.text = "there is no expression"};
	if (!expression)
		return TW_INVALID;
	error->text = cron_fields_parse(&cron->fields, expression, &error->position);
	if (error->text)
		return TW_INVALID;
	return zone_open(&cron->zone, zone, error);
}

enum tw_status tw_cron_create(struct tw_cron **cron, const char *expression, const char *zone,
			      struct tw_cron_error *error)
{
	struct tw_cron made;
	struct tw_cron_error wrong = {.text = "there is no place for the schedule"};
	enum tw_status status = TW_INVALID;

	if (cron) {
		*cron = NULL;
		status = cron_init(&made, expression, zone, &wrong);
	}
	if (status == TW_OK) {
		*cron = malloc(sizeof(**cron));
		if (*cron) {
			**cron = made;
			return TW_OK;
		}
		zone_destroy(&made.zone);
		wrong = (struct tw_cron_error){.text = "out of memory"};
		status = TW_NO_MEMORY;
	}
	if (error)
		*error = wrong;
	return status;
}

void tw_cron_destroy(struct tw_cron *cron)
{
	if (!cron)
		return;
	zone_destroy(&cron->zone);
	free(cron);
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The first time after `after` and before `limit`; false: there is none. All in UTC. */
static bool search(const struct tw_cron *cron, int64_t after, int64_t limit, int64_t *next)
{
	int64_t shown = INT64_MIN;
	int64_t until;

	for (int64_t at = after - look_back_s; at < limit; at = until) {
		int32_t offset = zone_offset(&cron->zone, at, &until);
		int64_t begin = at + offset;
		int64_t end = (until < limit ? until : limit) + offset;
		int64_t found;

		if (!cron->fields.every_hour && shown != INT64_MIN) {
			if (at > after && cron_fields_find(&cron->fields, shown, begin, &found)) {
				*next = at;
				return true;
			}
			begin = later(begin, shown);
		}
		begin = later(begin, after + 1 + offset);
		if (cron_fields_find(&cron->fields, begin, end, &found)) {
			*next = found - offset;
			return true;
		}
		shown = later(shown, end);
	}
	return false;
}

enum tw_status tw_cron_next(const struct tw_cron *cron, int64_t after_s, int64_t *next_s)
{
	int64_t limit = end_s;

	if (!cron || !next_s)
		return TW_INVALID;
	if (after_s >= end_s)
		return TW_NOT_FOUND;
	/* That time itself is among those that may be found. */
	after_s = later(after_s, first_s - 1);
	if (limit - after_s > horizon_s)
		limit = after_s + horizon_s;
	return search(cron, after_s, limit, next_s) ? TW_OK : TW_NOT_FOUND;
}
