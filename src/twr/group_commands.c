/* SPDX-License-Identifier: MIT */
/* group_commands.c has the commands about groups: the list, limits, and draining. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "outcome.h"
#include "show.h"

/* Writes a limit; 0 is none. */
static void limit_write(char text[16], unsigned limit)
{
	if (limit)
		snprintf(text, 16, "%u", limit);
	else
		strcpy(text, "-");
}

static void limit_set(json_t *object, const char *name, unsigned limit)
{
	if (limit)
		json_object_set_new(object, name, json_integer(limit));
}

/* Shows the limits in a line. The context says whether it is JSON. */
static bool show_limits(void *context, const char *group,
			const struct tw_redis_group_limits *limits)
{
	const bool *json = context;
	char running[16];
	char per_second[16];
	char burst[16];
	char weight[16];

	if (*json) {
		json_t *object = json_pack("{s:s}", "group", group);

		limit_set(object, "weight", limits->weight);
		limit_set(object, "running", limits->running);
		limit_set(object, "per_second", limits->per_second);
		limit_set(object, "burst", limits->burst);
		if (limits->paused)
			json_object_set_new(object, "paused", json_true());
		show_json(object);
		return !ferror(stdout);
	}
	limit_write(weight, limits->weight);
	limit_write(running, limits->running);
	limit_write(per_second, limits->per_second);
	limit_write(burst, limits->burst);
	printf("%6s %10s %10s %10s  %-6s  ", weight, running, per_second, burst,
	       limits->paused ? "paused" : "");
	show_key(stdout, group, strlen(group));
	putchar('\n');
	return !ferror(stdout);
}

static void show_head(bool json)
{
	if (!json)
		puts("weight    running per second      burst          group");
}

/* Replaces the limits that were given on the command line. */
static void limits_change(struct tw_redis_group_limits *limits, const struct arguments *arguments)
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
	if (arguments->command != COMMAND_GROUP_LIMITS)
		limits->paused = arguments->command == COMMAND_GROUP_PAUSE;
}

int command_group_limits(struct tw_redis *redis, struct arguments *arguments)
{
	struct tw_redis_group_limits limits;
	enum tw_status status;

	if (!arguments->task.group) {
		show_head(arguments->json);
		return outcome_of_call(
			redis, tw_redis_each_group_limits(redis, show_limits, &arguments->json));
	}
	status = tw_redis_get_group_limits(redis, arguments->task.group, &limits);
	if (status != TW_OK && status != TW_NOT_FOUND)
		return outcome_of_call(redis, status);
	if (arguments->command == COMMAND_GROUP_LIMITS && !arguments->limits_given) {
		show_head(arguments->json);
		show_limits(&arguments->json, arguments->task.group, &limits);
		return EXIT_DONE;
	}
	limits_change(&limits, arguments);
	return outcome_of_call(redis,
			       tw_redis_set_group_limits(redis, arguments->task.group, &limits));
}

int command_group_list(struct tw_redis *redis, struct arguments *arguments)
{
	struct tw_redis_group_stats groups[TW_REDIS_GROUPS_MAX];
	size_t count = 0;
	int exit_code = outcome_of_call(
		redis, tw_redis_get_groups(redis, groups, TW_REDIS_GROUPS_MAX, &count));

	show_groups(groups, count, arguments->json);
	return exit_code;
}

int command_group_drain(struct tw_redis *redis, struct arguments *arguments)
{
	uint64_t removed = 0;
	int exit_code = outcome_of_call(
		redis, tw_redis_drain_group(redis, arguments->task.group, &removed));

	if (arguments->json)
		show_json(json_pack("{s:I}", "removed", (json_int_t)removed));
	else if (exit_code == EXIT_DONE || removed)
		printf("%llu task%s removed\n", (unsigned long long)removed,
		       removed == 1 ? "" : "s");
	return exit_code;
}
