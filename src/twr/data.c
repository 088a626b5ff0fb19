/* SPDX-License-Identifier: MIT */
/* data.c reads one byte above the limit, so that a body that is too large is refused, not cut. */
#include "data.h"

#include <jansson.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "outcome.h"

static int stream_read(FILE *stream, char **body, size_t *size)
{
	*body = malloc(TW_REDIS_BODY_MAX + 1);
	if (!*body) {
		fputs("twr: out of memory\n", stderr);
		return EXIT_SYSTEM;
	}
	*size = fread(*body, 1, TW_REDIS_BODY_MAX + 1, stream);
	if (!ferror(stream))
		return EXIT_DONE;
	fprintf(stderr, "twr: the data can't be read: %s\n", strerror(errno));
	return EXIT_BAD_DATA;
}

static int file_read(const char *path, char **body, size_t *size)
{
	FILE *stream = strcmp(path, "-") ? fopen(path, "rb") : stdin;
	int exit_code;

	if (!stream) {
		fprintf(stderr, "twr: %s: %s\n", path, strerror(errno));
		return EXIT_BAD_DATA;
	}
	exit_code = stream_read(stream, body, size);
	if (stream != stdin)
		fclose(stream);
	return exit_code;
}

static int json_check(const struct tw_redis_task *task)
{
	json_error_t error;
	json_t *json;

	if (!task->url || !task->body_size || task->body_size > TW_REDIS_BODY_MAX)
		return EXIT_DONE;
	for (size_t i = 0; i < task->header_count; i++)
		if (!strncasecmp(task->headers[i], "Content-Type:", 13))
			return EXIT_DONE;
	json = json_loadb(task->body, task->body_size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (json) {
		json_decref(json);
		return EXIT_DONE;
	}
	fprintf(stderr,
		"twr: the data is not JSON (line %d: %s); other data requires --header "
		"'Content-Type: ...'\n",
		error.line, error.text);
	return EXIT_BAD_DATA;
}

int data_read(struct arguments *arguments, char **body)
{
	struct tw_redis_task *task = &arguments->task;
	const char *data = arguments->data;
	int exit_code = EXIT_DONE;

	*body = NULL;
	if (!data)
		return EXIT_DONE;
	if (*data == '@') {
		exit_code = file_read(data + 1, body, &task->body_size);
		task->body = *body;
	} else {
		task->body = data;
		task->body_size = strlen(data);
	}
	return exit_code == EXIT_DONE ? json_check(task) : exit_code;
}
