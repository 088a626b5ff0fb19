/* SPDX-License-Identifier: MIT */
/* A cron expression as sets of numbers, and the next local time in them. Knows no zone. */
#ifndef CRON_FIELDS_H
#define CRON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cron_field { FIELD_MINUTE, FIELD_HOUR, FIELD_DAY, FIELD_MONTH, FIELD_WEEKDAY, FIELD_COUNT };

struct cron_fields {
	uint64_t numbers[FIELD_COUNT]; /* bit n: n is in it; Sunday is bit 0 alone */
	bool either_day; /* a day that fits one of the two fields for days is enough */
	bool every_hour;
};

/* What is wrong, a static string, and *position where; NULL: nothing, and *fields is filled. */
const char *cron_fields_parse(struct cron_fields *fields, const char *expression, size_t *position);

/*
 * The first local time in it that is not before `from` and is before `until`, all in seconds since
 * 1970 as the clock on the wall tells; false: there is none. Takes longer with each month between.
 */
bool cron_fields_find(const struct cron_fields *fields, int64_t from, int64_t until,
		      int64_t *found);

#endif
