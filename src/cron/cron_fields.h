/* SPDX-License-Identifier: MIT */
/*
 * cron_fields is a cron expression as sets of numbers, and the search for a local time that matches
 * it. It knows no zone.
 */
#ifndef CRON_FIELDS_H
#define CRON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cron_field { FIELD_MINUTE, FIELD_HOUR, FIELD_DAY, FIELD_MONTH, FIELD_WEEKDAY, FIELD_COUNT };

/* Holds the fields of an expression as sets. */
struct cron_fields {
	/* Bit n is set if n matches; Sunday has bit 0. More bits of days are in cron_fields.c. */
	uint64_t numbers[FIELD_COUNT];
	bool either_day; /* a day need match only one of the two day fields */
	bool every_hour; /* all 24 hours match */
};

/*
 * Parses `expression` into *fields. Returns NULL, or the error as a static string, with *position
 * set to the error's place in bytes.
 */
const char *cron_fields_parse(struct cron_fields *fields, const char *expression, size_t *position);

/*
 * Finds the first matching local time that is ≥ `from` and < `until`. Times are in seconds since
 * 1970 by the local clock. Returns false if there is none; *found is then undefined. The cost grows
 * with the number of months searched.
 */
bool cron_fields_find(const struct cron_fields *fields, int64_t from, int64_t until,
		      int64_t *found);

#endif
