/* SPDX-License-Identifier: MIT */
/*
 * The input is any bytes as a TZif file: they are refused, or are a zone that has an offset at each
 * time, and in which a search ends.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "cron/calendar.h"
#include "cron/cron_search.h"
#include "cron/zone.h"

#include "fuzz.h"

enum { SPANS = 20, OFFSET_MOST = 26 * HOUR_SECONDS };

/* These are the years 1 and 9999. */
static const int64_t earliest = -62135596800;
static const int64_t latest = 253370764800;

static void check_search(const struct zone *zone, const char *expression, int64_t after)
{
	struct cron_fields fields;
	const char *wrong;
	size_t position;
	int64_t limit = after + 3 * 366 * (int64_t)DAY_SECONDS;
	int64_t next;
	int64_t again;

	wrong = cron_fields_parse(&fields, expression, &position);
	assert(!wrong);
	for (int i = 0; i < SPANS && cron_search(&fields, zone, after, limit, &next); i++) {
		assert(next > after && next < limit);
		assert(cron_search(&fields, zone, next - 1, limit, &again) && again == next);
		after = next;
	}
}

static void check_from(const struct zone *zone, int64_t from)
{
	int64_t time = from;

	if (from < earliest || from > latest)
		return;
	for (int i = 0; i < SPANS && time < latest; i++) {
		int64_t until;
		int32_t offset = zone_offset(zone, time, &until);

		assert(offset >= -OFFSET_MOST && offset <= OFFSET_MOST && until > time);
		time = until;
	}
	check_search(zone, "*/20 * * * *", from - 1);
	check_search(zone, "30 2 * * *", from - DAY_SECONDS);
	check_search(zone, "0 0 31 1-3 *", from);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *wrong = NULL;
	struct zone zone;

	if (zone_parse(&zone, data, size, &wrong) != TW_OK) {
		assert(wrong);
		return 0;
	}
	check_from(&zone, 0);
	check_from(&zone, 1774742400);
	for (size_t i = 0; i < zone.change_count && i < SPANS; i++)
		check_from(&zone, zone.changes[i].at);
	if (zone.change_count > 0)
		check_from(&zone, zone.changes[zone.change_count - 1].at);
	zone_destroy(&zone);
	return 0;
}
