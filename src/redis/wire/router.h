/* SPDX-License-Identifier: MIT */
/*
 * The router runs evals on the nodes of their shards, many in one round trip. It handles servers
 * that have lost their scripts, are away, are not ready, or name another node. Any thread may use
 * it.
 */
#ifndef REDIS_WIRE_ROUTER_H
#define REDIS_WIRE_ROUTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "eval.h"
#include "node_map.h"
#include "settings.h"

/* A caller has evals, and threads that lead their nodes. The router's lock guards it. */
struct caller {
	pthread_cond_t wake; /* made before the first wait */
	size_t waiting;      /* threads that wait for it */
	size_t left;         /* evals that have not ended */
	/* It is called, with the lock held, when an eval has ended. NULL means that a thread is to
	 * be woken after the last one. */
	void (*ended)(void *context);
	void *context;
};

struct router {
	const struct settings *settings; /* constant */
	pthread_mutex_t lock;            /* guards all below */
	struct node_map map;
	size_t callers;              /* those in router_run() */
	struct tw_redis_error error; /* a place for the last reason */
};

void router_init(struct router *router, const struct settings *settings);
/* Connects to the first server, and reads its map. The statuses, and *error, which may be NULL, are
 * those of tw_redis_open. */
enum tw_status router_open(struct router *router, struct tw_redis_error *error);
void router_close(struct router *router);

/* Runs the evals. Each then has its status and reply. Tries for the patience of the settings. */
void router_run(struct router *router, struct eval *evals, size_t count);

/* Queues the evals of the list, linked by their `next`, for one try each. The caller's threads call
 * router_serve(); if there is one node, connected and not led, this thread leads it. Only with the
 * lock may the evals be looked at until each has ended. */
void router_post(struct router *router, struct caller *caller, struct eval *evals);
/* Leads a node that has evals to send, or one to ask for the map if that is stale. Returns false
 * if there is none. The lock is held, except for what may take long. */
bool router_serve(struct router *router);
/* Returns whether the slot's node has no leader, and no evals to send. The lock is held. */
bool router_is_free(struct router *router, unsigned slot);

#endif
