/* SPDX-License-Identifier: MIT */
/*
 * record.c writes and reads records. A task is checked when it is added and the caller can learn of
 * the error. Group, URL and headers are checked again when a record is read: one that is broken
 * makes a dead letter, whatever has broken it.
 */
#include "record.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"
#include "redis/wire/settings.h"

enum { DEFAULT_ATTEMPTS = 25 };
static const int64_t at_ms_max = INT64_C(253402300799999); /* the end of the year 9999 */

const char *method_name(enum tw_redis_method method)
{
	static const char *const names[] = {TW_REDIS_METHOD_NAMES};

	return method <= TW_REDIS_HEAD ? names[method] : NULL;
}

/* Returns the size of the character, or 0 if it is none of UTF-8. */
static size_t character_size(const char *text)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	unsigned char first = (unsigned char)*text;
	size_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
	uint32_t code = more ? first & (0x3fu >> more) : first;

	if (more && (first < 0xc0 || first > 0xf4))
		return 0;
	for (size_t i = 1; i <= more; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return more + 1;
}

/* Checks a text, which the error names: it is UTF-8 without control characters. */
static enum tw_status text_check(const char *text, bool blanks, const char *name,
				 struct tw_redis_error *error)
{
	for (size_t size; *text; text += size) {
		unsigned char byte = (unsigned char)*text;

		size = character_size(text);
		if (!size)
			return error_set(error, TW_REDIS_BAD_DATA, "%s is not UTF-8", name);
		if (byte == 0x7f || (byte < 0x20 && byte != '\t') || (!blanks && byte <= 0x20))
			return error_set(error, TW_REDIS_BAD_DATA,
					 "%s contains a %scontrol character", name,
					 blanks ? "" : "blank or a ");
	}
	return TW_OK;
}

const char *url_host(const char *url, size_t *size)
{
	const char *host = strstr(url, "://") + 3;
	const char *at;

	*size = strcspn(host, "/?#");
	at = memrchr(host, '@', *size);
	if (at) {
		*size -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	return host;
}

static enum tw_status url_check(const char *url, struct tw_redis_error *error)
{
	size_t size;

	if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
		return error_set(error, TW_REDIS_BAD_DATA,
				 "the callback's URL must begin with http:// or https://");
	if (strlen(url) > TW_REDIS_URL_MAX)
		return error_set(error, TW_REDIS_BAD_DATA, "the URL is longer than %d bytes",
				 TW_REDIS_URL_MAX);
	if (*url_host(url, &size) == ':' || !size)
		return error_set(error, TW_REDIS_BAD_DATA, "the URL has no host");
	return text_check(url, false, "the URL", error);
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
	if (header_is_ours(header, name))
		return error_set(error, TW_REDIS_BAD_DATA, "the header %.*s is set by the worker",
				 (int)(name < 60 ? name : 60), header);
	return text_check(header, true, "a header", error);
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
	return group ? text_check(group, true, "the group", error) : TW_OK;
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

/* ---- Records ---- */

static void number_write(struct buffer *buffer, int64_t number)
{
	buffer_append(buffer, " ", 1);
	buffer_append_number(buffer, number);
}

static void line_write(struct buffer *buffer, const char *begin, const char *text)
{
	buffer_append_text(buffer, begin);
	buffer_append_text(buffer, text);
	buffer_append(buffer, "\n", 1);
}

enum tw_status record_write(struct buffer *buffer, const struct tw_redis_task *task,
			    int64_t latest_due_ms, struct tw_redis_error *error)
{
	buffer_clear(buffer);
	buffer_append_number(buffer, task->max_attempts ? task->max_attempts : DEFAULT_ATTEMPTS);
	number_write(buffer, (task->grace + TW_MILLISECOND - 1) / TW_MILLISECOND);
	if (latest_due_ms)
		number_write(buffer, latest_due_ms);
	buffer_append(buffer, "\n", 1);
	if (task->group)
		line_write(buffer, "G ", task->group);
	if (task->url) {
		buffer_append_text(buffer, method_name(task->method));
		line_write(buffer, " ", task->url);
	}
	for (size_t i = 0; i < task->header_count; i++)
		line_write(buffer, "H ", task->headers[i]);
	buffer_append(buffer, "\n", 1);
	buffer_append(buffer, task->body, task->body_size);
	return buffer->failed ? error_set(error, TW_NO_MEMORY, "out of memory") : TW_OK;
}

/* Takes a line, whose end becomes a NUL. Returns NULL if there is none, or it has a NUL. */
static char *line_take(char **at, const char *end)
{
	char *line = *at;
	char *line_end = memchr(line, '\n', (size_t)(end - line));

	if (!line_end || memchr(line, '\0', (size_t)(line_end - line)))
		return NULL;
	*line_end = '\0';
	*at = line_end + 1;
	return line;
}

static bool number_take(const char **at, int64_t most, int64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	*number = strtoll(*at, &end, 10);
	*at = end;
	return *number <= most;
}

/* Reads the numbers of the first line. */
static bool head_read(struct record *record, const char *line)
{
	int64_t attempts;
	int64_t grace_ms;

	if (!number_take(&line, INT64_MAX, &record->due_ms) || *line++ != ' ' ||
	    !number_take(&line, UINT32_MAX, &attempts) || *line++ != ' ' ||
	    !number_take(&line, TW_REDIS_DELAY_MAX / TW_MILLISECOND, &grace_ms))
		return false;
	record->task.max_attempts = (unsigned)attempts;
	record->task.grace = grace_ms * TW_MILLISECOND;
	return !*line ||
	       (*line++ == ' ' && number_take(&line, INT64_MAX, &record->latest_due_ms) && !*line);
}

static enum tw_status header_read(struct record *record, const char *header)
{
	struct tw_redis_task *task = &record->task;

	if (task->header_count == TW_REDIS_HEADER_COUNT_MAX)
		return TW_REDIS_BAD_DATA;
	if (!record->headers)
		record->headers = calloc(TW_REDIS_HEADER_COUNT_MAX, sizeof(*record->headers));
	if (!record->headers)
		return TW_NO_MEMORY;
	record->headers[task->header_count++] = header;
	task->headers = record->headers;
	return TW_OK;
}

/* Reads a line with a group, a header, or a callback. */
static enum tw_status line_read(struct record *record, const char *line)
{
	struct tw_redis_task *task = &record->task;
	size_t size = strcspn(line, " ");
	const char *text = line + size + !!line[size];

	if (size == 1 && *line == 'H')
		return header_read(record, text);
	if (size == 1 && *line == 'G') {
		task->group = text;
		return TW_OK;
	}
	for (task->method = TW_REDIS_POST; method_name(task->method); task->method++)
		if (strlen(method_name(task->method)) == size &&
		    !memcmp(line, method_name(task->method), size)) {
			task->url = text;
			return TW_OK;
		}
	return TW_REDIS_BAD_DATA;
}

enum tw_status record_read(struct record *record, char *data, size_t size)
{
	const char *end = data + size;
	enum tw_status status = TW_OK;
	char *line;

	memset(record, 0, sizeof(*record));
	line = line_take(&data, end);
	if (!line || !head_read(record, line))
		status = TW_REDIS_BAD_DATA;
	while (status == TW_OK && (line = line_take(&data, end)) && *line)
		status = line_read(record, line);
	record->task.body = data;
	record->task.body_size = (size_t)(end - data);
	if (status == TW_OK && (!line || group_check(record->task.group, NULL) != TW_OK ||
				callback_check(&record->task, NULL) != TW_OK))
		status = TW_REDIS_BAD_DATA;
	if (status != TW_OK)
		record_free(record);
	return status;
}

void record_free(struct record *record)
{
	free(record->headers);
	memset(record, 0, sizeof(*record));
}
