/* SPDX-License-Identifier: MIT */
/*
 * A node map has the servers, and says which has which slot of a cluster. Without a cluster there
 * is one server with all slots. The lock of its router guards it.
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

struct node {
	struct address address;
	struct eval *queue; /* evals to send, in their order */
	struct eval **last;
	bool led;    /* a thread leads it */
	bool open;   /* it was connected when its last leader left */
	bool former; /* it may have another role by now, so its leader connects it again */
	bool replica;
	tw_duration retry_at; /* monotonic; the next attempt to connect is not before */
	tw_duration backoff;  /* the last wait until then; 0 after a success */

	/* Its leader alone uses these, without the lock. */
	struct connection connection;
	struct tw_redis_error failure; /* why the last attempt or connection failed */
};

/* A zeroed map is empty. */
struct node_map {
	struct node *nodes[NODES_MAX]; /* the URL's come first */
	size_t count;
	uint16_t slots[SLOTS]; /* index of the node */
	bool cluster;
	bool stale;           /* after a redirect or the loss of a node, until a node is asked */
	size_t teller;        /* index of the node that is asked next for the map */
	tw_duration retry_at; /* monotonic; no node is asked before only for the map */
};

void node_map_close(struct node_map *map);

struct node *node_map_of_slot(struct node_map *map, unsigned slot);
/* Returns the node with this address, a new one if there is none, or NULL without memory or with
 * too many nodes. */
struct node *node_map_find(struct node_map *map, const char *host, int port);
/*
 * Returns the master that another node, the teller, names, as node_map_find() does. Without a host
 * ("", "?" or NULL) it has that by which the teller was reached. If that is a unix socket, it is
 * the teller itself if it has this port, and otherwise a server on this machine. The teller's
 * leader calls this.
 */
struct node *node_map_find_named(struct node_map *map, struct node *teller, const char *host,
				 int port);
/* Notes that the node has the slot from now on. */
void node_map_move(struct node_map *map, unsigned slot, const struct node *node);

/* Appends the eval to the node's queue. */
void node_queue(struct node *node, struct eval *eval);
/*
 * Connects the node, or with Sentinels their present master. The node's leader calls this without
 * the lock. Returns a status as tw_redis_open does; *found becomes the node's address.
 */
enum tw_status node_connect(struct node *node, const struct settings *settings,
			    struct address *found);
/* Notes what node_connect() has returned. */
void node_note_attempt(struct node_map *map, struct node *node, enum tw_status status);

/* Returns a node without a leader to ask for the map, a connected one if there is any. NULL means
 * that the map is not stale, or that all were tried a moment ago. */
struct node *node_map_find_teller(const struct node_map *map);
/* Reads the map from the node's reply to CLUSTER SLOTS, which is NULL if none came. Unless the
 * reply has a map, another node must be asked. The node's leader calls this. */
void node_map_read(struct node_map *map, struct node *node, const redisReply *reply);

#endif
