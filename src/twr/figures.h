/* SPDX-License-Identifier: MIT */
/*
 * figures is the table of all numbers that twr shows: of tasks, of a worker, of groups. The text of
 * stats, groups and workers, the JSON of these, /status.json and the metrics are made from it.
 */
#ifndef TWR_FIGURES_H
#define TWR_FIGURES_H

#include <stdio.h>

#include <jansson.h>

#include <timingwheel/redis.h>

#include "when.h"

/* A figure belongs to one of these structs. */
enum figure_scope {
	FIGURES_OF_TASKS,   /* struct task_figures */
	FIGURES_OF_RUNS,    /* struct tw_redis_worker_stats of a namespace */
	FIGURES_OF_TIMES,   /* its histograms, which are metrics alone */
	FIGURES_OF_WORKER,  /* struct worker_figures */
	FIGURES_OF_GROUP,   /* struct tw_redis_group_stats */
	FIGURES_OF_WORKERS, /* struct tw_redis_worker_info */
	FIGURES_OF_LIMITS,  /* struct limit_figures */
};

/* These are Redis's counts of a namespace. */
struct task_figures {
	struct tw_redis_stats stats;
	uint64_t scheduled; /* tasks without an attempt begun */
};

/* These are a worker's counts of all namespaces. */
struct worker_figures {
	struct tw_redis_worker_stats stats;
	uint64_t ready;
	uint64_t redis_up;
	tw_duration uptime;
};

/* These are limits of a group or, if it is "", of the namespace. */
struct limit_figures {
	uint64_t weight;
	uint64_t running;
	uint64_t paused;
	char rate[WHEN_SIZE];
	char group[TW_REDIS_GROUP_MAX + 1];
};

/* A row is a struct of the scope, and what its metrics need. */
struct figure_row {
	const void *of;
	const char *name_space; /* the label of its metrics, or NULL */
	int64_t now_ms;         /* metrics have ages of times before this one */
};

/* Asks Redis. The status is that of tw_redis_get_stats(). */
enum tw_status figures_ask(struct tw_redis *redis, struct task_figures *figures);

/* Returns the row as an object, without times that never come, or NULL without memory. */
json_t *figures_json(enum figure_scope scope, const void *of);
/* Writes "NAME VALUE" of each figure, with the text between two. */
void figures_write(FILE *out, enum figure_scope scope, const void *of, const char *between);
/* Writes a line of the figures' names, and one of their values or JSON. The scope has a text. */
void figures_names(enum figure_scope scope);
void figures_row(enum figure_scope scope, const void *of, bool json);
/* Writes the rows' metrics, in the format of Prometheus. */
void figures_metrics(FILE *out, enum figure_scope scope, const struct figure_row *rows,
		     size_t count);

#endif
