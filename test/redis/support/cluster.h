/* SPDX-License-Identifier: MIT */
/* A cluster is a Redis Cluster of three nodes on loopback. A failure ends the program. */
#ifndef REDIS_SUPPORT_CLUSTER_H
#define REDIS_SUPPORT_CLUSTER_H

#include "support/redis_server.h"

enum { CLUSTER_NODES = 3 };

struct cluster {
	struct redis_server nodes[CLUSTER_NODES];
	char ids[CLUSTER_NODES][64];
};

/* Starts the nodes, gives each a third of the slots, and waits until all agree. */
void cluster_start(struct cluster *cluster);
void cluster_stop(struct cluster *cluster);
/* Waits until every node reports that all is well. */
void cluster_wait_until_well(struct cluster *cluster);
/* Waits until these nodes agree on all addresses, roles, epochs and slots, and no node has
 * failed. */
void cluster_await_agreement(struct redis_server *const nodes[], int count);

/* Returns the node that says it owns the slot. */
int cluster_owner(struct cluster *cluster, unsigned slot);
/* Marks the slot as migrating from source to target, and moves no key. */
void cluster_begin_move(struct cluster *cluster, unsigned slot, int source, int target);
void cluster_end_move(struct cluster *cluster, unsigned slot, int source, int target);
/* Moves the slot key by key, as redis-cli does, with a pause before each. */
void cluster_move_slot(struct cluster *cluster, unsigned slot, int target, long pause_ms);

#endif
