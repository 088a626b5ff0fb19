/* SPDX-License-Identifier: MIT */
/* Times, lengths of time and what becomes of missed ones, as text. All times are UTC; no clock is
 * read here. */
#ifndef TWR_WHEN_H
#define TWR_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/redis.h>

enum { WHEN_SIZE = 32 };

/* "90", "1.5s", "250ms", "1h30m", "7d": a bare number is seconds. False: it is none of these. */
bool duration_parse(const char *text, tw_duration *duration);

/* "2031-05-01T12:00:00.250Z", "2031-05-01T12:00+02:00", or seconds since 1970, to milliseconds
 * since 1970. A time without a zone is refused: whose would it be? */
bool time_parse(const char *text, int64_t *at_ms);

/* "2031-05-01T12:00:00.250Z". Returns the text. */
const char *time_write(int64_t at_ms, char text[WHEN_SIZE]);

/* "250 us", "12.3 ms", "4.56 s". Returns the text. */
const char *duration_write(tw_duration duration, char text[WHEN_SIZE]);

/* "one", "skip" or "all"; false: the text is none of them. */
const char *missed_name(enum tw_redis_missed missed);
bool missed_read(const char *text, enum tw_redis_missed *missed);

#endif
