/* SPDX-License-Identifier: MIT */
/*
 * zone_rule.c is the parser of a zone's rule, and the search for its offset at a time.
 *
 * Invariants:
 *  - The parser reads only `size` bytes of the text, which does not end with NUL.
 *  - The changes of three years decide a time's offset: its year, the year before and the year
 *    after. The offset is that of the last change that is not later than the time.
 *  - If summer time begins and ends at the same moment, the beginning counts as the later change.
 *    So a rule can have summer time all year.
 */
#include "zone_rule.h"

#include "calendar.h"
#include "text_reader.h"

enum { OFFSET_HOURS_MOST = 24, TIME_HOURS_MOST = 167, NAME_LEAST = 3 };

/* Reads a number. Returns false if there is none, or it is not `least` to `most`. */
static bool rule_number(struct text_reader *reader, int least, int most, int *number)
{
	if (!is_digit(text_next(reader)))
		return false;
	*number = text_digits(reader);
	return *number >= least && *number <= most;
}

/* Reads a time, [+-]hh[:mm[:ss]], as seconds. */
static bool rule_time(struct text_reader *reader, int hours_most, int32_t *seconds)
{
	bool is_negative = text_skip(reader, '-');
	int hours;
	int minutes = 0;
	int rest = 0;

	if (!is_negative)
		text_skip(reader, '+');
	if (!rule_number(reader, 0, hours_most, &hours))
		return false;
	if (text_skip(reader, ':')) {
		if (!rule_number(reader, 0, 59, &minutes))
			return false;
		if (text_skip(reader, ':') && !rule_number(reader, 0, 59, &rest))
			return false;
	}
	*seconds = hours * HOUR_SECONDS + minutes * MINUTE_SECONDS + rest;
	if (is_negative)
		*seconds = -*seconds;
	return true;
}

/* Skips a zone's short name: letters, or between <> also digits and signs. */
static bool skip_name(struct text_reader *reader)
{
	bool is_quoted = text_skip(reader, '<');
	const char *start = reader->next;

	for (char c; (c = text_next(reader)) != '\0'; reader->next++)
		if (!is_letter(c) && !(is_quoted && (is_digit(c) || c == '+' || c == '-')))
			break;
	if (reader->next - start < NAME_LEAST)
		return false;
	return !is_quoted || text_skip(reader, '>');
}

static bool read_change_day(struct text_reader *reader, struct rule_change *change)
{
	if (text_skip(reader, 'M')) {
		change->kind = RULE_DAY_OF_WEEK;
		return rule_number(reader, 1, 12, &change->month) && text_skip(reader, '.') &&
		       rule_number(reader, 1, 5, &change->week) && text_skip(reader, '.') &&
		       rule_number(reader, 0, 6, &change->day);
	}
	if (text_skip(reader, 'J')) {
		change->kind = RULE_DAY_JULIAN;
		return rule_number(reader, 1, 365, &change->day);
	}
	change->kind = RULE_DAY_OF_YEAR;
	return rule_number(reader, 0, 365, &change->day);
}

/* Reads a change: its day and, after '/', its time. The default is 02:00. */
static bool read_change(struct text_reader *reader, struct rule_change *change)
{
	*change = (struct rule_change){.time = 2 * HOUR_SECONDS};
	if (!text_skip(reader, ',') || !read_change_day(reader, change))
		return false;
	return !text_skip(reader, '/') || rule_time(reader, TIME_HOURS_MOST, &change->time);
}

/* Reads an offset. The text has the time to add for UTC, so west is positive there. */
static bool read_offset(struct text_reader *reader, int32_t *offset)
{
	if (!rule_time(reader, OFFSET_HOURS_MOST, offset))
		return false;
	*offset = -*offset;
	return true;
}

bool zone_rule_parse(struct zone_rule *rule, const char *text, size_t size)
{
	struct text_reader reader = {.next = text, .end = text + size};

	*rule = (struct zone_rule){0};
	if (!skip_name(&reader) || !read_offset(&reader, &rule->standard))
		return false;
	if (reader.next == reader.end)
		return true;
	rule->has_summer = true;
	rule->summer = rule->standard + HOUR_SECONDS;
	if (!skip_name(&reader))
		return false;
	if (text_next(&reader) != ',' && !read_offset(&reader, &rule->summer))
		return false;
	return read_change(&reader, &rule->begin) && read_change(&reader, &rule->end) &&
	       reader.next == reader.end;
}

/* Returns the day of the change in `year`, in days since 1 January 1970. */
static int64_t change_day(const struct rule_change *change, int64_t year)
{
	int64_t first = day_of_date(year, 1, 1);
	int day;

	if (change->kind == RULE_DAY_OF_YEAR)
		return first + change->day;
	if (change->kind == RULE_DAY_JULIAN)
		/* Day 60 is always 1 March. */
		return first + change->day - 1 + (change->day >= 60 && year_is_leap(year));
	first = day_of_date(year, change->month, 1);
	day = (change->day - weekday_of_day(first) + 7) % 7 + 7 * (change->week - 1);
	/* Week 5 is the last one: the month may have only four such days. */
	return first + (day < month_length(year, change->month) ? day : day - 7);
}

/* Returns the time of the change in seconds UTC. `before` is the offset before the change. */
static int64_t change_time(const struct rule_change *change, int64_t year, int32_t before)
{
	return change_day(change, year) * DAY_SECONDS + change->time - before;
}

int32_t zone_rule_offset(const struct zone_rule *rule, int64_t time, int64_t *until)
{
	int64_t year = date_of_day(floor_divide(time, DAY_SECONDS)).year;
	int64_t last = INT64_MIN;
	int32_t offset = rule->standard;

	*until = INT64_MAX;
	if (!rule->has_summer)
		return offset;
	for (int64_t at = year - 1; at <= year + 1; at++) {
		int64_t end = change_time(&rule->end, at, rule->summer);
		int64_t begin = change_time(&rule->begin, at, rule->standard);

		if (end <= time && end >= last) {
			last = end;
			offset = rule->standard;
		}
		if (begin <= time && begin >= last) {
			last = begin;
			offset = rule->summer;
		}
		if (end > time && end < *until)
			*until = end;
		if (begin > time && begin < *until)
			*until = begin;
	}
	return offset;
}
