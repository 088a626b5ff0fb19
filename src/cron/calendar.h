/* SPDX-License-Identifier: MIT */
/*
 * calendar.h is the Gregorian calendar, also for the years before it began. It converts between
 * dates and days since 1 January 1970. It knows no zone.
 *
 * The algorithms are Howard Hinnant's, days_from_civil and civil_from_days
 * (https://howardhinnant.github.io/date_algorithms.html). Their years begin in March, so that a
 * leap day is the last day of its year. An era is 400 such years. All eras have the same number of
 * days.
 */
#ifndef CALENDAR_H
#define CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

enum {
	MINUTE_SECONDS = 60,
	HOUR_SECONDS = 3600,
	DAY_SECONDS = 86400,
	DAYS_OF_ERA = 146097,
	/* The days from 1 March of the year 0 to 1 January 1970. */
	DAYS_TO_1970 = 719468,
};

/* Holds a date of the Gregorian calendar. */
struct date {
	int64_t year;
	int month; /* 1 … 12 */
	int day;   /* 1 … 31 */
};

/* Returns number / divisor, rounded down. `divisor` must be > 0. */
static inline int64_t floor_divide(int64_t number, int64_t divisor)
{
	return number / divisor - (number % divisor < 0);
}

static inline bool year_is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static inline int month_length(int64_t year, int month)
{
	if (month == 2)
		return year_is_leap(year) ? 29 : 28;
	return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* Returns the days from 1 January 1970 to the date. */
static inline int64_t day_of_date(int64_t year, int month, int day)
{
	int64_t march_year = year - (month <= 2);
	int64_t era = floor_divide(march_year, 400);
	int64_t year_of_era = march_year - era * 400;
	int64_t day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;

	return era * DAYS_OF_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	       day_of_year - DAYS_TO_1970;
}

/* Returns the date that is `day` days after 1 January 1970. */
static inline struct date date_of_day(int64_t day)
{
	int64_t era = floor_divide(day + DAYS_TO_1970, DAYS_OF_ERA);
	int64_t day_of_era = day + DAYS_TO_1970 - era * DAYS_OF_ERA;
	int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
			       day_of_era / (DAYS_OF_ERA - 1)) /
			      365;
	int64_t day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t march_month = (5 * day_of_year + 2) / 153;
	int month = (int)(march_month < 10 ? march_month + 3 : march_month - 9);

	return (struct date){
		.year = era * 400 + year_of_era + (month <= 2),
		.month = month,
		.day = (int)(day_of_year - (153 * march_month + 2) / 5 + 1),
	};
}

/* Returns the day of the week, 0 (Sunday) to 6. 1 January 1970 was a Thursday. */
static inline int weekday_of_day(int64_t day)
{
	return (int)(day + 4 - 7 * floor_divide(day + 4, 7));
}

#endif
