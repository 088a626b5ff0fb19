/* SPDX-License-Identifier: MIT */
#include "support/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/wait.h"

enum { SLOTS = 16384 };
enum { TRIES = 3000, MEET_TRIES = 150, AGREE_TRIES = 6000 }; /* Each try takes 10 ms. */
enum { VIEW_LINES = 16, VIEW_SIZE = 4096 };

/* Returns whether the node knows an owner of each slot. */
static bool node_is_well(struct redis_server *node)
{
	return redis_server_says(node, "CLUSTER INFO", "cluster_state:ok") &&
	       redis_server_says(node, "CLUSTER INFO", "cluster_slots_ok:16384") &&
	       redis_server_says(node, "CLUSTER INFO", "cluster_known_nodes:3");
}

/* Introduces the first node to the others. A node forgets those that do not answer within its
 * limit. */
static void nodes_meet(struct cluster *cluster)
{
	for (int i = 1; i < CLUSTER_NODES; i++)
		redis_server_number(&cluster->nodes[0], "CLUSTER MEET 127.0.0.1 %d %d",
				    cluster->nodes[i].port, cluster->nodes[i].bus_port);
}

void cluster_wait_until_well(struct cluster *cluster)
{
	for (int tries = 0; tries < TRIES; tries++) {
		int well = 0;

		for (int i = 0; i < CLUSTER_NODES; i++)
			well += node_is_well(&cluster->nodes[i]);
		if (well == CLUSTER_NODES)
			return;
		if (tries % MEET_TRIES == MEET_TRIES - 1 &&
		    !redis_server_says(&cluster->nodes[0], "CLUSTER INFO", "cluster_known_nodes:3"))
			nodes_meet(cluster);
		wait_for(10 * TW_MILLISECOND);
	}
	fputs("the cluster does not recover\n", stderr);
	exit(1);
}

/*
 * Copies a line of CLUSTER NODES without what differs between the nodes that are asked: the flag
 * "myself", the times of the last ping and pong, and the link's state.
 */
static void view_add(char *view, size_t room, char *line)
{
	char *words[5]; /* id, address, flags, master, epoch */
	char *rest = NULL;
	char *flags;

	for (int i = 0; i < 4; i++)
		words[i] = strtok_r(i ? NULL : line, " ", &rest);
	(void)strtok_r(NULL, " ", &rest); /* the last ping */
	(void)strtok_r(NULL, " ", &rest); /* the last pong */
	words[4] = strtok_r(NULL, " ", &rest);
	(void)strtok_r(NULL, " ", &rest); /* the link's state */
	if (!words[4])
		return;
	flags = strncmp(words[2], "myself,", 7) ? words[2] : words[2] + 7;
	snprintf(view + strlen(view), room - strlen(view), "%s %s %s %s %s %s\n", words[0],
		 words[1], flags, words[3], words[4], rest);
}

static int line_compare(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Writes how the node sees the cluster. Nodes that agree write the same text. */
static void view_of(struct redis_server *node, char *view, size_t room)
{
	redisReply *reply = redis_server_ask(node, "CLUSTER NODES");
	char *lines[VIEW_LINES];
	char *rest = NULL;
	size_t count = 0;

	for (char *line = strtok_r(reply->str, "\n", &rest); line && count < VIEW_LINES;
	     line = strtok_r(NULL, "\n", &rest))
		lines[count++] = line;
	qsort(lines, count, sizeof(*lines), line_compare);
	*view = '\0';
	for (size_t i = 0; i < count; i++)
		view_add(view, room, lines[i]);
	freeReplyObject(reply);
}

static bool nodes_agree(struct redis_server *const nodes[], int count)
{
	char first[VIEW_SIZE];
	char view[VIEW_SIZE];

	view_of(nodes[0], first, sizeof(first));
	/* Flags like ",fail" and ",fail?" follow "master" or "slave"; ",nofailover" does no
	 * harm. */
	if (strstr(first, ",fail") || strstr(first, "handshake") || strstr(first, "noaddr"))
		return false;
	for (int i = 0; i < count; i++) {
		view_of(nodes[i], view, sizeof(view));
		if (strcmp(view, first) ||
		    !redis_server_says(nodes[i], "CLUSTER INFO", "cluster_state:ok"))
			return false;
	}
	return true;
}

void cluster_await_agreement(struct redis_server *const nodes[], int count)
{
	for (int tries = 0; tries < AGREE_TRIES; tries++) {
		if (nodes_agree(nodes, count))
			return;
		wait_for(10 * TW_MILLISECOND);
	}
	fputs("the nodes of the cluster do not agree\n", stderr);
	for (int i = 0; i < count; i++)
		redis_server_print_state(nodes[i], "CLUSTER NODES");
	exit(1);
}

static void node_start(struct cluster *cluster, int index)
{
	const struct redis_server_options options = {
		.append_only = true, .no_fsync = true, .cluster = true};
	struct redis_server *node = &cluster->nodes[index];
	redisReply *reply;

	redis_server_start(node, &options);
	reply = redis_server_ask(node, "CLUSTER MYID");
	snprintf(cluster->ids[index], sizeof(cluster->ids[index]), "%s", reply->str);
	freeReplyObject(reply);
	redis_server_number(node, "CLUSTER SET-CONFIG-EPOCH %d", index + 1);
	redis_server_number(node, "CLUSTER ADDSLOTSRANGE %d %d", SLOTS * index / CLUSTER_NODES,
			    SLOTS * (index + 1) / CLUSTER_NODES - 1);
}

void cluster_start(struct cluster *cluster)
{
	for (int i = 0; i < CLUSTER_NODES; i++)
		node_start(cluster, i);
	nodes_meet(cluster);
	cluster_wait_until_well(cluster);
}

void cluster_stop(struct cluster *cluster)
{
	for (int i = 0; i < CLUSTER_NODES; i++)
		redis_server_stop(&cluster->nodes[i]);
}

/* Returns whether the node itself says that it has the slot. */
static bool node_has(struct cluster *cluster, int index, unsigned slot)
{
	redisReply *reply = redis_server_ask(&cluster->nodes[index], "CLUSTER SLOTS");
	bool has = false;

	for (size_t i = 0; i < reply->elements; i++) {
		redisReply *range = reply->element[i];

		has |= range->element[0]->integer <= slot && range->element[1]->integer >= slot &&
		       range->element[2]->element[1]->integer == cluster->nodes[index].port;
	}
	freeReplyObject(reply);
	return has;
}

int cluster_owner(struct cluster *cluster, unsigned slot)
{
	for (int i = 0; i < CLUSTER_NODES; i++)
		if (node_has(cluster, i, slot))
			return i;
	fprintf(stderr, "nobody has slot %u\n", slot);
	exit(1);
}

/* Moves one key. Returns false if no key is left. */
static bool move_key(struct redis_server *source, struct redis_server *target, unsigned slot)
{
	redisReply *reply = redis_server_ask(source, "CLUSTER GETKEYSINSLOT %u 1", slot);
	bool any = reply->elements;

	if (any)
		redis_server_number(source, "MIGRATE 127.0.0.1 %d %s 0 5000", target->port,
				    reply->element[0]->str);
	freeReplyObject(reply);
	return any;
}

void cluster_begin_move(struct cluster *cluster, unsigned slot, int source, int target)
{
	redis_server_number(&cluster->nodes[target], "CLUSTER SETSLOT %u IMPORTING %s", slot,
			    cluster->ids[source]);
	redis_server_number(&cluster->nodes[source], "CLUSTER SETSLOT %u MIGRATING %s", slot,
			    cluster->ids[target]);
}

void cluster_end_move(struct cluster *cluster, unsigned slot, int source, int target)
{
	redis_server_number(&cluster->nodes[target], "CLUSTER SETSLOT %u NODE %s", slot,
			    cluster->ids[target]);
	redis_server_number(&cluster->nodes[source], "CLUSTER SETSLOT %u NODE %s", slot,
			    cluster->ids[target]);
}

void cluster_move_slot(struct cluster *cluster, unsigned slot, int target, long pause_ms)
{
	int source = cluster_owner(cluster, slot);

	if (source == target)
		return;
	cluster_begin_move(cluster, slot, source, target);
	do
		wait_for(pause_ms * TW_MILLISECOND);
	while (move_key(&cluster->nodes[source], &cluster->nodes[target], slot));
	cluster_end_move(cluster, slot, source, target);
}
