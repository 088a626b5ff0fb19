/* SPDX-License-Identifier: MIT */
/*
 * The rule of a zone for all years, as POSIX writes it in TZ. CET-1CEST,M3.5.0,M10.5.0/3 is UTC + 1
 * hour and, from the last Sunday of March to the last Sunday of October, one hour more. Hours may
 * be beyond a day, as in TZif files of version 3.
 */
#ifndef ZONE_RULE_H
#define ZONE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rule_day_kind {
	RULE_DAY_JULIAN,  /* 1 … 365: February always has 28 days */
	RULE_DAY_OF_YEAR, /* 0 … 365 */
	RULE_DAY_OF_WEEK  /* the week-th weekday of the month; the 5th is the last */
};

/* A time of the year at which the clocks change. */
struct rule_change {
	enum rule_day_kind kind;
	int day; /* RULE_DAY_OF_WEEK: 0, Sunday, to 6 */
	int week;
	int month;
	int32_t time; /* seconds from the beginning of the day, by the clock before the change */
};

/* Offsets are seconds east of UTC. */
struct zone_rule {
	int32_t standard;
	bool has_summer; /* if false, the other fields are not filled */
	int32_t summer;
	struct rule_change begin; /* the begin of summer time */
	struct rule_change end;
};

/* Parses `text` into *rule. Returns false if it is no rule. */
bool zone_rule_parse(struct zone_rule *rule, const char *text, size_t size);

/*
 * Returns the offset at `time`, which must lie in the years that calendar.h can convert. Sets
 * *until to the later time at which the rule may next change the offset, or to INT64_MAX.
 */
int32_t zone_rule_offset(const struct zone_rule *rule, int64_t time, int64_t *until);

#endif
