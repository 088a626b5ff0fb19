/* SPDX-License-Identifier: MIT */
/* Writes to standard output: for people, or as JSON, one object a line. */
#ifndef TWR_SHOW_H
#define TWR_SHOW_H

#include <jansson.h>

#include <timingwheel/redis.h>

/* All there is to know about a task, no dead letter, over several lines; as JSON with its body. */
void show_task(const struct tw_redis_info *info, bool json);
/* One line of a list; as JSON the same as show_task. */
void show_line(const struct tw_redis_info *info, bool json);
void show_stats(const struct tw_redis_stats *stats, bool json);
/* What became of a run; `named`: with its namespace. */
void show_report(const struct tw_redis_report *report, bool json, bool named);

/* A key as text: bytes that are not printable, blanks and % become %XX. */
void show_key(FILE *stream, const void *key, size_t key_size);

/* Writes the object on a line of its own, and frees it; NULL (no memory) is left out. */
void show_json(json_t *object);
/* Sets name to the bytes: as they are if they are UTF-8, else base64 under name_base64. */
void json_set_bytes(json_t *object, const char *name, const void *bytes, size_t size);
/* Sets name to a time, as text in UTC. */
void json_set_time(json_t *object, const char *name, int64_t at_ms);

#endif
