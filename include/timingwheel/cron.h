/* SPDX-License-Identifier: MIT */
/*
 * Times by the calendar: a cron expression in the local time of a zone, and the next time that it
 * names.
 *
 *     struct tw_cron *cron;
 *     struct tw_cron_error error;
 *     int64_t next_s;
 *     if (tw_cron_create(&cron, "30 9 * * MON-FRI", "Europe/Berlin", &error) != TW_OK)
 *             fprintf(stderr, "%s\n", error.text);
 *     else if (tw_cron_next(cron, time(NULL), &next_s) == TW_OK)
 *             printf("%lld\n", (long long)next_s);
 *     tw_cron_destroy(cron);
 *
 * Times are seconds since 1970 UTC, as of time(2), without leap seconds. A wheel's clock has no
 * date. So this is a `next` for tw_schedule_func, with a job of the caller's that has the wheel,
 * the schedule, and last_s, at first 0:
 *
 *     tw_duration next_run(void *argument, tw_duration previous)
 *     {
 *             struct job *job = argument;
 *             struct timespec real;
 *             clock_gettime(CLOCK_REALTIME, &real);
 *             if (job->last_s < real.tv_sec)
 *                     job->last_s = real.tv_sec;
 *             if (tw_cron_next(job->cron, job->last_s, &job->last_s) != TW_OK)
 *                     return previous;
 *             return tw_now(job->wheel) + (job->last_s - real.tv_sec) * TW_SECOND - real.tv_nsec;
 *     }
 *
 * No time runs twice so, even where the real clock goes more slowly than the wheel's or is set
 * back. Times that pass while a run lasts are left out. Where the real clock is set while a timer
 * waits, that run keeps its place on the wheel's clock, and the next one follows the new time. A
 * task on Redis is due at next_s * 1000 milliseconds.
 *
 * The expression has five fields, with blanks between them:
 *
 *     minute 0-59   hour 0-23   day of the month 1-31   month 1-12   day of the week 0-7
 *
 * A field is a list, with commas, of numbers, ranges such as 1-5, and `*`, which is all. A range
 * and a `*` may have a step: 10-30/5, or every third from the first one on by `*` and /3. Months
 * are also JAN to DEC, days of the week SUN to SAT, in upper or lower case; 0 and 7 are both
 * Sunday. Instead of the five fields: @yearly or @annually (0 0 1 1 *), @monthly (0 0 1 * *),
 * @weekly (0 0 * * 0), @daily or @midnight (0 0 * * *), @hourly (0 * * * *).
 *
 * A day must fit its month and both of the fields for days; where neither of the two begins with a
 * `*`, one of them is enough, as in Vixie's cron: 0 0 13 * FRI is each 13th and each Friday, and
 * 0 0 1-7 * FRI too is more than the first Friday. A field that begins with a `*` counts as a `*`
 * even with a step or more of a list behind it.
 *
 * When the clocks change (all tested with Europe/Berlin, Australia/Lord_Howe and Pacific/Apia):
 *  - A schedule for certain hours runs once for each local time it names. A time that the clocks
 *    skip runs at the change; several of them run once. This holds for a skipped day too: what
 *    names the 30th of December 2011 in Pacific/Apia runs as the 31st begins. A time that comes
 *    twice runs the first time only.
 *  - A schedule for every hour (`*`, or written otherwise: 0-23) goes with the clock on the wall:
 *    it runs whenever that shows a minute it names. So the steps of real time stay the same:
 *    30 * * * * runs once in each hour that passes, also in the hour that comes twice, and nothing
 *    is added for an hour that is skipped. Where the clocks change by half an hour, one of its
 *    steps is half an hour longer or shorter.
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

/* Longest name of a zone, in bytes. */
#define TW_CRON_ZONE_MAX 255
/* How far tw_cron_next looks, in years: no date there is stays away for longer than 40. */
#define TW_CRON_YEARS_MAX 50

/* An expression with its zone; never changes. */
struct tw_cron;

/* What is wrong with an expression or a zone. */
struct tw_cron_error {
	const char *text; /* in words, for a user; a static string, never NULL */
	size_t position;  /* where: bytes from the beginning of the expression, or of the zone */
	bool in_zone;     /* it is the zone: its name, or its file */
};

/*
 * Makes a schedule of an expression and a zone.
 *
 * `zone` is the name of an IANA time zone, such as "Europe/Berlin"; NULL and "UTC" are UTC. The
 * zone's rules are read here, once, from its file in the folder that the environment's TZDIR names,
 * or in /usr/share/zoneinfo. Both strings are copied as far as they are needed. Except on TW_OK
 * *cron is NULL, and *error (may be NULL) is written. Any thread, while none changes the
 * environment. Costs up to three allocations, and the reading of a small file.
 *
 * Returns:
 *   TW_OK         the caller owns *cron, until tw_cron_destroy
 *   TW_INVALID    no cron to fill, no expression or a wrong one; a zone whose name is empty or too
 *                 long, begins with '/', has an empty part, "." or ".." between '/', or another
 *                 byte than letters, digits, '.', '_', '-' and '+'; a zone's file that is damaged
 *                 or counts leap seconds
 *   TW_NOT_FOUND  there is no such zone
 *   TW_NO_MEMORY  nothing was made
 *   TW_SYSTEM     the zone's file could not be read; errno tells why
 */
TW_API enum tw_status tw_cron_create(struct tw_cron **cron, const char *expression,
				     const char *zone, struct tw_cron_error *error);

/* Frees the schedule. NULL is fine. The last call on it. Any thread. */
TW_API void tw_cron_destroy(struct tw_cron *cron);

/*
 * Tells the first time of the schedule that is later than `after_s`.
 *
 * Both are seconds since 1970 UTC; after_s may be any, and what is before the year 1 counts as its
 * beginning. Except on TW_OK *next_s keeps its value. Any thread, several at a time. Allocates
 * nothing, reads no file. Costs less than a microsecond; up to a millisecond where the next time is
 * decades off or does not exist.
 *
 * Returns:
 *   TW_OK         *next_s is the time
 *   TW_INVALID    no cron, or no place for the time
 *   TW_NOT_FOUND  there is none in the next TW_CRON_YEARS_MAX years (30 Feb), or none up to the
 *                 year 9999
 */
TW_API enum tw_status tw_cron_next(const struct tw_cron *cron, int64_t after_s, int64_t *next_s);

#ifdef __cplusplus
}
#endif

#endif
