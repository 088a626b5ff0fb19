/* SPDX-License-Identifier: MIT */
/* What the processes of a torture share. Each is this program, called with another first word. */
#ifndef TORTURE_TORTURE_H
#define TORTURE_TORTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/redis.h>

enum { LEASE_MS = 1000, SHARDS = 4, NAME_SIZE = 48, RUNNING_MOST = 40 };

/* What a process is told. */
struct part {
	const char *name; /* of the process, and of its history */
	const char *url;
	const char *folder; /* where histories lie */
	uint64_t seed;
};

/*
 * What a task's handler is to do. It stands in the body behind the task's id: "c0t1.17 done 20 0".
 * Calls of the client write it, workers read it.
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
/* False: it is none. */
bool plan_read(struct plan *plan, const void *body, size_t body_size);

/* Options for a process that has this part. */
/*
 * Whether tasks have groups, and some groups limits, in the histories of that seed. One of four has
 * none, for tasks without groups take another way through the scripts.
 */
bool seed_has_groups(uint64_t seed);

struct tw_redis_options part_options(const struct part *part);
/* Blocks SIGTERM in this thread and in those that it starts; they are told otherwise. */
void signal_block(void);
/* Waits for SIGTERM. */
void signal_await(void);

/* The processes. They run until SIGTERM, let end what they do, and return an exit status. */
int client_main(const struct part *part);
int worker_main(const struct part *part);
/* A worker that claims and acknowledges by the calls for that, and tells exact answers. */
int hand_main(const struct part *part);

#endif
