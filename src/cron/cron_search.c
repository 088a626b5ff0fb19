/* SPDX-License-Identifier: MIT */
/*
 * cron_search.c is the search for the next time of an expression in a zone.
 *
 * Invariants:
 *  - Each span that the search visits begins at a later time than the span before it.
 *  - From the time `after` on, `shown` is the latest local time that the clocks have shown. The
 *    search begins look_back_s earlier, which is more than any two offsets differ. So no earlier
 *    span has shown a later local time.
 *
 * A zone is a sequence of spans. In each span local time is UTC plus a constant offset. The search
 * goes through them in order. `shown` distinguishes the two directions of a clock change:
 *
 *     forward     the span begins after `shown`: the local times between are skipped
 *     back        the span begins before `shown`: the local times between occur twice
 */
#include "cron_search.h"

#include "calendar.h"

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
