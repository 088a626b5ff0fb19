/* SPDX-License-Identifier: MIT */
/* limits_command.c shows and sets limits and pauses. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "limits.h"
#include "outcome.h"
#include "show.h"

static void row_show(const struct limit_figures *limits, bool json)
{
	if (json)
		show_json(figures_json(FIGURES_OF_LIMITS, limits));
	else
		figures_row(FIGURES_OF_LIMITS, limits);
}

/* Shows a group's limits. The context is the arguments. */
static bool row_each(void *context, const char *group, const struct tw_redis_group_limits *found)
{
	const struct arguments *arguments = context;
	struct limit_figures limits = {.weight = found->weight,
				       .running = found->running,
				       .per_second = found->per_second,
				       .burst = found->burst,
				       .paused = found->paused};

	snprintf(limits.group, sizeof(limits.group), "%s", group);
	row_show(&limits, arguments->json);
	return !ferror(stdout);
}

/* Replaces the limits that were given on the command line. */
static void limits_change(struct limit_figures *limits, const struct arguments *arguments)
{
	const struct tw_redis_group_limits *given = &arguments->limits;

	if (given->weight != LIMIT_NOT_GIVEN)
		limits->weight = given->weight;
	if (given->running != LIMIT_NOT_GIVEN)
		limits->running = given->running;
	if (given->per_second != LIMIT_NOT_GIVEN)
		limits->per_second = given->per_second;
	if (given->burst != LIMIT_NOT_GIVEN)
		limits->burst = given->burst;
	limits->paused = (limits->paused || given->paused) && !arguments->resume;
}

int command_limits(struct tw_redis *redis, struct arguments *arguments)
{
	const char *group = arguments->task.group;
	struct limit_figures limits = {0};
	int exit_code;

	if (group && strlen(group) > TW_REDIS_GROUP_MAX)
		return outcome(TW_INVALID, &(struct tw_redis_error){0});
	strcpy(limits.group, group ? group : "");
	exit_code = outcome_of_call(redis, limits_read(redis, &limits));
	if (exit_code != EXIT_DONE)
		return exit_code;
	if (arguments->limits_given) {
		limits_change(&limits, arguments);
		return outcome_of_call(redis, limits_write(redis, &limits));
	}
	if (!arguments->json)
		figures_names(FIGURES_OF_LIMITS);
	row_show(&limits, arguments->json);
	if (group)
		return EXIT_DONE;
	return outcome_of_call(redis, tw_redis_each_group_limits(redis, row_each, arguments));
}
