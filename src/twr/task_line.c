/* SPDX-License-Identifier: MIT */
/*
 * task_line.c has a table of the fields: what each must be and where it goes. Other fields are
 * refused, because a misspelt one would be missing in the task.
 */
#include "task_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "names.h"
#include "when.h"

static const int64_t at_ms_max = INT64_C(253402300799999); /* the end of the year 9999 */

struct field;
/* Takes the field's value. Returns false if the field may not have it. */
typedef bool take_field(struct task_line *line, const struct field *field, const json_t *value);

struct field {
	const char *name;
	const char *needs; /* what it must be */
	take_field *take;
	size_t place;             /* in struct task_line */
	int64_t least;            /* the least number */
	int64_t most;             /* and the highest one */
	const char *const *names; /* the names that it may be */
};

static void *place_of(struct task_line *line, const struct field *field)
{
	return (char *)line + field->place;
}

/* Returns a text without a NUL, or NULL for any other value. */
static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool number_of(const struct field *field, const json_t *value, int64_t *number)
{
	*number = json_integer_value(value);
	return json_is_integer(value) && *number >= field->least && *number <= field->most;
}

static bool take_text(struct task_line *line, const struct field *field, const json_t *value)
{
	const char **place = place_of(line, field);

	*place = text_of(value);
	return *place;
}

static bool take_int64(struct task_line *line, const struct field *field, const json_t *value)
{
	return number_of(field, value, place_of(line, field));
}

static bool take_unsigned(struct task_line *line, const struct field *field, const json_t *value)
{
	unsigned *place = place_of(line, field);
	int64_t number;
	bool fine = number_of(field, value, &number);

	*place = (unsigned)number;
	return fine;
}

static bool take_milliseconds(struct task_line *line, const struct field *field,
			      const json_t *value)
{
	tw_duration *place = place_of(line, field);
	int64_t number;
	bool fine = number_of(field, value, &number);

	if (fine)
		*place = number * TW_MILLISECOND;
	return fine;
}

static bool take_duration(struct task_line *line, const struct field *field, const json_t *value)
{
	tw_duration *place = place_of(line, field);
	const char *text = text_of(value);

	return text && duration_parse(text, place) && *place >= field->least &&
	       *place <= field->most;
}

static bool take_rate(struct task_line *line, const struct field *field, const json_t *value)
{
	const char *text = text_of(value);

	return text && rate_parse(text, place_of(line, field));
}

static bool take_name(struct task_line *line, const struct field *field, const json_t *value)
{
	return name_read(text_of(value), field->names, place_of(line, field));
}

static bool take_due(struct task_line *line, const struct field *field, const json_t *value)
{
	const char *text = text_of(value);

	/* due_ms is exact. */
	if (json_object_get(line->json, "due_ms"))
		return true;
	return text && time_parse(text, place_of(line, field)) &&
	       line->info.task.at_ms <= at_ms_max;
}

static bool take_bytes(struct bytes *bytes, const json_t *value)
{
	bytes->at = json_string_value(value);
	bytes->size = json_string_length(value);
	return bytes->at;
}

static bool take_base64(struct bytes *bytes, const json_t *value)
{
	const char *text = json_string_value(value);

	bytes->memory = text ? base64_read(text, json_string_length(value), &bytes->size) : NULL;
	bytes->at = bytes->memory;
	return bytes->memory;
}

/* Takes bytes, as text or as base64. */
static bool take_any(struct task_line *line, const struct field *field, const json_t *value)
{
	struct bytes *bytes = place_of(line, field);
	bool fine = strstr(field->name, "_base64") ? take_base64(bytes, value)
						   : take_bytes(bytes, value);

	return fine && bytes->size >= (size_t)field->least && bytes->size <= (size_t)field->most;
}

static bool take_headers(struct task_line *line, const struct field *field, const json_t *value)
{
	size_t count = json_array_size(value);

	(void)field;
	line->headers = json_is_array(value) ? calloc(count + 1, sizeof(*line->headers)) : NULL;
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

/* Takes a reason, which has no NUL and is cut as the library cuts it. */
static bool take_reason(struct task_line *line, const struct field *field, const json_t *value)
{
	struct bytes bytes = {0};
	bool fine = strstr(field->name, "_base64") ? take_base64(&bytes, value)
						   : take_bytes(&bytes, value);

	fine = fine && !memchr(bytes.at, '\0', bytes.size);
	if (fine)
		snprintf(line->reason, sizeof(line->reason), "%.*s", (int)bytes.size,
			 (const char *)bytes.at);
	line->info.reason = line->reason;
	free(bytes.memory);
	return fine;
}

static bool take_group(struct task_line *line, const struct field *field, const json_t *value)
{
	const char *text = text_of(value);

	(void)field;
	line->info.task.group = text;
	return text && strlen(text) <= TW_REDIS_GROUP_MAX;
}

static bool take_flag(struct task_line *line, const struct field *field, const json_t *value)
{
	*(bool *)place_of(line, field) = json_is_true(value);
	return json_is_boolean(value);
}

static bool pass_over(struct task_line *line, const struct field *field, const json_t *value)
{
	(void)line;
	(void)field;
	(void)value;
	return true;
}

/* These are last parts of rows. */
#define TAKE(take, member, least, most) take, offsetof(struct task_line, member), least, most, NULL
#define NAME(member, names) take_name, offsetof(struct task_line, member), 0, 0, names
#define PASS_OVER "", pass_over, 0, 0, 0, NULL
#define DELAY_MS_MAX (TW_REDIS_DELAY_MAX / TW_MILLISECOND)

static const char time_ms[] = "milliseconds since 1970, up to the year 9999";

static const struct field task_fields[] = {
	{"key", "a string of 1 to 1024 bytes", TAKE(take_any, key, 1, TW_REDIS_KEY_MAX)},
	{"key_base64", "1 to 1024 bytes in base64", TAKE(take_any, key, 1, TW_REDIS_KEY_MAX)},
	{"due_ms", time_ms, TAKE(take_int64, info.due_ms, 0, at_ms_max)},
	{"occurrence_ms", time_ms, TAKE(take_int64, occurrence_ms, 0, at_ms_max)},
	{"due", "a time such as \"2031-05-01T12:00:00Z\"", TAKE(take_due, info.task.at_ms, 0, 0)},
	{"in", "a duration such as \"90\" or \"1h30m\", up to 100 years",
	 TAKE(take_duration, info.task.delay, 0, TW_REDIS_DELAY_MAX)},
	{"latest", "a duration such as \"30s\", up to 100 years",
	 TAKE(take_duration, info.task.latest, 1, TW_REDIS_DELAY_MAX)},
	{"latest_due_ms", time_ms, TAKE(take_int64, info.latest_due_ms, 0, at_ms_max)},
	{"callback", "a URL", TAKE(take_text, info.task.url, 0, 0)},
	{"method", "\"POST\", \"GET\", \"PUT\", \"PATCH\", \"DELETE\" or \"HEAD\"",
	 NAME(info.task.method, method_names)},
	{"headers", "an array of strings \"Name: value\"", TAKE(take_headers, headers, 0, 0)},
	{"body", "a string", TAKE(take_any, body, 0, INT64_MAX)},
	{"body_base64", "bytes in base64", TAKE(take_any, body, 0, INT64_MAX)},
	{"grace_ms", "milliseconds, from a second to 100 years",
	 TAKE(take_milliseconds, info.task.grace, 1000, DELAY_MS_MAX)},
	{"every_ms", "milliseconds, up to 100 years",
	 TAKE(take_milliseconds, info.task.every, 1, DELAY_MS_MAX)},
	{"cron", "a string", TAKE(take_text, info.task.cron, 0, 0)},
	{"zone", "a string", TAKE(take_text, info.task.zone, 0, 0)},
	{"missed", "\"one\", \"skip\" or \"all\"", NAME(info.task.missed, missed_names)},
	{"group", "a string of up to 255 bytes", TAKE(take_group, info.task.group, 0, 0)},
	{"max_attempts", "a number from 1 to 1000000",
	 TAKE(take_unsigned, info.task.max_attempts, 1, TW_REDIS_ATTEMPTS_MAX)},
	{"state", "\"pending\", \"leased\", \"waiting\" or \"dead\"",
	 NAME(info.state, state_names)},
	{"attempts", "a number", TAKE(take_unsigned, info.attempts, 0, UINT32_MAX)},
	{"reason", "a string", TAKE(take_reason, reason, 0, 0)},
	{"reason_base64", "bytes in base64", TAKE(take_reason, reason, 0, 0)},
	{"died", PASS_OVER},
	{"now_ms", PASS_OVER},
	{"shard", PASS_OVER},
	{"token", PASS_OVER},
	{0},
};

static const struct field limits_fields[] = {
	{"group", "a string of up to 255 bytes", TAKE(take_group, info.task.group, 0, 0)},
	{"weight", "a number", TAKE(take_unsigned, limits.weight, 0, UINT32_MAX)},
	{"running", "a number", TAKE(take_unsigned, limits.running, 0, UINT32_MAX)},
	{"rate", "a number and a time such as \"15/1m\"", TAKE(take_rate, limits, 0, 0)},
	{"paused", "true or false", TAKE(take_flag, limits.paused, 0, 0)},
	{0},
};

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
	const struct field *field = line->kind == LINE_LIMITS ? limits_fields : task_fields;
	char shown[3 * 40 + 1];

	for (; field->name; field++) {
		if (strcmp(field->name, name) != 0)
			continue;
		if (field->take(line, field, value))
			return true;
		return refuse(line, "\"%s\" is not %s", name, field->needs);
	}
	/* A terminal must not obey the name. */
	tw_redis_write_key(name, strnlen(name, 40), shown);
	return refuse(line, "there is no field \"%s\"", shown);
}

static bool has(const struct task_line *line, const char *name)
{
	return json_object_get(line->json, name);
}

/* Checks that the line has at most one of each of these pairs. */
static bool pairs_check(struct task_line *line)
{
	static const char *const pairs[][2] = {
		{"key", "key_base64"}, {"body", "body_base64"}, {"reason", "reason_base64"},
		{"in", "due"},         {"in", "due_ms"},        {"latest", "state"}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (has(line, pairs[i][0]) && has(line, pairs[i][1]))
			return refuse(line, "\"%s\" and \"%s\" exclude each other", pairs[i][0],
				      pairs[i][1]);
	return true;
}

/* Completes a task from its fields, and checks what belongs together. */
static bool task_finish(struct task_line *line)
{
	struct tw_redis_task *task = &line->info.task;

	if (!line->key.at)
		return refuse(line, "the line has no key");
	if (line->info.state == TW_REDIS_DEAD && !has(line, "due_ms"))
		return refuse(line, "a dead letter requires \"due_ms\", the time of its death");
	task->key = line->key.at;
	task->key_size = line->key.size;
	task->body = line->body.at;
	task->body_size = line->body.size;
	/* An occurrence's own time is another one than its due time. */
	if (has(line, "occurrence_ms"))
		task->at_ms = line->occurrence_ms;
	else if (has(line, "due_ms"))
		task->at_ms = line->info.due_ms;
	return pairs_check(line);
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
	if (!json_is_object(line->json))
		return refuse(line, "the line is not a JSON object");
	if (!has(line, "key") && !has(line, "key_base64") && has(line, "group"))
		line->kind = LINE_LIMITS;
	else if (has(line, "state") && has(line, "due_ms"))
		line->kind = LINE_RESTORED;
	json_object_foreach(line->json, name,
			    value) if (!field_read(line, name, value)) return false;
	return line->kind == LINE_LIMITS || task_finish(line);
}

void task_line_free(struct task_line *line)
{
	json_decref(line->json);
	free(line->headers);
	free(line->key.memory);
	free(line->body.memory);
}
