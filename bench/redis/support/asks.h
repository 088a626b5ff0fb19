/* SPDX-License-Identifier: MIT */
/*
 * These are the questions that `redis --ask=...` answers about one Redis, and what they share. A
 * call that fails ends the program.
 */
#ifndef BENCH_REDIS_ASKS_H
#define BENCH_REDIS_ASKS_H

#include "support/figures.h"
#include "support/redis_server.h"

#include <timingwheel/redis.h>

#include <stddef.h>
#include <stdint.h>

struct settings {
	int64_t runs;
	int64_t count;    /* tasks of a rate */
	int64_t pending;  /* tasks that wait */
	int64_t flood;    /* due tasks of one group */
	int64_t handlers; /* tasks a second */
	int64_t callbacks;
	int64_t seconds; /* nanoseconds that tasks are due, or calls are made */
	int64_t shards;
	int64_t body; /* bytes of a task */
};

void ask_rates(const struct settings *settings);
void ask_lateness(const struct settings *settings);
void ask_pending(const struct settings *settings);
void ask_fairness(const struct settings *settings);
void ask_durable(const struct settings *settings);

/* --- What they share -------------------------------------------------------------------------- */

enum { BATCH = 100 };

/* A load is the tasks `first` to `end` - 1, which take turns among groups. The key of a task is its
 * group's number, a dash, and its own number. */
struct load {
	int64_t first;
	int64_t end;
	const char *group;   /* begins the groups' names, before the number; NULL means no groups */
	int64_t group_first; /* the first group's number */
	int64_t groups;      /* 0 means one */
	tw_duration delay;   /* unless at_ms is given */
	int64_t at_ms;       /* when the first is due; the others follow within spread_ms */
	int64_t spread_ms;
	const char *url;
	int64_t body;
};

void expect_done(struct tw_redis *redis, enum tw_status status);

/* Opens a client. The namespace, which is the number's, has these shards; 0 means the default. */
struct tw_redis *open_client(const struct redis_server *server, int name_space, int64_t shards);

void add_load(struct tw_redis *redis, const struct load *load);

/* Reads the number of a key's group, and its own. */
int64_t group_of_key(const char *key);
int64_t number_of_key(const char *key);

/* Starts a worker on the first namespace; its callbacks are 64 to a host. */
struct tw_redis_worker *start_worker(const struct redis_server *server, int64_t shards,
				     tw_redis_handler_fn *handler);
void end_worker(struct tw_redis_worker *worker);

/* Returns the time in milliseconds since 1970 when `tasks` that are added now may begin to be due:
 * adding one takes less than 30 us, also where that is slow. */
int64_t time_after_adding(int64_t tasks);

/* Returns nanoseconds since 1970. */
int64_t time_of_day(void);

/* Runs a trial `runs` times in processes of their own, and shows progress. */
struct figures *run_trials(const char *name, const char *title, const struct measure *measures,
			   void (*trial)(const void *plan, double *result), const void *plan,
			   int64_t runs);

#endif
