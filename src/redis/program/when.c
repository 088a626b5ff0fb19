/* SPDX-License-Identifier: MIT */
/*
 * Numbers are read by hand: strtod knows blanks, signs, hexadecimal, infinity and the locale's
 * comma, none of which is a duration. The calendar is the proleptic Gregorian one, from timegm.
 */
#include "when.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Digits with an optional fraction, as nanos of one: "1.5" is 1,500,000,000. NULL: no number, or
 * one that is out of range. */
static const char *decimal_read(const char *text, int64_t *nanos)
{
	int64_t whole = 0;
	int64_t fraction = 0;
	int64_t unit = TW_SECOND;

	if (!isdigit((unsigned char)*text))
		return NULL;
	for (; isdigit((unsigned char)*text); text++) {
		whole = whole * 10 + (*text - '0');
		if (whole >= INT64_MAX / TW_SECOND)
			return NULL;
	}
	if (*text == '.') {
		if (!isdigit((unsigned char)*++text))
			return NULL;
		for (; isdigit((unsigned char)*text); text++) {
			unit /= 10;
			fraction += (*text - '0') * unit;
		}
	}
	*nanos = whole * TW_SECOND + fraction;
	return text;
}

static const char *unit_read(const char *text, tw_duration *unit)
{
	static const struct {
		const char *name;
		tw_duration length;
	} units[] = {{"ms", TW_MILLISECOND}, {"us", TW_MICROSECOND}, {"s", TW_SECOND},
		     {"m", TW_MINUTE},       {"h", TW_HOUR},         {"d", 24 * TW_HOUR}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t size = strlen(units[i].name);

		if (!strncmp(text, units[i].name, size) && !isalpha((unsigned char)text[size])) {
			*unit = units[i].length;
			return text + size;
		}
	}
	return NULL;
}

bool duration_parse(const char *text, tw_duration *duration)
{
	tw_duration sum = 0;

	do {
		int64_t nanos;
		int64_t unit = TW_SECOND;
		long double part;

		text = decimal_read(text, &nanos);
		if (!text)
			return false;
		/* Seconds may be left out if they are all there is. */
		if (*text || sum) {
			text = unit_read(text, &unit);
			if (!text)
				return false;
		}
		part = (long double)nanos / TW_SECOND * unit;
		if (part > INT64_MAX / 2 || sum > INT64_MAX / 2)
			return false;
		sum += (tw_duration)part;
	} while (*text);
	*duration = sum;
	return true;
}

/* Exactly `count` digits. */
static const char *digits_read(const char *text, int count, int *number)
{
	*number = 0;
	for (int i = 0; i < count; i++, text++) {
		if (!isdigit((unsigned char)*text))
			return NULL;
		*number = *number * 10 + (*text - '0');
	}
	return text;
}

static const char *character_read(const char *text, const char *either)
{
	return text && *text && strchr(either, *text) ? text + 1 : NULL;
}

static const char *date_read(const char *text, struct tm *date)
{
	text = digits_read(text, 4, &date->tm_year);
	text = character_read(text, "-");
	text = text ? digits_read(text, 2, &date->tm_mon) : NULL;
	text = character_read(text, "-");
	text = text ? digits_read(text, 2, &date->tm_mday) : NULL;
	date->tm_year -= 1900;
	date->tm_mon -= 1;
	return character_read(text, "Tt ");
}

/* "12:00", "12:00:30" or "12:00:30.250" */
static const char *clock_read(const char *text, struct tm *date, int *ms)
{
	int64_t nanos;

	text = digits_read(text, 2, &date->tm_hour);
	text = character_read(text, ":");
	text = text ? digits_read(text, 2, &date->tm_min) : NULL;
	if (!text || *text != ':')
		return text;
	if (!isdigit((unsigned char)text[1]) || !isdigit((unsigned char)text[2]))
		return NULL;
	text = decimal_read(text + 1, &nanos);
	if (!text || nanos >= TW_MINUTE)
		return NULL;
	date->tm_sec = (int)(nanos / TW_SECOND);
	*ms = (int)(nanos % TW_SECOND / TW_MILLISECOND);
	return text;
}

/* "Z", "+02:00", "-0730": seconds to the east of Greenwich. */
static bool zone_read(const char *text, int *east)
{
	int hours;
	int minutes;
	int sign = *text == '-' ? -1 : 1;

	*east = 0;
	if ((*text == 'Z' || *text == 'z') && !text[1])
		return true;
	text = character_read(text, "+-");
	text = text ? digits_read(text, 2, &hours) : NULL;
	if (text && *text == ':')
		text++;
	text = text ? digits_read(text, 2, &minutes) : NULL;
	if (!text || *text || hours > 23 || minutes > 59)
		return false;
	*east = sign * (hours * 3600 + minutes * 60);
	return true;
}

/* timegm takes a 31st of April and makes it the 1st of May. */
static bool date_to_seconds(const struct tm *date, time_t *seconds)
{
	struct tm real = *date;

	*seconds = timegm(&real);
	return real.tm_mday == date->tm_mday && real.tm_mon == date->tm_mon &&
	       real.tm_hour == date->tm_hour && real.tm_min == date->tm_min;
}

bool time_parse(const char *text, int64_t *at_ms)
{
	const char *end;
	struct tm date = {0};
	int64_t nanos;
	time_t seconds;
	int ms = 0;
	int east;

	end = decimal_read(text, &nanos);
	if (end && !*end) {
		*at_ms = (nanos + TW_MILLISECOND - 1) / TW_MILLISECOND;
		return true;
	}
	text = date_read(text, &date);
	text = text ? clock_read(text, &date, &ms) : NULL;
	if (!text || !zone_read(text, &east) || !date_to_seconds(&date, &seconds))
		return false;
	*at_ms = ((int64_t)seconds - east) * 1000 + ms;
	return *at_ms >= 0;
}

void time_write(int64_t at_ms, char text[WHEN_SIZE])
{
	time_t seconds = (time_t)(at_ms / 1000);
	struct tm date;
	size_t size;

	if (!gmtime_r(&seconds, &date)) {
		snprintf(text, WHEN_SIZE, "%" PRId64 " ms", at_ms);
		return;
	}
	size = strftime(text, WHEN_SIZE, "%Y-%m-%dT%H:%M:%S", &date);
	snprintf(text + size, WHEN_SIZE - size, ".%03dZ", (int)(at_ms % 1000));
}

void duration_write(tw_duration duration, char text[WHEN_SIZE])
{
	if (duration < TW_MILLISECOND)
		snprintf(text, WHEN_SIZE, "%" PRId64 " us", duration / TW_MICROSECOND);
	else if (duration < TW_SECOND)
		snprintf(text, WHEN_SIZE, "%.1f ms", (double)duration / TW_MILLISECOND);
	else
		snprintf(text, WHEN_SIZE, "%.2f s", (double)duration / TW_SECOND);
}
