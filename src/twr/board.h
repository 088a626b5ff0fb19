/* SPDX-License-Identifier: MIT */
/*
 * The board has the figures of a worker's pages: its own statistics, and Redis's counts of each
 * namespace that it serves. A thread asks Redis when a page looks, at most once a second.
 */
#ifndef TWR_BOARD_H
#define TWR_BOARD_H

#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

enum {
	BOARD_SECONDS = 120,
	BOARD_LETTERS = 20,
	BOARD_HOSTS = TW_REDIS_HOSTS_MAX + 1,
	BOARD_GROUPS = 20,
	BOARD_WORKERS = 100
};

/* These are the figures of a namespace that the worker serves. */
struct space_figures {
	char name[TW_REDIS_NAMESPACE_MAX + 1];
	struct tw_redis_worker_stats worker;              /* this worker's present counts */
	struct tw_redis_stats tasks;                      /* Redis's last answer */
	struct tw_redis_group_stats groups[BOARD_GROUPS]; /* the largest first */
	size_t group_count;
};

/* A colleague is one of all workers of a namespace, by its last report. */
struct colleague {
	size_t space; /* among the namespaces */
	struct tw_redis_worker_info info;
};

/* A letter is a dead letter without its body. */
struct letter {
	size_t space; /* among the namespaces */
	char key[TW_REDIS_KEY_MAX];
	size_t key_size;
	char reason[TW_REDIS_REASON_MAX + 1];
	int64_t died_ms;
	unsigned attempts;
};

struct letters {
	struct letter rows[BOARD_LETTERS]; /* the last to die come first */
	size_t count;
	bool cut; /* there are more letters than it looked at */
};

/* A second has the rates of runs by their ends, and their lateness in seconds, which is negative if
 * none began. */
struct second {
	double claimed;
	double done;
	double retried;
	double dead;
	double late_half; /* half of the runs were no later */
	double late_most; /* 99 of 100 runs were no later */
};

/* Figures are all that the pages show. */
struct figures {
	tw_duration uptime;
	bool stopping;

	/* These are this worker's present counts. Only the first row, all others, is named "" or
	 * "other". */
	struct tw_redis_worker_stats worker;
	struct tw_redis_host_stats hosts[BOARD_HOSTS];
	size_t host_count;
	struct second seconds[BOARD_SECONDS]; /* oldest first */
	size_t second_count;

	/* This is Redis's last answer. */
	struct tw_redis_error failure; /* why it is unavailable to the worker, or did not answer */
	bool answered;                 /* it answered the last question, in the last 10 s */
	tw_duration answer_age;        /* TW_FOREVER if it never did; then there are no tasks */
	struct tw_redis_stats tasks;   /* the sum of all namespaces */
	struct letters letters;
	struct colleague colleagues[BOARD_WORKERS];
	size_t colleague_count; /* the colleagues that have room */

	struct space_figures spaces[TW_REDIS_SOURCES_MAX]; /* in the order of the options */
	size_t space_count;                                /* at least one */
};

struct board;

/*
 * Opens a connection of its own, for the namespaces of the worker's options, or for that of Redis's
 * if there are none. The worker and the strings of the options must outlive the board. The statuses
 * are those of tw_redis_open, and TW_SYSTEM if no thread starts. *board is NULL unless it is TW_OK.
 */
enum tw_status board_start(struct board **board, struct tw_redis_worker *worker,
			   const struct tw_redis_options *redis,
			   const struct tw_redis_worker_options *options,
			   struct tw_redis_error *error);
/* Ends the board, which may be NULL. It may wait for Redis's answer. */
void board_stop(struct board *board);
/* Notes that the worker is no longer ready. */
void board_tell_end(struct board *board);

/* A look needs nothing from Redis, the counts of tasks, or dead letters and all workers, too. */
enum board_need { BOARD_NOTHING, BOARD_COUNTS, BOARD_ALL };

/*
 * Fills *figures. The answer of Redis that it needs is at most a second old: if it is older, Redis
 * is asked, and the call waits. While Redis is silent, calls wait until a second after the question
 * at most, and show the last answer. Any thread may call it.
 */
void board_look(struct board *board, enum board_need need, struct figures *figures);

/* Returns whether the worker's loop has made a turn within that time. */
bool figures_are_healthy(const struct figures *figures, tw_duration limit);
/* Returns whether Redis answers the board and the worker, and the worker takes tasks. */
bool figures_are_ready(const struct figures *figures);
/* Asks for the counts of a namespace. Returns whether Redis replied with those of all shards,
 * except shards with a broken key. */
bool tasks_ask(struct tw_redis *redis, struct tw_redis_stats *tasks);
/* Returns how long ago the longest waiting task was due, in seconds, or 0 if none is due. */
double tasks_oldest_due(const struct tw_redis_stats *tasks);
/* Returns how long ago the first waiting task of a group was due, in seconds, or 0 if none is. */
double group_oldest_due(const struct space_figures *space,
			const struct tw_redis_group_stats *group);

#endif
