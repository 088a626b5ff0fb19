/* SPDX-License-Identifier: MIT */
/*
 * These are schedules by the calendar: what an expression means, and which times it names where the
 * clocks change. Random expressions, zones and times are compared with a reference that goes from
 * minute to minute and asks the C library what the clocks show.
 */
#include "support/test.h"

#include "support/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <timingwheel/cron.h>

#include "cron/calendar.h"
#include "cron/cron_search.h"

/* This is the last second of the year 9999. */
static const int64_t last_second = 253402300799;

static struct tw_cron *open_cron(const char *expression, const char *zone)
{
	struct tw_cron_error error;
	struct tw_cron *cron;

	if (tw_cron_create(&cron, expression, zone, &error) != TW_OK)
		fail_msg("%s: %s at %zu", expression, error.text, error.position);
	return cron;
}

/* Parses "2026-03-29 01:30" or "2026-03-29 01:30:15" in UTC. */
static int64_t utc(const char *text)
{
	int year;
	int month;
	int day;
	int hour;
	int minute;
	int second = 0;

	assert_true(sscanf(text, "%d-%d-%d %d:%d:%d", &year, &month, &day, &hour, &minute,
			   &second) >= 5);
	return day_of_date(year, month, day) * DAY_SECONDS + hour * HOUR_SECONDS +
	       minute * MINUTE_SECONDS + second;
}

static void print_utc(char text[64], int64_t time)
{
	time_t value = (time_t)time;
	struct tm tm;

	gmtime_r(&value, &tm);
	strftime(text, 64, "%Y-%m-%d %H:%M:%S", &tm);
}

/* Takes the first time off the list, where a comma separates them. One without a date has that of
 * the text, which is the time before. Returns false at the end. */
static bool take_time(const char **times, char text[64])
{
	size_t size = strcspn(*times, ",");
	bool has_date = memchr(*times, ' ', size);
	char *at = has_date ? text : strchr(text, ' ') + 1;

	if (size == 0)
		return false;
	snprintf(at, 64 - (size_t)(at - text), "%.*s", (int)size, *times);
	*times += size + strspn(*times + size, ", ");
	return true;
}

/* The times of the expression after this one follow one another. */
struct run_of_times {
	const char *expression;
	const char *after;
	const char *times;
};

static void assert_times(const struct run_of_times *run, const char *zone)
{
	struct tw_cron *cron = open_cron(run->expression, zone);
	const char *times = run->times;
	int64_t at = utc(run->after);
	char expected[64] = " ";

	while (take_time(&times, expected)) {
		char found[64];

		assert_status(tw_cron_next(cron, at, &at), TW_OK);
		print_utc(found, at);
		if (at != utc(expected))
			fail_msg("%s, %s: %s, not %s", run->expression, zone ? zone : "UTC", found,
				 expected);
	}
	tw_cron_destroy(cron);
}

/* TIMES(name, zone, rows...) is a case of such runs in a zone; NULL is UTC. */
#define TIMES(name, zone, ...)                                              \
	TEST(once, name)                                                    \
	{                                                                   \
		static const struct run_of_times runs[] = {__VA_ARGS__};    \
                                                                            \
		for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) \
			assert_times(&runs[i], zone);                       \
	}

TIMES(expressions_mean_what_they_say, NULL,
      /* 1 November 2026 is a Sunday. */
      {"* * * * *", "2026-11-01 00:00", "2026-11-01 00:01, 00:02"},
      {"* * * * *", "2026-11-01 00:00:59", "2026-11-01 00:01"},
      {"* * * * *", "2026-12-31 23:59:01", "2027-01-01 00:00"},
      {"*/25 * * * *", "2026-11-01 00:00", "2026-11-01 00:25, 00:50, 01:00"},
      {"7-59/20 5 * * *", "2026-11-01 00:00", "2026-11-01 05:07, 05:27, 05:47, 2026-11-02 05:07"},
      {"0,30,15 12 * * *", "2026-11-01 00:00", "2026-11-01 12:00, 12:15, 12:30, 2026-11-02 12:00"},
      {"59 23 31 12 *", "2026-11-01 00:00", "2026-12-31 23:59, 2027-12-31 23:59"},
      {"0 0 31 * *", "2026-11-01 00:00",
       "2026-12-31 00:00, 2027-01-31 00:00, 2027-03-31 00:00, 2027-05-31 00:00"},
      {"0 0 1 JAN,jul *", "2026-11-01 00:00", "2027-01-01 00:00, 2027-07-01 00:00"},
      {"0 0 1 feb-Apr *", "2026-11-01 00:00",
       "2027-02-01 00:00, 2027-03-01 00:00, 2027-04-01 00:00, 2028-02-01 00:00"},
      {"0 9 * * MON-FRI", "2026-11-06 00:00", "2026-11-06 09:00, 2026-11-09 09:00"},
      {"0 9 * * 0", "2026-11-01 12:00", "2026-11-08 09:00"},
      {"0 9 * * 7", "2026-11-01 12:00", "2026-11-08 09:00"},
      {"0 9 * * 5-7", "2026-11-01 12:00",
       "2026-11-06 09:00, 2026-11-07 09:00, 2026-11-08 09:00, 2026-11-13 09:00"},
      {"0 9 * * FRI-sun", "2026-11-01 12:00",
       "2026-11-06 09:00, 2026-11-07 09:00, 2026-11-08 09:00, 2026-11-13 09:00"},
      {"0 9 * * SAT-0", "2026-11-01 12:00", "2026-11-07 09:00, 2026-11-08 09:00, 2026-11-14 09:00"},
      {"0 9 * * MON-SUN", "2026-11-01 12:00",
       "2026-11-02 09:00, 2026-11-03 09:00, 2026-11-04 09:00, 2026-11-05 09:00, "
       "2026-11-06 09:00, 2026-11-07 09:00, 2026-11-08 09:00, 2026-11-09 09:00"},
      {"0 9 * * MON-SUN/3", "2026-11-01 12:00",
       "2026-11-02 09:00, 2026-11-05 09:00, 2026-11-08 09:00, 2026-11-09 09:00"},
      {"0 9 * * SUN-SUN", "2026-11-01 12:00", "2026-11-08 09:00, 2026-11-15 09:00"},
      {"\t 5  4\t* * sUn ", "2026-11-01 12:00", "2026-11-08 04:05"},
      {"00 007 * * *", "2026-11-01 12:00", "2026-11-02 07:00"},
      {"@yearly", "2026-11-01 12:00", "2027-01-01 00:00, 2028-01-01 00:00"},
      {"@annually", "2026-11-01 12:00", "2027-01-01 00:00, 2028-01-01 00:00"},
      {"@monthly", "2026-11-01 12:00", "2026-12-01 00:00, 2027-01-01 00:00"},
      {"@weekly", "2026-11-01 12:00", "2026-11-08 00:00, 2026-11-15 00:00"},
      {"@daily", "2026-11-01 12:00", "2026-11-02 00:00, 2026-11-03 00:00"},
      {"@midnight", "2026-11-01 12:00", "2026-11-02 00:00, 2026-11-03 00:00"},
      {" @hourly ", "2026-11-01 12:00", "2026-11-01 13:00, 14:00"},
      {"0 9 * * ?\r\n", "2026-11-01 12:00", "2026-11-02 09:00"},
      {"0 9 ? * 1\n", "2026-11-01 12:00", "2026-11-02 09:00"},
      {"@Daily\n", "2026-11-01 12:00", "2026-11-02 00:00"},
      {"5/25 * * * *", "2026-11-01 12:00", "2026-11-01 12:05, 12:30, 12:55, 13:05"},
      {"0 22-1 * * *", "2026-11-01 12:00",
       "2026-11-01 22:00, 23:00, 2026-11-02 00:00, 01:00, 22:00"},
      {"0 20-3/3 * * *", "2026-11-01 12:00", "2026-11-01 20:00, 23:00, 2026-11-02 02:00, 20:00"},
      {"0 0 30-2 * *", "2026-11-01 12:00",
       "2026-11-02 00:00, 2026-11-30 00:00, 2026-12-01 00:00, 2026-12-02 00:00"},
      {"0 0 1 nov-JAN *", "2026-11-01 12:00",
       "2026-12-01 00:00, 2027-01-01 00:00, 2027-11-01 00:00"},
      {"0 0 * * SAT-MON", "2026-11-02 12:00",
       "2026-11-07 00:00, 2026-11-08 00:00, 2026-11-09 00:00, 2026-11-14 00:00"},
      {"0 0 * * 7-1", "2026-11-02 12:00", "2026-11-08 00:00, 2026-11-09 00:00"},
      {"0 0 L * *", "2027-01-31 12:00", "2027-02-28 00:00, 2027-03-31 00:00, 2027-04-30 00:00"},
      {"0 0 15,l 2 *", "2028-01-31 12:00", "2028-02-15 00:00, 2028-02-29 00:00"},
      {"0 0 * * FRI#2", "2026-11-01 12:00", "2026-11-13 00:00, 2026-12-11 00:00"},
      {"0 0 * * 7#5,2", "2026-11-26 12:00", "2026-11-29 00:00, 2026-12-01 00:00"},
      {"0 0 * * 5L", "2026-11-01 12:00", "2026-11-27 00:00, 2026-12-25 00:00"},
      {"0 0 1 * 7l", "2026-11-01 12:00", "2026-11-29 00:00, 2026-12-01 00:00"},
      /* Before 1970, and before the year 1. */
      {"30 12 * * *", "1969-12-31 12:29:59", "1969-12-31 12:30, 1970-01-01 12:30"},
      {"0 0 * * 1", "-9999-01-01 00:00", "1-01-01 00:00, 1-01-08 00:00"})

TIMES(either_day_is_enough_where_both_are_given, NULL,
      /* Friday the 13th is in November 2026. */
      {"0 0 13 * 5", "2026-11-01 00:00",
       "2026-11-06 00:00, 2026-11-13 00:00, 2026-11-20 00:00, 2026-11-27 00:00, "
       "2026-12-04 00:00, 2026-12-11 00:00, 2026-12-13 00:00, 2026-12-18 00:00"},
      {"0 0 13 2 FRI", "2026-11-01 00:00",
       "2027-02-05 00:00, 2027-02-12 00:00, 2027-02-13 00:00, 2027-02-19 00:00"},
      /* A field that begins with a star counts as one, even with a step or a list behind
		 * it. */
      {"0 0 */12 * 5", "2026-11-01 00:00", "2026-11-13 00:00, 2026-12-25 00:00"},
      {"0 0 13 * */5", "2026-11-01 00:00", "2026-11-13 00:00, 2026-12-13 00:00"},
      {"0 0 *,13 * 5", "2026-11-01 00:00", "2026-11-06 00:00, 2026-11-13 00:00"},
      /* This has all days, and is no star. */
      {"0 0 1-31 * 5", "2026-11-01 00:00", "2026-11-02 00:00, 2026-11-03 00:00"},
      {"0 0 13 * 0-6", "2026-11-01 00:00", "2026-11-02 00:00, 2026-11-03 00:00"})

/* Central Europe changes on 29 March and on 25 October 2026, at 01:00 UTC. */
TIMES(certain_hours_run_once_where_the_clocks_change_by_an_hour, "Europe/Berlin",
      /* A skipped time runs at the change. */
      {"30 2 * * *", "2026-03-28 00:00", "2026-03-28 01:30, 2026-03-29 01:00, 2026-03-30 00:30"},
      {"0 2 * * *", "2026-03-28 02:00", "2026-03-29 01:00, 2026-03-30 00:00"},
      {"*/20 2 * * *", "2026-03-28 12:00", "2026-03-29 01:00, 2026-03-30 00:00, 00:20, 00:40"},
      {"0 2,3 * * *", "2026-03-28 12:00", "2026-03-29 01:00, 2026-03-30 00:00"},
      {"30 2 29 3 *", "2025-12-01 12:00", "2026-03-29 01:00, 2027-03-29 00:30"},
      {"0 3 * * *", "2026-03-28 12:00", "2026-03-29 01:00, 2026-03-30 01:00"},
      {"59 1 * * *", "2026-03-28 12:00", "2026-03-29 00:59, 23:59"},
      {"0 */2 * * *", "2026-03-28 22:00", "2026-03-28 23:00, 2026-03-29 01:00, 02:00, 04:00"},
      /* The searches begin at the change and just before it. */
      {"30 2 * * *", "2026-03-29 01:00", "2026-03-30 00:30"},
      {"30 2 * * *", "2026-03-29 00:59:59", "2026-03-29 01:00"},
      /* A local time that comes twice counts once, the first time. */
      {"30 2 * * *", "2026-10-24 12:00", "2026-10-25 00:30, 2026-10-26 01:30"},
      {"30 2 * * *", "2026-10-25 00:30", "2026-10-26 01:30"},
      {"30 2 * * *", "2026-10-25 01:10", "2026-10-26 01:30"},
      {"0 2 * * *", "2026-10-24 12:00", "2026-10-25 00:00, 2026-10-26 01:00"},
      {"0 3 * * *", "2026-10-24 12:00", "2026-10-25 02:00, 2026-10-26 02:00"},
      {"*/20 1-3 * * *", "2026-10-24 23:30",
       "2026-10-24 23:40, 2026-10-25 00:00, 00:20, 00:40, 02:00, 02:20"})

/* Central European law is as in 2026: the clocks change on the last Sundays of March and
 * October. */
TEST(once, rule_behind_the_table_changes_the_clocks_too)
{
	static const char text[] = "CET-1CEST,M3.5.0,M10.5.0/3";
	static const char *const times[] = {"2090-03-25 01:30", "2090-03-26 01:00",
					    "2090-03-27 00:30", "2090-10-28 00:30",
					    "2090-10-29 00:30", "2090-10-30 01:30"};
	struct zone zone = {.has_rule = true};
	struct cron_fields fields;
	size_t position;
	int64_t next = 0;

	assert_true(zone_rule_parse(&zone.rule, text, strlen(text)));
	assert_null(cron_fields_parse(&fields, "30 2 * * *", &position));
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (i % 3 == 0)
			next = utc(times[i]) - 1;
		assert_true(cron_search(&fields, &zone, next, last_second, &next));
		assert_int_equal(next, utc(times[i]));
	}
}

TIMES(every_hour_goes_with_the_clock, "Europe/Berlin",
      {"30 * * * *", "2026-03-29 00:00", "2026-03-29 00:30, 01:30, 02:30"},
      {"30 * * * *", "2026-10-24 23:00", "2026-10-24 23:30, 2026-10-25 00:30, 01:30, 02:30"},
      {"*/30 * * * *", "2026-03-29 00:15", "2026-03-29 00:30, 01:00, 01:30, 02:00"},
      {"*/30 * * * *", "2026-10-25 00:15", "2026-10-25 00:30, 01:00, 01:30, 02:00"},
      /* The hours may be written as a range. */
      {"30 0-23 * * *", "2026-10-24 23:00", "2026-10-24 23:30, 2026-10-25 00:30, 01:30, 02:30"},
      {"@hourly", "2026-10-24 23:30", "2026-10-25 00:00, 01:00, 02:00"})

/* Every interval is a quarter of an hour over both changes, to the second. */
TEST(once, quarters_of_an_hour_stay_quarters)
{
	static const char *const zones[] = {"Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia",
					    "America/St_Johns"};

	for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
		struct tw_cron *cron = open_cron("*/15 * * * *", zones[i]);
		int64_t at = utc("2026-01-01 00:00");

		while (at < utc("2028-01-01 00:00")) {
			int64_t next;

			assert_status(tw_cron_next(cron, at, &next), TW_OK);
			assert_int_equal(next, at + 15 * MINUTE_SECONDS);
			at = next;
		}
		tw_cron_destroy(cron);
	}
}

/* The clocks change by half an hour: on 3 October 2026 at 15:30 UTC, and on 4 April at 15:00
 * UTC. */
TIMES(lord_howe_changes_by_half_an_hour, "Australia/Lord_Howe",
      /* 02:00 to 02:30 is skipped. */
      {"15 2 * * *", "2026-10-02 20:00", "2026-10-03 15:30, 2026-10-04 15:15"},
      {"45 2 * * *", "2026-10-03 12:00", "2026-10-03 15:45, 2026-10-04 15:45"},
      {"0 * * * *", "2026-10-03 14:00", "2026-10-03 14:30, 16:00"},
      {"*/10 * * * *", "2026-10-03 15:20", "2026-10-03 15:30, 15:40, 15:50"},
      /* 01:30 to 02:00 comes twice. */
      {"45 1 * * *", "2026-04-04 12:00", "2026-04-04 14:45, 2026-04-05 15:15"},
      {"0 2 * * *", "2026-04-04 12:00", "2026-04-04 15:30, 2026-04-05 15:30"},
      {"45 * * * *", "2026-04-04 14:00", "2026-04-04 14:45, 15:15, 16:15"})

/* Samoa skipped 30 December 2011: its clocks changed at the end of the 29th, 10:00 UTC on the
 * 30th. */
TIMES(day_that_is_skipped_runs_as_the_next_begins, "Pacific/Apia",
      {"0 12 30 12 *", "2011-12-01 00:00", "2011-12-30 10:00, 2012-12-29 22:00"},
      {"0 12 * * *", "2011-12-29 00:00",
       "2011-12-29 22:00, 2011-12-30 10:00, 22:00, 2011-12-31 22:00"},
      {"0 0 * * *", "2011-12-28 12:00", "2011-12-29 10:00, 2011-12-30 10:00, 2011-12-31 10:00"},
      /* The 30th would have been a Friday. */
      {"0 9 * * FRI", "2011-12-28 12:00", "2011-12-30 10:00, 2012-01-05 19:00"},
      {"0 * * * *", "2011-12-30 08:30", "2011-12-30 09:00, 10:00, 11:00"},
      {"0 * 30 * *", "2011-12-20 00:00", "2012-01-29 10:00, 11:00"})

/* Until 1893 Berlin's clocks were 53 min 28 s ahead of UTC. */
TIMES(offset_need_not_be_whole_minutes, "Europe/Berlin",
      {"0 12 * * *", "1893-03-30 00:00",
       "1893-03-30 11:06:32, 1893-03-31 11:06:32, 1893-04-01 11:00"})

/*
 * On 1 January 1970 the clocks go back by an hour at 10:00 UTC and forward by half an hour at
 * 10:20: they show 09:00 to 09:20 again, and then 09:50. At 12:00 they go forward by half an hour.
 */
TEST(once, times_shown_before_do_not_come_with_a_second_change)
{
	static struct zone_change changes[] = {{36000, -3600}, {37200, -1800}, {43200, 0}};
	static const struct zone zone = {.changes = changes, .change_count = 3};
	static const struct {
		const char *expression;
		int64_t first;
		int64_t second;
	} cases[] = {
		{"30 9 * * *", 34200, 34200 + DAY_SECONDS},
		{"10 9 * * *", 33000, 33000 + DAY_SECONDS},
		{"55 9 * * *", 35700, 35700 + DAY_SECONDS},
		{"0 10 * * *", 37800, 36000 + DAY_SECONDS},
		{"45 11 * * *", 43200, 42300 + DAY_SECONDS},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cron_fields fields;
		size_t position;
		int64_t next;

		assert_null(cron_fields_parse(&fields, cases[i].expression, &position));
		assert_true(cron_search(&fields, &zone, 0, 10 * DAY_SECONDS, &next));
		assert_int_equal(next, cases[i].first);
		assert_true(cron_search(&fields, &zone, next, 10 * DAY_SECONDS, &next));
		assert_int_equal(next, cases[i].second);
		assert_false(cron_search(&fields, &zone, next, next + DAY_SECONDS, &next));
	}
}

/* The year 2100 has no such day. In the last row the day is also a Sunday. */
TIMES(dates_that_come_seldom_are_found, NULL,
      {"0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00, 2032-02-29 00:00"},
      {"0 0 29 2 *", "2096-02-29 00:00", "2104-02-29 00:00"},
      {"0 0 29 2 */7", "2032-01-01 00:00",
       "2032-02-29 00:00, 2060-02-29 00:00, 2088-02-29 00:00, 2128-02-29 00:00"})
TIMES(dates_that_come_seldom_are_found_in_zones, "Europe/Berlin",
      {"0 0 29 2 *", "2096-02-29 00:00", "2104-02-28 23:00"})
TIMES(utc_is_a_zone, "UTC",
      {"59 23 31 12 *", "2026-11-01 00:00", "2026-12-31 23:59, 2027-12-31 23:59"})

static void assert_no_time(const char *expression, const char *zone, int64_t after)
{
	struct tw_cron *cron = open_cron(expression, zone);
	int64_t next = 42;

	assert_status(tw_cron_next(cron, after, &next), TW_NOT_FOUND);
	assert_int_equal(next, 42);
	tw_cron_destroy(cron);
}

TEST(once, dates_that_never_come_are_not_found)
{
	assert_no_time("0 0 30 2 *", NULL, 0);
	assert_no_time("0 0 30,31 2 *", "Europe/Berlin", 0);
	assert_no_time("0 0 31 4,6,9,11 *", "America/New_York", INT64_MIN);
	assert_no_time("* * 31 2 *", "Pacific/Apia", 1325000000);
}

TEST(once, time_ends_with_the_year_9999)
{
	struct tw_cron *cron = open_cron("* * * * *", NULL);
	int64_t next;

	assert_status(tw_cron_next(cron, last_second - 60, &next), TW_OK);
	assert_int_equal(next, last_second - 59);
	assert_status(tw_cron_next(cron, next, &next), TW_NOT_FOUND);
	assert_status(tw_cron_next(cron, last_second, &next), TW_NOT_FOUND);
	assert_status(tw_cron_next(cron, last_second + 1, &next), TW_NOT_FOUND);
	assert_status(tw_cron_next(cron, INT64_MAX, &next), TW_NOT_FOUND);
	assert_status(tw_cron_next(cron, INT64_MIN, &next), TW_OK);
	assert_int_equal(next, utc("1-01-01 00:00"));
	tw_cron_destroy(cron);
}

TEST(once, wrong_expressions_are_refused_where_they_are_wrong)
{
	static const struct {
		const char *expression;
		size_t position;
		const char *text; /* beginning of the message */
	} wrongs[] = {
		{"", 0, "a field is missing"},
		{"  ", 2, "a field is missing"},
		{"* * * *", 7, "a field is missing"},
		{"* * * * ", 8, "a field is missing"},
		{"* * * * * *", 10, "there are more than five"},
		{"60 * * * *", 0, "a minute is"},
		{"-1 * * * *", 0, "no number"},
		{"* 24 * * *", 2, "an hour is"},
		{"* * 0 * *", 4, "a day of the month"},
		{"* * 32 * *", 4, "a day of the month"},
		{"* * * 0 *", 6, "a month is"},
		{"* * * 13 *", 6, "a month is"},
		{"* * * * 8", 8, "a day of the week"},
		{"* * * JANUARY *", 6, "a month is"},
		{"* * * JA *", 6, "a month is"},
		{"* * * MON *", 6, "a month is"},
		{"* * * * JAN", 8, "a day of the week"},
		{"* * * 1-DEZ *", 8, "a month is"},
		{"* * * JAN{ *", 9, "a blank or a comma"},
		{"JAN * * * *", 0, "a minute is"},
		{"* * 15W * *", 6, "there is no W: "},
		{"* * lw * *", 5, "there is no W: "},
		{"@every 5m", 0, "there is no such @ name; use tw_every"},
		{"* * * * 5#6", 10, "# needs"},
		{"* * 5#2 * *", 5, "a blank or a comma"},
		{"* ? * * *", 2, "no number"},
		{"* L * * *", 2, "an hour is"},
		{"* * * * L", 8, "a day of the week"},
		{"*\n* * * *", 1, "a blank or a comma"},
		{"1,,2 * * * *", 2, "no number"},
		{"1, * * * *", 2, "a number or * is missing"},
		{"* * * * 1,", 10, "a number or * is missing"},
		{",1 * * * *", 0, "no number"},
		{"5- * * * *", 2, "a number or * is missing"},
		{"1-2-3 * * * *", 3, "a blank or a comma"},
		{"*-5 * * * *", 1, "a blank or a comma"},
		{"5* * * * *", 1, "a blank or a comma"},
		{"*/0 * * * *", 2, "a step is 1"},
		{"*/ * * * *", 2, "a step is a number"},
		{"*/x * * * *", 2, "a step is a number"},
		{"*/-1 * * * *", 2, "a step is a number"},
		{"*/61 * * * *", 2, "the step is larger"},
		{"*/5/5 * * * *", 3, "a blank or a comma"},
		{"4294967301 * * * *", 0, "a minute is"},
		{"*/18446744073709551617 * * * *", 2, "the step is larger"},
		{"@reboot", 0, "there is no such"},
		{"@", 0, "there is no such"},
		{" @dail", 1, "there is no such"},
		{"@dailyx", 0, "there is no such"},
		{"@daily @daily", 7, "nothing may follow"},
		{"* * * * * # each minute", 10, "there are more than five"},
	};

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const char *expression = wrongs[i].expression;
		struct tw_cron_error error;
		struct tw_cron *cron = VALUE(1);

		assert_status(tw_cron_create(&cron, expression, NULL, &error), TW_INVALID);
		assert_null(cron);
		if (error.in_zone || error.position != wrongs[i].position ||
		    strncmp(error.text, wrongs[i].text, strlen(wrongs[i].text)) != 0)
			fail_msg("%s: %s at %zu", expression, error.text, error.position);
		assert_status(tw_cron_create(&cron, expression, NULL, NULL), TW_INVALID);
	}
}

TEST(once, reserved_fields_of_an_error_become_0)
{
	struct tw_cron_error error;
	struct tw_cron *cron;

	memset(&error, 0xff, sizeof(error));
	assert_status(tw_cron_create(&cron, "@", NULL, &error), TW_INVALID);
	for (int i = 0; i < 4; i++)
		assert_int_equal(error.reserved[i], 0);
}

TEST(once, wrong_zones_are_refused)
{
	struct tw_cron_error error;
	struct tw_cron *cron;

	assert_status(tw_cron_create(&cron, "@daily", "Europe/../Berlin", &error), TW_INVALID);
	assert_null(cron);
	assert_true(error.in_zone);
	assert_int_equal(error.position, 7);
	assert_status(tw_cron_create(&cron, "@daily", "Europe/Bielefeld", &error), TW_NOT_FOUND);
	assert_true(error.in_zone);
	assert_int_equal(error.position, 0);
	assert_string_equal(error.text, "there is no such zone");
	assert_status(tw_cron_create(&cron, "@daily", "", &error), TW_INVALID);
	assert_true(error.in_zone);
	assert_status(tw_cron_create(&cron, "@daily", "zone.tab", &error), TW_INVALID);
	assert_true(error.in_zone);
	/* An error in the expression takes precedence. */
	assert_status(tw_cron_create(&cron, "@", "Europe/Bielefeld", &error), TW_INVALID);
	assert_false(error.in_zone);
}

/* The C library says what each TZ means. */
TEST(once, local_zone_is_the_environments)
{
	static const char *const values[] = {"Australia/Sydney",
					     ":Europe/Berlin",
					     "",
					     "EST5",
					     "CET-1CEST,M3.5.0,M10.5.0/3",
					     "/usr/share/zoneinfo/Asia/Kolkata",
					     NULL};
	struct tw_cron_error error;
	struct tw_cron *cron;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		time_t next;
		struct tm tm;

		assert_int_equal(values[i] ? setenv("TZ", values[i], 1) : unsetenv("TZ"), 0);
		tzset();
		cron = open_cron("30 9 * * *", i % 2 ? "local" : "localtime");
		assert_status(tw_cron_next(cron, utc("2026-07-01 00:00"), &next), TW_OK);
		localtime_r(&next, &tm);
		assert_int_equal(tm.tm_hour * 60 + tm.tm_min, 9 * 60 + 30);
		tw_cron_destroy(cron);
	}
	assert_int_equal(setenv("TZ", "no zone", 1), 0);
	assert_status(tw_cron_create(&cron, "@daily", "local", &error), TW_INVALID);
	assert_true(error.in_zone && error.text);
	assert_int_equal(unsetenv("TZ"), 0);
}

TEST(once, what_is_missing_is_invalid)
{
	struct tw_cron *cron = open_cron("@daily", NULL);
	struct tw_cron_error error = {0};
	int64_t next;

	assert_status(tw_cron_next(NULL, 0, &next), TW_INVALID);
	assert_status(tw_cron_next(cron, 0, NULL), TW_INVALID);
	tw_cron_destroy(cron);
	tw_cron_destroy(NULL);
	assert_status(tw_cron_create(NULL, "@daily", NULL, &error), TW_INVALID);
	assert_non_null(error.text);
	assert_status(tw_cron_create(NULL, "@daily", NULL, NULL), TW_INVALID);
	cron = VALUE(1);
	assert_status(tw_cron_create(&cron, NULL, NULL, &error), TW_INVALID);
	assert_null(cron);
	assert_false(error.in_zone);
}

/* ---- Comparison with a reference ---- */

enum { FIELDS = 5, NUMBERS = 60, TEXT_SIZE = 512, LOOK_BACK = 4 * 24 * 60 };

static const struct {
	int low;
	int high;
} bounds[FIELDS] = {{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}};

/* A sample is an expression and its meaning, which are made together: nothing is parsed. */
struct sample {
	char text[TEXT_SIZE];
	bool has[FIELDS][NUMBERS];
	bool is_star[FIELDS];
};

static void add_text(struct sample *sample, const char *format, int a, int b, int c)
{
	size_t size = strlen(sample->text);

	snprintf(sample->text + size, TEXT_SIZE - size, format, a, b, c);
}

static void add_range(struct sample *sample, int field, int low, int high, int step)
{
	for (int number = low; number <= high; number += step)
		sample->has[field][field == 4 && number == 7 ? 0 : number] = true;
}

static void add_item(struct sample *sample, int field, bool is_first, struct random *random)
{
	int low = bounds[field].low;
	int high = bounds[field].high;
	int a = (int)random_between(random, low, high);
	int b = (int)random_between(random, a, high);
	int step = (int)random_between(random, 1, high - low + 1);

	switch (random_below(random, 4)) {
	case 0:
		add_text(sample, "%d", a, 0, 0);
		add_range(sample, field, a, a, 1);
		break;
	case 1:
		add_text(sample, "%d-%d", a, b, 0);
		add_range(sample, field, a, b, 1);
		break;
	case 2:
		add_text(sample, "%d-%d/%d", a, b, step);
		add_range(sample, field, a, b, step);
		break;
	default:
		add_text(sample, "*/%d", step, 0, 0);
		add_range(sample, field, low, high, step);
		sample->is_star[field] |= is_first;
	}
}

static void sample_make(struct sample *sample, struct random *random)
{
	memset(sample, 0, sizeof(*sample));
	for (int field = 0; field < FIELDS; field++) {
		add_text(sample, field > 0 ? " " : "", 0, 0, 0);
		if (random_once_in(random, field == 1 ? 4 : 2)) {
			add_text(sample, "*", 0, 0, 0);
			add_range(sample, field, bounds[field].low, bounds[field].high, 1);
			sample->is_star[field] = true;
			continue;
		}
		add_item(sample, field, true, random);
		while (random_once_in(random, 3)) {
			add_text(sample, ",", 0, 0, 0);
			add_item(sample, field, false, random);
		}
	}
}

/* Takes minutes since 1970 in local time. */
static bool names_minute(const struct sample *sample, int64_t local)
{
	time_t seconds = (time_t)local * 60;
	bool by_month;
	bool by_week;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	by_month = sample->has[2][tm.tm_mday];
	by_week = sample->has[4][tm.tm_wday];
	if (!sample->has[0][tm.tm_min] || !sample->has[1][tm.tm_hour] ||
	    !sample->has[3][tm.tm_mon + 1])
		return false;
	if (sample->is_star[2] || sample->is_star[4])
		return by_month && by_week;
	return by_month || by_week;
}

static bool names_every_hour(const struct sample *sample)
{
	for (int hour = 0; hour < 24; hour++)
		if (!sample->has[1][hour])
			return false;
	return true;
}

static int64_t local_minute(int64_t minute)
{
	time_t seconds = (time_t)minute * 60;
	struct tm tm;

	localtime_r(&seconds, &tm);
	return minute + tm.tm_gmtoff / 60;
}

/* Goes minute by minute, with TZ set. Returns minutes since 1970, or `limit` if there is none
 * before. */
static int64_t reference_next(const struct sample *sample, int64_t after, int64_t limit)
{
	bool every_hour = names_every_hour(sample);
	int64_t last_shown = local_minute(after - LOOK_BACK);

	for (int64_t minute = after - LOOK_BACK + 1; minute < limit; minute++) {
		int64_t local = local_minute(minute);

		if (minute > after) {
			for (int64_t skipped = last_shown + 1; skipped < local; skipped++)
				if (!every_hour && names_minute(sample, skipped))
					return minute;
			if ((every_hour || local > last_shown) && names_minute(sample, local))
				return minute;
		}
		if (local > last_shown)
			last_shown = local;
	}
	return limit;
}

/* Draws a time up to two days before a change, or any. */
static int64_t draw_minute(struct random *random)
{
	/* These are 1975 to 2100. */
	int64_t minute = random_between(random, 2629440, 68374080);

	if (random_once_in(random, 4))
		return minute;
	for (int days = 0; days < 400; days++) {
		if (local_minute(minute) - minute !=
		    local_minute(minute + 24 * 60) - (minute + 24 * 60))
			return minute - random_between(random, 0, 2 * 24 * 60);
		minute += 24 * 60;
	}
	return minute;
}

static void check_sample(const struct sample *sample, const char *zone, int64_t after,
			 struct random *random)
{
	enum { HORIZON = 12 * 24 * 60 };
	struct tw_cron *cron = open_cron(sample->text, zone);
	int64_t expected = reference_next(sample, after, after + HORIZON);
	int64_t next;
	int64_t again;
	enum tw_status status = tw_cron_next(cron, after * 60, &next);

	if (expected == after + HORIZON) {
		if (status == TW_OK && next < expected * 60)
			fail_msg("%s, %s after %" PRId64 ": %" PRId64 ", too early", sample->text,
				 zone, after * 60, next);
	} else if (status != TW_OK || next != expected * 60) {
		fail_msg("%s, %s after %" PRId64 ": %" PRId64 ", not %" PRId64, sample->text, zone,
			 after * 60, next, expected * 60);
	}
	/* A search from any earlier time finds the same one. */
	if (status == TW_OK) {
		after = random_between(random, after * 60, next - 1);
		assert_status(tw_cron_next(cron, after, &again), TW_OK);
		assert_int_equal(again, next);
	}
	tw_cron_destroy(cron);
}

TEST(once, random_schedules_are_as_the_reference_says)
{
	static const char *const zones[] = {"UTC",
					    "Europe/Berlin",
					    "America/New_York",
					    "Europe/Dublin",
					    "America/Sao_Paulo",
					    "Pacific/Apia",
					    "Asia/Kolkata",
					    "Australia/Lord_Howe",
					    "Africa/Casablanca",
					    "America/Nuuk",
					    "Asia/Gaza",
					    "Antarctica/Troll",
					    "Asia/Pyongyang",
					    "Pacific/Kwajalein"};
	struct random random = random_from(seed_choose(), 1);

	for (int i = 0; i < TEST_SHARE_OF(400); i++) {
		const char *zone = zones[random_below(&random, sizeof(zones) / sizeof(zones[0]))];
		struct sample sample;

		sample_make(&sample, &random);
		assert_int_equal(setenv("TZ", zone, 1), 0);
		tzset();
		check_sample(&sample, zone, draw_minute(&random), &random);
	}
}

/* Goes day by day, over as many years as the search may take. */
static int64_t reference_midnight(const struct sample *sample, int64_t after_day)
{
	for (int64_t day = after_day + 1; day < after_day + 45 * 366; day++)
		if (names_minute(sample, day * 24 * 60))
			return day;
	return -1;
}

TEST(once, random_dates_are_as_the_calendar_says)
{
	struct random random = random_from(seed_choose(), 2);

	for (int i = 0; i < TEST_SHARE_OF(1000); i++) {
		/* These are 1970 to 2200. */
		int64_t after = random_between(&random, 0, 84000);
		int64_t expected;
		int64_t next;
		struct sample sample;
		struct tw_cron *cron;
		enum tw_status status;

		memset(&sample, 0, sizeof(sample));
		add_text(&sample, "0 0", 0, 0, 0);
		sample.has[0][0] = sample.has[1][0] = true;
		for (int field = 2; field < FIELDS; field++) {
			add_text(&sample, " ", 0, 0, 0);
			add_item(&sample, field, true, &random);
		}
		expected = reference_midnight(&sample, after);
		cron = open_cron(sample.text, NULL);
		status = tw_cron_next(cron, after * DAY_SECONDS, &next);
		if (status != (expected < 0 ? TW_NOT_FOUND : TW_OK) ||
		    (status == TW_OK && next != expected * DAY_SECONDS))
			fail_msg("%s after day %" PRId64 ": %s, not day %" PRId64, sample.text,
				 after, tw_status_name(status), expected);
		tw_cron_destroy(cron);
	}
}

/* ---- On a wheel ---- */

static void *walk(void *argument)
{
	const struct tw_cron *cron = argument;
	int64_t at = 0;

	for (int i = 0; i < 1000; i++)
		if (tw_cron_next(cron, at, &at) != TW_OK)
			return NULL;
	return VALUE(at);
}

TEST(once, several_threads_may_ask_at_a_time)
{
	enum { THREADS = 4 };
	struct tw_cron *cron = open_cron("30 2 * * *", "Europe/Berlin");
	void *expected = walk(cron);
	pthread_t threads[THREADS];
	void *result;

	assert_non_null(expected);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, walk, cron), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_ptr_equal(result, expected);
	}
	tw_cron_destroy(cron);
}

enum { RUNS_MOST = 16 };

/* A job runs by the system's clock: the wheel's clock with another start, which may be set. */
struct job {
	struct tw_wheel *wheel;
	struct tw_cron *cron;
	struct tw_timer timer;
	int64_t began_s;
	int64_t runs[RUNS_MOST];
	size_t run_count;
};

/* This is the job whose clock is the system's, or NULL. */
static struct job *clocked;

static int64_t job_time(const struct job *job)
{
	return job->began_s + tw_now(job->wheel) / TW_SECOND;
}

/* Replaces the C library's. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_REALTIME || !clocked)
		return (int)syscall(SYS_clock_gettime, clock, time);
	*time = (struct timespec){.tv_sec = job_time(clocked),
				  .tv_nsec = tw_now(clocked->wheel) % TW_SECOND};
	return 0;
}

static void note_run(void *argument)
{
	struct job *job = argument;

	if (job->run_count < RUNS_MOST)
		job->runs[job->run_count++] = job_time(job);
}

static void job_pass(struct job *job, int64_t seconds)
{
	assert_status(tw_advance(job->wheel, seconds * TW_SECOND), TW_OK);
}

static void job_open(struct job *job, const char *expression, const char *begin)
{
	static const struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};

	*job = (struct job){.cron = open_cron(expression, NULL), .began_s = utc(begin)};
	assert_status(tw_create(&job->wheel, TW_SECOND, 512, NULL, &options), TW_OK);
	clocked = job;
	assert_status(tw_schedule_cron(job->wheel, job->cron, note_run, job, &job->timer), TW_OK);
}

/* Ends the job, whose first runs were at these times, as in struct run_of_times. */
static void job_close(struct job *job, const char *name, const char *times)
{
	char expected[64] = " ";

	for (size_t count = 0; take_time(&times, expected); count++) {
		char found[64] = "none";

		if (count < job->run_count)
			print_utc(found, job->runs[count]);
		if (count >= job->run_count || job->runs[count] != utc(expected))
			fail_msg("%s, run %zu: %s, not %s", name, count, found, expected);
	}
	clocked = NULL;
	tw_destroy(job->wheel);
	tw_cron_destroy(job->cron);
}

enum { DAY = DAY_SECONDS, YEARS = 9 * 365 * DAY_SECONDS, HOURS = HOUR_SECONDS };

/* All is as it was a second before the step but the clock. Looks are at full minutes of the wheel.
 * Times less than an hour back run. None runs twice within an hour, or half of a period. */
TEST(once, calendar_follows_the_clock_that_is_set)
{
	static const char daily[] = "30 9 * * *";
	static const char often[] = "*/5 * * * *";
	static const char hourly[] = "0 * * * *";
	static const struct {
		const char *expression;
		const char *begin;
		int64_t minutes; /* until the step */
		int64_t step;    /* seconds */
		const char *times;
	} cases[] = {
		/* The time is still to come. */
		{daily, "2026-11-29 09:00", 10, 0, "2026-11-29 09:30, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:00", 10, 1, "2026-11-29 09:30, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:00", 10, -1, "2026-11-29 09:30, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:00", 10, 59 * 60, "2026-11-29 10:10, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:00", 10, -59 * 60, "2026-11-29 09:30, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:00", 10, 2 * HOURS, "2026-11-30 09:30, 2026-12-01 09:30"},
		{daily, "2026-11-29 09:00", 10, -2 * HOURS, "2026-11-29 09:30, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:00", 10, DAY, "2026-11-30 09:30, 2026-12-01 09:30"},
		{daily, "2026-11-29 09:00", 10, -DAY, "2026-11-28 09:30, 2026-11-29 09:30"},
		{daily, "2026-11-29 09:00", 10, YEARS, "2035-11-27 09:30, 2035-11-28 09:30"},
		{daily, "2026-11-29 09:00", 10, -YEARS, "2017-12-01 09:30, 2017-12-02 09:30"},
		/* It is half a minute away, and the timer's deadline is the time. */
		{daily, "2026-11-29 09:29:30", 0, 1, "2026-11-29 09:30:01, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:29:30", 0, -1, "2026-11-29 09:30, 2026-11-30 09:30"},
		{"0 0 * * *", "2026-11-28 23:59:30", 0, -1, "2026-11-29 00:00, 2026-11-30 00:00"},
		/* It has run. */
		{daily, "2026-11-29 09:29", 2, 1, "2026-11-29 09:30, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:29", 1, -1, "2026-11-29 09:30, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:29", 2, 59 * 60, "2026-11-29 09:30, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:29", 2, -59 * 60, "2026-11-29 09:30, 2026-11-30 09:30"},
		{daily, "2026-11-29 09:29", 2, -2 * HOURS, "2026-11-29 09:30, 2026-11-29 09:30"},
		{daily, "2026-11-29 09:29", 2, DAY, "2026-11-29 09:30, 2026-11-30 09:32"},
		{daily, "2026-11-29 09:29", 2, -DAY, "2026-11-29 09:30, 2026-11-29 09:30"},
		{daily, "2026-11-29 09:29", 2, -YEARS, "2026-11-29 09:30, 2017-12-02 09:30"},
		/* One of many times has run, at 09:10. */
		{often, "2026-11-29 09:08", 4, 59 * 60,
		 "2026-11-29 09:10, 2026-11-29 10:12, 2026-11-29 10:15, 2026-11-29 10:20"},
		{often, "2026-11-29 09:08", 4, -59 * 60,
		 "2026-11-29 09:10, 2026-11-29 08:15, 2026-11-29 08:20"},
		{often, "2026-11-29 09:08", 4, -10 * 60,
		 "2026-11-29 09:10, 2026-11-29 09:05, 2026-11-29 09:10"},
		{often, "2026-11-29 09:08", 4, -3 * 60, "2026-11-29 09:10, 2026-11-29 09:15"},
		{often, "2026-11-29 09:08", 2, -1, "2026-11-29 09:10, 2026-11-29 09:15"},
		{hourly, "2026-11-29 08:58", 4, -59 * 60, "2026-11-29 09:00, 2026-11-29 09:00"},
		{hourly, "2026-11-29 08:58", 4, -10 * 60, "2026-11-29 09:00, 2026-11-29 10:00"},
		{often, "2026-11-29 09:08", 4, 2 * HOURS,
		 "2026-11-29 09:10, 2026-11-29 11:13, 2026-11-29 11:15, 2026-11-29 11:20"},
		{often, "2026-11-29 09:08", 4, -2 * HOURS,
		 "2026-11-29 09:10, 2026-11-29 07:15, 2026-11-29 07:20"},
		{often, "2026-11-29 09:08", 4, -YEARS,
		 "2026-11-29 09:10, 2017-12-01 09:15, 2017-12-01 09:20"},
		/* The clock was not yet set as the device began. */
		{"0 0 1 * *", "1970-01-01 00:05", 1, 20787 * (int64_t)DAY,
		 "2026-12-01 00:00, 2027-01-01 00:00"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[32];
		struct job job;

		job_open(&job, cases[i].expression, cases[i].begin);
		job_pass(&job, cases[i].minutes * 60);
		job.began_s += cases[i].step;
		job_pass(&job, 40 * (int64_t)DAY);
		snprintf(name, sizeof(name), "case %zu", i);
		job_close(&job, name, cases[i].times);
	}
}

TEST(once, run_that_a_reset_makes_takes_no_time_from_the_calendar)
{
	static const int64_t minutes[] = {0, 1, 20};
	struct job job;

	for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
		job_open(&job, "30 9 * * *", "2026-11-29 07:00");
		assert_status(tw_timer_reset(job.wheel, job.timer, minutes[i] * TW_MINUTE), TW_OK);
		job_pass(&job, DAY);
		assert_int_equal(job.runs[0], utc("2026-11-29 07:00") + minutes[i] * 60);
		job.runs[0] = utc("2026-11-29 07:00");
		job_close(&job, "reset", "2026-11-29 07:00, 2026-11-29 09:30");
	}
}

static void stop_itself(void *argument)
{
	struct job *job = argument;

	note_run(argument);
	assert_status(tw_timer_stop(job->wheel, job->timer), TW_REARMED);
}

TEST(once, timer_by_a_calendar_is_a_timer_like_others)
{
	struct tw_timer timer = {1};
	struct tw_stats stats;
	struct job job;
	void *argument;

	job_open(&job, "30 9 * * *", "2026-11-29 07:00");
	job_pass(&job, HOURS);
	/* Looks are no runs. */
	assert_status(tw_get_stats(job.wheel, &stats), TW_OK);
	assert_int_equal(stats.fired, 0);
	assert_int_equal(stats.task_duration.count, 0);
	assert_status(tw_timer_take(job.wheel, job.timer, &argument), TW_OK);
	assert_ptr_equal(argument, &job);
	assert_status(tw_schedule_cron(job.wheel, job.cron, stop_itself, &job, &job.timer), TW_OK);
	job_pass(&job, 2 * (int64_t)DAY);
	assert_int_equal(job.run_count, 1);
	assert_int_equal(tw_pending(job.wheel), 0);
	assert_status(tw_schedule_cron(NULL, job.cron, note_run, &job, NULL), TW_INVALID);
	assert_status(tw_schedule_cron(job.wheel, NULL, note_run, &job, &timer), TW_INVALID);
	assert_status(tw_schedule_cron(job.wheel, job.cron, NULL, &job, &timer), TW_INVALID);
	tw_cron_destroy(job.cron);
	job.cron = open_cron("0 0 30 2 *", NULL);
	assert_status(tw_schedule_cron(job.wheel, job.cron, note_run, &job, &timer), TW_NOT_FOUND);
	assert_int_equal(timer.id, 0);
	job_close(&job, "stopped", "2026-11-29 09:30");
}

/* Returns the processor time of this thread, in nanoseconds. */
static int64_t thread_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Returns the least processor time of a call, in nanoseconds, over several rounds of calls. */
static int64_t time_of_next(const struct tw_cron *cron, enum tw_status expected)
{
	enum { ROUNDS = 20, CALLS = 50 };
	int64_t least = INT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t begin = thread_time();
		int64_t after = utc("2026-03-29 00:30");
		int64_t took;

		for (int call = 0; call < CALLS; call++)
			assert_int_equal(tw_cron_next(cron, after, &after), expected);
		took = (thread_time() - begin) / CALLS;
		least = took < least ? took : least;
	}
	return least;
}

/* The limits are wide, for a busy machine: these take .1 and 40 us. */
TEST(once, next_time_is_found_in_microseconds_and_that_there_is_none_in_a_millisecond)
{
	struct tw_cron *often;
	struct tw_cron *never;

	if (TEST_HAS_SANITIZER || TEST_IS_EMULATED)
		TEST_SKIP("times mean little here");
	often = open_cron("30 9 * * MON-FRI", "Europe/Berlin");
	never = open_cron("0 0 30 2 *", "Europe/Berlin");
	assert_in_range(time_of_next(often, TW_OK), 0, 10000);
	assert_in_range(time_of_next(never, TW_NOT_FOUND), 0, 10000000);
	tw_cron_destroy(often);
	tw_cron_destroy(never);
}
