/* SPDX-License-Identifier: MIT */
/* The command line and the environment of twr, taken apart. */
#ifndef TWR_ARGUMENTS_H
#define TWR_ARGUMENTS_H

#include <stdbool.h>

#include <timingwheel/redis.h>

#include "listener.h"

enum { LISTEN_HOSTS_MAX = 32 };

enum command_name {
	COMMAND_ADD,
	COMMAND_EVERY,
	COMMAND_CANCEL,
	COMMAND_END,
	COMMAND_MOVE,
	COMMAND_GET,
	COMMAND_LIST,
	COMMAND_STATS,
	COMMAND_DEAD_LIST,
	COMMAND_DEAD_RETRY,
	COMMAND_DEAD_DROP,
	COMMAND_WORKER,
	COMMAND_TOP,
	COMMAND_PING,
	COMMAND_PAUSE,
	COMMAND_RESUME,
	COMMAND_LIMITS,
	COMMAND_NAMESPACE_DELETE
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
	const char *file; /* of many tasks, or "-"; NULL: one task */
	bool handler;     /* --handler: no callback is meant */
	bool all;         /* dead letters: every one */
	bool force;       /* a namespace is deleted though it is in use */
	unsigned limit;   /* of a list; 0: none */
	struct tw_redis_limits limits;
	bool limits_given;

	struct tw_redis_worker_options worker;
	struct tw_redis_source sources[TW_REDIS_SOURCES_MAX + 1];
	char *names; /* ours, of the sources */
	const char *allow[TW_REDIS_TARGETS_MAX + 1];
	const char *deny[TW_REDIS_TARGETS_MAX + 1];
	tw_duration grace;
	tw_duration count_every;
	struct listener_options listen; /* no address: not asked for */
	const char *listen_hosts[LISTEN_HOSTS_MAX];

	const char *worker_url; /* of top: the worker's pages; NULL: Redis is asked */
	tw_duration interval;

	bool json;
	bool verbose;
	bool answered; /* --help or --version was given, and that is all there is to do */
};

/*
 * Reads all but the data itself. Passwords in `arguments` and the environment are copied and
 * overwritten where they were, so that they are not in the process list. EXIT_DONE; else what
 * is wrong has been said on stderr.
 */
int arguments_read(struct arguments *arguments, int count, char **texts);
void arguments_free(struct arguments *arguments);

#endif
