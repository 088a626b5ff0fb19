/* SPDX-License-Identifier: MIT */
/*
 * add_file.c adds the tasks of a file, a JSON object a line (task_line.h). A batch of lines is
 * read, sent and forgotten, so a file of any size needs the same memory. A refused line is reported
 * by its number, and the others go on. If Redis cannot be used any more the command ends, and
 * reports the line from which on nothing has been done.
 */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "outcome.h"
#include "show.h"
#include "task_line.h"

/* A batch has the lines of one of the library's round trips, or a few of the longest ones, tasks
 * whose bytes are all written as \u0000. */
enum { BATCH = 256, LINE_SIZE_MAX = 2 * 1024 * 1024, BATCH_SIZE_MAX = 2 * LINE_SIZE_MAX };
static const tw_duration progress_apart = 100 * TW_MILLISECOND;

struct add_file {
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
	bool has_terminal;
	tw_duration shown_at; /* monotonic; the last progress */

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

static void progress_clear(const struct add_file *file)
{
	if (file->has_terminal)
		fputs("\r\033[K", stderr);
}

static void progress_show(struct add_file *file)
{
	struct timespec time;
	tw_duration now;

	if (!file->has_terminal)
		return;
	clock_gettime(CLOCK_MONOTONIC, &time);
	now = time.tv_sec * TW_SECOND + time.tv_nsec;
	if (file->shown_at && now - file->shown_at < progress_apart)
		return;
	file->shown_at = now;
	progress_clear(file);
	fprintf(stderr, "twr: line %" PRIu64 ", %" PRIu64 " added, %" PRIu64 " refused",
		file->number, file->added, file->refused);
}

/* Begins the report of a refused line. */
static void line_refuse(struct add_file *file, uint64_t number, int exit_code)
{
	progress_clear(file);
	fprintf(stderr, "twr: line %" PRIu64 ": ", number);
	file->refused++;
	if (file->exit_code == EXIT_DONE)
		file->exit_code = exit_code;
}

/* Returns the library's last error, if it has this status. */
static struct tw_redis_error error_of(const struct add_file *file, enum tw_status status)
{
	struct tw_redis_error error = {0};

	tw_redis_last_error(file->redis, &error);
	return error.status == status ? error : (struct tw_redis_error){0};
}

/* Reports a task whose data is wrong. The call for many keeps the first reason only. This one is
 * found without the server, so the task is checked again. */
static void data_refuse(struct add_file *file, size_t place, enum tw_status status)
{
	const struct task_line *line = &file->lines[place];
	struct tw_redis_error error;

	status = line->restores ? tw_redis_restore(file->redis, &line->info, 1, NULL)
				: tw_redis_add(file->redis, &line->info.task, 1, NULL);
	error = error_of(file, status);
	line_refuse(file, file->numbers[place], EXIT_BAD_DATA);
	outcome_say(status, &error);
}

static void line_settle(struct add_file *file, size_t place, enum tw_status status)
{
	struct tw_redis_error error = {0};

	if (status == TW_OK) {
		file->added++;
	} else if (status == TW_REDIS_BAD_DATA || status == TW_INVALID) {
		data_refuse(file, place, status);
	} else if (status == TW_EXISTS || status == TW_NOT_FOUND) {
		line_refuse(file, file->numbers[place], outcome_code(status));
		outcome_say(status, &error);
	} else if (!file->ended) {
		error = error_of(file, status);
		file->ended = true;
		progress_clear(file);
		file->exit_code = outcome(status, &error);
		fprintf(stderr, "twr: line %" PRIu64 " and all later lines must be added again\n",
			file->first);
	}
}

/* Sends lines of one kind. Returns the place after them. */
static size_t lines_send(struct add_file *file, size_t from)
{
	bool restores = file->lines[from].restores;
	enum tw_status status;
	size_t to = from;

	for (; to < file->count && file->lines[to].restores == restores; to++) {
		file->lines[to].info.task.mode = file->arguments->task.mode;
		file->tasks[to] = file->lines[to].info.task;
		file->infos[to] = file->lines[to].info;
	}
	if (restores)
		status = tw_redis_restore(file->redis, file->infos + from, to - from,
					  file->each + from);
	else
		status =
			tw_redis_add(file->redis, file->tasks + from, to - from, file->each + from);
	file->first = file->numbers[from];
	for (size_t i = from; i < to; i++)
		line_settle(file, i, status == TW_NO_MEMORY ? status : file->each[i].status);
	return to;
}

static void batch_send(struct add_file *file)
{
	for (size_t from = 0; from < file->count && !file->ended;)
		from = lines_send(file, from);
	for (size_t i = 0; i < file->count; i++)
		task_line_free(&file->lines[i]);
	file->count = 0;
	file->bytes = 0;
	progress_show(file);
}

/* Reads the next line, without its end. A line that is too long is cut where that shows. Returns
 * false if there is none. */
static bool text_read(struct add_file *file)
{
	int byte = getc_unlocked(file->stream);

	file->failure = byte == EOF && ferror(file->stream) ? errno : 0;
	if (byte == EOF)
		return false;
	for (file->size = 0; byte != EOF && byte != '\n'; byte = getc_unlocked(file->stream))
		if (file->size <= LINE_SIZE_MAX)
			file->text[file->size++] = (char)byte;
	file->number++;
	return true;
}

static bool text_is_blank(const struct add_file *file)
{
	for (size_t i = 0; i < file->size; i++)
		if (!strchr(" \t\r", file->text[i]) || !file->text[i])
			return false;
	return true;
}

static void line_take(struct add_file *file)
{
	struct task_line *line = &file->lines[file->count];

	if (file->size > LINE_SIZE_MAX) {
		line_refuse(file, file->number, EXIT_BAD_DATA);
		fprintf(stderr, "the line is longer than %d bytes\n", LINE_SIZE_MAX);
		return;
	}
	if (!task_line_read(line, file->text, file->size)) {
		line_refuse(file, file->number, EXIT_BAD_DATA);
		fprintf(stderr, "%s\n", line->reason);
		task_line_free(line);
		return;
	}
	file->numbers[file->count++] = file->number;
	file->bytes += file->size;
}

static void lines_add(struct add_file *file)
{
	while (!file->ended && text_read(file)) {
		if (!text_is_blank(file))
			line_take(file);
		if (file->count == BATCH || file->bytes >= BATCH_SIZE_MAX)
			batch_send(file);
	}
	if (file->count)
		batch_send(file);
	progress_clear(file);
	if (file->failure) {
		fprintf(stderr, "twr: %s can't be read: %s\n", file->arguments->file,
			strerror(file->failure));
		file->exit_code = EXIT_BAD_DATA;
	}
	if (file->arguments->json)
		show_json(json_pack("{s:I, s:I}", "added", (json_int_t)file->added, "refused",
				    (json_int_t)file->refused));
	else
		printf("%" PRIu64 " added, %" PRIu64 " refused\n", file->added, file->refused);
}

int command_add_file(struct tw_redis *redis, struct arguments *arguments)
{
	struct add_file *file = calloc(1, sizeof(*file));
	int exit_code = EXIT_SYSTEM;

	if (file)
		file->text = malloc(LINE_SIZE_MAX + 1);
	if (!file || !file->text) {
		fputs("twr: out of memory\n", stderr);
		free(file);
		return exit_code;
	}
	file->redis = redis;
	file->arguments = arguments;
	file->has_terminal = isatty(STDERR_FILENO);
	file->stream = strcmp(arguments->file, "-") ? fopen(arguments->file, "rb") : stdin;
	if (file->stream) {
		lines_add(file);
		exit_code = file->exit_code;
	} else {
		fprintf(stderr, "twr: %s: %s\n", arguments->file, strerror(errno));
		exit_code = EXIT_BAD_DATA;
	}
	if (file->stream && file->stream != stdin)
		fclose(file->stream);
	free(file->text);
	free(file);
	return exit_code;
}
