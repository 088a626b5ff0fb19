/* SPDX-License-Identifier: MIT */
/* arguments is the command line and the environment of twr, taken apart. */
#ifndef TWR_ARGUMENTS_H
#define TWR_ARGUMENTS_H

#include <stdbool.h>

#include <timingwheel/redis.h>

#include "listener.h"

/* A limit that was not given. */
#define LIMIT_NOT_GIVEN (UINT32_MAX - 1)

/* X(enumerator, name, what its last word is, help) */
#define COMMANDS(X)                                                                               \
	X(ADD, add, "KEY", "schedule a task; with --every or --cron a recurring one")             \
	X(CANCEL, cancel, "KEY", "remove a task; if it recurs, its current occurrence, or --all") \
	X(MOVE, move, "KEY", "set another due time")                                              \
	X(GET, get, "KEY", "show a task")                                                         \
	X(LIST, list, "", "show all tasks; with --dead the dead letters: tasks that failed")      \
	X(RETRY, retry, "KEY", "make a dead letter a task again, due now")                        \
	X(DROP, drop, "KEY", "delete a dead letter, a group's waiting tasks, or a namespace")     \
	X(STATS, stats, "", "show the numbers of tasks")                                          \
	X(WORKERS, workers, "", "show the workers of the namespace")                              \
	X(GROUPS, groups, "", "show the groups with the most waiting tasks")                      \
	X(LIMITS, limits, "GROUP", "show or set limits, of the namespace or of a group")          \
	X(WORKER, worker, "", "run due tasks until SIGTERM")                                      \
	X(LOAD, load, "FILE", "add what list --json and limits --json have written")

#define COMMAND_ENUMERATOR(enumerator, name, word, help) COMMAND_##enumerator,
enum command_name { COMMANDS(COMMAND_ENUMERATOR) COMMAND_COUNT };

/* This is an option that can be repeated. One value above a limit is kept, so that the library can
 * refuse it. */
struct text_list {
	size_t count;
	const char *texts[TW_REDIS_TARGETS_MAX + 1];
};

struct arguments {
	enum command_name command;

	/* This says which Redis to use. */
	struct tw_redis_options redis;
	char *url; /* a copy, like the password; the originals have been blotted out */
	char *password;

	/* This is the task. */
	struct tw_redis_task task; /* its body is data, once that has been read */
	struct text_list headers;
	const char *data;              /* as given: text, @file or @- */
	const char *file;              /* the file to load, or "-" */
	bool handler;                  /* --handler means no callback */
	bool all;                      /* every dead letter, or all occurrences */
	bool dead;                     /* the list is that of the dead letters */
	bool everything;               /* the namespace is deleted */
	bool force;                    /* even if it is in use */
	struct tw_redis_limits limits; /* those that were not given are LIMIT_NOT_GIVEN */
	bool resume;
	bool limits_given; /* or a pause, or its end */

	struct tw_redis_worker_options worker;
	struct tw_redis_source sources[TW_REDIS_SOURCES_MAX + 1];
	char *names; /* a copy, for the sources */
	struct text_list allow;
	struct text_list deny;
	tw_duration grace;
	struct listener_options listen; /* without an address there is no listener */
	struct text_list listen_hosts;

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

/* These are the commands. Each returns an exit code, after a message on stderr if it failed. The
 * worker is called without a handle: it opens its own connections. */
#define COMMAND_FUNCTION(enumerator, name, word, help) \
	int command_##name(struct tw_redis *redis, struct arguments *arguments);
COMMANDS(COMMAND_FUNCTION)

#endif
