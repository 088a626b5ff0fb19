/* SPDX-License-Identifier: MIT */
/*
 * The Redis of a torture: one server, a cluster whose first node has a replica, or a master and a
 * replica with three Sentinels. Nothing that was answered is lost by what is done to them here: a
 * cluster's fail-over waits for the replica; a master that Sentinels watch is paused, killed or
 * replaced once the replica has all of it. A master that is killed at any moment may lose the last
 * of what it answered, with Sentinels as without: redis.h promises no more than Redis does, unless
 * it is asked for durability. Where it is, a master is killed whose replica is cut off.
 */
#ifndef TORTURE_SERVERS_H
#define TORTURE_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "support/cluster.h"
#include "support/redis_server.h"
#include "support/sentinels.h"

/* One bit each. */
enum mode {
	MODE_SINGLE = 1,   /* one server */
	MODE_CLUSTER = 2,  /* three nodes, and a replica of the first */
	MODE_CLOCK = 4,    /* one server, whose clock can be stepped */
	MODE_SENTINEL = 8, /* a master, its replica, and Sentinels */
	MODE_DURABLE = 16  /* these; calls and workers ask for durability on disk and replica */
};

struct servers {
	enum mode mode;
	bool is_cluster;
	bool is_watched;        /* by Sentinels */
	bool has_replica;       /* cluster and Sentinels: the servers tell of each other */
	int count;              /* that have tasks; without the replica */
	struct cluster cluster; /* the one server is its first node */
	struct redis_server replica;
	char replica_id[64];
	int64_t may_take_over[2]; /* from when on the first node and the replica may, when told */
	struct sentinels sentinels;
	char url[300];
	int down; /* which one has been killed; -1: none */
};

/* What should not fail ends the program, here and below. */
void servers_start(struct servers *servers, enum mode mode);
void servers_stop(struct servers *servers);
/*
 * Kills one of them, if that may be now, and starts it again; then all is well. With Sentinels the
 * replica has become the master by then, and the other one its replica.
 */
bool servers_may_kill(const struct servers *servers);
void servers_kill(struct servers *servers, int index);
void servers_heal(struct servers *servers);
/* Gives the command to all. */
void servers_ask(struct servers *servers, const char *command);
/* Of a cluster: moves the slot of a shard to another node. */
void servers_move_shard(struct servers *servers, unsigned shard, int target);
/* The first node and its replica change places, if they may now. */
bool servers_may_fail_over(const struct servers *servers);
void servers_fail_over(struct servers *servers);

#endif
