/* SPDX-License-Identifier: MIT */
/* list_commands.c has the commands about all tasks, and about Redis. */
#include "arguments.h"

#include <stdio.h>
#include <time.h>

#include "figures.h"
#include "outcome.h"
#include "show.h"
#include "when.h"

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

/* Shows the numbers of tasks: a line each, or one line for all. */
static int stats_show(struct tw_redis *redis, const struct arguments *arguments)
{
	struct task_figures figures = {0};
	int exit_code = outcome_of_call(redis, figures_ask(redis, &figures));

	if (exit_code != EXIT_DONE)
		return exit_code;
	if (arguments->json) {
		show_json(figures_json(FIGURES_OF_TASKS, &figures));
	} else {
		figures_write(stdout, FIGURES_OF_TASKS, &figures,
			      arguments->task.every ? "  " : "\n");
		putchar('\n');
	}
	return exit_code;
}

int command_stats(struct tw_redis *redis, struct arguments *arguments)
{
	const tw_duration every = arguments->task.every;
	const struct timespec time = {every / TW_SECOND, every % TW_SECOND};
	int exit_code = stats_show(redis, arguments);

	/* The first question must have an answer. */
	while (every && exit_code == EXIT_DONE && !fflush(stdout) && !nanosleep(&time, NULL))
		stats_show(redis, arguments);
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

int command_ping(struct tw_redis *redis, struct arguments *arguments)
{
	struct tw_redis_stats stats;
	const tw_duration begin = now_read();
	int exit_code = outcome_of_call(redis, tw_redis_get_stats(redis, &stats));
	const tw_duration took = now_read() - begin;
	char text[WHEN_SIZE];

	if (exit_code == EXIT_DONE && arguments->json)
		show_json(json_pack("{s:f}", "took_ms", (double)took / TW_MILLISECOND));
	else if (exit_code == EXIT_DONE)
		printf("Redis answers in %s\n", duration_write(took, text));
	return exit_code;
}
