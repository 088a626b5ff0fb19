/* SPDX-License-Identifier: MIT */
/*
 * cron_search() finds the next UTC time whose local time matches an expression.
 *
 * Invariants:
 *   each span begins later than the span before it
 *   `shown` is right for all times after `after`: the walk begins earlier than `after` by more than
 *   any two offsets differ
 *
 * A zone is a chain of spans with a constant offset from UTC. The search walks along the spans.
 * `shown` is the latest local time that the clocks have shown so far. It distinguishes two kinds of
 * changes:
 *
 *     forward     the span begins after `shown`: the times from `shown` to there are skipped
 *     back        the span begins before `shown`: the times from there to `shown` repeat
 */
#include "cron_search.h"

#include "calendar.h"

/* Offsets differ by less than 53 hours. */
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
