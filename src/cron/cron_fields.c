/* SPDX-License-Identifier: MIT */
/*
 * cron_fields.c is the parser of cron expressions, and the search for a local time in their fields.
 *
 * This is the grammar, without the blanks around and between fields:
 *
 *     field = item *("," item)
 *     item  = number | (number "-" number | "*") ["/" step]
 *
 * A reader goes through the text. It stops at an error, and its position is the reported one. A
 * nickname is read as the expression that it stands for.
 */
#include "cron_fields.h"

#include <string.h>

#include "calendar.h"
#include "letter.h"

enum { NUMBER_MOST = 1000, NAME_SIZE = 3 };

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

/* Walks through the text of an expression. */
struct field_reader {
	const char *text;
	size_t at;         /* position in the text, bytes */
	const char *wrong; /* the error, a static string, or NULL */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char next_char(const struct field_reader *reader)
{
	return reader->text[reader->at];
}

/* Notes the error `wrong` at the position `at`. Returns false. */
static bool refuse(struct field_reader *reader, size_t at, const char *wrong)
{
	reader->at = at;
	reader->wrong = wrong;
	return false;
}

/* Skips the character `c` if it is the next one. Returns whether it was. */
static bool skip(struct field_reader *reader, char c)
{
	if (next_char(reader) != c)
		return false;
	reader->at++;
	return true;
}

static void skip_blanks(struct field_reader *reader)
{
	while (is_blank(next_char(reader)))
		reader->at++;
}

/* Reads digits. A number too large for any field comes out as NUMBER_MOST or more. */
static int read_digits(struct field_reader *reader)
{
	int number = 0;

	for (; is_digit(next_char(reader)); reader->at++)
		if (number < NUMBER_MOST)
			number = number * 10 + (next_char(reader) - '0');
	return number;
}

static bool read_name(struct field_reader *reader, const struct field_kind *kind, int *number)
{
	char word[NAME_SIZE + 1] = "";
	size_t start = reader->at;
	size_t size = 0;
	const char *name;

	for (; is_letter(next_char(reader)); reader->at++, size++)
		if (size < NAME_SIZE)
			word[size] = lower(next_char(reader));
	if (!kind->names || size != NAME_SIZE)
		return refuse(reader, start, kind->outside);
	for (name = kind->names; *name && memcmp(name, word, NAME_SIZE) != 0; name += NAME_SIZE)
		continue;
	if (!*name)
		return refuse(reader, start, kind->outside);
	*number = kind->first_name + (int)(name - kind->names) / NAME_SIZE;
	return true;
}

static bool read_number(struct field_reader *reader, const struct field_kind *kind, int *number)
{
	size_t start = reader->at;
	char c = next_char(reader);

	if (is_letter(c))
		return read_name(reader, kind, number);
	if (!is_digit(c))
		return refuse(reader, start,
			      c == '\0' || is_blank(c) ? "a number or * is missing here"
						       : "no number or * begins like this");
	*number = read_digits(reader);
	if (*number < kind->low || *number > kind->high)
		return refuse(reader, start, kind->outside);
	return true;
}

/* Reads a step, after its '/'. */
static bool read_step(struct field_reader *reader, const struct field_kind *kind, int *step)
{
	size_t start = reader->at;

	if (!is_digit(next_char(reader)))
		return refuse(reader, start, "a step is a number");
	*step = read_digits(reader);
	if (*step == 0)
		return refuse(reader, start, "a step is 1 or more");
	if (*step > kind->high - kind->low + 1)
		return refuse(reader, start, "the step is larger than the whole field");
	return true;
}

/* Reads an item, and adds its numbers to the set. */
static bool read_item(struct field_reader *reader, const struct field_kind *kind, uint64_t *numbers)
{
	int low = kind->low;
	int high = kind->high;
	int step = 1;
	bool is_range = true;

	if (!skip(reader, '*')) {
		size_t start = reader->at;

		if (!read_number(reader, kind, &low))
			return false;
		high = low;
		is_range = skip(reader, '-');
		if (is_range && !read_number(reader, kind, &high))
			return false;
		/* 0 at the end of a range is the Sunday after it, 7. */
		if (high == 0 && low > 0 && kind == &kinds[FIELD_WEEKDAY])
			high = kind->high;
		if (high < low)
			return refuse(reader, start, "the range ends before it begins");
	}
	if (next_char(reader) == '/' && !is_range)
		return refuse(reader, reader->at, "a step needs a range or * before it");
	if (skip(reader, '/') && !read_step(reader, kind, &step))
		return false;
	for (int number = low; number <= high; number += step)
		*numbers |= (uint64_t)1 << number;
	return true;
}

static bool read_field(struct field_reader *reader, const struct field_kind *kind,
		       uint64_t *numbers)
{
	if (next_char(reader) == '\0')
		return refuse(reader, reader->at,
			      "a field is missing: minute, hour, day, month, day of the week");
	do {
		if (!read_item(reader, kind, numbers))
			return false;
	} while (skip(reader, ','));
	if (next_char(reader) != '\0' && !is_blank(next_char(reader)))
		return refuse(reader, reader->at, "a blank or a comma belongs here");
	skip_blanks(reader);
	return true;
}

/* Reads all fields. The reader must be at the first one. */
static bool read_fields(struct field_reader *reader, struct cron_fields *fields)
{
	bool is_star[FIELD_COUNT];

	*fields = (struct cron_fields){0};
	for (int field = 0; field < FIELD_COUNT; field++) {
		is_star[field] = next_char(reader) == '*';
		if (!read_field(reader, &kinds[field], &fields->numbers[field]))
			return false;
	}
	if (next_char(reader) != '\0')
		return refuse(reader, reader->at, "there are more than five fields");

	fields->numbers[FIELD_WEEKDAY] |= fields->numbers[FIELD_WEEKDAY] >> 7;
	fields->numbers[FIELD_WEEKDAY] &= 0x7f;
	fields->either_day = !is_star[FIELD_DAY] && !is_star[FIELD_WEEKDAY];
	fields->every_hour = fields->numbers[FIELD_HOUR] == 0xffffff;
	return true;
}

/* Reads a nickname. Returns the expression that it stands for, or NULL if there is none. */
static const char *read_nickname(struct field_reader *reader)
{
	const char *text = reader->text + reader->at;
	size_t size = strcspn(text, " \t");

	for (size_t i = 0; i < sizeof(nicknames) / sizeof(nicknames[0]); i++) {
		const char *name = nicknames[i].name;

		if (strlen(name) == size && memcmp(name, text, size) == 0) {
			reader->at += size;
			return nicknames[i].expression;
		}
	}
	refuse(reader, reader->at, "there is no such @ name");
	return NULL;
}

static bool read_expression(struct field_reader *reader, struct cron_fields *fields)
{
	struct field_reader meant = {0};

	skip_blanks(reader);
	if (next_char(reader) != '@')
		return read_fields(reader, fields);
	meant.text = read_nickname(reader);
	if (!meant.text)
		return false;
	skip_blanks(reader);
	if (next_char(reader) != '\0')
		return refuse(reader, reader->at, "nothing may follow an @ name");
	return read_fields(&meant, fields);
}

const char *cron_fields_parse(struct cron_fields *fields, const char *expression, size_t *position)
{
	struct field_reader reader = {.text = expression};

	if (read_expression(&reader, fields))
		return NULL;
	*position = reader.at;
	return reader.wrong;
}

static bool has(const struct cron_fields *fields, enum cron_field field, int number)
{
	return fields->numbers[field] >> number & 1;
}

static bool day_fits(const struct cron_fields *fields, int64_t day, int day_of_month)
{
	bool in_month = has(fields, FIELD_DAY, day_of_month);
	bool in_week = has(fields, FIELD_WEEKDAY, weekday_of_day(day));

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
				if (day_fits(fields, day + i, date.day + i))
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
