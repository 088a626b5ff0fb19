/* SPDX-License-Identifier: MIT */
/*
 * A record is what is kept of a task in Redis: "ATTEMPTS SIZE LF JSON BODY" or, if the task has a
 * grace, "ATTEMPTS SIZE GRACE LF JSON BODY". ATTEMPTS are those it may have, and GRACE is how late
 * it may begin, in milliseconds; the scripts read both, too. JSON, of SIZE bytes, has the callback
 * (0 bytes if there is none); the rest is the body.
 */
#ifndef REDIS_CLIENT_RECORD_H
#define REDIS_CLIENT_RECORD_H

#include <stddef.h>

#include <jansson.h>

#include <timingwheel/redis.h>

#include "redis/wire/buffer.h"

/* A record taken apart. What the task points to lies in the record, in `headers` and in `json`; it
 * has no key. */
struct record {
	struct tw_redis_task task; /* no URL: no callback */
	const char **headers;
	json_t *json;
};

/* Checks the task's data: TW_OK, TW_INVALID or TW_REDIS_BAD_DATA, with the error (may be NULL). */
enum tw_status task_check(const struct tw_redis_task *task, struct tw_redis_error *error);

/* Replaces what is in the buffer by the record. TW_OK; TW_REDIS_BAD_DATA: text that is not UTF-8;
 * TW_NO_MEMORY. */
enum tw_status record_write(struct buffer *buffer, const struct tw_redis_task *task,
			    struct tw_redis_error *error);

/*
 * A task's time, as Redis writes the score that it keeps it in: any number, if something else has
 * written it. Beyond what fits it is INT64_MAX or INT64_MIN.
 */
int64_t score_read(const char *score);

/* TW_OK; TW_REDIS_BAD_DATA: it isn't one of ours; TW_NO_MEMORY. Else nothing is to be freed. */
enum tw_status record_read(struct record *record, const char *data, size_t size);
void record_free(struct record *record);

#endif
