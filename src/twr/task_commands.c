/* SPDX-License-Identifier: MIT */
/* task_commands.c has the commands about one task, and about one or all dead letters. */
#include "arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcome.h"
#include "show.h"
#include "task_line.h"
#include "when.h"

/* Reads one byte above the limit, so that a body that is too large is refused, not cut. */
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

/*
 * Reads what --data names, "@-" from standard input, into the task's body, which is then the
 * caller's to free. Returns EXIT_DONE, or another code after a message on stderr.
 */
static int data_read(struct arguments *arguments, char **body)
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
	return exit_code;
}

static void show_due(const struct arguments *arguments, int64_t due_ms)
{
	const struct tw_redis_task *task = &arguments->task;
	char due[WHEN_SIZE];

	if (arguments->json) {
		json_t *object = json_object();

		json_set_bytes(object, "key", task->key, task->key_size);
		json_set_time(object, "due", due_ms);
		json_object_set_new(object, "due_ms", json_integer(due_ms));
		show_json(object);
		return;
	}
	show_key(stdout, task->key, task->key_size);
	printf(" is due %s\n", time_write(due_ms, due));
}

int command_add(struct tw_redis *redis, struct arguments *arguments)
{
	char *body = NULL;
	int exit_code;
	struct tw_redis_added added;

	exit_code = data_read(arguments, &body);
	if (exit_code == EXIT_DONE && !arguments->task.url && !arguments->handler)
		fputs("twr: no --callback: only a worker with a handler can run this task "
		      "(--handler confirms it)\n",
		      stderr);
	if (exit_code == EXIT_DONE)
		exit_code =
			outcome_of_call(redis, tw_redis_add(redis, &arguments->task, 1, &added));
	free(body);
	if (exit_code == EXIT_DONE)
		show_due(arguments, added.due_ms);
	return exit_code;
}

int command_move(struct tw_redis *redis, struct arguments *arguments)
{
	const struct tw_redis_task *task = &arguments->task;
	int64_t due_ms;
	int exit_code = outcome_of_call(redis, tw_redis_move(redis, task->key, task->key_size,
							     task->at_ms, task->delay, &due_ms));

	if (exit_code == EXIT_DONE)
		show_due(arguments, due_ms);
	return exit_code;
}

static bool get_each(void *argument, const struct tw_redis_info *info)
{
	const struct arguments *arguments = argument;

	show_task(info, arguments->json);
	return true;
}

int command_get(struct tw_redis *redis, struct arguments *arguments)
{
	const struct tw_redis_task *task = &arguments->task;

	return outcome_of_call(redis,
			       tw_redis_get(redis, task->key, task->key_size, get_each, arguments));
}

/* Shows how many letters or tasks the command has taken, and how many it had to leave. */
static void show_count(const struct arguments *arguments, uint64_t count, uint64_t left)
{
	if (arguments->json)
		show_json(json_pack("{s:I, s:I}", "count", (json_int_t)count, "left",
				    (json_int_t)left));
	else
		printf("%llu\n", (unsigned long long)count);
}

typedef enum tw_status key_call(struct tw_redis *redis, const void *key, size_t key_size);

struct sweep {
	struct tw_redis *redis;
	key_call *call;
	enum tw_status status;
	uint64_t count;
	uint64_t left; /* letters whose key a task has, in the last pass */
	int passes;
};

/* Takes each dead letter. Letters that are gone meanwhile, or whose key a task has, do not end the
 * command. */
static bool sweep_each(void *argument, const struct tw_redis_info *info)
{
	struct sweep *sweep = argument;
	enum tw_status status = sweep->call(sweep->redis, info->task.key, info->task.key_size);

	sweep->count += status == TW_OK;
	if (status == TW_EXISTS) {
		sweep->left++;
		if (sweep->passes > 0)
			return true;
		fputs("twr: ", stderr);
		show_key(stderr, info->task.key, info->task.key_size);
		fputs(": the key is already in use\n", stderr);
	}
	if (status == TW_NOT_FOUND || status == TW_EXISTS)
		status = TW_OK;
	sweep->status = status;
	return status == TW_OK;
}

/* Takes all dead letters. A listing may pass over large ones while others are taken, so there are
 * passes until one takes none; more letters may come meanwhile, so there is a last pass. */
static int sweep_all(struct tw_redis *redis, const struct arguments *arguments, key_call *call)
{
	enum { PASSES_MAX = 8 };
	struct sweep sweep = {.redis = redis, .call = call};
	enum tw_status status;
	uint64_t before;
	int exit_code;

	do {
		before = sweep.count;
		sweep.left = 0;
		status = tw_redis_each(redis, TW_REDIS_LETTERS, sweep_each, &sweep);
		if (status == TW_OK)
			status = sweep.status;
	} while (status == TW_OK && sweep.count > before && ++sweep.passes < PASSES_MAX);
	exit_code = outcome_of_call(redis, status);
	show_count(arguments, sweep.count, sweep.left);
	return exit_code == EXIT_DONE && sweep.left ? EXIT_NOT_DONE : exit_code;
}

int command_cancel(struct tw_redis *redis, struct arguments *arguments)
{
	const struct tw_redis_task *task = &arguments->task;

	return outcome_of_call(
		redis, tw_redis_cancel(redis, task->key, task->key_size,
				       arguments->all ? TW_REDIS_WHOLE : TW_REDIS_OCCURRENCE));
}

/* Takes the dead letter of the key, or all of them. */
static int letter_take(struct tw_redis *redis, const struct arguments *arguments, key_call *call)
{
	const struct tw_redis_task *task = &arguments->task;
	enum tw_status status;
	int exit_code;

	if (arguments->all)
		return sweep_all(redis, arguments, call);
	status = call(redis, task->key, task->key_size);
	exit_code = outcome_of_call(redis, status);
	if (status == TW_NOT_FOUND)
		fputs("twr: the letter of an occurrence has the key KEY#due=TIME "
		      "(twr list --dead)\n",
		      stderr);
	return exit_code;
}

int command_retry(struct tw_redis *redis, struct arguments *arguments)
{
	return letter_take(redis, arguments, tw_redis_retry);
}

static int group_drop(struct tw_redis *redis, const struct arguments *arguments)
{
	uint64_t removed = 0;
	int exit_code =
		outcome_of_call(redis, tw_redis_drop_group(redis, arguments->task.group, &removed));

	show_count(arguments, removed, 0);
	return exit_code;
}

static int namespace_drop(struct tw_redis *redis, const struct arguments *arguments)
{
	enum tw_status status = tw_redis_drop_namespace(redis, arguments->force);
	struct tw_redis_error error = {0};

	if (status != TW_EXISTS && status != TW_RUNNING)
		return outcome_of_call(redis, status);
	tw_redis_last_error(redis, &error);
	fprintf(stderr, "twr: %s (--force)\n", error.text);
	return outcome_code(status);
}

int command_drop(struct tw_redis *redis, struct arguments *arguments)
{
	if (arguments->everything)
		return namespace_drop(redis, arguments);
	if (arguments->task.group)
		return group_drop(redis, arguments);
	return letter_take(redis, arguments, tw_redis_drop);
}
