/* SPDX-License-Identifier: MIT */
/* A Redis Cluster of three nodes on loopback. What should not fail ends the program. */
#ifndef REDIS_SUPPORT_CLUSTER_H
#define REDIS_SUPPORT_CLUSTER_H

#include "support/redis_server.h"

enum { CLUSTER_NODES = 3 };

struct cluster {
	struct redis_server nodes[CLUSTER_NODES];
	char ids[CLUSTER_NODES][64];
};

/* Starts them, gives each a third of the slots, and waits until all agree. */
void cluster_start(struct cluster *cluster);
void cluster_stop(struct cluster *cluster);
/* Waits until every node says that all is well. */
void cluster_wait_until_well(struct cluster *cluster);
/* Waits until this node says that the cluster is down: one that it needs is away. */
void cluster_wait_until_down(struct cluster *cluster, int index);
/* Waits until these nodes say the same of all: addresses, roles, epochs and slots, and that no node
 * has failed. */
void cluster_await_agreement(struct redis_server *const nodes[], int count);

/* The node that has the slot now, by its own word. */
int cluster_owner(struct cluster *cluster, unsigned slot);
/* The slot is on its way, and no key has been moved; it lies at the target. */
void cluster_begin_move(struct cluster *cluster, unsigned slot, int source, int target);
void cluster_end_move(struct cluster *cluster, unsigned slot, int source, int target);
/* Moves the slot, key by key, with a pause before each, as redis-cli would. */
void cluster_move_slot(struct cluster *cluster, unsigned slot, int target, long pause_ms);

#endif
