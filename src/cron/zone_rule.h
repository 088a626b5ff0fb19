/* SPDX-License-Identifier: MIT */
/*
 * zone_rule is a zone's rule for all years, in the form of POSIX TZ. CET-1CEST,M3.5.0,M10.5.0/3 is
 * UTC plus 1 hour and, from the last Sunday of March to the last Sunday of October, UTC plus 2
 * hours. A change's time may be -167 to 167 hours, as in TZif files from version 3 on.
 */
#ifndef ZONE_RULE_H
#define ZONE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Says how a rule gives the day of a change. */
enum rule_day_kind {
	RULE_DAY_JULIAN,  /* day 1 … 365 of the year; 29 February is not counted */
	RULE_DAY_OF_YEAR, /* day 0 … 365 of the year; 29 February is counted */
	RULE_DAY_OF_WEEK  /* a day of the week in a week, 1 … 5, of a month; 5 is the last */
};

/* Says when in a year the clocks change. */
struct rule_change {
	enum rule_day_kind kind;
	int day;      /* by `kind`; for RULE_DAY_OF_WEEK 0 (Sunday) to 6 */
	int week;     /* for RULE_DAY_OF_WEEK */
	int month;    /* for RULE_DAY_OF_WEEK; 1 … 12 */
	int32_t time; /* seconds from the beginning of the day, by the clock before the change */
};

/* Holds a rule. Offsets are in seconds east of UTC. */
struct zone_rule {
	int32_t standard;
	bool has_summer; /* if false, the fields below are not used */
	int32_t summer;
	struct rule_change begin; /* when summer time begins */
	struct rule_change end;   /* when summer time ends */
};

/* Parses `size` bytes of text into *rule. Returns false if they are no valid rule. */
bool zone_rule_parse(struct zone_rule *rule, const char *text, size_t size);

/*
 * Returns the offset at `time`, in seconds east of UTC. *until becomes the next time when the rule
 * may change it, later than `time`, or INT64_MAX if it never does. Times are in seconds since 1970
 * UTC. `time` must be at least three years from both limits of int64_t.
 */
int32_t zone_rule_offset(const struct zone_rule *rule, int64_t time, int64_t *until);

#endif
