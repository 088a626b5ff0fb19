/* SPDX-License-Identifier: MIT */
/*
 * A task line is a task as JSON, as `list --json` and `dead list --json` write it (show_line). It
 * is an object of
 *   key, or key_base64       the key; base64 for bytes that are not UTF-8
 *   due_ms, due, or in       milliseconds since 1970; or as --at; or as --in; now if none is given
 *   latest                   as --latest
 *   callback, method         the URL; "POST" and so on
 *   headers                  an array of "Name: value"
 *   body, or body_base64
 *   group                    as --group
 *   max_attempts
 *   grace_ms                 how late it may begin
 *   every_ms, cron, zone, missed
 *                            how it recurs
 *   state                    with due_ms: the task is restored as it was listed; "dead": a dead
 *                            letter, whose due_ms is when it died
 *   attempts, latest_due_ms, occurrence_ms
 *                            of a task that is restored: attempts begun; its latest due time; of a
 *                            recurring one, the due time of its current occurrence
 *   reason or reason_base64  of a dead letter
 *   died, now_ms, shard, token
 *                            ignored, as "due" beside "due_ms" is
 */
#ifndef TWR_TASK_LINE_H
#define TWR_TASK_LINE_H

#include <jansson.h>

#include <timingwheel/redis.h>

enum { LINE_REASON_SIZE = 256 };

/* This is the task, with the memory that it points into. */
struct task_line {
	struct tw_redis_info info; /* the task; if it is restored, all of it */
	bool restores;             /* it has a state and a due_ms: it comes from a list */
	char reason[LINE_REASON_SIZE];
	json_t *json;
	const char **headers;
	void *key;  /* decoded from base64, or NULL */
	void *body; /* decoded from base64, or NULL */
};

/*
 * Reads a line. Returns false if it is no task, with the reason in `line`. The library's own checks
 * of a task, such as of its URL, are not made here. The caller frees `line` in both cases.
 */
bool task_line_read(struct task_line *line, const char *text, size_t size);
void task_line_free(struct task_line *line);

#endif
