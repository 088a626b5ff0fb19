/* SPDX-License-Identifier: MIT */
/* torture.h is what the processes of a torture share. Each is this program with another first
 * argument. */
#ifndef TORTURE_TORTURE_H
#define TORTURE_TORTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/redis.h>

enum { LEASE_MS = 1000, SHARDS = 4, NAME_SIZE = 48, RUNNING_MOST = 40 };

/* A part is a process's arguments. */
struct part {
	const char *name; /* the name of the process and of its history file */
	const char *url;
	const char *folder; /* the histories' folder */
	uint64_t seed;
};

/*
 * A plan is what a task's handler does. It is in the body, behind the task's id: "c0t1.17 done 20
 * 0". Calls of the client write it, workers read it.
 */
enum plan_kind { PLAN_DONE, PLAN_RETRY, PLAN_KILL, PLAN_FAIL };

struct plan {
	char id[NAME_SIZE];
	enum plan_kind kind; /* RETRY: the first attempt fails; FAIL: each does */
	int takes_ms;
	int wait_ms; /* until the next attempt */
};

enum { PLAN_TEXT_SIZE = 128 };
void plan_write(const struct plan *plan, char text[PLAN_TEXT_SIZE]);
/* Returns false if the body has no plan. */
bool plan_read(struct plan *plan, const void *body, size_t body_size);

/*
 * Returns whether tasks have groups, and some groups limits, in the histories of that seed. One
 * seed of four has none, for tasks without groups take another path through the scripts.
 */
bool seed_has_groups(uint64_t seed);

struct tw_redis_options part_options(const struct part *part);
/* Blocks SIGTERM in this thread and in those that it starts. */
void signal_block(void);
void signal_await(void);

/* These are the processes. They run until SIGTERM, finish their work, and return an exit status. */
int client_main(const struct part *part);
int worker_main(const struct part *part);
/* Runs a worker that claims and acknowledges by single calls, and writes exact answers. */
int hand_main(const struct part *part);

#endif
