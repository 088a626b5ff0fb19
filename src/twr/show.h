/* SPDX-License-Identifier: MIT */
/* show writes to standard output, for people or as JSON, one object a line. */
#ifndef TWR_SHOW_H
#define TWR_SHOW_H

#include <jansson.h>

#include <timingwheel/redis.h>

/* Writes all about a task, a field a line or as JSON. */
void show_task(const struct tw_redis_info *info, bool json);
/* Writes one line of a list. Its JSON is that of show_task(). */
void show_line(const struct tw_redis_info *info, bool json);
/* Writes the end of a run, with its namespace if `named` is true. */
void show_report(const struct tw_redis_report *report, bool json, bool named);

/* Writes a key as text. Bytes that are not printable, blanks and % become %XX. */
void show_key(FILE *stream, const void *key, size_t key_size);

/* Writes the object on a line of its own, and frees it. NULL, which means no memory, is left
 * out. */
void show_json(json_t *object);
/* Sets `name` to a time, as text in UTC. */
void json_set_time(json_t *object, const char *name, int64_t at_ms);

#endif
