/* SPDX-License-Identifier: MIT */
/* The command line and the environment of twr, taken apart. */
#ifndef TIMINGWHEEL_REDIS_PROGRAM_ARGUMENTS_H
#define TIMINGWHEEL_REDIS_PROGRAM_ARGUMENTS_H

#include <stdbool.h>

#include <timingwheel/redis.h>

enum command_name {
	COMMAND_ADD,
	COMMAND_CANCEL,
	COMMAND_MOVE,
	COMMAND_GET,
	COMMAND_LIST,
	COMMAND_STATS,
	COMMAND_DEAD_LIST,
	COMMAND_DEAD_RETRY,
	COMMAND_DEAD_DROP,
	COMMAND_WORKER,
	COMMAND_PING
};

struct arguments {
	enum command_name command;

	/* Which Redis. */
	struct tw_redis_options redis;
	char *url; /* ours, as the password is; the originals have been blotted out */
	char *password;

	/* Which task, and what it is. */
	struct tw_redis_task task; /* body: data, once it has been read */
	const char *headers[TW_REDIS_HEADER_COUNT_MAX + 1];
	const char *data; /* as given: text, @file or @- */
	bool timed;       /* --at or --in was given */
	bool all;         /* dead letters: every one */
	unsigned limit;   /* of a list; 0: none */

	struct tw_redis_worker_options worker;
	tw_duration grace;
	tw_duration count_every;

	bool json;
	bool verbose;
};

/*
 * Reads all but the data itself. Passwords in `arguments` and the environment are copied and
 * overwritten where they were, so that nobody finds them in the process list. False: the program is
 * to end with *exit_code: help was asked for, or the usage is wrong, which has been said on stderr.
 */
bool arguments_read(struct arguments *arguments, int count, char **texts, int *exit_code);
void arguments_free(struct arguments *arguments);

/* Says on stderr what is wrong with the usage; answers EXIT_USAGE. */
__attribute__((format(printf, 1, 2))) int usage_error(const char *format, ...);

#endif
