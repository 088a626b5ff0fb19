/* SPDX-License-Identifier: MIT */
#include "servers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/wait.h"

/*
 * A replica that is told to take over less than twice an election's time limit (2 s here) after the
 * election that it won last takes itself for elected by that one: it becomes a master with the
 * old epoch, which the others refuse, and the node before it stays the master.
 */
static const int64_t election_time = 4500 * TW_MILLISECOND;
enum { TRIES = 6000, FAIL_OVER_TRIES = 600, MOVE_PAUSE_MS = 5 }; /* tries: of 10 ms */

/* Whether what the server answers to the command has this text. */
static bool server_says(struct redis_server *server, const char *command, const char *text)
{
	redisReply *reply = redis_server_ask(server, command);
	bool says = strstr(reply->str, text);

	freeReplyObject(reply);
	return says;
}

/* Whether it does so in time. */
static bool comes_to_say(struct redis_server *server, const char *command, const char *text,
			 int tries)
{
	for (int i = 0; i < tries; i++) {
		if (server_says(server, command, text))
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
	redis_server_tell(server, command);
	exit(1);
}

/*
 * Until all nodes, the replica too, say the same of each other. News takes a while to reach all of
 * them, and a deed that comes before it is refused: a slot can't go to a node that is not known to
 * be a master.
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

/* Of the first node. It takes over when it is told to, never by itself. */
static void replica_start(struct servers *servers)
{
	const struct redis_server_options options = {
		.append_only = true, .no_fsync = true, .cluster = true};
	struct redis_server *replica = &servers->replica;
	redisReply *reply;

	redis_server_start(replica, &options);
	freeReplyObject(redis_server_ask(replica, "CONFIG SET cluster-replica-no-failover yes"));
	freeReplyObject(redis_server_ask(&servers->cluster.nodes[0],
					 "CONFIG SET cluster-replica-no-failover yes"));
	reply = redis_server_ask(replica, "CLUSTER MYID");
	snprintf(servers->replica_id, sizeof(servers->replica_id), "%s", reply->str);
	freeReplyObject(reply);
	freeReplyObject(redis_server_ask(replica, "CLUSTER MEET 127.0.0.1 %d %d",
					 servers->cluster.nodes[0].port,
					 servers->cluster.nodes[0].bus_port));
	await_word(replica, "CLUSTER INFO", "cluster_known_nodes:4");
	await_word(replica, "CLUSTER INFO", "cluster_state:ok");
	freeReplyObject(redis_server_ask(replica, "CLUSTER REPLICATE %s", servers->cluster.ids[0]));
	await_word(replica, "INFO replication", "master_link_status:up");
	await_well(servers);
}

void servers_start(struct servers *servers, enum mode mode)
{
	static const struct redis_server_options options = {.append_only = true,
							    .fsync_always = true};
	struct redis_server *nodes = servers->cluster.nodes;

	memset(servers, 0, sizeof(*servers));
	servers->mode = mode;
	servers->is_cluster = mode == MODE_CLUSTER;
	servers->count = servers->is_cluster ? CLUSTER_NODES : 1;
	servers->down = -1;
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
	if (servers->is_cluster)
		redis_server_stop(&servers->replica);
}

void servers_kill(struct servers *servers, int index)
{
	servers->down = index;
	redis_server_end(&servers->cluster.nodes[index], SIGKILL);
}

void servers_heal(struct servers *servers)
{
	struct redis_server *node = &servers->cluster.nodes[servers->down];

	redis_server_restart(node);
	if (servers->is_cluster && servers->down == 0)
		freeReplyObject(
			redis_server_ask(node, "CONFIG SET cluster-replica-no-failover yes"));
	await_well(servers);
	if (servers->is_cluster && servers->down == 0)
		await_word(&servers->replica, "INFO replication", "master_link_status:up");
	servers->down = -1;
}

void servers_ask(struct servers *servers, const char *command)
{
	for (int i = 0; i < servers->count; i++)
		freeReplyObject(redis_server_ask(&servers->cluster.nodes[i], command));
}

void servers_move_shard(struct servers *servers, unsigned shard, int target)
{
	int64_t slot = redis_server_number(&servers->cluster.nodes[0],
					   "CLUSTER KEYSLOT {tw/torture/%u}due", shard);

	cluster_move_slot(&servers->cluster, (unsigned)slot, target, MOVE_PAUSE_MS);
	await_well(servers);
}

/* It refuses as long as it takes its master for one that has failed, and gives up after 5 s. */
static void replica_promote(struct redis_server *replica)
{
	for (int i = 0; i < TRIES / FAIL_OVER_TRIES; i++) {
		await_word(replica, "CLUSTER INFO", "cluster_state:ok");
		freeReplyObject(redisCommand(replica->context, "CLUSTER FAILOVER"));
		if (comes_to_say(replica, "INFO replication", "role:master", FAIL_OVER_TRIES))
			return;
	}
	fprintf(stderr, "the replica at %d does not take over\n", replica->port);
	redis_server_tell(replica, "CLUSTER NODES");
	exit(1);
}

bool servers_may_fail_over(const struct servers *servers)
{
	return wall_clock() >= servers->may_take_over[1];
}

void servers_fail_over(struct servers *servers)
{
	struct redis_server before = servers->cluster.nodes[0];
	int64_t may_take_over = servers->may_take_over[0];
	int64_t elected;
	char id[64];

	replica_promote(&servers->replica);
	elected = wall_clock();
	await_well(servers);
	await_word(&servers->cluster.nodes[0], "INFO replication", "master_link_status:up");
	servers->cluster.nodes[0] = servers->replica;
	servers->replica = before;
	memcpy(id, servers->cluster.ids[0], sizeof(id));
	memcpy(servers->cluster.ids[0], servers->replica_id, sizeof(id));
	memcpy(servers->replica_id, id, sizeof(id));
	servers->may_take_over[0] = elected + election_time;
	servers->may_take_over[1] = may_take_over;
}
