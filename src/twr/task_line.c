/* SPDX-License-Identifier: MIT */
/*
 * task_line.c has tables of the fields: the struct's members, and what is in the JSON. Fields that
 * a table doesn't have are refused, because a misspelt one would be missing in the task.
 */
#include "task_line.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "when.h"

static const int64_t at_ms_max = INT64_C(253402300799999); /* the end of the year 9999 */
static const char rate_form[] = "a number and a time such as \"15/1m\"";
static const char time_ms[] = "milliseconds since 1970, up to the year 9999";

const char *const state_names[] = {[TW_REDIS_PENDING] = "pending",
				   [TW_REDIS_LEASED] = "leased",
				   [TW_REDIS_WAITING] = "waiting",
				   [TW_REDIS_DEAD] = "dead",
				   NULL};
const char *const missed_names[] = {[TW_REDIS_MISSED_ONE] = "one",
				    [TW_REDIS_MISSED_SKIP] = "skip",
				    [TW_REDIS_MISSED_ALL] = "all",
				    NULL};
const char *const method_names[] = {TW_REDIS_METHOD_NAMES, NULL};

bool name_read(const char *name, const char *const *names, unsigned *value)
{
	for (unsigned i = 0; name && names[i]; i++)
		if (!strcmp(name, names[i])) {
			*value = i;
			return true;
		}
	return false;
}

/* ---- Bytes ---- */

/* Returns the text, which the caller frees, or NULL without memory. */
static char *base64_write(const void *bytes, size_t size)
{
	char *text = malloc((size + 2) / 3 * 4 + 1);

	if (text)
		EVP_EncodeBlock((unsigned char *)text, bytes, (int)size);
	return text;
}

void json_set_bytes(json_t *object, const char *name, const void *bytes, size_t size)
{
	json_t *string = json_stringn(size ? bytes : "", size);
	char base64_name[64];
	char *base64;

	if (string) {
		json_object_set_new(object, name, string);
		return;
	}
	base64 = base64_write(bytes, size);
	snprintf(base64_name, sizeof(base64_name), "%s_base64", name);
	if (base64)
		json_object_set_new(object, base64_name, json_string(base64));
	free(base64);
}

/* Returns the bytes of a base64 as a string, or NULL if json_set_bytes() would write it in another
 * way, or without memory. */
static json_t *json_read_base64(const json_t *base64)
{
	const char *text = json_string_value(base64);
	size_t size = json_string_length(base64);
	unsigned char *bytes = text && size <= INT_MAX ? malloc(size + 1) : NULL;
	int decoded = bytes ? EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)size) : -1;
	int padding = size > 2 ? (text[size - 1] == '=') + (text[size - 2] == '=') : 0;
	char *again = decoded >= padding ? base64_write(bytes, (size_t)(decoded - padding)) : NULL;
	json_t *read = NULL;

	if (again && strlen(again) == size && !memcmp(again, text, size))
		read = json_stringn_nocheck((char *)bytes, (size_t)(decoded - padding));
	free(again);
	free(bytes);
	return read;
}

/* ---- The tables ---- */

/* The kind says what the member is, and what the JSON is. */
enum field_kind {
	FIELD_TEXT,     /* const char *: a string of up to `most` bytes without a NUL */
	FIELD_BYTES,    /* const void * and size_t: a string of `least` to `most` bytes */
	FIELD_LIST,     /* const char *const * and size_t: an array of texts */
	FIELD_NAME,     /* an enum: one of `names` */
	FIELD_NUMBER,   /* int64_t: a number from `least` to `most`, as the next two are */
	FIELD_UNSIGNED, /* unsigned */
	FIELD_MS,       /* tw_duration: milliseconds */
	FIELD_FLAG,     /* bool */
	FIELD_PARSED    /* int64_t from `least` to `most`: a text that `parse` reads */
};

struct field {
	const char *name;
	const char *needs; /* what it must be; NULL means that it is only written */
	unsigned shown;    /* when it is written; a set */
	enum field_kind kind;
	size_t place; /* in struct task_line */
	int64_t least;
	int64_t most;
	const char *const *names;
	bool (*parse)(const char *text, int64_t *number);
};

/* A fields are written if they are set, always, or if the task is of this kind. */
enum { SET = 1, ALWAYS = 2, ALIVE = 4, DEAD = 8, CALLBACK = 16, RECURS = 32 };

#define DELAY_MS_MAX (TW_REDIS_DELAY_MAX / TW_MILLISECOND)
/* These are last parts of rows. */
#define PLACE(kind, member, least, most) \
	kind, offsetof(struct task_line, member), least, most, NULL, NULL
#define NAME(member, names) FIELD_NAME, offsetof(struct task_line, member), 0, 0, names, NULL
#define PARSED(member, least, most, parse) \
	FIELD_PARSED, offsetof(struct task_line, member), least, most, NULL, parse
#define TEXT(member) PLACE(FIELD_TEXT, member, 0, INT32_MAX)
#define TIME(member) PLACE(FIELD_NUMBER, member, 0, at_ms_max)

static const struct field task_fields[] = {
	{"key", "a string of 1 to 1024 bytes", 0,
	 PLACE(FIELD_BYTES, info.task.key, 1, TW_REDIS_KEY_MAX)},
	{"state", "\"pending\", \"leased\", \"waiting\" or \"dead\"", ALWAYS,
	 NAME(info.state, state_names)},
	{"due", "a time such as \"2031-05-01T12:00:00Z\"", ALIVE,
	 PARSED(info.due_ms, 0, at_ms_max, time_parse)},
	{"died", NULL, DEAD, PARSED(info.due_ms, 0, 0, NULL)},
	{"due_ms", time_ms, ALWAYS, TIME(info.due_ms)},
	{"in", "a duration such as \"90\" or \"1h30m\", up to 100 years", 0,
	 PARSED(info.task.delay, 0, TW_REDIS_DELAY_MAX, duration_parse)},
	{"latest", "a duration such as \"30s\", up to 100 years", 0,
	 PARSED(info.task.latest, 1, TW_REDIS_DELAY_MAX, duration_parse)},
	{"latest_due_ms", time_ms, SET, TIME(info.latest_due_ms)},
	{"now_ms", NULL, ALWAYS, TIME(info.now_ms)},
	{"attempts", "a number", ALWAYS, PLACE(FIELD_UNSIGNED, info.attempts, 0, UINT32_MAX)},
	{"max_attempts", "a number from 1 to 1000000", ALWAYS,
	 PLACE(FIELD_UNSIGNED, info.task.max_attempts, 1, TW_REDIS_ATTEMPTS_MAX)},
	{"shard", NULL, ALWAYS, PLACE(FIELD_UNSIGNED, info.shard, 0, 0)},
	{"group", "a string of up to 255 bytes", SET,
	 PLACE(FIELD_TEXT, info.task.group, 0, TW_REDIS_GROUP_MAX)},
	{"grace_ms", "milliseconds, from a second to 100 years", SET,
	 PLACE(FIELD_MS, info.task.grace, 1000, DELAY_MS_MAX)},
	{"every_ms", "milliseconds, up to 100 years", SET,
	 PLACE(FIELD_MS, info.task.every, 1, DELAY_MS_MAX)},
	{"cron", "a string", SET, TEXT(info.task.cron)},
	{"zone", "a string", SET, TEXT(info.task.zone)},
	{"occurrence_ms", time_ms, RECURS, TIME(info.task.at_ms)},
	{"missed", "\"one\", \"skip\" or \"all\"", RECURS, NAME(info.task.missed, missed_names)},
	{"token", NULL, SET, TIME(info.token)},
	{"reason", "a string", 0, TEXT(info.reason)},
	{"callback", "a URL", SET, TEXT(info.task.url)},
	{"method", "\"POST\", \"GET\", \"PUT\", \"PATCH\", \"DELETE\" or \"HEAD\"", CALLBACK,
	 NAME(info.task.method, method_names)},
	{"headers", "an array of strings \"Name: value\"", CALLBACK,
	 PLACE(FIELD_LIST, info.task.headers, 0, 0)},
	{"body", "a string", 0, PLACE(FIELD_BYTES, info.task.body, 0, INT32_MAX)},
	{0},
};

static const struct field limits_fields[] = {
	{"group", "a string of up to 255 bytes", 0,
	 PLACE(FIELD_TEXT, info.task.group, 0, TW_REDIS_GROUP_MAX)},
	{"weight", "a number", 0, PLACE(FIELD_UNSIGNED, limits.weight, 0, UINT32_MAX)},
	{"running", "a number", 0, PLACE(FIELD_UNSIGNED, limits.running, 0, UINT32_MAX)},
	{"rate", rate_form, 0, TEXT(rate)},
	{"paused", "true or false", 0, PLACE(FIELD_FLAG, limits.paused, 0, 0)},
	{0},
};

/* ---- Reading ---- */

/* Returns a text without a NUL, or NULL for any other value. */
static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* Returns the size of bytes or of a list, which the struct has behind their pointer. */
static size_t *size_at(const void *place)
{
	return (size_t *)((uintptr_t)place + sizeof(void *));
}

static bool list_read(const json_t *value, void *place)
{
	size_t count = json_array_size(value);
	const char **texts =
		json_typeof(value) == JSON_ARRAY ? calloc(count + 1, sizeof(*texts)) : NULL;

	*(const char ***)place = texts;
	*size_at(place) = texts ? count : 0;
	for (size_t i = 0; texts && i < count; i++) {
		texts[i] = text_of(json_array_get(value, i));
		if (!texts[i])
			return false;
	}
	return texts;
}

/* Reads a text, bytes or a number. Returns false if it is none. *size becomes what has limits. */
static bool value_read(const struct field *field, const json_t *value, void *place, int64_t *size)
{
	const char *text = text_of(value);

	switch (field->kind) {
	case FIELD_TEXT:
		*(const char **)place = text;
		*size = text ? (int64_t)strlen(text) : 0;
		return text;
	case FIELD_BYTES:
		*(const void **)place = json_string_value(value);
		*size_at(place) = json_string_length(value);
		*size = (int64_t)json_string_length(value);
		return json_typeof(value) == JSON_STRING;
	case FIELD_PARSED:
		if (!text || !field->parse(text, size))
			return false;
		*(int64_t *)place = *size;
		return true;
	default:
		*size = json_integer_value(value);
		if (field->kind == FIELD_UNSIGNED)
			*(unsigned *)place = (unsigned)*size;
		else if (field->kind == FIELD_NUMBER)
			*(int64_t *)place = *size;
		else if (*size >= field->least && *size <= field->most)
			*(int64_t *)place = *size * TW_MILLISECOND;
		return json_typeof(value) == JSON_INTEGER;
	}
}

/* Reads the field, if the object has it. Returns false if it is not what the field needs. */
static bool field_read(const struct field *field, struct task_line *line)
{
	const json_t *value = json_object_get(line->json, field->name);
	void *place = (char *)line + field->place;
	int64_t size;

	if (!value || !field->needs)
		return true;
	switch (field->kind) {
	case FIELD_LIST:
		return list_read(value, place);
	case FIELD_NAME:
		return name_read(text_of(value), field->names, place);
	case FIELD_FLAG:
		*(bool *)place = json_typeof(value) == JSON_TRUE;
		return json_typeof(value) == JSON_TRUE || json_typeof(value) == JSON_FALSE;
	default:
		return value_read(field, value, place, &size) && size >= field->least &&
		       size <= field->most;
	}
}

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

static bool has(const struct task_line *line, const char *name)
{
	return json_object_get(line->json, name);
}

/* Checks that the table has all fields of the line. */
static bool names_check(struct task_line *line, const struct field *fields)
{
	const struct field *field;
	const char *name;
	char shown[3 * 40 + 1];
	json_t *value;

	json_object_foreach(line->json, name, value)
	{
		for (field = fields; field->name && strcmp(field->name, name) != 0; field++)
			;
		if (field->name)
			continue;
		/* A terminal must not obey the name. */
		tw_redis_write_key(name, strnlen(name, 40), shown);
		return refuse(line, "there is no field \"%s\"", shown);
	}
	return true;
}

static bool pair_check(struct task_line *line, const char *one, const char *other)
{
	if (!has(line, one) || !has(line, other))
		return true;
	return refuse(line, "\"%s\" and \"%s\" exclude each other", one, other);
}

/* Puts bytes in place of a field's base64. */
static bool base64_take(struct task_line *line, const char *name, const char *base64_name)
{
	json_t *bytes;

	if (!has(line, base64_name))
		return true;
	if (!pair_check(line, name, base64_name))
		return false;
	bytes = json_read_base64(json_object_get(line->json, base64_name));
	if (json_object_set_new(line->json, name, bytes))
		return refuse(line, "\"%s\" is not bytes in base64", base64_name);
	json_object_del(line->json, base64_name);
	return true;
}

static bool fields_read(struct task_line *line)
{
	const struct field *field = line->kind == LINE_LIMITS ? limits_fields : task_fields;

	/* due_ms is exact. */
	if (has(line, "due_ms"))
		json_object_del(line->json, "due");
	if (!base64_take(line, "key", "key_base64") || !base64_take(line, "body", "body_base64") ||
	    !base64_take(line, "reason", "reason_base64") || !names_check(line, field) ||
	    !pair_check(line, "in", "due") || !pair_check(line, "in", "due_ms") ||
	    !pair_check(line, "latest", "state"))
		return false;
	for (; field->name; field++)
		if (!field_read(field, line))
			return refuse(line, "\"%s\" is not %s", field->name, field->needs);
	if (line->rate && !rate_parse(line->rate, &line->limits))
		return refuse(line, "\"rate\" is not %s", rate_form);
	return true;
}

/* Checks what belongs together in a task. */
static bool task_finish(struct task_line *line)
{
	if (!line->info.task.key)
		return refuse(line, "the line has no key");
	if (line->info.state == TW_REDIS_DEAD && !has(line, "due_ms"))
		return refuse(line, "a dead letter requires \"due_ms\", the time of its death");
	/* An occurrence's own time is another one than its due time. */
	if (!has(line, "occurrence_ms"))
		line->info.task.at_ms = line->info.due_ms;
	return true;
}

bool task_line_read(struct task_line *line, const char *text, size_t size)
{
	json_error_t error;

	memset(line, 0, sizeof(*line));
	line->info.reason = "";
	line->json = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!line->json && json_error_code(&error) == json_error_duplicate_key)
		return refuse(line, "a field occurs twice");
	if (!line->json)
		return refuse(line, "the line is not JSON (byte %d)", error.position);
	if (json_typeof(line->json) != JSON_OBJECT)
		return refuse(line, "the line is not a JSON object");
	if (!has(line, "key") && !has(line, "key_base64") && has(line, "group"))
		line->kind = LINE_LIMITS;
	else if (has(line, "state") && has(line, "due_ms"))
		line->kind = LINE_RESTORED;
	return fields_read(line) && (line->kind == LINE_LIMITS || task_finish(line));
}

void task_line_free(struct task_line *line)
{
	json_decref(line->json);
	free((void *)(uintptr_t)line->info.task.headers);
}

/* ---- Writing ---- */

static json_t *list_write(const char *const *texts, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_string(texts[i]));
	return list;
}

/* Returns the field as JSON, or NULL if it is written only if it is set, and is not. */
static json_t *field_write(const struct field *field, const struct tw_redis_info *info)
{
	const void *place = (const char *)info + field->place;
	const int64_t *number = place;
	const unsigned *small = place;
	char text[WHEN_SIZE];

	switch ((int)field->kind) {
	case FIELD_TEXT:
		return json_string(*(const char *const *)place);
	case FIELD_LIST:
		return list_write(*(const char *const *const *)place, *size_at(place));
	case FIELD_NAME:
		return json_string(field->names[*small]);
	case FIELD_UNSIGNED:
		return json_integer(*small);
	case FIELD_PARSED:
		return json_string(time_write(*number, text));
	default:
		if (!*number && field->shown == SET)
			return NULL;
		return json_integer(field->kind == FIELD_MS ? *number / TW_MILLISECOND : *number);
	}
}

json_t *task_line_write(const struct tw_redis_info *info)
{
	unsigned shown = ALWAYS | (info->state == TW_REDIS_DEAD ? DEAD : ALIVE) |
			 (info->task.url ? CALLBACK : 0) |
			 (info->task.every || info->task.cron ? RECURS : 0);
	json_t *object = json_object();

	_Static_assert(!offsetof(struct task_line, info), "a task's fields are at its places");
	json_set_bytes(object, "key", info->task.key, info->task.key_size);
	for (const struct field *field = task_fields; field->name; field++)
		if (field->shown & (shown | SET))
			json_object_set_new(object, field->name, field_write(field, info));
	if (info->state == TW_REDIS_DEAD)
		json_set_bytes(object, "reason", info->reason, strlen(info->reason));
	if (info->task.body_size)
		json_set_bytes(object, "body", info->task.body, info->task.body_size);
	return object;
}
