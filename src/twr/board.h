/* SPDX-License-Identifier: MIT */
/*
 * The board has the figures of a worker's pages: its own statistics, and Redis's counts of each
 * namespace that it serves. Redis is asked when a page looks, at most once a second.
 */
#ifndef TWR_BOARD_H
#define TWR_BOARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "figures.h"

enum { BOARD_GROUPS = 20 };

/* This is a namespace that the worker serves. */
struct board_space {
	/* These are constant after the start. */
	const char *name;
	struct tw_redis *redis; /* its calls try once */

	struct task_figures tasks;         /* Redis's last answer */
	struct tw_redis_worker_stats runs; /* this worker's */
	struct tw_redis_group_stats groups[BOARD_GROUPS];
	size_t group_count;
};

struct board {
	/* These are constant after the start. */
	struct tw_redis_worker *worker;
	struct board_space spaces[TW_REDIS_SOURCES_MAX]; /* in the order of the options */
	size_t space_count;                              /* at least one */
	tw_duration start;                               /* monotonic, like all times here */

	atomic_bool stopping; /* any thread; relaxed: it orders nothing */

	/* The lock guards these, and the rest of the namespaces. */
	pthread_mutex_t lock;
	tw_duration asked_at;  /* when the last question ended, or 0 */
	tw_duration groups_at; /* the next question about groups is not before */
	struct worker_figures figures;
	struct tw_redis_error failure; /* why Redis is unavailable to the worker, or is silent */
};

/*
 * Opens a connection of its own, for the namespaces of the worker's options, or for that of Redis's
 * if there are none. The worker and the strings of the options must outlive the board. The statuses
 * are those of tw_redis_open. *board is NULL unless it is TW_OK.
 */
enum tw_status board_start(struct board **board, struct tw_redis_worker *worker,
			   const struct tw_redis_options *redis,
			   const struct tw_redis_worker_options *options,
			   struct tw_redis_error *error);
/* Frees the board, which may be NULL and has no lookers. */
void board_stop(struct board *board);

/*
 * Locks the board with figures that are at most a second old. Any thread may call it. While Redis
 * is silent, it waits as long as Redis's options allow, and others wait for that.
 */
void board_look(struct board *board);
void board_leave(struct board *board);

/* Returns whether Redis answers the board and the worker, and the worker takes tasks. */
bool board_is_ready(const struct board *board);

#endif
