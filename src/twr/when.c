/* SPDX-License-Identifier: MIT */
/*
 * when.c reads and writes times. It does not read numbers by strtod, which accepts blanks, signs,
 * hexadecimal, infinity and the locale's comma. The calendar is the proleptic Gregorian one, from
 * timegm.
 */
#include "when.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Reads digits with an optional fraction as nanos of one: "1.5" is 1,500,000,000. Returns their
 * end, or NULL if they are no number, or out of range. */
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

static const struct {
	const char *name;
	tw_duration length;
} units[] = {{"d", 24 * TW_HOUR}, {"h", TW_HOUR},         {"m", TW_MINUTE},
	     {"s", TW_SECOND},    {"ms", TW_MILLISECOND}, {"us", TW_MICROSECOND}};

static const char *unit_read(const char *text, tw_duration *unit)
{
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
		/* The unit may be left out for seconds alone. */
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

bool rate_parse(const char *text, struct tw_redis_limits *limits)
{
	int end = 0;

	limits->rate = 0;
	limits->per = 0;
	if (!strcmp(text, "0"))
		return true;
	if (isdigit((unsigned char)*text))
		sscanf(text, "%9u/%n", &limits->rate, &end);
	return limits->rate && end && duration_parse(text + end, &limits->per) &&
	       limits->per >= TW_MILLISECOND && limits->per <= TW_REDIS_DELAY_MAX;
}

const char *rate_write(const struct tw_redis_limits *limits, char text[WHEN_SIZE])
{
	size_t i = 0;

	while (limits->per % units[i].length)
		i++;
	if (limits->rate)
		snprintf(text, WHEN_SIZE, "%u/%" PRId64 "%s", limits->rate,
			 limits->per / units[i].length, units[i].name);
	else
		strcpy(text, "0");
	return text;
}

/* Returns the text after a part that matches the pattern, or NULL. In a pattern 0 is any digit, and
 * T is any of "Tt ". */
static const char *pattern_skip(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++) {
		bool fits = *text == *pattern ||
			    (*pattern == '0' && isdigit((unsigned char)*text)) ||
			    (*pattern == 'T' && (*text == 't' || *text == ' '));

		if (!fits)
			return NULL;
	}
	return text;
}

/* Reads "2031-05-01T12:00", "2031-05-01T12:00:30" or "2031-05-01T12:00:30.250". */
static const char *date_read(const char *text, struct tm *date, int *ms)
{
	const char *end = pattern_skip(text, "0000-00-00T00:00");
	int64_t nanos;

	if (!end)
		return NULL;
	sscanf(text, "%4d-%2d-%2d%*c%2d:%2d", &date->tm_year, &date->tm_mon, &date->tm_mday,
	       &date->tm_hour, &date->tm_min);
	date->tm_year -= 1900;
	date->tm_mon -= 1;
	if (*end != ':')
		return end;
	if (!pattern_skip(end, ":00"))
		return NULL;
	end = decimal_read(end + 1, &nanos);
	if (!end || nanos >= TW_MINUTE)
		return NULL;
	date->tm_sec = (int)(nanos / TW_SECOND);
	/* It rounds up, so a task is never early. */
	*ms = (int)((nanos % TW_SECOND + TW_MILLISECOND - 1) / TW_MILLISECOND);
	return end;
}

/* Reads "Z", "+02:00" or "-0730" as seconds to the east of Greenwich. */
static bool zone_read(const char *text, int *east)
{
	const char *end;
	int hours;
	int minutes;

	*east = 0;
	if ((*text == 'Z' || *text == 'z') && !text[1])
		return true;
	if (*text != '+' && *text != '-')
		return false;
	end = pattern_skip(text + 1, "00:00");
	end = end ? end : pattern_skip(text + 1, "0000");
	if (!end || *end)
		return false;
	sscanf(text + 1, "%2d", &hours);
	minutes = atoi(end - 2);
	*east = (*text == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
	return hours <= 23 && minutes <= 59;
}

/* Converts a date that exists. timegm would take the 31st of April for the 1st of May. */
static bool date_to_seconds(const struct tm *date, time_t *seconds)
{
	struct tm real = *date;

	*seconds = timegm(&real);
	/* The 60th minute belongs to another hour. */
	return real.tm_mday == date->tm_mday && real.tm_mon == date->tm_mon &&
	       real.tm_hour == date->tm_hour;
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
	text = date_read(text, &date, &ms);
	if (!text || !zone_read(text, &east) || !date_to_seconds(&date, &seconds))
		return false;
	*at_ms = ((int64_t)seconds - east) * 1000 + ms;
	return *at_ms >= 0;
}

const char *time_write(int64_t at_ms, char text[WHEN_SIZE])
{
	time_t seconds = (time_t)(at_ms / 1000);
	struct tm date;
	size_t size;

	/* An int has enough years. */
	gmtime_r(&seconds, &date);
	size = strftime(text, WHEN_SIZE, "%Y-%m-%dT%H:%M:%S", &date);
	snprintf(text + size, WHEN_SIZE - size, ".%03dZ", (int)(at_ms % 1000));
	return text;
}

const char *duration_write(tw_duration duration, char text[WHEN_SIZE])
{
	if (duration < TW_MILLISECOND)
		snprintf(text, WHEN_SIZE, "%" PRId64 " us", duration / TW_MICROSECOND);
	else if (duration < TW_SECOND)
		snprintf(text, WHEN_SIZE, "%.1f ms", (double)duration / TW_MILLISECOND);
	else
		snprintf(text, WHEN_SIZE, "%.2f s", (double)duration / TW_SECOND);
	return text;
}

tw_duration now_read(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * TW_SECOND + time.tv_nsec;
}
