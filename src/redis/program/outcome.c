/* SPDX-License-Identifier: MIT */
#include "outcome.h"

#include <stdio.h>

static int exit_code_of(enum tw_status status)
{
	switch ((int)status) {
	case TW_OK:
		return EXIT_DONE;
	case TW_NOT_FOUND:
	case TW_EXISTS:
	case TW_RUNNING:
		return EXIT_NOT_DONE;
	case TW_INVALID:
		return EXIT_USAGE;
	case TW_REDIS_BAD_DATA:
		return EXIT_BAD_DATA;
	case TW_REDIS_UNREACHABLE:
	case TW_REDIS_UNFIT:
	case TW_REDIS_FAILED:
		return EXIT_UNREACHABLE;
	case TW_REDIS_OUTCOME_UNKNOWN:
		return EXIT_UNKNOWN;
	case TW_REDIS_REFUSED:
		return EXIT_REFUSED;
	default:
		return EXIT_SYSTEM;
	}
}

int outcome(enum tw_status status, const struct tw_redis_error *error)
{
	switch (status) {
	case TW_OK:
		break;
	case TW_NOT_FOUND:
		fputs("twr: there is no such task\n", stderr);
		break;
	case TW_EXISTS:
		fputs("twr: a task has that key\n", stderr);
		break;
	case TW_RUNNING:
		fputs("twr: a worker has it on lease\n", stderr);
		break;
	default:
		fprintf(stderr, "twr: %s%s%s\n", tw_status_text(status), *error->text ? ": " : "",
			error->text);
	}
	return exit_code_of(status);
}

int outcome_of_call(struct tw_redis *redis, enum tw_status status)
{
	struct tw_redis_error error = {0};

	if (status != TW_OK)
		tw_redis_last_error(redis, &error);
	return outcome(status, &error);
}
