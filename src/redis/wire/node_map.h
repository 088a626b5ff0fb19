/* SPDX-License-Identifier: MIT */
/*
 * The servers there are, and which has which slot of a cluster. Without a cluster there is one, and
 * it has all. One thread at a time.
 */
#ifndef REDIS_WIRE_NODE_MAP_H
#define REDIS_WIRE_NODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connection.h"
#include "settings.h"
#include "space.h"

enum { NODES_MAX = 1024 };

struct eval;

/* To connect a node. */
struct attempt {
	struct address address; /* where it is tried, and where it was found */
	enum tw_status status;
	struct connection connection;
	struct tw_redis_error error;
};

struct node {
	struct address address;
	struct connection connection;
	tw_duration retry_at;          /* monotonic: not to be connected before */
	tw_duration backoff;           /* the last wait until then */
	struct tw_redis_error failure; /* why it could not be connected, or broke, last */
	bool checked;                  /* for life, in this pass */
	bool is_former; /* a replica now, by its own word: to be closed once it owes nothing */
	bool owed;      /* it owed replies when this pass began */
	/* Evals whose replies it owes, in the order in which they were sent. */
	struct eval *first;
	struct eval **last;
	tw_duration reply_by; /* monotonic: the first's */

	/* Connected beside the passes: by a caller of call.c, under the lock of the calls, or by a
	 * thread of the worker, whose main thread alone uses the mark. */
	bool connecting;
	bool tried; /* and that is what has come of it: */
	struct attempt attempt;
	struct node *next_wanted; /* the next one that the same caller is to connect */
};

/* What is to be said of a node before it is sent anything. */
enum node_state {
	NODE_READY,
	NODE_DOWN, /* to be connected */
	NODE_AWAY  /* it could not be connected a moment ago */
};

/* A zeroed one is empty. */
struct node_map {
	struct node *nodes[NODES_MAX]; /* the first are those of the URL */
	size_t count;
	uint16_t slots[SLOTS]; /* index of the node */
	bool cluster;
	bool stale;    /* a redirect or a lost node said so */
	size_t teller; /* index of the node that is asked next for the map */
};

void node_map_close(struct node_map *map);

struct node *node_map_of_slot(struct node_map *map, unsigned slot);
/* Returns the node with this address, which is made unless there is one; NULL without memory or
 * with too many. */
struct node *node_map_find(struct node_map *map, const char *host, int port);
/*
 * Returns the node that another one reports, in the same way. Without a host ("", "?" or NULL) it
 * has the host by which the teller was reached. If that is a unix socket, it is the teller itself,
 * if it has this port, or one on this machine.
 */
struct node *node_map_find_told(struct node_map *map, struct node *teller, const char *host,
				int port);
/* The slot lies there from now on. */
void node_map_move(struct node_map *map, unsigned slot, const struct node *node);
/* All slots lie there. */
void node_map_set_only(struct node_map *map, const struct node *node);

/* Looks at a connection, once a pass. */
enum node_state node_look(struct node_map *map, struct node *node);
/* Connects. Any thread: it touches the attempt alone. Statuses as tw_redis_open. */
void attempt_make(struct attempt *attempt, const struct settings *settings);
/* Takes what has come of it: the connection, or why there is none. Where that finds a cluster, its
 * map is to be read next. */
void node_take_attempt(struct node_map *map, struct node *node, const struct attempt *attempt);
/* Both, unless it is connected or was tried a moment ago: TW_OK, or as tw_redis_open. */
enum tw_status node_connect(struct node_map *map, struct node *node,
			    const struct settings *settings, struct tw_redis_error *error);
/* Returns a node to be connected to ask it for the map, because another one is away. NULL means
 * that there is no map, or that all were tried a moment ago. */
struct node *node_map_teller(const struct node_map *map);

/* Begins a pass. */
void node_map_begin(struct node_map *map);
/* Returns a node that can be asked for the map now: it is connected and owes nothing. NULL means
 * that the map is not stale, or that there is no such node. */
struct node *node_map_find_teller(struct node_map *map);
/* Reads the map from the node's reply to CLUSTER SLOTS. NULL means that none came. Unless the reply
 * has a map, another node is to be asked. */
void node_map_read(struct node_map *map, struct node *node, const redisReply *reply);

#endif
