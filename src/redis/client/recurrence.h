/* SPDX-License-Identifier: MIT */
/*
 * recurrence computes when a recurring task is due next. What is kept in the hash `every`
 * (shared/time.lua) says how it recurs. The scripts compute no time: an add, a cancel and a finish
 * have the next one as an argument.
 */
#ifndef REDIS_CLIENT_RECURRENCE_H
#define REDIS_CLIENT_RECURRENCE_H

#include <stdint.h>

#include <timingwheel/cron.h>
#include <timingwheel/redis.h>

/* The largest size of an entry, with the NUL. */
enum { RECURRENCE_SIZE = TW_CRON_ZONE_MAX + TW_REDIS_CRON_MAX + 80 };
/* This is the next time of a task that recurs no more. */
static const int64_t recurrence_end = INT64_MAX;

/* An entry of `every`, taken apart. It points into the entry. */
struct recurrence {
	int64_t at_ms;       /* when the present occurrence was due at first */
	int64_t computed_ms; /* by this time of the server's clock, or 0 if a program gave it */
	enum tw_redis_missed missed;
	int64_t period_ms; /* 0 means by the calendar */
	const char *zone;
	const char *cron;
};

/* Writes the rhythm: what an entry has after its times. "" if the task does not recur. */
void recurrence_write(const struct tw_redis_task *task, char text[RECURRENCE_SIZE]);

/* Reads an entry, which is changed. Returns false if it is none, as "" is. */
bool recurrence_read(struct recurrence *how, char *entry);

/* Computes a task's first due time, not before now and not before the task's own time. Returns
 * TW_OK, TW_REDIS_BAD_DATA if the calendar or the zone is wrong or has no time to come,
 * TW_NO_MEMORY or TW_SYSTEM, with the error's text. */
enum tw_status recurrence_first(const struct tw_redis_task *task, int64_t now_ms, int64_t *at_ms,
				struct tw_redis_error *error);

/* Returns whether the present occurrence's time was computed by a clock that was ahead of this. */
bool recurrence_is_ahead(const struct recurrence *how, int64_t now_ms);

/*
 * Computes the occurrence that follows if the present one ends now, or recurrence_end, as `missed`
 * says; after a clock was ahead, the first one by this clock. With a period, those before oldest_ms
 * are passed over (0: none). Returns TW_OK, TW_REDIS_BAD_DATA if the calendar or its zone is not
 * known here, TW_NO_MEMORY or TW_SYSTEM.
 */
enum tw_status recurrence_next(const struct recurrence *how, int64_t now_ms, int64_t oldest_ms,
			       int64_t *next_ms);

#endif
