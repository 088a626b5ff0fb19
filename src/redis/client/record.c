/* SPDX-License-Identifier: MIT */
/*
 * record.c writes and reads records. A task for a handler has no JSON. A callback's URL and headers
 * are checked when the task is added and the caller can learn of the error. They are checked again
 * when a worker reads them: a record that is broken makes a dead letter, whatever has broken it.
 */
#include "record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/reserved.h"
#include "redis/wire/settings.h"

enum { DEFAULT_ATTEMPTS = 8 };
static const int64_t at_ms_max = INT64_C(253402300799999); /* the end of the year 9999 */

const char *method_name(enum tw_redis_method method)
{
	static const char *const names[] = {TW_REDIS_METHOD_NAMES};

	return method <= TW_REDIS_HEAD ? names[method] : NULL;
}

static bool has_control(const char *text, bool blanks)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == 0x7f || (byte < 0x20 && byte != '\t') || (!blanks && byte <= 0x20))
			return true;
	}
	return false;
}

static enum tw_status url_check(const char *url, struct tw_redis_error *error)
{
	size_t scheme = !strncasecmp(url, "http://", 7)    ? 7
			: !strncasecmp(url, "https://", 8) ? 8
							   : 0;
	const char *host = url + scheme;
	size_t authority = strcspn(host, "/?#");
	const char *at = memrchr(host, '@', authority);

	if (!scheme)
		return error_set(error, TW_REDIS_BAD_DATA,
				 "the callback's URL must begin with http:// or https://");
	if (strlen(url) > TW_REDIS_URL_MAX)
		return error_set(error, TW_REDIS_BAD_DATA, "the URL is longer than %d bytes",
				 TW_REDIS_URL_MAX);
	authority -= at ? (size_t)(at + 1 - host) : 0;
	host = at ? at + 1 : host;
	if (!authority || *host == ':')
		return error_set(error, TW_REDIS_BAD_DATA, "the URL has no host");
	if (has_control(url, false))
		return error_set(error, TW_REDIS_BAD_DATA,
				 "the URL contains a blank or a control character");
	return TW_OK;
}

/* Returns whether the worker sets this header itself, or it says how the message is framed. */
static bool header_is_ours(const char *header, size_t name)
{
	static const char *const ours[] = {"Content-Length", "Host", "Transfer-Encoding",
					   "Connection", "Expect"};

	if (!strncasecmp(header, "Tw-", 3))
		return true;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strlen(ours[i]) == name && !strncasecmp(header, ours[i], name))
			return true;
	return false;
}

static enum tw_status header_check(const char *header, struct tw_redis_error *error)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t name = header ? strspn(header, token) : 0;

	if (!name || header[name] != ':')
		return error_set(error, TW_REDIS_BAD_DATA, "a header is not \"Name: value\"");
	if (has_control(header, true))
		return error_set(error, TW_REDIS_BAD_DATA, "a header contains a control character");
	if (header_is_ours(header, name))
		return error_set(error, TW_REDIS_BAD_DATA, "the header %.*s is set by the worker",
				 (int)(name < 60 ? name : 60), header);
	return TW_OK;
}

static enum tw_status headers_check(const struct tw_redis_task *task, struct tw_redis_error *error)
{
	size_t size = 0;

	if (task->header_count > TW_REDIS_HEADER_COUNT_MAX)
		return error_set(error, TW_REDIS_BAD_DATA, "there are more than %d headers",
				 TW_REDIS_HEADER_COUNT_MAX);
	for (size_t i = 0; i < task->header_count; i++) {
		enum tw_status status = header_check(task->headers[i], error);

		if (status != TW_OK)
			return status;
		size += strlen(task->headers[i]);
	}
	if (size > TW_REDIS_HEADERS_MAX)
		return error_set(error, TW_REDIS_BAD_DATA, "the headers have more than %d bytes",
				 TW_REDIS_HEADERS_MAX);
	return TW_OK;
}

static enum tw_status callback_check(const struct tw_redis_task *task, struct tw_redis_error *error)
{
	enum tw_status status;

	if (!task->url)
		return task->header_count ? error_set(error, TW_REDIS_BAD_DATA,
						      "there are headers but no callback")
					  : TW_OK;
	if (task->method == TW_REDIS_HEAD && task->body_size)
		return error_set(error, TW_REDIS_BAD_DATA, "a HEAD request can't have a body");
	status = url_check(task->url, error);
	return status == TW_OK ? headers_check(task, error) : status;
}

enum tw_status group_check(const char *group, struct tw_redis_error *error)
{
	size_t size = group ? strlen(group) : 1;

	if (!size || size > TW_REDIS_GROUP_MAX)
		return error_set(error, TW_INVALID, "the group must have 1 to %d bytes",
				 TW_REDIS_GROUP_MAX);
	if (group && has_control(group, true))
		return error_set(error, TW_REDIS_BAD_DATA,
				 "the group contains a control character");
	return TW_OK;
}

enum tw_status task_check(const struct tw_redis_task *task, struct tw_redis_error *error)
{
	enum tw_status status;

	if (!task || !task->key || !task->key_size || task->key_size > TW_REDIS_KEY_MAX)
		return error_set(error, TW_INVALID, "the key must have 1 to %d bytes",
				 TW_REDIS_KEY_MAX);
	if (task->at_ms < 0 || task->at_ms > at_ms_max || task->delay > TW_REDIS_DELAY_MAX)
		return error_set(error, TW_INVALID, "the due time is out of range");
	if (task->every && (task->every < TW_MILLISECOND || task->every > TW_REDIS_DELAY_MAX ||
			    task->missed > TW_REDIS_MISSED_ALL))
		return error_set(error, TW_INVALID, "the period, or missed, is out of range");
	if (task->cron && (task->every || task->missed > TW_REDIS_MISSED_ALL))
		return error_set(error, TW_INVALID,
				 "a cron expression excludes a period, or missed is out of range");
	if (task->zone && !task->cron)
		return error_set(error, TW_INVALID, "a time zone requires a cron expression");
	if (task->grace && (task->grace < TW_SECOND || task->grace > TW_REDIS_DELAY_MAX))
		return error_set(error, TW_INVALID, "the grace is out of range");
	if (task->latest &&
	    (task->latest < 0 || task->latest > TW_REDIS_DELAY_MAX || task->every || task->cron))
		return error_set(error, TW_INVALID, "latest is out of range, or the task recurs");
	if (task->mode > TW_REDIS_REPLACE || task->method > TW_REDIS_HEAD ||
	    task->max_attempts > TW_REDIS_ATTEMPTS_MAX || (task->header_count && !task->headers) ||
	    (task->body_size && !task->body))
		return error_set(error, TW_INVALID, "a field of the task is out of range");
	if (!reserved_are_0(task->reserved))
		return error_set(error, TW_INVALID, "a reserved field of the task is not 0");
	if (task->body_size > TW_REDIS_BODY_MAX)
		return error_set(error, TW_REDIS_BAD_DATA, "the body is larger than %zu bytes",
				 TW_REDIS_BODY_MAX);
	status = group_check(task->group, error);
	return status == TW_OK ? callback_check(task, error) : status;
}

/* Returns callback and group as a JSON object, or NULL if they are not UTF-8, as the error says, or
 * without memory. */
static json_t *callback_write(const struct tw_redis_task *task, json_error_t *error)
{
	json_t *callback =
		task->url ? json_pack_ex(error, 0, "{s:s, s:s, s:s*}", "url", task->url, "method",
					 method_name(task->method), "group", task->group)
			  : json_pack_ex(error, 0, "{s:s}", "group", task->group);
	json_t *headers = callback && task->header_count ? json_array() : NULL;
	bool fine = callback && (headers || !task->header_count);

	/* Each of these takes over its argument, and fails if that is NULL. */
	for (size_t i = 0; i < task->header_count && fine; i++)
		fine = !json_array_append_new(headers,
					      json_pack_ex(error, 0, "s", task->headers[i]));
	if (headers && json_object_set_new(callback, "headers", headers))
		fine = false;
	if (fine)
		return callback;
	json_decref(callback);
	return NULL;
}

static void number_write(struct buffer *buffer, int64_t number)
{
	buffer_append(buffer, " ", 1);
	buffer_append_number(buffer, number);
}

enum tw_status record_write(struct buffer *buffer, const struct tw_redis_task *task,
			    int64_t latest_due_ms, struct tw_redis_error *error)
{
	unsigned attempts = task->max_attempts ? task->max_attempts : DEFAULT_ATTEMPTS;
	json_error_t failure = {0};
	bool has_json = task->url || task->group;
	json_t *callback = has_json ? callback_write(task, &failure) : NULL;
	char *text = callback ? json_dumps(callback, JSON_COMPACT) : NULL;

	json_decref(callback);
	if (has_json && !callback && json_error_code(&failure) == json_error_invalid_utf8)
		return error_set(error, TW_REDIS_BAD_DATA, "URL, headers and group must be UTF-8");
	if (has_json && !text)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	buffer_clear(buffer);
	buffer_append_number(buffer, attempts);
	number_write(buffer, text ? (int64_t)strlen(text) : 0);
	if (task->grace || task->latest || latest_due_ms) {
		number_write(buffer, (task->grace + TW_MILLISECOND - 1) / TW_MILLISECOND);
		if (latest_due_ms)
			number_write(buffer, latest_due_ms);
	}
	buffer_append(buffer, "\n", 1);
	if (text)
		buffer_append_text(buffer, text);
	buffer_append(buffer, task->body, task->body_size);
	free(text);
	return buffer->failed ? error_set(error, TW_NO_MEMORY, "out of memory") : TW_OK;
}

static enum tw_status callback_read(struct record *record)
{
	struct tw_redis_task *task = &record->task;
	json_t *headers = json_object_get(record->json, "headers");
	const char *method = json_string_value(json_object_get(record->json, "method"));

	task->url = json_string_value(json_object_get(record->json, "url"));
	task->group = json_string_value(json_object_get(record->json, "group"));
	if (group_check(task->group, NULL) != TW_OK)
		return TW_REDIS_BAD_DATA;
	if (!task->url && task->group)
		return TW_OK;
	/* A callback without a method is a POST. */
	while (method && method_name(task->method) && strcmp(method, method_name(task->method)))
		task->method++;
	task->header_count = json_array_size(headers);
	if (!task->url || task->method > TW_REDIS_HEAD)
		return TW_REDIS_BAD_DATA;
	record->headers = calloc(task->header_count + 1, sizeof(*record->headers));
	if (!record->headers)
		return TW_NO_MEMORY;
	for (size_t i = 0; i < task->header_count; i++)
		record->headers[i] = json_string_value(json_array_get(headers, i));
	task->headers = record->headers;
	return callback_check(task, NULL);
}

enum { HEAD_ATTEMPTS, HEAD_SIZE, HEAD_GRACE, HEAD_LATEST, HEAD_NUMBERS };

/* Reads the numbers before LF. Those that are not there become 0. Returns the head's end, or NULL
 * if it is none. */
static const char *head_parse(const char *at, const char *end, size_t numbers[HEAD_NUMBERS])
{
	static const int digits[HEAD_NUMBERS] = {10, 10, 13, 15};

	memset(numbers, 0, HEAD_NUMBERS * sizeof(numbers[0]));
	for (int i = 0; i < HEAD_NUMBERS; i++) {
		const char *start = at;

		while (at < end && *at >= '0' && *at <= '9' && at - start < digits[i])
			numbers[i] = numbers[i] * 10 + (size_t)(*at++ - '0');
		if (at == start || at == end)
			return NULL;
		if (*at == '\n' && i >= HEAD_SIZE)
			return at + 1;
		if (*at++ != ' ')
			return NULL;
	}
	return NULL;
}

enum tw_status record_read(struct record *record, const char *data, size_t size)
{
	const char *end = data + size;
	enum tw_status status = TW_OK;
	size_t head[HEAD_NUMBERS];
	size_t json_size;
	size_t grace_ms;

	memset(record, 0, sizeof(*record));
	data = head_parse(data, end, head);
	json_size = head[HEAD_SIZE];
	grace_ms = head[HEAD_GRACE];
	if (!data || json_size > (size_t)(end - data))
		return TW_REDIS_BAD_DATA;
	if (json_size) {
		/* Without memory jansson calls the text wrong, or loses a byte of a string (its
		 * issue 362). errno says so. */
		errno = 0;
		record->json = json_loadb(data, json_size, 0, NULL);
		if (errno == ENOMEM)
			status = TW_NO_MEMORY;
		else
			status = record->json ? callback_read(record) : TW_REDIS_BAD_DATA;
	}
	if (status != TW_OK) {
		record_free(record);
		return status;
	}
	record->latest_due_ms = (int64_t)head[HEAD_LATEST];
	record->task.max_attempts = (unsigned)head[HEAD_ATTEMPTS];
	record->task.grace = grace_ms < TW_REDIS_DELAY_MAX / TW_MILLISECOND
				     ? (tw_duration)grace_ms * TW_MILLISECOND
				     : TW_REDIS_DELAY_MAX;
	record->task.body = data + json_size;
	record->task.body_size = (size_t)(end - data) - json_size;
	return TW_OK;
}

void record_free(struct record *record)
{
	json_decref(record->json);
	free(record->headers);
	memset(record, 0, sizeof(*record));
}
