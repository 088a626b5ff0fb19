/* SPDX-License-Identifier: MIT */
/*
 * cron_fields.c is the parser of cron expressions, and the search for a local time in their fields.
 *
 * This is the grammar, without the blanks around and between fields:
 *
 *     field = item *("," item)
 *     item  = (number ["-" number] | "*") ["/" step] | number ("#" nth | "L") | "L" | "?"
 *
 * The reader stops at an error, and its position is the reported one. A nickname is read as the
 * expression that it stands for.
 */
#include "cron_fields.h"

#include <string.h>

#include "calendar.h"
#include "text_reader.h"

enum { NAME_SIZE = 3 };
/* In the set of days of the month, L is 0. In the one of days of the week, the nth of a month is
 * 8 * n + day, and the last one is the sixth. */
enum { DAY_LAST = 0, WEEK_LAST = 6 };

/* Describes one of the five fields. */
struct field_kind {
	int low;
	int high;
	const char *names;   /* NAME_SIZE letters each, or NULL */
	int first_name;      /* the number of the first name */
	const char *outside; /* the error text for a number or name that does not fit */
};

static const struct field_kind kinds[FIELD_COUNT] = {
	[FIELD_MINUTE] = {0, 59, NULL, 0, "a minute is 0 to 59"},
	[FIELD_HOUR] = {0, 23, NULL, 0, "an hour is 0 to 23"},
	[FIELD_DAY] = {1, 31, NULL, 0, "a day of the month is 1 to 31"},
	[FIELD_MONTH] = {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", 1,
			 "a month is 1 to 12 or JAN to DEC"},
	[FIELD_WEEKDAY] = {0, 7, "sunmontuewedthufrisat", 0,
			   "a day of the week is 0 to 7 or SUN to SAT"},
};

static const struct {
	const char *name;
	const char *expression;
} nicknames[] = {
	{"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
	{"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
	{"@hourly", "0 * * * *"},
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Notes the error `wrong` at the position `at`. Returns false. */
static bool refuse(struct text_reader *reader, const char *at, const char *wrong)
{
	reader->next = at;
	reader->wrong = wrong;
	return false;
}

static void skip_blanks(struct text_reader *reader)
{
	while (is_blank(text_next(reader)))
		reader->next++;
}

static bool read_name(struct text_reader *reader, const struct field_kind *kind, int *number)
{
	char word[NAME_SIZE + 1] = "";
	const char *start = reader->next;
	size_t size = 0;
	const char *name;

	for (; is_letter(text_next(reader)); reader->next++, size++)
		if (size < NAME_SIZE)
			word[size] = lower(text_next(reader));
	if (!kind->names || size != NAME_SIZE)
		return refuse(reader, start, kind->outside);
	for (name = kind->names; *name && memcmp(name, word, NAME_SIZE) != 0; name += NAME_SIZE)
		continue;
	if (!*name)
		return refuse(reader, start, kind->outside);
	*number = kind->first_name + (int)(name - kind->names) / NAME_SIZE;
	return true;
}

static bool read_number(struct text_reader *reader, const struct field_kind *kind, int *number)
{
	const char *start = reader->next;
	char c = text_next(reader);

	if (is_letter(c))
		return read_name(reader, kind, number);
	if (!is_digit(c))
		return refuse(reader, start,
			      c == '\0' || is_blank(c) ? "a number or * is missing here"
						       : "no number or * begins like this");
	*number = text_digits(reader);
	if (*number < kind->low || *number > kind->high)
		return refuse(reader, start, kind->outside);
	return true;
}

/* Reads a step, after its '/'. */
static bool read_step(struct text_reader *reader, const struct field_kind *kind, int *step)
{
	const char *start = reader->next;

	if (!is_digit(text_next(reader)))
		return refuse(reader, start, "a step is a number");
	*step = text_digits(reader);
	if (*step == 0)
		return refuse(reader, start, "a step is 1 or more");
	if (*step > kind->high - kind->low + 1)
		return refuse(reader, start, "the step is larger than the whole field");
	return true;
}

/* Reads what may follow a day of the week, L or # and a number. Returns whether it did. */
static bool read_nth(struct text_reader *reader, int weekday, uint64_t *numbers)
{
	int nth = WEEK_LAST;

	if (text_skip(reader, '#'))
		nth = text_next(reader) >= '1' && text_next(reader) <= '5' ? *reader->next++ - '0'
									   : 0;
	else if (!text_skip(reader, 'L') && !text_skip(reader, 'l'))
		return false;
	if (nth == 0)
		refuse(reader, reader->next, "# needs a number from 1 to 5 after it");
	*numbers |= (uint64_t)1 << (8 * nth + weekday % 7);
	return true;
}

/* Reads an item, and adds its numbers to the set. A range may go on behind the highest one. */
static bool read_item(struct text_reader *reader, const struct field_kind *kind, uint64_t *numbers)
{
	bool is_day = kind == &kinds[FIELD_DAY];
	bool is_weekday = kind == &kinds[FIELD_WEEKDAY];
	int size = is_weekday ? 7 : kind->high - kind->low + 1;
	int low = kind->low;
	int high = kind->high;
	int step = 1;

	if (is_day && (text_skip(reader, 'L') || text_skip(reader, 'l'))) {
		*numbers |= 1 << DAY_LAST;
		return true;
	}
	if (!text_skip(reader, '*') && !((is_day || is_weekday) && text_skip(reader, '?'))) {
		if (!read_number(reader, kind, &low))
			return false;
		if (is_weekday && read_nth(reader, low, numbers))
			return !reader->wrong;
		if (text_skip(reader, '-')) {
			if (!read_number(reader, kind, &high))
				return false;
		} else if (text_next(reader) != '/') {
			high = low;
		}
	}
	if (text_skip(reader, '/') && !read_step(reader, kind, &step))
		return false;
	for (int number = low; number <= (high < low ? high + size : high); number += step)
		*numbers |= (uint64_t)1 << (number > kind->high ? number - size : number);
	return true;
}

static bool read_field(struct text_reader *reader, const struct field_kind *kind, uint64_t *numbers)
{
	if (text_next(reader) == '\0')
		return refuse(reader, reader->next,
			      "a field is missing: minute, hour, day, month, day of the week");
	do {
		if (!read_item(reader, kind, numbers))
			return false;
	} while (text_skip(reader, ','));
	if (text_next(reader) != '\0' && !is_blank(text_next(reader)))
		return refuse(
			reader, reader->next,
			lower(text_next(reader)) == 'w'
				? "there is no W: take MON-FRI, and look at the date in the run"
				: "a blank or a comma belongs here");
	skip_blanks(reader);
	return true;
}

static bool has(const struct cron_fields *fields, enum cron_field field, int number)
{
	return fields->numbers[field] >> number & 1;
}

/* Reads all fields. The reader must be at the first one. */
static bool read_fields(struct text_reader *reader, struct cron_fields *fields)
{
	bool is_star[FIELD_COUNT];

	*fields = (struct cron_fields){0};
	for (int field = 0; field < FIELD_COUNT; field++) {
		is_star[field] = text_next(reader) == '*' || text_next(reader) == '?';
		if (!read_field(reader, &kinds[field], &fields->numbers[field]))
			return false;
	}
	if (text_next(reader) != '\0')
		return refuse(reader, reader->next, "there are more than five fields");

	if (has(fields, FIELD_WEEKDAY, 7))
		fields->numbers[FIELD_WEEKDAY] |= 1;
	fields->either_day = !is_star[FIELD_DAY] && !is_star[FIELD_WEEKDAY];
	fields->every_hour = fields->numbers[FIELD_HOUR] == 0xffffff;
	return true;
}

/* Reads a nickname. Returns the expression that it stands for, or NULL if there is none. */
static const char *read_nickname(struct text_reader *reader)
{
	const char *text = reader->next;
	size_t size = strcspn(text, " \t\r\n");

	for (size_t i = 0; i < sizeof(nicknames) / sizeof(nicknames[0]); i++) {
		const char *name = nicknames[i].name;
		size_t same = 0;

		while (same < size && lower(text[same]) == name[same])
			same++;
		if (same == size && name[same] == '\0') {
			reader->next += size;
			return nicknames[i].expression;
		}
	}
	refuse(reader, reader->next, "there is no such @ name; use tw_every for a period");
	return NULL;
}

/* Returns a reader of the text without the end of a line. */
static struct text_reader line_reader(const char *text)
{
	size_t size = strlen(text);

	while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
		size--;
	return (struct text_reader){.next = text, .end = text + size};
}

static bool read_expression(struct text_reader *reader, struct cron_fields *fields)
{
	struct text_reader meant;
	const char *name;

	skip_blanks(reader);
	if (text_next(reader) != '@')
		return read_fields(reader, fields);
	name = read_nickname(reader);
	if (!name)
		return false;
	skip_blanks(reader);
	if (text_next(reader) != '\0')
		return refuse(reader, reader->next, "nothing may follow an @ name");
	meant = line_reader(name);
	return read_fields(&meant, fields);
}

const char *cron_fields_parse(struct cron_fields *fields, const char *expression, size_t *position)
{
	struct text_reader reader = line_reader(expression);

	if (read_expression(&reader, fields))
		return NULL;
	*position = (size_t)(reader.next - expression);
	return reader.wrong;
}

/* `length` is the month's. */
static bool day_fits(const struct cron_fields *fields, int64_t day, int day_of_month, int length)
{
	int weekday = weekday_of_day(day);
	int nth = (day_of_month + 6) / 7;
	bool in_month = has(fields, FIELD_DAY, day_of_month) ||
			(day_of_month == length && has(fields, FIELD_DAY, DAY_LAST));
	bool in_week =
		has(fields, FIELD_WEEKDAY, weekday) ||
		has(fields, FIELD_WEEKDAY, 8 * nth + weekday) ||
		(day_of_month + 7 > length && has(fields, FIELD_WEEKDAY, 8 * WEEK_LAST + weekday));

	return fields->either_day ? in_month || in_week : in_month && in_week;
}

/* Returns the lowest number of the field that is ≥ `number`, or -1 if there is none. */
static int number_from(const struct cron_fields *fields, enum cron_field field, int number)
{
	uint64_t left = fields->numbers[field] >> number;

	return left ? number + __builtin_ctzll(left) : -1;
}

/* Returns the first matching minute of a day from minute_of_day on, or -1 if there is none. */
static int minute_from(const struct cron_fields *fields, int minute_of_day)
{
	int hour = number_from(fields, FIELD_HOUR, minute_of_day / 60);
	int minute = 0;

	if (hour == minute_of_day / 60) {
		minute = number_from(fields, FIELD_MINUTE, minute_of_day % 60);
		if (minute >= 0)
			return hour * 60 + minute;
		hour = number_from(fields, FIELD_HOUR, hour + 1);
	}
	if (hour < 0)
		return -1;
	return hour * 60 + number_from(fields, FIELD_MINUTE, 0);
}

/* Returns the first matching day from `day` on and before `end`, or `end` if there is none. */
static int64_t day_from(const struct cron_fields *fields, int64_t day, int64_t end)
{
	while (day < end) {
		struct date date = date_of_day(day);
		int length = month_length(date.year, date.month);

		if (has(fields, FIELD_MONTH, date.month))
			for (int i = 0; date.day + i <= length && day + i < end; i++)
				if (day_fits(fields, day + i, date.day + i, length))
					return day + i;
		day += length - date.day + 1;
	}
	return end;
}

bool cron_fields_find(const struct cron_fields *fields, int64_t from, int64_t until, int64_t *found)
{
	int64_t first = floor_divide(from + MINUTE_SECONDS - 1, MINUTE_SECONDS);
	int64_t day = floor_divide(first, DAY_SECONDS / MINUTE_SECONDS);
	int64_t end = floor_divide(until + DAY_SECONDS - 1, DAY_SECONDS);
	int minute = (int)(first - day * (DAY_SECONDS / MINUTE_SECONDS));

	for (int64_t fit; (fit = day_from(fields, day, end)) < end; day = fit + 1) {
		int minute_of_day = minute_from(fields, fit == day ? minute : 0);

		minute = 0;
		if (minute_of_day < 0)
			continue;
		*found = fit * DAY_SECONDS + (int64_t)minute_of_day * MINUTE_SECONDS;
		return *found < until;
	}
	return false;
}
