/* SPDX-License-Identifier: MIT */
/* A cron expression as sets of numbers, and the search for the next local time in them. It knows no
 * time zone. */
#ifndef CRON_FIELDS_H
#define CRON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cron_field { FIELD_MINUTE, FIELD_HOUR, FIELD_DAY, FIELD_MONTH, FIELD_WEEKDAY, FIELD_COUNT };

struct cron_fields {
	uint64_t numbers[FIELD_COUNT]; /* bit n says that n matches; Sunday is bit 0 alone */
	bool either_day;               /* a day that matches one of the two day fields is enough */
	bool every_hour;
};

/* Parses `expression` into *fields and returns NULL, or returns a static string that describes the
 * error, and sets *position to its place. */
const char *cron_fields_parse(struct cron_fields *fields, const char *expression, size_t *position);

/*
 * Sets *found to the first matching local time that is not before `from` and is before `until`.
 * Times are seconds since 1970 of the local clock. Returns false if no time matches. Each month in
 * between takes some time.
 */
bool cron_fields_find(const struct cron_fields *fields, int64_t from, int64_t until,
		      int64_t *found);

#endif
