/* SPDX-License-Identifier: MIT */
/*
 * The servers there are, and which has which slot of a cluster. Without a cluster there is one, and
 * it has all. One thread at a time.
 */
#ifndef TIMINGWHEEL_REDIS_NODE_MAP_H
#define TIMINGWHEEL_REDIS_NODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connection.h"
#include "settings.h"
#include "space.h"

enum { NODES_MAX = 1024 };

struct node {
	char host[HOST_SIZE];
	int port;
	struct connection connection;
	tw_duration retry_at; /* monotonic: not to be connected before */
	tw_duration backoff;  /* the last wait until then */
	bool checked;         /* for life, in this pass */
	bool failed;          /* could not be connected, in this pass */
	bool sent;            /* requests were appended, in this pass */
};

/* A zeroed one is empty. */
struct node_map {
	struct node *nodes[NODES_MAX]; /* [0] is the one we were told of */
	size_t count;
	uint16_t slots[SLOTS]; /* index of the node */
	bool cluster;
	bool stale; /* a redirect or a lost node said so */
};

void node_map_close(struct node_map *map);

struct node *node_map_of_slot(struct node_map *map, unsigned slot);
/* The node with this address, made if need be; NULL without memory or with too many. */
struct node *node_map_find(struct node_map *map, const char *host, int port);
/* The slot lies there from now on. */
void node_map_move(struct node_map *map, unsigned slot, const struct node *node);

/*
 * Connects the node if it is not, and has not failed in this pass; a connection that is up is
 * looked at once a pass. TW_OK, or as tw_redis_open. Where that finds a cluster, its map is to be
 * read next.
 */
enum tw_status node_connect(struct node_map *map, struct node *node,
			    const struct settings *settings, struct tw_redis_error *error);

/* Begins a pass. */
void node_map_begin(struct node_map *map);
/* Reads the map (CLUSTER SLOTS) from any node that answers, if it is stale. */
void node_map_refresh(struct node_map *map, const struct settings *settings,
		      struct tw_redis_error *error);

#endif
