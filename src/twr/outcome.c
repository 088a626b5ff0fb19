/* SPDX-License-Identifier: MIT */
#include "outcome.h"

#include <stdio.h>

static const struct {
	enum tw_status status;
	enum exit_code exit_code;
	const char *text; /* NULL stands for the status's own text, and the error's */
} outcomes[] = {
	{TW_NOT_FOUND, EXIT_NOT_DONE, "there is no such task"},
	{TW_EXISTS, EXIT_NOT_DONE, "the key is already in use"},
	{TW_RUNNING, EXIT_NOT_DONE, "a worker has the task on lease"},
	{TW_INVALID, EXIT_USAGE, NULL},
	{TW_REDIS_BAD_DATA, EXIT_BAD_DATA, NULL},
	{TW_REDIS_UNREACHABLE, EXIT_UNREACHABLE, NULL},
	{TW_REDIS_UNFIT, EXIT_UNREACHABLE, NULL},
	{TW_REDIS_FAILED, EXIT_UNREACHABLE, NULL},
	{TW_REDIS_OUTCOME_UNKNOWN, EXIT_UNKNOWN, NULL},
	{TW_REDIS_REFUSED, EXIT_REFUSED, NULL},
};
enum { OUTCOME_COUNT = sizeof(outcomes) / sizeof(outcomes[0]) };

static size_t outcome_find(enum tw_status status)
{
	size_t i = 0;

	while (i < OUTCOME_COUNT && outcomes[i].status != status)
		i++;
	return i;
}

int outcome_code(enum tw_status status)
{
	size_t i = outcome_find(status);

	if (status == TW_OK)
		return EXIT_DONE;
	return i < OUTCOME_COUNT ? (int)outcomes[i].exit_code : EXIT_SYSTEM;
}

void outcome_say(enum tw_status status, const struct tw_redis_error *error)
{
	size_t i = outcome_find(status);

	if (i < OUTCOME_COUNT && outcomes[i].text)
		fprintf(stderr, "%s\n", outcomes[i].text);
	else
		fprintf(stderr, "%s%s%s\n", tw_status_text(status), *error->text ? ": " : "",
			error->text);
}

int outcome(enum tw_status status, const struct tw_redis_error *error)
{
	if (status != TW_OK) {
		fputs("twr: ", stderr);
		outcome_say(status, error);
	}
	return outcome_code(status);
}

int outcome_of_call(struct tw_redis *redis, enum tw_status status)
{
	struct tw_redis_error error = {0};

	if (status != TW_OK)
		tw_redis_last_error(redis, &error);
	return outcome(status, &error);
}
