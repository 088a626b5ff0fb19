/* SPDX-License-Identifier: MIT */
/* limits_command.c shows and sets limits and pauses. */
#include "arguments.h"

#include <stdio.h>
#include <string.h>

#include "outcome.h"
#include "show.h"

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
