/* SPDX-License-Identifier: MIT */
/*
 * Finds the next time of a cron expression in the local time of a zone, and runs a timer at each.
 *
 *     struct tw_cron *cron;
 *     struct tw_cron_error error;
 *     int64_t next_s;
 *     if (tw_cron_create(&cron, "30 9 * * MON-FRI", "Europe/Berlin", &error) != TW_OK)
 *             fprintf(stderr, "%s\n", error.text);
 *     else if (tw_cron_next(cron, time(NULL), &next_s) == TW_OK)
 *             printf("%lld\n", (long long)next_s);
 *     if (tw_schedule_cron(wheel, cron, send_report, report, NULL) != TW_OK)
 *             free(report);
 *
 * Times are seconds since 1970 UTC, as from time(2), without leap seconds. A task on Redis is due
 * at next_s * 1000 milliseconds.
 *
 * The expression has five fields, separated by blanks:
 *
 *     minute 0-59   hour 0-23   day of the month 1-31   month 1-12   day of the week 0-7
 *
 * A field is a comma-separated list of numbers, ranges such as 1-5, and `*`, which means all
 * numbers. A range goes on from the highest number to the lowest: 22-2 is 22, 23, 0, 1 and 2. A
 * range or a `*` may have a step: 10-30/5 is every fifth number of the range, and `*` followed by
 * /3 is every third number from the lowest. 10/5 is every fifth number from 10 on. Months may be
 * written JAN to DEC, and days of the week SUN to SAT, in upper or lower case. 0 and 7 are both
 * Sunday. The end of a line may follow. A name may replace the five fields: @yearly or @annually (0
 * 0 1 1 *), @monthly (0 0 1 * *), @weekly (0 0 * * 0), @daily or @midnight (0 0 * * *), or @hourly
 * (0 * * * *).
 *
 * In the day fields `?` is `*`. L is the last day of the month. 5#2 is the second Friday of the
 * month, and 5L the last one; FRI#2 is the former, too. There is no W, no field of seconds and no
 * @every, for which there is tw_every.
 *
 * A day must match the month field and both day fields. If neither day field begins with a `*` or
 * `?`, one of them is enough, as in Vixie's cron: 0 0 13 * FRI is each 13th and each Friday, and 0
 * 0 1-7 * FRI is each of the first seven days and each Friday. A field that begins with a `*`
 * counts as a `*`, even if a step or more of a list follows.
 *
 * The library handles clock changes as follows (tested with Europe/Berlin, Australia/Lord_Howe and
 * Pacific/Apia):
 *  - A schedule for certain hours runs once for each local time of the expression. If the clocks
 *    skip such times, the schedule runs once, at the change. This holds for a skipped day too: a
 *    schedule for 30 December 2011 in Pacific/Apia runs at the beginning of the 31st. If a time
 *    occurs twice, the schedule runs the first time only.
 *  - A schedule for every hour (`*` or, for example, 0-23) runs whenever the local clock shows one
 *    of its minutes. Its steps of real time stay the same: 30 * * * * runs once in each hour,
 *    also in the repeated hour, and does not run for a skipped hour. If the clocks change by half
 *    an hour, one step is half an hour longer or shorter.
 */
#ifndef TIMINGWHEEL_CRON_H
#define TIMINGWHEEL_CRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest name of a zone, in bytes. */
#define TW_CRON_ZONE_MAX 255
/* The number of years that tw_cron_next searches. Each date that exists recurs within 40 years. */
#define TW_CRON_YEARS_MAX 50

/* Holds an expression with its zone. It never changes. */
struct tw_cron;

/* Says what is wrong with an expression or a zone. */
struct tw_cron_error {
	const char *text;     /* for people; a static string, never NULL */
	bool in_zone;         /* the zone's name or its file is wrong, not the expression */
	size_t position;      /* bytes from the beginning of the expression or of the zone's name */
	uint64_t reserved[4]; /* for later versions; 0 */
};

/*
 * Makes a schedule from a cron `expression` and the name of a time `zone`.
 *
 * `zone` is the name of an IANA time zone, such as "Europe/Berlin". NULL and "UTC" both mean UTC.
 * "local" and "localtime" are the zone of the environment variable TZ, as the C library reads it,
 * or without it the one of /etc/localtime. The call reads the zone's rules once, from its file in
 * the folder of the environment variable TZDIR, or in /usr/share/zoneinfo. The caller keeps both
 * strings. *cron is NULL unless the status is TW_OK; with any other status *error (may be NULL) is
 * written. Any thread, while no thread changes the environment. Costs up to three allocations, and
 * the reading of a small file.
 *
 * Returns:
 *   TW_OK         the caller owns *cron, until tw_cron_destroy
 *   TW_INVALID    cron or expression is NULL, or the expression is wrong. The zone's name is empty,
 *                 longer than TW_CRON_ZONE_MAX, begins with '/', has an empty part, "." or ".."
 *                 between '/', or has a byte other than letters, digits, '.', '_', '-', '+' and
 *                 '/'. The zone's file is damaged, or
 *                 of version 1, or counts leap seconds
 *   TW_NOT_FOUND  there is no such zone, or the folder of all zones is missing
 *   TW_NO_MEMORY  nothing was made
 *   TW_SYSTEM     the zone's file could not be read; errno has the cause
 */
TW_CHECKED
TW_API enum tw_status tw_cron_create(struct tw_cron **cron, const char *expression,
				     const char *zone, struct tw_cron_error *error);

/* Frees the schedule. `cron` may be NULL. This must be the last call with it. Any thread. */
TW_API void tw_cron_destroy(struct tw_cron *cron);

/*
 * Finds the first time of the schedule that is later than `after_s`.
 *
 * Both times are seconds since 1970 UTC. after_s may have any value; a time before the year 1
 * counts as the beginning of that year. *next_s is unchanged unless the status is TW_OK. Any
 * thread, several at a time. The call allocates nothing and reads no file. It costs less than a
 * microsecond, or up to a millisecond if the next time is decades away or does not exist.
 *
 * Returns:
 *   TW_OK         *next_s is the time
 *   TW_INVALID    cron or next_s is NULL
 *   TW_NOT_FOUND  the expression has no time in the next TW_CRON_YEARS_MAX years (such as 30 Feb),
 *                 or none before the year 10000
 */
TW_CHECKED
TW_API enum tw_status tw_cron_next(const struct tw_cron *cron, int64_t after_s, int64_t *next_s);

/*
 * Calls run(argument) at each time of the schedule, by the system's clock (CLOCK_REALTIME).
 *
 * The timer is a periodic one, as by tw_every, also for drains and stops. The program keeps `cron`
 * until the timer has ended. Runs never overlap, and times that pass during a run are skipped. The
 * timer looks at the system's clock each minute of the wheel's clock. So a change of the system's
 * clock, or a suspension of the machine, shows within a minute:
 *
 *  - No run comes before its time, by the system's clock.
 *  - If the clock has passed over times by less than an hour, the timer runs once, at the look. If
 *    it was by more, these times are skipped, and the timer goes on with the next one.
 *  - Times that come again, because the clock was set back, do not run again if it was by less
 *    than an hour and less than half of the schedule's period. Otherwise the timer goes on by the
 *    new clock at once, for the clock was wrong before, or the pause would be long.
 *
 * Until a run, the deadline that tw_timer_remaining and tw_each report is that of the next look.
 * After tw_timer_reset the timer runs at the time of the reset, whatever the calendar says, and
 * then goes on with the first time that is later. Costs as tw_after_func and tw_cron_next, and a
 * look 2 µs.
 *
 * Returns:
 *   TW_OK         the timer is armed
 *   TW_INVALID    cron is NULL
 *   TW_NOT_FOUND  the schedule has no time (see tw_cron_next)
 *   TW_FULL       there is no room, as for tw_set_timer
 *   TW_NO_MEMORY  nothing was armed
 */
TW_CHECKED
TW_API enum tw_status tw_schedule_cron(struct tw_wheel *wheel, const struct tw_cron *cron,
				       void (*run)(void *), void *argument, struct tw_timer *timer);

#ifdef __cplusplus
}
#endif

#endif
