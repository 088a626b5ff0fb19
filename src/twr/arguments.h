/* SPDX-License-Identifier: MIT */
/* arguments is the command line and the environment of twr, taken apart. */
#ifndef TWR_ARGUMENTS_H
#define TWR_ARGUMENTS_H

#include <stdbool.h>

#include <timingwheel/redis.h>

#include "listener.h"

enum { LISTEN_HOSTS_MAX = 32 };
/* A limit that was not given. */
#define LIMIT_NOT_GIVEN (UINT32_MAX - 1)

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
	COMMAND_GROUP_LIST,
	COMMAND_GROUP_LIMITS,
	COMMAND_GROUP_PAUSE,
	COMMAND_GROUP_RESUME,
	COMMAND_GROUP_DRAIN,
	COMMAND_NAMESPACE_DELETE
};

struct arguments {
	enum command_name command;

	/* This says which Redis to use. */
	struct tw_redis_options redis;
	char *url; /* a copy, like the password; the originals have been blotted out */
	char *password;

	/* This is the task. */
	struct tw_redis_task task; /* its body is data, once that has been read */
	const char *headers[TW_REDIS_HEADER_COUNT_MAX + 1];
	const char *data;                    /* as given: text, @file or @- */
	const char *file;                    /* the file of many tasks, or "-"; NULL for one task */
	bool handler;                        /* --handler means no callback */
	bool all;                            /* every dead letter */
	bool force;                          /* a namespace is deleted even if it is in use */
	unsigned limit;                      /* the most of a list; 0 means no limit */
	struct tw_redis_group_limits limits; /* the namespace has two of them */
	bool limits_given;

	struct tw_redis_worker_options worker;
	struct tw_redis_source sources[TW_REDIS_SOURCES_MAX + 1];
	char *names; /* a copy, for the sources */
	const char *allow[TW_REDIS_TARGETS_MAX + 1];
	const char *deny[TW_REDIS_TARGETS_MAX + 1];
	tw_duration grace;
	tw_duration count_every;
	struct listener_options listen; /* without an address there is no listener */
	const char *listen_hosts[LISTEN_HOSTS_MAX];

	const char *worker_url; /* the worker's pages for top; NULL if it asks Redis */
	tw_duration interval;

	bool json;
	bool verbose;
	bool answered; /* --help or --version was given, and nothing else is to do */
};

/*
 * Reads everything except the data itself. Passwords in `texts` and the environment are copied and
 * overwritten, so that they are not in the process list. Returns EXIT_DONE, or another code after a
 * message on stderr.
 */
int arguments_read(struct arguments *arguments, int count, char **texts);
void arguments_free(struct arguments *arguments);

#endif
