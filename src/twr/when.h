/* SPDX-License-Identifier: MIT */
/* when reads and writes times and durations as text. All times are UTC. */
#ifndef TWR_WHEN_H
#define TWR_WHEN_H

#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/redis.h>

enum { WHEN_SIZE = 32 };

/* Reads a duration as "90", "1.5s", "250ms", "1h30m" or "7d". A number alone is seconds. Returns
 * false for other texts. */
bool duration_parse(const char *text, tw_duration *duration);

/* Reads a time as "2031-05-01T12:00:00.250Z", "2031-05-01T12:00+02:00", or seconds since 1970.
 * *at_ms is milliseconds since 1970. A time without a zone is refused. */
bool time_parse(const char *text, int64_t *at_ms);

/* Reads a rate as "15/1m", or "0" for none. Returns false for other texts. */
bool rate_parse(const char *text, struct tw_redis_limits *limits);
/* Writes it. Returns the text. */
const char *rate_write(const struct tw_redis_limits *limits, char text[WHEN_SIZE]);

/* Writes a time as "2031-05-01T12:00:00.250Z". Returns the text. */
const char *time_write(int64_t at_ms, char text[WHEN_SIZE]);

/* Writes a duration as "250 us", "12.3 ms" or "4.56 s". Returns the text. */
const char *duration_write(tw_duration duration, char text[WHEN_SIZE]);

/* Returns the time of the monotonic clock. */
tw_duration now_read(void);

#endif
