/* SPDX-License-Identifier: MIT */
/* list_commands.c has the commands about all tasks, and about Redis. */
#include "commands.h"

#include <stdio.h>

#include "outcome.h"
#include "show.h"
#include "when.h"

struct listing {
	bool json;
	unsigned limit; /* 0 means no limit */
	unsigned count;
};

static bool listing_each(void *argument, const struct tw_redis_info *info)
{
	struct listing *listing = argument;

	show_line(info, listing->json);
	/* The reader may have gone, as head does. */
	return !ferror(stdout) && ++listing->count != listing->limit;
}

int command_list(struct tw_redis *redis, struct arguments *arguments)
{
	struct listing listing = {arguments->json, arguments->limit, 0};

	return outcome_of_call(redis, arguments->command == COMMAND_LIST
					      ? tw_redis_each(redis, listing_each, &listing)
					      : tw_redis_dead_each(redis, listing_each, &listing));
}

int command_stats(struct tw_redis *redis, struct arguments *arguments)
{
	struct tw_redis_stats stats = {0};
	int exit_code = outcome_of_call(redis, tw_redis_get_stats(redis, &stats));

	if (exit_code == EXIT_DONE ||
	    (stats.missing && stats.missing < tw_redis_shard_count(redis)))
		show_stats(&stats, arguments->json);
	return exit_code;
}

int command_pause(struct tw_redis *redis, struct arguments *arguments)
{
	return outcome_of_call(redis, arguments->command == COMMAND_PAUSE ? tw_redis_pause(redis)
									  : tw_redis_resume(redis));
}

static void show_limit(const char *name, unsigned limit)
{
	if (limit)
		printf("%-11s %u\n", name, limit);
	else
		printf("%-11s no limit\n", name);
}

/* Returns what the namespace's limit is: 0 is none. */
static unsigned limit_of(unsigned given)
{
	return given < LIMIT_NOT_GIVEN ? given : 0;
}

int command_limits(struct tw_redis *redis, struct arguments *arguments)
{
	struct tw_redis_limits given = {.running = limit_of(arguments->limits.running),
					.per_second = limit_of(arguments->limits.per_second)};
	struct tw_redis_limits *limits = &given;
	int exit_code = outcome_of_call(redis, arguments->limits_given
						       ? tw_redis_set_limits(redis, limits)
						       : tw_redis_get_limits(redis, limits));

	if (exit_code != EXIT_DONE || arguments->limits_given)
		return exit_code;
	if (arguments->json) {
		show_json(json_pack("{s:I, s:I}", "running", (json_int_t)limits->running,
				    "per_second", (json_int_t)limits->per_second));
		return exit_code;
	}
	show_limit("running", limits->running);
	show_limit("per second", limits->per_second);
	return exit_code;
}

int command_delete(struct tw_redis *redis, struct arguments *arguments)
{
	enum tw_status status = tw_redis_delete_namespace(redis, arguments->force);
	struct tw_redis_error error = {0};

	if (status != TW_EXISTS && status != TW_RUNNING)
		return outcome_of_call(redis, status);
	tw_redis_last_error(redis, &error);
	fprintf(stderr, "twr: %s (--force)\n", error.text);
	return outcome_code(status);
}

int command_ping(struct tw_redis *redis, struct arguments *arguments)
{
	tw_duration took;
	int exit_code = outcome_of_call(redis, tw_redis_ping(redis, &took));
	char text[WHEN_SIZE];

	if (exit_code == EXIT_DONE && arguments->json)
		show_json(json_pack("{s:f}", "took_ms", (double)took / TW_MILLISECOND));
	else if (exit_code == EXIT_DONE)
		printf("Redis answers in %s\n", duration_write(took, text));
	return exit_code;
}
