/* SPDX-License-Identifier: MIT */
#include "servers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/wait.h"

/*
 * A replica must not be asked to take over less than twice an election's time limit (2 s here)
 * after the election that it won last. It would take itself for elected by that one: it becomes a
 * master with the old epoch, which the others refuse, and the previous master stays.
 */
static const int64_t election_time = 4500 * TW_MILLISECOND;
/* Sentinels begin no fail-over within twice its time limit, which is 3 s. */
static const int64_t between_fail_overs = 6500 * TW_MILLISECOND;
/* Sentinels begin one here only if the master has been killed, not if it is slow. */
enum { HOLD_MS = 600000, LET_BE_MS = 600000, KILLED_MS = 500 };
static const int64_t cut_time = 200 * TW_MILLISECOND;
enum { TRIES = 6000, FAIL_OVER_TRIES = 600, MOVE_PAUSE_MS = 5 }; /* Each try takes 10 ms. */

/* Waits until the reply contains the text. Returns false after a time limit. */
static bool comes_to_say(struct redis_server *server, const char *command, const char *text,
			 int tries)
{
	for (int i = 0; i < tries; i++) {
		if (redis_server_says(server, command, text))
			return true;
		wait_for(10 * TW_MILLISECOND);
	}
	return false;
}

static void await_word(struct redis_server *server, const char *command, const char *text)
{
	if (comes_to_say(server, command, text, TRIES))
		return;
	fprintf(stderr, "the server at %d: %s does not become %s\n", server->port, command, text);
	redis_server_print_state(server, command);
	exit(1);
}

/*
 * Waits until all nodes, the replica too, agree about each other. A deed before that would be
 * refused: a slot can't move to a node that is not known as a master.
 */
static void await_well(struct servers *servers)
{
	struct redis_server *all[CLUSTER_NODES + 1];

	if (!servers->is_cluster)
		return;
	for (int i = 0; i < CLUSTER_NODES; i++)
		all[i] = &servers->cluster.nodes[i];
	all[CLUSTER_NODES] = &servers->replica;
	cluster_await_agreement(all, CLUSTER_NODES + 1);
}

/* Starts the first node's replica. It takes over when commanded, never by itself. */
static void replica_start(struct servers *servers)
{
	const struct redis_server_options options = {
		.append_only = true, .no_fsync = true, .cluster = true};
	struct redis_server *replica = &servers->replica;
	redisReply *reply;

	redis_server_start(replica, &options);
	redis_server_number(replica, "CONFIG SET cluster-replica-no-failover yes");
	redis_server_number(&servers->cluster.nodes[0],
			    "CONFIG SET cluster-replica-no-failover yes");
	reply = redis_server_ask(replica, "CLUSTER MYID");
	snprintf(servers->replica_id, sizeof(servers->replica_id), "%s", reply->str);
	freeReplyObject(reply);
	redis_server_number(replica, "CLUSTER MEET 127.0.0.1 %d %d", servers->cluster.nodes[0].port,
			    servers->cluster.nodes[0].bus_port);
	await_word(replica, "CLUSTER INFO", "cluster_known_nodes:4");
	await_word(replica, "CLUSTER INFO", "cluster_state:ok");
	redis_server_number(replica, "CLUSTER REPLICATE %s", servers->cluster.ids[0]);
	await_word(replica, "INFO replication", "master_link_status:up");
	await_well(servers);
}

/* Exchanges the first node and the replica, and notes from when on each may take over. */
static void places_change(struct servers *servers, int64_t first, int64_t replica)
{
	struct redis_server before = servers->cluster.nodes[0];

	servers->cluster.nodes[0] = servers->replica;
	servers->replica = before;
	servers->may_take_over[0] = first;
	servers->may_take_over[1] = replica;
}

/* ---- A master that Sentinels watch ---- */

static void watched_start(struct servers *servers)
{
	bool is_durable = servers->mode == MODE_DURABLE;
	struct redis_server_options options = {
		.append_only = true, .no_fsync = !is_durable, .fsync_always = is_durable};

	redis_server_start(&servers->cluster.nodes[0], &options);
	options.replica_of = servers->cluster.nodes[0].port;
	redis_server_start(&servers->replica, &options);
	await_word(&servers->replica, "INFO replication", "master_link_status:up");
	sentinels_start(&servers->sentinels, servers->cluster.nodes[0].port);
	sentinels_set_patience(&servers->sentinels, LET_BE_MS);
	snprintf(servers->url, sizeof(servers->url), "%s%s", servers->sentinels.url,
		 is_durable ? "?durability=both" : "");
}

/* Cuts the master off from its replica for a while, so that its changes then are lost. */
static void watched_cut(struct servers *servers)
{
	struct redis_server *replica = &servers->replica;

	kill(replica->pid, SIGSTOP);
	/* The replica could still read what was already sent. */
	redis_server_number(&servers->cluster.nodes[0], "CLIENT KILL TYPE replica");
	wait_for(cut_time);
	redis_server_end(&servers->cluster.nodes[0], SIGKILL);
	kill(replica->pid, SIGCONT);
}

/* Stops the master's writes, and waits until its replica has them all. */
static void watched_hold(struct servers *servers)
{
	static const char field[] = "master_repl_offset:";
	struct redis_server *master = &servers->cluster.nodes[0];
	int64_t offset;

	redis_server_number(master, "CLIENT PAUSE %d WRITE", HOLD_MS);
	offset = redis_server_figure(master, "INFO replication", field);
	for (int i = 0; i < TRIES; i++) {
		if (redis_server_figure(&servers->replica, "INFO replication", field) >= offset)
			return;
		wait_for(10 * TW_MILLISECOND);
	}
	fprintf(stderr, "the replica at %d does not follow\n", servers->replica.port);
	redis_server_print_state(&servers->replica, "INFO replication");
	exit(1);
}

/* Waits until the Sentinels agree that the former master is the replica. They need a pause between
 * two fail-overs. */
static void watched_settle(struct servers *servers)
{
	int64_t next = wall_clock() + between_fail_overs;

	sentinels_await_master(&servers->sentinels, servers->replica.port);
	await_word(&servers->cluster.nodes[0], "INFO replication", "master_link_status:up");
	sentinels_await_replica(&servers->sentinels);
	places_change(servers, next, next);
}

/* Waits until the Sentinels promote the replica, then restarts the former master as its replica. */
static void watched_heal(struct servers *servers)
{
	struct redis_server *before = &servers->cluster.nodes[0];

	sentinels_set_patience(&servers->sentinels, KILLED_MS);
	sentinels_await_master(&servers->sentinels, servers->replica.port);
	sentinels_set_patience(&servers->sentinels, LET_BE_MS);
	redis_server_add_setting(before, "replicaof 127.0.0.1 %d", servers->replica.port);
	redis_server_restart(before);
	watched_settle(servers);
}

/* The Sentinels leave the master as it is for some seconds; its clients wait until it is
 * demoted. */
static void watched_fail_over(struct servers *servers)
{
	struct redis_server *before = &servers->cluster.nodes[0];
	struct redis_server *sentinel = &servers->sentinels.all[0];

	watched_hold(servers);
	redis_server_number(sentinel, "SENTINEL FAILOVER main");
	await_word(&servers->replica, "INFO replication", "role:master");
	redis_server_number(before, "REPLICAOF 127.0.0.1 %d", servers->replica.port);
	redis_server_number(before, "CLIENT UNPAUSE");
	watched_settle(servers);
}

/* ---- A server whose power is cut ---- */

/* Starts the server with appendfsync always. Where a call can wait for everysec, even seeds have
 * that. */
static void powered_start(struct servers *servers, uint64_t seed)
{
	struct redis_server *server = &servers->cluster.nodes[0];
	bool is_careless = servers->mode == MODE_CARELESS;
	struct redis_server_options options = {.append_only = true,
					       .preload = "test/redis/torture/noted_disk.so"};
	struct tw_redis_options client = {.url = servers->url, .name_space = "try"};
	struct tw_redis *redis;

	redis_server_start(server, &options);
	snprintf(servers->url, sizeof(servers->url), "%s%s", server->url,
		 is_careless ? "" : "?durability=disk");
	if (is_careless || (seed % 2 == 0 && tw_redis_open(&redis, &client, NULL) == TW_OK)) {
		if (!is_careless)
			tw_redis_close(redis);
		return;
	}
	redis_server_add_setting(server, "appendfsync always");
	servers_ask(servers, "CONFIG SET appendfsync always");
}

/* Restarts the server with what its disk has. After a cut that tears a MULTI, Redis would append to
 * the beginning of that, and lose it all at the next start: a rewrite of the file prevents that. */
static void powered_heal(struct servers *servers)
{
	struct redis_server *server = &servers->cluster.nodes[0];

	redis_server_restart(server);
	servers_ask(servers, "BGREWRITEAOF");
	await_word(server, "INFO persistence",
		   "aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0");
}

void servers_start(struct servers *servers, enum mode mode, uint64_t seed)
{
	static const struct redis_server_options options = {.append_only = true,
							    .fsync_always = true};
	struct redis_server *nodes = servers->cluster.nodes;

	memset(servers, 0, sizeof(*servers));
	servers->mode = mode;
	servers->is_cluster = mode == MODE_CLUSTER;
	servers->count = servers->is_cluster ? CLUSTER_NODES : 1;
	servers->down = -1;
	servers->is_watched = mode & (MODE_SENTINEL | MODE_DURABLE);
	servers->has_replica = servers->is_cluster || servers->is_watched;
	servers->random = random_from(seed, 1);
	if (mode & (MODE_POWER | MODE_CARELESS)) {
		powered_start(servers, seed);
		return;
	}
	if (servers->is_watched) {
		watched_start(servers);
		return;
	}
	if (!servers->is_cluster) {
		redis_server_start(&nodes[0], &options);
		snprintf(servers->url, sizeof(servers->url), "%s", nodes[0].url);
		return;
	}
	cluster_start(&servers->cluster);
	replica_start(servers);
	snprintf(servers->url, sizeof(servers->url),
		 "redis://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", nodes[0].port, nodes[1].port,
		 nodes[2].port);
}

void servers_stop(struct servers *servers)
{
	for (int i = 0; i < servers->count; i++)
		redis_server_stop(&servers->cluster.nodes[i]);
	if (servers->has_replica)
		redis_server_stop(&servers->replica);
	if (servers->is_watched)
		sentinels_stop(&servers->sentinels);
}

bool servers_may_fail_over(const struct servers *servers)
{
	return wall_clock() >= servers->may_take_over[1];
}

bool servers_may_kill(const struct servers *servers)
{
	return !servers->is_watched || servers_may_fail_over(servers);
}

void servers_kill(struct servers *servers, int index)
{
	servers->down = index;
	if (servers->mode == MODE_DURABLE) {
		watched_cut(servers);
		return;
	}
	if (servers->is_watched)
		watched_hold(servers);
	redis_server_end(&servers->cluster.nodes[index], SIGKILL);
	if (servers->mode & (MODE_POWER | MODE_CARELESS))
		disk_cut(servers->cluster.nodes[index].folder, &servers->random, &servers->cut);
}

void servers_heal(struct servers *servers)
{
	struct redis_server *node = &servers->cluster.nodes[servers->down];

	if (servers->is_watched) {
		servers->down = -1;
		watched_heal(servers);
		return;
	}
	if (servers->mode & (MODE_POWER | MODE_CARELESS)) {
		servers->down = -1;
		powered_heal(servers);
		return;
	}
	redis_server_restart(node);
	if (servers->is_cluster && servers->down == 0)
		redis_server_number(node, "CONFIG SET cluster-replica-no-failover yes");
	await_well(servers);
	if (servers->is_cluster && servers->down == 0)
		await_word(&servers->replica, "INFO replication", "master_link_status:up");
	servers->down = -1;
}

void servers_ask(struct servers *servers, const char *command)
{
	for (int i = 0; i < servers->count; i++)
		redis_server_number(&servers->cluster.nodes[i], command);
}

void servers_move_shard(struct servers *servers, unsigned shard, int target)
{
	int64_t slot = redis_server_number(&servers->cluster.nodes[0],
					   "CLUSTER KEYSLOT {tw/torture/%u}due", shard);

	cluster_move_slot(&servers->cluster, (unsigned)slot, target, MOVE_PAUSE_MS);
	await_well(servers);
}

/* Promotes the replica. It refuses while it considers its master failed, and gives up after 5 s. */
static void replica_promote(struct redis_server *replica)
{
	for (int i = 0; i < TRIES / FAIL_OVER_TRIES; i++) {
		await_word(replica, "CLUSTER INFO", "cluster_state:ok");
		freeReplyObject(redisCommand(replica->context, "CLUSTER FAILOVER"));
		if (comes_to_say(replica, "INFO replication", "role:master", FAIL_OVER_TRIES))
			return;
	}
	fprintf(stderr, "the replica at %d does not take over\n", replica->port);
	redis_server_print_state(replica, "CLUSTER NODES");
	exit(1);
}

/* Exchanges the first node of a cluster and its replica. */
static void nodes_change_places(struct servers *servers)
{
	int64_t elected;
	char id[64];

	replica_promote(&servers->replica);
	elected = wall_clock();
	await_well(servers);
	await_word(&servers->cluster.nodes[0], "INFO replication", "master_link_status:up");
	memcpy(id, servers->cluster.ids[0], sizeof(id));
	memcpy(servers->cluster.ids[0], servers->replica_id, sizeof(id));
	memcpy(servers->replica_id, id, sizeof(id));
	places_change(servers, elected + election_time, servers->may_take_over[0]);
}

void servers_fail_over(struct servers *servers)
{
	if (servers->is_cluster)
		nodes_change_places(servers);
	else
		watched_fail_over(servers);
}
