/* SPDX-License-Identifier: MIT */
/*
 * show.c writes tasks. Keys and bodies are any bytes, and a terminal must not obey them. Text has
 * %XX for them, and JSON has strings if they are UTF-8 and base64 if not. Times are the server's,
 * in UTC.
 */
#include "show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "when.h"
#include "task_line.h"

static const char *const end_names[] = {
	[TW_REDIS_END_DONE] = "done",         [TW_REDIS_END_RETRIED] = "retry",
	[TW_REDIS_END_DEAD] = "dead",         [TW_REDIS_END_STALE] = "stale",
	[TW_REDIS_END_RELEASED] = "released", [TW_REDIS_END_UNCONFIRMED] = "unconfirmed",
	[TW_REDIS_END_SNOOZED] = "snoozed"};

void json_set_time(json_t *object, const char *name, int64_t at_ms)
{
	char text[WHEN_SIZE];

	json_object_set_new(object, name, json_string(time_write(at_ms, text)));
}

void show_json(json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	if (text)
		puts(text);
	free(text);
	json_decref(object);
}

void show_key(FILE *stream, const void *key, size_t key_size)
{
	char text[4];

	for (size_t i = 0; i < key_size; i++) {
		tw_redis_write_key((const char *)key + i, 1, text);
		fputs(text, stream);
	}
}

/* Writes the text, except for bytes that a terminal would obey. */
static void show_text(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)text[i];

		if ((byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f)
			show_key(stdout, &byte, 1);
		else
			putchar(byte);
	}
}

/* Writes the reason at the end of a line. */
static void show_reason(const char *reason)
{
	if (*reason) {
		fputs("  ", stdout);
		show_text(reason, strlen(reason));
	}
	putchar('\n');
}

static void show_field(const char *name, const json_t *value)
{
	const json_t *element;
	size_t i;

	json_array_foreach(value, i, element) show_field(name, element);
	if (json_typeof(value) == JSON_ARRAY)
		return;
	printf("%-13s ", name);
	if (json_typeof(value) == JSON_INTEGER)
		printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		show_text(json_string_value(value), json_string_length(value));
	putchar('\n');
}

void show_task(const struct tw_redis_info *info, bool json)
{
	json_t *object = task_line_write(info);
	const char *name;
	json_t *value;

	if (json) {
		show_json(object);
		return;
	}
	json_object_foreach(object, name, value) show_field(name, value);
	json_decref(object);
}

void show_line(const struct tw_redis_info *info, bool json)
{
	char due[WHEN_SIZE];

	if (json) {
		show_json(task_line_write(info));
		return;
	}
	printf("%s  %-7s  %u/%u  ", time_write(info->due_ms, due), state_names[info->state],
	       info->attempts, info->task.max_attempts);
	show_key(stdout, info->task.key, info->task.key_size);
	show_reason(info->reason);
}

static json_t *report_json(const struct tw_redis_report *report)
{
	const struct tw_redis_job *job = report->job;
	json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:f, s:f}", "end", end_names[report->end],
				   "namespace", job->name_space, "attempt",
				   (json_int_t)job->attempt, "token", (json_int_t)job->token,
				   "late_ms", (double)job->lateness / TW_MILLISECOND, "took_ms",
				   (double)report->took / TW_MILLISECOND);

	json_set_bytes(object, "key", job->key, job->key_size);
	if (job->url) {
		/* User, password, path and query may be secrets. */
		const char *host = strstr(job->url, "://") + 3;
		int scheme = (int)(host - job->url);
		const char *end = host + strcspn(host, "/?#");
		const char *at = memrchr(host, '@', (size_t)(end - host));

		host = at ? at + 1 : host;
		json_object_set_new(
			object, "callback",
			json_sprintf("%.*s%.*s", scheme, job->url, (int)(end - host), host));
	}
	if (report->http_status)
		json_object_set_new(object, "http_status", json_integer(report->http_status));
	if (report->end == TW_REDIS_END_RETRIED)
		json_object_set_new(object, "retry_in_ms",
				    json_real((double)report->retry_in / TW_MILLISECOND));
	if (*report->reason)
		json_set_bytes(object, "reason", report->reason, strlen(report->reason));
	return object;
}

void show_report(const struct tw_redis_report *report, bool json, bool named)
{
	const struct tw_redis_job *job = report->job;
	char late[WHEN_SIZE];
	char took[WHEN_SIZE];
	char retry_in[WHEN_SIZE];

	if (json) {
		show_json(report_json(report));
		return;
	}
	printf("%-8s ", end_names[report->end]);
	show_key(stdout, job->key, job->key_size);
	if (named)
		printf("  namespace %s", job->name_space);
	printf("  attempt %u/%u  token %" PRIu64 "  late %s  took %s", job->attempt,
	       job->max_attempts, job->token, duration_write(job->lateness, late),
	       duration_write(report->took, took));
	if (report->end == TW_REDIS_END_RETRIED)
		printf("  retry in %s", duration_write(report->retry_in, retry_in));
	show_reason(report->reason);
}
