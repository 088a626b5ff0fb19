/* SPDX-License-Identifier: MIT */
/*
 * node_map.c is the map of servers. Nodes are never removed, so pointers to them stay valid; a
 * cluster has few. A redirect moves one slot at once and marks the map as stale. The next leader of
 * any node asks that one for the map, together with its evals.
 */
#include "node_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sentinel.h"

/* The waits between attempts to connect to a node double, because an attempt at a silent node takes
 * a whole time limit, and a server logs and counts refused logins. */
static const tw_duration backoff_first = 10 * TW_MILLISECOND;
static const tw_duration backoff_max = 500 * TW_MILLISECOND;
static const tw_duration backoff_max_refused = 2 * TW_SECOND;
static const tw_duration map_pause = 50 * TW_MILLISECOND;

void node_map_close(struct node_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		connection_close(&map->nodes[i]->connection);
		free(map->nodes[i]);
	}
}

struct node *node_map_of_slot(struct node_map *map, unsigned slot)
{
	return map->nodes[map->slots[slot]];
}

struct node *node_map_find(struct node_map *map, const char *host, int port)
{
	struct node *node;

	for (size_t i = 0; i < map->count; i++)
		if (map->nodes[i]->address.port == port &&
		    !strcmp(map->nodes[i]->address.host, host))
			return map->nodes[i];
	if (map->count == NODES_MAX || strlen(host) >= HOST_SIZE)
		return NULL;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	snprintf(node->address.host, HOST_SIZE, "%s", host);
	node->address.port = port;
	node->last = &node->queue;
	map->nodes[map->count++] = node;
	return node;
}

struct node *node_map_find_named(struct node_map *map, struct node *teller, const char *host,
				 int port)
{
	struct node *node;

	if (!host || !*host || !strcmp(host, "?"))
		host = teller->address.port ? teller->address.host : NULL;
	if (!host && teller->connection.tcp_port == port)
		node = teller;
	else
		node = node_map_find(map, host ? host : "127.0.0.1", port);
	/* A master is checked for more than a replica. */
	if (node)
		node->former |= node->replica;
	return node;
}

void node_map_move(struct node_map *map, unsigned slot, const struct node *node)
{
	for (size_t i = 0; i < map->count; i++)
		if (map->nodes[i] == node)
			map->slots[slot] = (uint16_t)i;
	map->stale = true;
}

void node_queue(struct node *node, struct eval *eval)
{
	eval->node = node;
	eval->stage = EVAL_QUEUED;
	eval->next = NULL;
	*node->last = eval;
	node->last = &eval->next;
}

enum tw_status node_connect(struct node *node, const struct settings *settings,
			    struct address *found)
{
	struct connection *connection = &node->connection;
	struct tw_redis_error *error = &node->failure;
	enum tw_status status = TW_OK;

	if (settings->master)
		status = sentinel_find_master(settings, found, error);
	if (status == TW_OK)
		status = connection_open(connection, settings, found, false, error);
	if (status != TW_OK || !settings->master || !connection->replica)
		return status;
	connection_close(connection);
	return error_set(error, TW_REDIS_UNREACHABLE,
			 "%.150s:%d should be the master but is a replica", found->host,
			 found->port);
}

void node_note_attempt(struct node_map *map, struct node *node, enum tw_status status)
{
	tw_duration most = status == TW_REDIS_REFUSED ? backoff_max_refused : backoff_max;

	if (status == TW_OK) {
		node->replica = node->connection.replica;
		node->backoff = 0;
		map->stale |= node->connection.cluster && !map->cluster;
		map->cluster |= node->connection.cluster;
		return;
	}
	node->backoff = node->backoff ? 2 * node->backoff : backoff_first;
	node->backoff = node->backoff < most ? node->backoff : most;
	node->retry_at = clock_read_real(CLOCK_MONOTONIC) + node->backoff;
}

/* Reads a range of CLUSTER SLOTS: first, last, (host, port, ...) of the master, … */
static void range_read(struct node_map *map, struct node *asked, const redisReply *range,
		       unsigned *slots_left)
{
	const redisReply *master = range->elements >= 3 ? range->element[2] : NULL;
	struct node *node;

	if (!master || master->elements < 2 || master->element[1]->type != REDIS_REPLY_INTEGER ||
	    master->element[1]->integer <= 0 || master->element[1]->integer > 65535)
		return;
	node = node_map_find_named(map, asked, master->element[0]->str,
				   (int)master->element[1]->integer);
	for (long long slot = range->element[0]->integer;
	     node && slot >= 0 && slot <= range->element[1]->integer && slot < SLOTS && *slots_left;
	     slot++, --*slots_left)
		node_map_move(map, (unsigned)slot, node);
}

struct node *node_map_find_teller(const struct node_map *map)
{
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	struct node *closed = NULL;

	if (!map->cluster || !map->stale || now < map->retry_at)
		return NULL;
	for (size_t i = 0; i < map->count; i++) {
		struct node *node = map->nodes[(map->teller + i) % map->count];

		if (!node->led && node->open)
			return node;
		if (!node->led && !closed && now >= node->retry_at)
			closed = node;
	}
	return closed;
}

void node_map_read(struct node_map *map, struct node *node, const redisReply *reply)
{
	bool knows = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements;
	unsigned slots_left = SLOTS;

	for (size_t range = 0; knows && range < reply->elements; range++)
		range_read(map, node, reply->element[range], &slots_left);
	map->stale = !knows;
	if (knows)
		return;
	map->teller++;
	map->retry_at = clock_read_real(CLOCK_MONOTONIC) + map_pause;
}
