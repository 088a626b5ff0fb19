/* SPDX-License-Identifier: MIT */
/*
 * cron.c is the public calls. A schedule (struct tw_cron) is an expression's fields and a zone.
 *
 * Invariants:
 *  - A schedule never changes once it is made, so any thread may read it without a lock.
 *  - *cron is NULL unless tw_cron_create returns TW_OK.
 */
#include <timingwheel/cron.h>

#include <stdlib.h>
#include <string.h>

#include "calendar.h"
#include "cron_search.h"
#include "zone_file.h"

struct tw_cron {
	struct cron_fields fields;
	struct zone zone;
};

/* 1 January of the years 1 and 10000, in seconds since 1970 UTC. */
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

static enum tw_status cron_make(struct tw_cron **cron, const char *expression, const char *zone,
				struct tw_cron_error *error)
{
	struct tw_cron *made;
	enum tw_status status;

	*error = (struct tw_cron_error){.text = "there is no place for the schedule"};
	if (!cron)
		return TW_INVALID;
	*cron = NULL;
	*error = (struct tw_cron_error){.text = "out of memory"};
	made = malloc(sizeof(*made));
	if (!made)
		return TW_NO_MEMORY;
	status = cron_init(made, expression, zone, error);
	if (status == TW_OK)
		*cron = made;
	else
		free(made);
	return status;
}

enum tw_status tw_cron_create(struct tw_cron **cron, const char *expression, const char *zone,
			      struct tw_cron_error *error)
{
	struct tw_cron_error wrong;
	enum tw_status status = cron_make(cron, expression, zone, &wrong);

	if (status != TW_OK && error)
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

enum tw_status tw_cron_next(const struct tw_cron *cron, int64_t after_s, int64_t *next_s)
{
	int64_t limit;

	if (!cron || !next_s)
		return TW_INVALID;
	if (after_s >= end_s)
		return TW_NOT_FOUND;
	/* first_s itself may be found. */
	if (after_s < first_s)
		after_s = first_s - 1;
	limit = end_s - after_s > horizon_s ? after_s + horizon_s : end_s;
	if (!cron_search(&cron->fields, &cron->zone, after_s, limit, next_s))
		return TW_NOT_FOUND;
	return TW_OK;
}
