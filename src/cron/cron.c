/* SPDX-License-Identifier: MIT */
/*
 * cron.c is the public calls, and the searches. A schedule (struct tw_cron) is an expression's
 * fields and a zone.
 *
 * Invariants:
 *  - A schedule never changes once it is made, so any thread may read it without a lock.
 *  - Each span that the search visits begins at a later time than the span before it.
 *  - From the time `after` on, `shown` is the latest local time that the clocks have shown. The
 *    search begins look_back_s earlier, which is more than any two offsets differ. So no earlier
 *    span has shown a later local time.
 *  - A follower's time runs at or after it, by the system's clock. None up to done_s runs, unless
 *    the clock is behind it by STEP_SECONDS, or by half of the time from it to the next one.
 *  - A time that comes by itself runs, however late the look is. One that the clock has stepped
 *    over runs if that was by less than STEP_SECONDS.
 *
 * A zone is a sequence of spans. In each span local time is UTC plus a constant offset. The search
 * goes through them in order. `shown` distinguishes the two directions of a clock change:
 *
 *     forward     the span begins after `shown`: the local times between are skipped
 *     back        the span begins before `shown`: the local times between occur twice
 */
#include <timingwheel/cron.h>

#include <stdlib.h>
#include <string.h>

#include "calendar.h"
#include "cron_search.h"

enum { STEP_SECONDS = HOUR_SECONDS };

struct tw_cron {
	struct cron_fields fields;
	struct zone zone;
};

/* 1 January of the years 1 and 10000, in seconds since 1970 UTC. */
static const int64_t first_s = -62135596800;
static const int64_t end_s = 253402300800;
static const int64_t horizon_s = TW_CRON_YEARS_MAX * (int64_t)(366 * DAY_SECONDS);

/* The search begins this many seconds before `after`. Offsets differ by less than 53 hours. */
static const int64_t look_back_s = 4 * (int64_t)DAY_SECONDS;

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

bool cron_search(const struct cron_fields *fields, const struct zone *zone, int64_t after,
		 int64_t limit, int64_t *next)
{
	int64_t shown = INT64_MIN;
	int64_t until;

	for (int64_t at = after - look_back_s; at < limit; at = until) {
		int32_t offset = zone_offset(zone, at, &until);
		int64_t begin = at + offset;
		int64_t end = (until < limit ? until : limit) + offset;
		int64_t found;

		if (!fields->every_hour && shown != INT64_MIN) {
			if (at > after && cron_fields_find(fields, shown, begin, &found)) {
				*next = at;
				return true;
			}
			begin = later(begin, shown);
		}
		begin = later(begin, after + 1 + offset);
		if (cron_fields_find(fields, begin, end, &found)) {
			*next = found - offset;
			return true;
		}
		shown = later(shown, end);
	}
	return false;
}

/* Makes the zone; with any status but TW_OK *error says why not. */
static enum tw_status zone_open(struct zone *zone, const char *name, struct tw_cron_error *error)
{
	zone_init(zone);
	if (!name || strcmp(name, "UTC") == 0)
		return TW_OK;
	*error = (struct tw_cron_error){.in_zone = true};
	if (strcmp(name, "local") == 0 || strcmp(name, "localtime") == 0)
		return zone_load_local(zone, &error->text);
	error->text = zone_name_check(name, &error->position);
	if (error->text)
		return TW_INVALID;
	error->position = 0;
	return zone_load(zone, name, &error->text);
}

enum tw_status tw_cron_create(struct tw_cron **cron, const char *expression, const char *zone,
			      struct tw_cron_error *error)
{
	struct tw_cron_error wrong = {.text = "out of memory"};
	struct tw_cron *made = malloc(sizeof(*made));
	enum tw_status status = !cron || !expression || made ? TW_INVALID : TW_NO_MEMORY;

	if (cron)
		*cron = NULL;
	if (!cron || !expression)
		wrong.text = cron ? "there is no expression" : "there is no place for the schedule";
	else if (made)
		wrong.text = cron_fields_parse(&made->fields, expression, &wrong.position);
	if (!wrong.text)
		status = zone_open(&made->zone, zone, &wrong);
	if (status == TW_OK)
		*cron = made;
	else
		free(made);
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

/* Finds the first time that is later than `after`. */
static void follower_find(struct cron_follower *follower, int64_t after)
{
	if (tw_cron_next(follower->cron, after, &follower->due_s) != TW_OK)
		follower->due_s = INT64_MAX;
}

tw_duration cron_follower_next(struct cron_follower *follower, tw_duration previous)
{
	tw_duration wait = TW_MINUTE;
	struct timespec real;
	tw_duration next;
	int64_t behind;

	follower->seen = clock_now(follower->clock);
	clock_gettime(CLOCK_REALTIME, &real);
	follower->seen_s = real.tv_sec;
	follower_find(follower, later(real.tv_sec, follower->done_s));
	behind = later(real.tv_sec, follower->done_s) - real.tv_sec;
	if (behind >= STEP_SECONDS ||
	    (behind > 0 && follower->due_s <= follower->done_s + 2 * behind)) {
		follower->done_s = INT64_MIN;
		follower_find(follower, real.tv_sec);
	}
	if (follower->due_s <= real.tv_sec + MINUTE_SECONDS)
		wait = (follower->due_s - real.tv_sec) * TW_SECOND - real.tv_nsec;
	next = time_add(follower->seen, wait);
	return next > previous ? next : time_add(previous, TW_NANOSECOND);
}

bool cron_follower_is_due(struct cron_follower *follower)
{
	tw_duration passed = time_since(clock_now(follower->clock), follower->seen);
	struct timespec real;
	int64_t least;

	clock_gettime(CLOCK_REALTIME, &real);
	if (real.tv_sec < follower->due_s)
		return false;
	least = real.tv_sec - STEP_SECONDS;
	/* Without a step the clock shows up to this time, rounded up. */
	if (follower->due_s > follower->seen_s + passed / TW_SECOND + 1 &&
	    follower->due_s <= least &&
	    (tw_cron_next(follower->cron, least, &follower->due_s) != TW_OK ||
	     follower->due_s > real.tv_sec))
		return false;
	follower->done_s = real.tv_sec;
	return true;
}
