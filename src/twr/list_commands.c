/* SPDX-License-Identifier: MIT */
/* list_commands.c has the commands about all tasks, and about Redis. */
#include "arguments.h"

#include <stdio.h>

#include "figures.h"
#include "outcome.h"
#include "show.h"

static bool list_each(void *argument, const struct tw_redis_info *info)
{
	const struct arguments *arguments = argument;

	show_line(info, arguments->json);
	return !ferror(stdout);
}

int command_list(struct tw_redis *redis, struct arguments *arguments)
{
	enum tw_redis_kind kind = arguments->dead ? TW_REDIS_LETTERS : TW_REDIS_TASKS;

	return outcome_of_call(redis, tw_redis_each(redis, kind, list_each, arguments));
}

int command_stats(struct tw_redis *redis, struct arguments *arguments)
{
	struct task_figures figures = {0};
	int exit_code = outcome_of_call(redis, figures_ask(redis, &figures));

	if (exit_code != EXIT_DONE)
		return exit_code;
	if (arguments->json) {
		show_json(figures_json(FIGURES_OF_TASKS, &figures));
	} else {
		figures_write(stdout, FIGURES_OF_TASKS, &figures, "\n");
		putchar('\n');
	}
	return exit_code;
}

static void show_rows(enum figure_scope scope, const void *rows, size_t size, size_t count,
		      bool json)
{
	if (!json && count)
		figures_names(scope);
	for (size_t i = 0; i < count; i++)
		figures_row(scope, (const char *)rows + i * size, json);
}

int command_groups(struct tw_redis *redis, struct arguments *arguments)
{
	struct tw_redis_group_stats rows[TW_REDIS_GROUPS_MAX];
	size_t count = 0;
	int exit_code = outcome_of_call(
		redis, tw_redis_get_groups(redis, rows, TW_REDIS_GROUPS_MAX, &count));

	show_rows(FIGURES_OF_GROUP, rows, sizeof(rows[0]), count, arguments->json);
	return exit_code;
}

int command_workers(struct tw_redis *redis, struct arguments *arguments)
{
	static struct tw_redis_worker_info rows[TW_REDIS_WORKERS_MAX];
	size_t count = 0;
	int exit_code = outcome_of_call(
		redis, tw_redis_get_workers(redis, rows, TW_REDIS_WORKERS_MAX, &count));

	show_rows(FIGURES_OF_WORKERS, rows, sizeof(rows[0]), count, arguments->json);
	return exit_code;
}
