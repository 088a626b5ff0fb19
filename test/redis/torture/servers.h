/* SPDX-License-Identifier: MIT */
/*
 * The servers of a torture are one server, a cluster whose first node has a replica, or a master
 * and a replica with three Sentinels. The deeds here lose no answered write: a cluster's fail-over
 * waits for the replica; a master that Sentinels watch is paused, killed or replaced only once the
 * replica has all of it. A master killed at any moment may lose the last answered writes, with
 * Sentinels as without: redis.h promises no more than Redis does, unless durability is asked for.
 * If it is, a master is killed whose replica is cut off, or the server's power is cut.
 */
#ifndef TORTURE_SERVERS_H
#define TORTURE_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "disk.h"
#include "support/cluster.h"
#include "support/redis_server.h"
#include "support/sentinels.h"

/* Each mode is one bit. */
enum mode {
	MODE_SINGLE = 1,   /* one server */
	MODE_CLUSTER = 2,  /* three nodes, and a replica of the first */
	MODE_CLOCK = 4,    /* one server, whose clock can be stepped */
	MODE_SENTINEL = 8, /* a master, its replica, and Sentinels */
	MODE_DURABLE = 16, /* as before; calls and workers ask for durability on disk and replica */
	MODE_POWER = 32,   /* one server, whose power is cut; all ask for durability on disk */
	MODE_CARELESS = 64 /* as before, with appendfsync everysec; nobody asks for durability */
};

struct servers {
	enum mode mode;
	bool is_cluster;
	bool is_watched; /* by Sentinels */
	/* This is for clusters and Sentinels: the servers publish each other's addresses. */
	bool has_replica;
	int count;              /* servers that have tasks, without the replica */
	struct cluster cluster; /* the one server is its first node */
	struct redis_server replica;
	char replica_id[64];
	int64_t may_take_over[2]; /* from when on the first node and the replica may take over */
	struct sentinels sentinels;
	char url[300];
	int down; /* the killed server, or -1 */
	struct random random;
	struct cut cut; /* what power cuts have taken */
};

/* A failure ends the program, here and below. */
void servers_start(struct servers *servers, enum mode mode, uint64_t seed);
void servers_stop(struct servers *servers);
/*
 * Kills a server, if that is allowed now, and starts it again; then all is well. With Sentinels the
 * replica has become the master by then, and the former master its replica.
 */
bool servers_may_kill(const struct servers *servers);
void servers_kill(struct servers *servers, int index);
void servers_heal(struct servers *servers);
/* Sends the command to all. */
void servers_ask(struct servers *servers, const char *command);
/* Moves the slot of a shard of a cluster to another node. */
void servers_move_shard(struct servers *servers, unsigned shard, int target);
/* Exchanges the first node and its replica, if that is allowed now. */
bool servers_may_fail_over(const struct servers *servers);
void servers_fail_over(struct servers *servers);

#endif
