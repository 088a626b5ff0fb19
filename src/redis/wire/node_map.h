/* SPDX-License-Identifier: MIT */
/*
 * A node map has the servers, and says which has which slot of a cluster. Without a cluster there
 * is one server with all slots. One thread may use it at a time.
 */
#ifndef REDIS_WIRE_NODE_MAP_H
#define REDIS_WIRE_NODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connection.h"
#include "eval.h"
#include "settings.h"
#include "space.h"

enum { NODES_MAX = 1024 };

/* An attempt connects a node. */
struct attempt {
	struct address address; /* where to try, then where the node was found */
	enum tw_status status;
	struct connection connection;
	struct tw_redis_error error;
};

struct node {
	struct address address;
	struct connection connection;
	tw_duration retry_at;          /* monotonic; the next attempt is not before */
	tw_duration backoff;           /* the last wait until then */
	struct tw_redis_error failure; /* why the last attempt or connection failed */
	bool checked;                  /* for life, in this pass */
	/* It says it is a replica, or was one when it was connected and is a master now. Its
	 * connection is closed once it owes nothing. */
	bool is_former;
	bool owed; /* it owed replies when this pass began */
	/* It owes these evals their replies, in the order in which they were sent. Behind them are
	 * the waits of the pass, and the evals that are held until these have replied. */
	struct eval *first;
	struct eval **last;
	struct eval mark;           /* no script of ours: the change before the waits */
	struct eval waits[2];       /* no scripts: WAITAOF and WAIT, while they are sent */
	struct tw_redis_error wait; /* TW_OK, or why the changes are not confirmed */
	tw_duration reply_by;       /* monotonic; the deadline of the first reply */

	/* It is being connected beside the passes: by a caller of call.c, under the lock of the
	 * calls, or by a thread of the worker, whose main thread alone uses the mark. */
	bool connecting;
	bool tried; /* this is the result: */
	struct attempt attempt;
	struct node *next_wanted; /* its caller connects this one next */
};

/* A node has one of these states before it is sent anything. */
enum node_state {
	NODE_READY,
	NODE_DOWN, /* it must be connected */
	NODE_AWAY  /* it could not be connected a moment ago */
};

/* A zeroed map is empty. */
struct node_map {
	struct node *nodes[NODES_MAX]; /* the URL's come first */
	size_t count;
	uint16_t slots[SLOTS]; /* index of the node */
	bool cluster;
	bool stale;    /* after a redirect or the loss of a node */
	size_t teller; /* index of the node that is asked next for the map */
};

void node_map_close(struct node_map *map);

struct node *node_map_of_slot(struct node_map *map, unsigned slot);
/* Returns the node with this address, a new one if there is none, or NULL without memory or with
 * too many nodes. */
struct node *node_map_find(struct node_map *map, const char *host, int port);
/*
 * Returns the master that another node, the teller, names, as node_map_find() does. Without a host
 * ("", "?" or NULL) it has that by which the teller was reached. If that is a unix socket, it is
 * the teller itself if it has this port, and otherwise a server on this machine.
 */
struct node *node_map_find_named(struct node_map *map, struct node *teller, const char *host,
				 int port);
/* Notes that the node has the slot from now on. */
void node_map_move(struct node_map *map, unsigned slot, const struct node *node);

/* Returns the node's state. Checks its connection once in a pass. */
enum node_state node_look(struct node_map *map, struct node *node);
/* Connects. Any thread may call it, since it touches the attempt alone. The statuses are those of
 * tw_redis_open. */
void attempt_make(struct attempt *attempt, const struct settings *settings);
/* Takes the attempt's result, the connection or the error. If it found a cluster, the map is read
 * next. */
void node_take_attempt(struct node_map *map, struct node *node, const struct attempt *attempt);
/* Returns a node to be connected to ask it for the map, because another one is away. NULL means
 * that there is no map, or that all were tried a moment ago. */
struct node *node_map_teller(const struct node_map *map);

/* Begins a pass. */
void node_map_begin(struct node_map *map);
/* Returns a node that can be asked for the map now: it is connected and owes nothing. NULL means
 * that the map is not stale, or that there is no such node. */
struct node *node_map_find_teller(struct node_map *map);
/* Reads the map from the node's reply to CLUSTER SLOTS, which is NULL if none came. Unless the
 * reply has a map, another node must be asked. */
void node_map_read(struct node_map *map, struct node *node, const redisReply *reply);

#endif
