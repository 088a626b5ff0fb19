/* SPDX-License-Identifier: MIT */
/*
 * A record is what is kept of a task in Redis: lines, an empty line, and the body.
 *   DUE ATTEMPTS GRACE      the due time of its first attempt, in milliseconds since 1970, which
 *                           add.lua writes; the highest number of attempts; and how late it may
 *                           begin, in milliseconds, or 0; with " LATEST" behind it if the task has
 *                           a latest due time, which add.lua writes, too
 *   G GROUP                 if it has a group
 *   METHOD URL              if it has a callback
 *   H NAME: VALUE           each header
 * The scripts read the first line and the group. Texts are UTF-8 without control characters.
 */
#ifndef REDIS_CLIENT_RECORD_H
#define REDIS_CLIENT_RECORD_H

#include <stddef.h>

#include <timingwheel/redis.h>

#include "redis/wire/buffer.h"

/* This is a record taken apart. The task has no key. Its pointers lead into the record's bytes and
 * to `headers`. */
struct record {
	struct tw_redis_task task; /* without a callback it has no URL */
	int64_t due_ms;            /* the due time of its first attempt */
	int64_t latest_due_ms;     /* 0 if it has none */
	const char **headers;
};

/* Checks the task's data. Returns TW_OK, or TW_INVALID or TW_REDIS_BAD_DATA with *error, which may
 * be NULL. */
enum tw_status task_check(const struct tw_redis_task *task, struct tw_redis_error *error);

/* Checks a group, which is text that a header may carry and a path of one or two names, or NULL.
 * The statuses are those of task_check(). */
enum tw_status group_check(const char *group, struct tw_redis_error *error);

/* Replaces the buffer's bytes by the record without its due time. `latest_due_ms` is 0 for a task
 * that has none, or to which add.lua adds it. Returns TW_OK or TW_NO_MEMORY. */
enum tw_status record_write(struct buffer *buffer, const struct tw_redis_task *task,
			    int64_t latest_due_ms, struct tw_redis_error *error);

/* Reads a record, whose lines get a NUL at their ends. Returns TW_OK, or TW_REDIS_BAD_DATA if it is
 * none of ours, or TW_NO_MEMORY. Unless it is TW_OK, nothing is to be freed. */
enum tw_status record_read(struct record *record, char *data, size_t size);
void record_free(struct record *record);

/* Returns name and port, *size bytes in the URL, which has a scheme. */
const char *url_host(const char *url, size_t *size);

/* Returns "POST" and so on, or NULL if there is no such method. */
const char *method_name(enum tw_redis_method method);

#endif
