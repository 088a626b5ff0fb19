/* SPDX-License-Identifier: MIT */
/*
 * task_line.c has a table of the fields: what each must be and where it goes. Other fields are
 * refused, because a misspelt one would be missing in the task.
 */
#include "task_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "when.h"

static const int64_t at_ms_max = INT64_C(253402300799999); /* the end of the year 9999 */

/* Takes the field's value. Returns false if the field may not have it. */
typedef bool take_field(struct task_line *line, const json_t *value);

/* Returns a text without a NUL, or NULL for any other value. */
static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool take_key(struct task_line *line, const json_t *value)
{
	line->info.task.key = json_string_value(value);
	line->info.task.key_size = json_string_length(value);
	return line->info.task.key_size && line->info.task.key_size <= TW_REDIS_KEY_MAX;
}

static bool take_key_base64(struct task_line *line, const json_t *value)
{
	const char *text = json_string_value(value);

	line->key = text ? base64_read(text, json_string_length(value), &line->info.task.key_size)
			 : NULL;
	line->info.task.key = line->key;
	return line->key && line->info.task.key_size &&
	       line->info.task.key_size <= TW_REDIS_KEY_MAX;
}

static bool take_body(struct task_line *line, const json_t *value)
{
	line->info.task.body = json_string_value(value);
	line->info.task.body_size = json_string_length(value);
	return line->info.task.body;
}

static bool take_body_base64(struct task_line *line, const json_t *value)
{
	const char *text = json_string_value(value);

	line->body = text ? base64_read(text, json_string_length(value), &line->info.task.body_size)
			  : NULL;
	line->info.task.body = line->body;
	return line->body;
}

static bool take_time(const json_t *value, int64_t *time_ms)
{
	*time_ms = json_integer_value(value);
	return json_typeof(value) == JSON_INTEGER && *time_ms >= 0 && *time_ms <= at_ms_max;
}

static bool take_due_ms(struct task_line *line, const json_t *value)
{
	if (!take_time(value, &line->info.due_ms))
		return false;
	/* An occurrence's own time is another one. */
	if (!json_object_get(line->json, "occurrence_ms"))
		line->info.task.at_ms = line->info.due_ms;
	return true;
}

static bool take_occurrence_ms(struct task_line *line, const json_t *value)
{
	return take_time(value, &line->info.task.at_ms);
}

static bool take_due(struct task_line *line, const json_t *value)
{
	const char *text = text_of(value);

	/* due_ms is exact. */
	if (json_object_get(line->json, "due_ms"))
		return true;
	return text && time_parse(text, &line->info.task.at_ms) &&
	       line->info.task.at_ms <= at_ms_max;
}

static bool take_in(struct task_line *line, const json_t *value)
{
	const char *text = text_of(value);

	return text && duration_parse(text, &line->info.task.delay) &&
	       line->info.task.delay <= TW_REDIS_DELAY_MAX;
}

static bool take_latest(struct task_line *line, const json_t *value)
{
	const char *text = text_of(value);

	return text && duration_parse(text, &line->info.task.latest) &&
	       line->info.task.latest > 0 && line->info.task.latest <= TW_REDIS_DELAY_MAX;
}

static bool take_latest_due_ms(struct task_line *line, const json_t *value)
{
	return take_time(value, &line->info.latest_due_ms);
}

static bool take_every_ms(struct task_line *line, const json_t *value)
{
	json_int_t every_ms = json_integer_value(value);

	if (every_ms < 1 || every_ms > TW_REDIS_DELAY_MAX / TW_MILLISECOND)
		return false;
	line->info.task.every = every_ms * TW_MILLISECOND;
	return true;
}

static bool take_grace_ms(struct task_line *line, const json_t *value)
{
	json_int_t grace_ms = json_integer_value(value);

	if (grace_ms < 1000 || grace_ms > TW_REDIS_DELAY_MAX / TW_MILLISECOND)
		return false;
	line->info.task.grace = grace_ms * TW_MILLISECOND;
	return true;
}

static bool take_cron(struct task_line *line, const json_t *value)
{
	line->info.task.cron = text_of(value);
	return line->info.task.cron && strlen(line->info.task.cron) <= TW_REDIS_CRON_MAX;
}

static bool take_zone(struct task_line *line, const json_t *value)
{
	line->info.task.zone = text_of(value);
	return line->info.task.zone;
}

static bool take_missed(struct task_line *line, const json_t *value)
{
	const char *text = text_of(value);

	return text && missed_read(text, &line->info.task.missed);
}

static bool take_max_attempts(struct task_line *line, const json_t *value)
{
	json_int_t number = json_integer_value(value);

	line->info.task.max_attempts = (unsigned)number;
	return number >= 1 && number <= TW_REDIS_ATTEMPTS_MAX;
}

static bool take_callback(struct task_line *line, const json_t *value)
{
	line->info.task.url = text_of(value);
	return line->info.task.url;
}

static bool take_group(struct task_line *line, const json_t *value)
{
	line->info.task.group = text_of(value);
	return line->info.task.group;
}

static bool take_method(struct task_line *line, const json_t *value)
{
	enum tw_redis_method *method = &line->info.task.method;
	const char *text = text_of(value);

	for (*method = TW_REDIS_POST; text && tw_redis_method_name(*method); ++*method)
		if (!strcmp(text, tw_redis_method_name(*method)))
			return true;
	return false;
}

static bool take_headers(struct task_line *line, const json_t *value)
{
	size_t count = json_array_size(value);

	line->headers =
		json_typeof(value) == JSON_ARRAY ? calloc(count + 1, sizeof(*line->headers)) : NULL;
	if (!line->headers)
		return false;
	for (size_t i = 0; i < count; i++) {
		line->headers[i] = text_of(json_array_get(value, i));
		if (!line->headers[i])
			return false;
	}
	line->info.task.headers = line->headers;
	line->info.task.header_count = count;
	return true;
}

static bool take_state(struct task_line *line, const json_t *value)
{
	static const char *const names[] = {"pending", "leased", "waiting", "dead"};
	enum tw_redis_state *state = &line->info.state;
	const char *text = text_of(value);

	line->restores = json_object_get(line->json, "due_ms");
	for (*state = TW_REDIS_PENDING; text && *state <= TW_REDIS_DEAD; ++*state)
		if (!strcmp(text, names[*state]))
			return true;
	return false;
}

static bool take_attempts(struct task_line *line, const json_t *value)
{
	json_int_t number = json_integer_value(value);

	line->info.attempts = (unsigned)number;
	return json_typeof(value) == JSON_INTEGER && number >= 0 && number <= UINT32_MAX;
}

static bool take_reason(struct task_line *line, const json_t *value)
{
	line->info.reason = text_of(value);
	return line->info.reason;
}

/* Reads a reason, which is cut as the library cuts it. */
static bool take_reason_base64(struct task_line *line, const json_t *value)
{
	const char *text = json_string_value(value);
	size_t size = 0;
	char *bytes = text ? base64_read(text, json_string_length(value), &size) : NULL;
	bool fine = bytes && !memchr(bytes, '\0', size);

	if (fine)
		snprintf(line->reason, sizeof(line->reason), "%.*s", (int)size, bytes);
	line->info.reason = line->reason;
	free(bytes);
	return fine;
}

static bool pass_over(struct task_line *line, const json_t *value)
{
	(void)line;
	(void)value;
	return true;
}

static const struct {
	const char *name;
	take_field *take;
	const char *needs; /* what it must be */
} fields[] = {
	{"key", take_key, "a string of 1 to 1024 bytes"},
	{"key_base64", take_key_base64, "1 to 1024 bytes in base64"},
	{"due_ms", take_due_ms, "milliseconds since 1970, up to the year 9999"},
	{"occurrence_ms", take_occurrence_ms, "milliseconds since 1970, up to the year 9999"},
	{"due", take_due, "a time such as \"2031-05-01T12:00:00Z\""},
	{"in", take_in, "a duration such as \"90\" or \"1h30m\", up to 100 years"},
	{"latest", take_latest, "a duration such as \"30s\", up to 100 years"},
	{"latest_due_ms", take_latest_due_ms, "milliseconds since 1970, up to the year 9999"},
	{"callback", take_callback, "a URL"},
	{"method", take_method, "\"POST\", \"GET\", \"PUT\", \"PATCH\", \"DELETE\" or \"HEAD\""},
	{"headers", take_headers, "an array of strings \"Name: value\""},
	{"body", take_body, "a string"},
	{"body_base64", take_body_base64, "bytes in base64"},
	{"grace_ms", take_grace_ms, "milliseconds, from a second to 100 years"},
	{"every_ms", take_every_ms, "milliseconds, up to 100 years"},
	{"cron", take_cron, "a string of up to 255 bytes"},
	{"zone", take_zone, "a string"},
	{"missed", take_missed, "\"one\", \"skip\" or \"all\""},
	{"group", take_group, "a string"},
	{"max_attempts", take_max_attempts, "a number from 1 to 1000000"},
	{"state", take_state, "\"pending\", \"leased\", \"waiting\" or \"dead\""},
	{"attempts", take_attempts, "a number"},
	{"reason", take_reason, "a string"},
	{"reason_base64", take_reason_base64, "bytes in base64"},
	{"died", pass_over, ""},
	{"now_ms", pass_over, ""},
	{"shard", pass_over, ""},
	{"token", pass_over, ""},
};
enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

/* Notes why the line is refused. Returns false. */
__attribute__((format(printf, 2, 3))) static bool refuse(struct task_line *line, const char *format,
							 ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line->reason, sizeof(line->reason), format, arguments);
	va_end(arguments);
	return false;
}

static bool field_read(struct task_line *line, const char *name, const json_t *value)
{
	char shown[3 * 40 + 1];

	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (strcmp(fields[i].name, name))
			continue;
		if (fields[i].take(line, value))
			return true;
		return refuse(line, "\"%s\" is not %s", name, fields[i].needs);
	}
	/* A terminal must not obey the name. */
	tw_redis_write_key(name, strnlen(name, 40), shown);
	return refuse(line, "there is no field \"%s\"", shown);
}

/* Checks that the line has at most one of each of these pairs. */
static bool pairs_check(struct task_line *line)
{
	static const char *const pairs[][2] = {
		{"key", "key_base64"}, {"body", "body_base64"}, {"reason", "reason_base64"},
		{"in", "due"},         {"in", "due_ms"},        {"latest", "state"}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (json_object_get(line->json, pairs[i][0]) &&
		    json_object_get(line->json, pairs[i][1]))
			return refuse(line, "\"%s\" and \"%s\" exclude each other", pairs[i][0],
				      pairs[i][1]);
	return true;
}

bool task_line_read(struct task_line *line, const char *text, size_t size)
{
	json_error_t error;
	const char *name;
	json_t *value;

	memset(line, 0, sizeof(*line));
	line->info.reason = "";
	line->json = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!line->json && json_error_code(&error) == json_error_duplicate_key)
		return refuse(line, "a field occurs twice");
	if (!line->json)
		return refuse(line, "the line is not JSON (byte %d)", error.position);
	if (json_typeof(line->json) != JSON_OBJECT)
		return refuse(line, "the line is not a JSON object");
	json_object_foreach(line->json, name,
			    value) if (!field_read(line, name, value)) return false;
	if (!line->info.task.key)
		return refuse(line, "the line has no key");
	if (line->info.state == TW_REDIS_DEAD && !json_object_get(line->json, "due_ms"))
		return refuse(line, "a dead letter requires \"due_ms\", the time of its death");
	return pairs_check(line);
}

void task_line_free(struct task_line *line)
{
	json_decref(line->json);
	free(line->headers);
	free(line->key);
	free(line->body);
}
