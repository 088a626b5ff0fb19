/* SPDX-License-Identifier: MIT */
/*
 * The board holds what a worker's pages show: its own statistics, and what Redis says, of each
 * namespace that it serves. A thread asks Redis when someone looks, at most once a second.
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
	BOARD_WORKERS = 100
};

/* A namespace that the worker serves. */
struct space_figures {
	char name[TW_REDIS_NAMESPACE_MAX + 1];
	struct tw_redis_worker_stats worker; /* this worker's, now */
	struct tw_redis_stats tasks;         /* as Redis said last */
};

/* A colleague is one of all workers of a namespace, as of its last report to Redis. */
struct colleague {
	size_t space; /* among the namespaces */
	struct tw_redis_worker_info info;
};

/* A dead letter, without its body. */
struct letter {
	size_t space; /* among the namespaces */
	char key[TW_REDIS_KEY_MAX];
	size_t key_size;
	char reason[TW_REDIS_REASON_MAX + 1];
	int64_t died_ms;
	unsigned attempts;
};

struct letters {
	struct letter rows[BOARD_LETTERS]; /* those that died last come first */
	size_t count;
	bool cut; /* there are more than are looked at */
};

/* About one second: runs by their ends, a second; lateness in seconds, negative: none began. */
struct second {
	double claimed;
	double done;
	double retried;
	double dead;
	double late_half; /* half of them were no later */
	double late_most; /* 99 of 100 were no later */
};

/* All there is to show. */
struct figures {
	tw_duration uptime;
	bool stopping;

	/* This worker's, now. No host but the first, all others, is called "" or "other". */
	struct tw_redis_worker_stats worker;
	struct tw_redis_host_stats hosts[BOARD_HOSTS];
	size_t host_count;
	struct second seconds[BOARD_SECONDS]; /* oldest first */
	size_t second_count;

	/* What Redis replied last. */
	struct tw_redis_error failure; /* why it is unavailable to the worker, or did not answer */
	bool answered;                 /* when it was last asked, in the last 10 s */
	tw_duration answer_age;        /* TW_FOREVER: it never has, and then there are no tasks */
	struct tw_redis_stats tasks;   /* of all namespaces together */
	struct letters letters;
	struct colleague colleagues[BOARD_WORKERS];
	size_t colleague_count; /* those that there is room for */

	struct space_figures spaces[TW_REDIS_SOURCES_MAX]; /* in the order of the options */
	size_t space_count;                                /* one at least */
};

struct board;

/*
 * Opens a connection of its own, for the namespaces of the worker's options, or else for that of
 * Redis's. The worker, and the strings of the options, must outlive the board. Statuses as
 * tw_redis_open; TW_SYSTEM: no thread. On failure *board is NULL.
 */
enum tw_status board_start(struct board **board, struct tw_redis_worker *worker,
			   const struct tw_redis_options *redis,
			   const struct tw_redis_worker_options *options,
			   struct tw_redis_error *error);
/* May wait for a question to Redis under way. NULL is fine. */
void board_stop(struct board *board);
/* From now on the worker is not ready. */
void board_tell_end(struct board *board);

/* A look needs nothing from Redis, the counts of tasks, or dead letters and all workers, too. */
enum board_need { BOARD_NOTHING, BOARD_COUNTS, BOARD_ALL };

/*
 * Fills *figures. What is needed from Redis is at most a second old: if it is older, Redis is
 * asked, and the call waits for the answer. While Redis is silent, calls wait no longer than until
 * a second after the question, and show the last answer. Any thread.
 */
void board_look(struct board *board, enum board_need need, struct figures *figures);

/* The worker's loop has gone round within that time. */
bool figures_are_healthy(const struct figures *figures, tw_duration limit);
/* Redis answers, the worker too has it, and takes tasks. */
bool figures_are_ready(const struct figures *figures);
/* Asks for the counts of a namespace. Returns whether Redis replied with those of all shards,
 * except shards with a broken key. */
bool tasks_ask(struct tw_redis *redis, struct tw_redis_stats *tasks);
/* How long ago the task that has waited longest was due, in seconds; 0: none is due. */
double tasks_oldest_due(const struct tw_redis_stats *tasks);

#endif
