/* SPDX-License-Identifier: MIT */
/* list_commands.c has the commands about all tasks, and about groups, workers and limits. */
#include "arguments.h"

#include <stdio.h>
#include <string.h>

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

/* Shows the limits of a group, or with NULL of the namespace. The context is the arguments. */
static bool row_show(void *context, const char *group, const struct tw_redis_limits *limits)
{
	const struct arguments *arguments = context;
	struct limit_figures row = {
		.weight = limits->weight, .running = limits->running, .paused = limits->paused};

	rate_write(limits, row.rate);
	strcpy(row.group, group ? group : "");
	figures_row(FIGURES_OF_LIMITS, &row, arguments->json);
	return !ferror(stdout);
}

/* Replaces the limits that were given on the command line. */
static void limits_change(struct tw_redis_limits *limits, const struct arguments *arguments)
{
	const struct tw_redis_limits *given = &arguments->limits;

	if (given->weight != LIMIT_NOT_GIVEN)
		limits->weight = given->weight;
	if (given->running != LIMIT_NOT_GIVEN)
		limits->running = given->running;
	if (given->rate != LIMIT_NOT_GIVEN) {
		limits->rate = given->rate;
		limits->per = given->per;
	}
	limits->paused = (limits->paused || given->paused) && !arguments->resume;
}

int command_limits(struct tw_redis *redis, struct arguments *arguments)
{
	const char *group = arguments->task.group;
	const bool all = !group && !arguments->limits_given;
	struct tw_redis_limits limits;
	enum tw_status status = TW_OK;

	if (!all)
		status = tw_redis_get_limits(redis, group, &limits);
	if (status == TW_OK && arguments->limits_given) {
		limits_change(&limits, arguments);
		return outcome_of_call(redis, tw_redis_set_limits(redis, group, &limits));
	}
	if (status == TW_OK && !arguments->json)
		figures_names(FIGURES_OF_LIMITS);
	if (all)
		status = tw_redis_each_limits(redis, row_show, arguments);
	else if (status == TW_OK)
		row_show(arguments, group, &limits);
	return outcome_of_call(redis, status);
}
