/* SPDX-License-Identifier: MIT */
/*
 * load_command.c adds the tasks and sets the limits of a file, a JSON object a line (task_line.h).
 * A batch of lines is read, sent and forgotten, so a file of any size needs the same memory. A
 * refused line is reported by its number, and the others go on. If Redis cannot be used any more
 * the command ends, and reports the line from which on nothing has been done.
 */
#include "arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcome.h"
#include "show.h"
#include "task_line.h"

/* A batch has the lines of one of the library's round trips, or a few of the longest ones, tasks
 * whose bytes are all written as \u0000. */
enum { BATCH = 256, LINE_SIZE_MAX = 2 * 1024 * 1024, BATCH_SIZE_MAX = 2 * LINE_SIZE_MAX };

struct load {
	struct tw_redis *redis;
	const struct arguments *arguments;
	FILE *stream;
	char *text; /* the present line, LINE_SIZE_MAX + 1 bytes */
	size_t size;
	int failure; /* the errno of a failed read, or 0 */

	uint64_t number; /* the present line's, from 1 */
	uint64_t added;
	uint64_t refused;
	int exit_code; /* the first refused line's, or the end's */
	bool ended;    /* Redis is of no use any more */

	/* This is the batch. Adjacent lines of one kind share a call. */
	struct task_line lines[BATCH];
	uint64_t numbers[BATCH];
	size_t count;
	size_t bytes;
	uint64_t first;                    /* the number of the first line of the last call */
	struct tw_redis_task tasks[BATCH]; /* the tasks of lines to add */
	struct tw_redis_info infos[BATCH]; /* those of lines to restore */
	struct tw_redis_added each[BATCH];
};

/* Begins the report of a refused line. */
static void line_refuse(struct load *load, uint64_t number, int exit_code)
{
	fprintf(stderr, "twr: line %" PRIu64 ": ", number);
	load->refused++;
	if (load->exit_code == EXIT_DONE)
		load->exit_code = exit_code;
}

/* Returns the library's last error, if it has this status. */
static struct tw_redis_error error_of(const struct load *load, enum tw_status status)
{
	struct tw_redis_error error = {0};

	tw_redis_last_error(load->redis, &error);
	return error.status == status ? error : (struct tw_redis_error){0};
}

static enum tw_status limits_set(const struct load *load, const struct task_line *line)
{
	const char *group = line->info.task.group;

	return tw_redis_set_limits(load->redis, *group ? group : NULL, &line->limits);
}

/* Reports a task whose data is wrong. The call for many keeps the first reason only. This one is
 * found without the server, so the task is checked again. */
static void data_refuse(struct load *load, size_t place, enum tw_status status)
{
	const struct task_line *line = &load->lines[place];
	struct tw_redis_error error;

	if (line->kind == LINE_LIMITS)
		status = limits_set(load, line);
	else if (line->kind == LINE_RESTORED)
		status = tw_redis_restore(load->redis, &line->info, 1, NULL);
	else
		status = tw_redis_add(load->redis, &line->info.task, 1, NULL);
	error = error_of(load, status);
	line_refuse(load, load->numbers[place], EXIT_BAD_DATA);
	outcome_say(status, &error);
}

static void line_settle(struct load *load, size_t place, enum tw_status status)
{
	struct tw_redis_error error = {0};

	if (status == TW_OK) {
		load->added++;
	} else if (status == TW_REDIS_BAD_DATA || status == TW_INVALID) {
		data_refuse(load, place, status);
	} else if (status == TW_EXISTS || status == TW_NOT_FOUND) {
		line_refuse(load, load->numbers[place], outcome_code(status));
		outcome_say(status, &error);
	} else if (!load->ended) {
		error = error_of(load, status);
		load->ended = true;
		load->exit_code = outcome(status, &error);
		fprintf(stderr, "twr: line %" PRIu64 " and all later lines must be added again\n",
			load->first);
	}
}

/* Sends lines of one kind. Returns the place after them. */
static size_t lines_send(struct load *load, size_t from)
{
	enum line_kind kind = load->lines[from].kind;
	enum tw_status status = TW_OK;
	size_t to = from;

	for (; to < load->count && load->lines[to].kind == kind; to++) {
		load->lines[to].info.task.mode = load->arguments->task.mode;
		load->tasks[to] = load->lines[to].info.task;
		load->infos[to] = load->lines[to].info;
		if (kind == LINE_LIMITS)
			load->each[to].status = limits_set(load, &load->lines[to]);
	}
	if (kind == LINE_RESTORED)
		status = tw_redis_restore(load->redis, load->infos + from, to - from,
					  load->each + from);
	else if (kind == LINE_TASK)
		status =
			tw_redis_add(load->redis, load->tasks + from, to - from, load->each + from);
	load->first = load->numbers[from];
	for (size_t i = from; i < to; i++)
		line_settle(load, i, status == TW_NO_MEMORY ? status : load->each[i].status);
	return to;
}

static void batch_send(struct load *load)
{
	for (size_t from = 0; from < load->count && !load->ended;)
		from = lines_send(load, from);
	for (size_t i = 0; i < load->count; i++)
		task_line_free(&load->lines[i]);
	load->count = 0;
	load->bytes = 0;
}

/* Reads the next line, without its end. A line that is too long is cut where that shows. Returns
 * false if there is none. */
static bool text_read(struct load *load)
{
	int byte = getc_unlocked(load->stream);

	load->failure = byte == EOF && ferror(load->stream) ? errno : 0;
	if (byte == EOF)
		return false;
	for (load->size = 0; byte != EOF && byte != '\n'; byte = getc_unlocked(load->stream))
		if (load->size <= LINE_SIZE_MAX)
			load->text[load->size++] = (char)byte;
	load->number++;
	return true;
}

static bool text_is_blank(const struct load *load)
{
	for (size_t i = 0; i < load->size; i++)
		if (!strchr(" \t\r", load->text[i]) || !load->text[i])
			return false;
	return true;
}

static void line_take(struct load *load)
{
	struct task_line *line = &load->lines[load->count];

	if (load->size > LINE_SIZE_MAX) {
		line_refuse(load, load->number, EXIT_BAD_DATA);
		fprintf(stderr, "the line is longer than %d bytes\n", LINE_SIZE_MAX);
		return;
	}
	if (!task_line_read(line, load->text, load->size)) {
		line_refuse(load, load->number, EXIT_BAD_DATA);
		fprintf(stderr, "%s\n", line->reason);
		task_line_free(line);
		return;
	}
	load->numbers[load->count++] = load->number;
	load->bytes += load->size;
}

static void lines_add(struct load *load)
{
	while (!load->ended && text_read(load)) {
		if (!text_is_blank(load))
			line_take(load);
		if (load->count == BATCH || load->bytes >= BATCH_SIZE_MAX)
			batch_send(load);
	}
	if (load->count)
		batch_send(load);
	if (load->failure) {
		fprintf(stderr, "twr: %s can't be read: %s\n", load->arguments->file,
			strerror(load->failure));
		load->exit_code = EXIT_BAD_DATA;
	}
	if (load->arguments->json)
		show_json(json_pack("{s:I, s:I}", "added", (json_int_t)load->added, "refused",
				    (json_int_t)load->refused));
	else
		printf("%" PRIu64 " added, %" PRIu64 " refused\n", load->added, load->refused);
}

int command_load(struct tw_redis *redis, struct arguments *arguments)
{
	struct load *load = calloc(1, sizeof(*load));
	int exit_code = EXIT_SYSTEM;

	if (load)
		load->text = malloc(LINE_SIZE_MAX + 1);
	if (!load || !load->text) {
		fputs("twr: out of memory\n", stderr);
		free(load);
		return exit_code;
	}
	load->redis = redis;
	load->arguments = arguments;
	load->stream = strcmp(arguments->file, "-") ? fopen(arguments->file, "rb") : stdin;
	if (load->stream) {
		lines_add(load);
		exit_code = load->exit_code;
	} else {
		fprintf(stderr, "twr: %s: %s\n", arguments->file, strerror(errno));
		exit_code = EXIT_BAD_DATA;
	}
	if (load->stream && load->stream != stdin)
		fclose(load->stream);
	free(load->text);
	free(load);
	return exit_code;
}
