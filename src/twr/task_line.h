/* SPDX-License-Identifier: MIT */
/*
 * A task line is a task or a name's limits as JSON, as `list --json` and `limits --json` write it.
 * A task is an object of
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
 * Without a key it has the limits of a group, or of the namespace if that is "":
 *   group, weight, running, rate, paused
 */
#ifndef TWR_TASK_LINE_H
#define TWR_TASK_LINE_H

#include <jansson.h>

#include <timingwheel/redis.h>

enum { LINE_REASON_SIZE = 256 };
enum line_kind {
	LINE_TASK,
	LINE_RESTORED, /* it has a state and a due_ms: it comes from a list */
	LINE_LIMITS
};

/* This is the task or the limits, with the memory that a task points into. */
struct task_line {
	struct tw_redis_info info;     /* the task; if it is restored, all of it */
	struct tw_redis_limits limits; /* their group is that of info.task */
	const char *rate;
	enum line_kind kind;
	char reason[LINE_REASON_SIZE]; /* why it is no task */
	json_t *json;
};

/* Each list of names ends with NULL. */
extern const char *const state_names[];  /* enum tw_redis_state */
extern const char *const missed_names[]; /* enum tw_redis_missed */
extern const char *const method_names[]; /* enum tw_redis_method */

/* Sets *value to the place of the name in the list. Returns false if the name, which may be NULL,
 * is not there. */
bool name_read(const char *name, const char *const *names, unsigned *value);

/* Sets `name` to the bytes if they are UTF-8, and otherwise name_base64 to their base64 (RFC 4648,
 * with + and /, padded). */
void json_set_bytes(json_t *object, const char *name, const void *bytes, size_t size);
/* Returns a listed task or dead letter as an object, or NULL without memory. */
json_t *task_line_write(const struct tw_redis_info *info);

/*
 * Reads a line. Returns false if it is no task, with the reason in `line`. The library's own checks
 * of a task, such as of its URL, are not made here. The caller frees `line` in both cases.
 */
bool task_line_read(struct task_line *line, const char *text, size_t size);
void task_line_free(struct task_line *line);

#endif
