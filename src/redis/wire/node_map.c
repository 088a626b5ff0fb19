/* SPDX-License-Identifier: MIT */
/*
 * node_map.c is the map of servers. Nodes are never removed, so pointers to them stay valid; a
 * cluster has few. A redirect moves one slot at once and marks the map as stale. The next pass asks
 * for the map together with its evals. If a node does not reply with it, the next one is asked.
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

void node_map_close(struct node_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		connection_close(&map->nodes[i]->connection);
		connection_close(&map->nodes[i]->attempt.connection);
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
	map->nodes[map->count++] = node;
	return node;
}

static struct node *named_find(struct node_map *map, struct node *teller, const char *host,
			       int port)
{
	if (host && *host && strcmp(host, "?") != 0)
		return node_map_find(map, host, port);
	if (teller->address.port)
		return node_map_find(map, teller->address.host, port);
	if (teller->connection.tcp_port == port)
		return teller;
	return node_map_find(map, "127.0.0.1", port);
}

struct node *node_map_find_named(struct node_map *map, struct node *teller, const char *host,
				 int port)
{
	struct node *node = named_find(map, teller, host, port);

	/* A master is checked for more than a replica. */
	if (node)
		node->is_former |= node->connection.replica;
	return node;
}

void node_map_move(struct node_map *map, unsigned slot, const struct node *node)
{
	for (size_t i = 0; i < map->count; i++)
		if (map->nodes[i] == node)
			map->slots[slot] = (uint16_t)i;
	map->stale = true;
}

void node_map_begin(struct node_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		map->nodes[i]->checked = false;
		map->nodes[i]->owed = map->nodes[i]->first;
	}
}

enum node_state node_look(struct node_map *map, struct node *node)
{
	if (node->checked && connection_is_open(&node->connection))
		return NODE_READY;
	node->checked = true;
	if (!connection_is_lost(&node->connection))
		return NODE_READY;
	if (clock_read_real(CLOCK_MONOTONIC) >= node->retry_at)
		return NODE_DOWN;
	map->stale = map->cluster;
	return NODE_AWAY;
}

/* With Sentinels the one node is their present master. */
void attempt_make(struct attempt *attempt, const struct settings *settings)
{
	struct address *address = &attempt->address;
	struct connection *connection = &attempt->connection;

	attempt->status = TW_OK;
	if (settings->master)
		attempt->status = sentinel_find_master(settings, address, &attempt->error);
	if (attempt->status == TW_OK)
		attempt->status =
			connection_open(connection, settings, address, false, &attempt->error);
	if (attempt->status != TW_OK || !settings->master || !connection->replica)
		return;
	connection_close(connection);
	attempt->status = error_set(&attempt->error, TW_REDIS_UNREACHABLE,
				    "%.150s:%d should be the master but is a replica",
				    address->host, address->port);
}

void node_take_attempt(struct node_map *map, struct node *node, const struct attempt *attempt)
{
	node->address = attempt->address;
	if (attempt->status != TW_OK) {
		tw_duration most =
			attempt->status == TW_REDIS_REFUSED ? backoff_max_refused : backoff_max;

		node->backoff = node->backoff ? 2 * node->backoff : backoff_first;
		node->backoff = node->backoff < most ? node->backoff : most;
		node->retry_at = clock_read_real(CLOCK_MONOTONIC) + node->backoff;
		node->failure = attempt->error;
		map->stale = map->cluster;
		return;
	}
	node->connection = attempt->connection;
	node->checked = true;
	node->backoff = 0;
	if (node->connection.cluster && !map->cluster)
		map->cluster = map->stale = true;
}

struct node *node_map_teller(const struct node_map *map)
{
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);

	for (size_t i = 0; i < map->count && map->cluster; i++) {
		struct node *node = map->nodes[i];

		if (!connection_is_open(&node->connection) && now >= node->retry_at)
			return node;
	}
	return NULL;
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

struct node *node_map_find_teller(struct node_map *map)
{
	for (size_t i = 0; i < map->count && map->cluster && map->stale; i++) {
		struct node *node = map->nodes[(map->teller + i) % map->count];

		if (!node->first && connection_is_open(&node->connection) &&
		    node_look(map, node) == NODE_READY)
			return node;
	}
	return NULL;
}

void node_map_read(struct node_map *map, struct node *node, const redisReply *reply)
{
	bool knows = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements;
	unsigned slots_left = SLOTS;

	for (size_t range = 0; knows && range < reply->elements; range++)
		range_read(map, node, reply->element[range], &slots_left);
	map->stale = !knows;
	map->teller += !knows;
}
