/* SPDX-License-Identifier: MIT */
/* The commands about one task; and those about dead letters, which may be about all of them. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>

#include "data.h"
#include "outcome.h"
#include "show.h"
#include "when.h"

/* A key that is too long is bad data, and to the library a bad argument. */
static int key_check(const struct arguments *arguments)
{
	if (arguments->task.key_size <= TW_REDIS_KEY_MAX)
		return EXIT_DONE;
	fprintf(stderr, "twr: the key is longer than %d bytes\n", TW_REDIS_KEY_MAX);
	return EXIT_BAD_DATA;
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
	time_write(due_ms, due);
	show_key(task->key, task->key_size);
	printf(" is due %s\n", due);
}

int command_add(struct tw_redis *redis, struct arguments *arguments)
{
	int exit_code = key_check(arguments);
	char *body = NULL;
	int64_t due_ms;

	if (exit_code == EXIT_DONE)
		exit_code = data_read(arguments, &body);
	if (exit_code == EXIT_DONE)
		exit_code = outcome_of_call(redis, tw_redis_add(redis, &arguments->task, &due_ms));
	free(body);
	if (exit_code == EXIT_DONE)
		show_due(arguments, due_ms);
	return exit_code;
}

int command_cancel(struct tw_redis *redis, struct arguments *arguments)
{
	const struct tw_redis_task *task = &arguments->task;
	int exit_code = key_check(arguments);

	return exit_code == EXIT_DONE
		       ? outcome_of_call(redis, tw_redis_cancel(redis, task->key, task->key_size))
		       : exit_code;
}

int command_move(struct tw_redis *redis, struct arguments *arguments)
{
	const struct tw_redis_task *task = &arguments->task;
	int exit_code = key_check(arguments);
	int64_t due_ms;

	if (exit_code == EXIT_DONE)
		exit_code =
			outcome_of_call(redis, tw_redis_move(redis, task->key, task->key_size,
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
	int exit_code = key_check(arguments);

	return exit_code == EXIT_DONE
		       ? outcome_of_call(redis, tw_redis_get(redis, task->key, task->key_size,
							     get_each, arguments))
		       : exit_code;
}

typedef enum tw_status dead_call(struct tw_redis *redis, const void *key, size_t key_size);

struct sweep {
	struct tw_redis *redis;
	dead_call *call;
	enum tw_status status;
	uint64_t count;
};

/* What somebody else took out meanwhile, and what has become a task again, is no reason to stop. */
static bool sweep_each(void *argument, const struct tw_redis_info *info)
{
	struct sweep *sweep = argument;
	enum tw_status status = sweep->call(sweep->redis, info->task.key, info->task.key_size);

	sweep->count += status == TW_OK;
	if (status == TW_NOT_FOUND || status == TW_EXISTS)
		status = TW_OK;
	sweep->status = status;
	return status == TW_OK;
}

static int dead_command(struct tw_redis *redis, struct arguments *arguments, dead_call *call)
{
	const struct tw_redis_task *task = &arguments->task;
	struct sweep sweep = {.redis = redis, .call = call};
	enum tw_status status;
	int exit_code;

	if (!arguments->all) {
		exit_code = key_check(arguments);
		return exit_code == EXIT_DONE
			       ? outcome_of_call(redis, call(redis, task->key, task->key_size))
			       : exit_code;
	}
	status = tw_redis_dead_each(redis, sweep_each, &sweep);
	exit_code = outcome_of_call(redis, status == TW_OK ? sweep.status : status);
	if (arguments->json)
		show_json(json_pack("{s:I}", "count", (json_int_t)sweep.count));
	else
		printf("%llu\n", (unsigned long long)sweep.count);
	return exit_code;
}

int command_dead_retry(struct tw_redis *redis, struct arguments *arguments)
{
	return dead_command(redis, arguments, tw_redis_dead_retry);
}

int command_dead_drop(struct tw_redis *redis, struct arguments *arguments)
{
	return dead_command(redis, arguments, tw_redis_dead_drop);
}
