/* SPDX-License-Identifier: MIT */
/*
 * Nodes are never taken out: their pointers stay valid, and a cluster has few. A redirect moves one
 * slot at once and marks the map as stale; it is read anew before the next pass. If the server that
 * we were told of is gone, any other that we know is asked.
 */
#include "node_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Between attempts to connect to one node: one that is away without a word costs a time limit
 * each. */
static const tw_duration backoff_first = 10 * TW_MILLISECOND;
static const tw_duration backoff_max = 500 * TW_MILLISECOND;

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
		if (map->nodes[i]->port == port && !strcmp(map->nodes[i]->host, host))
			return map->nodes[i];
	if (map->count == NODES_MAX || strlen(host) >= HOST_SIZE)
		return NULL;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	snprintf(node->host, sizeof(node->host), "%s", host);
	node->port = port;
	map->nodes[map->count++] = node;
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
		map->nodes[i]->failed = false;
		map->nodes[i]->sent = false;
	}
}

static enum tw_status node_fail(struct node_map *map, struct node *node, enum tw_status status)
{
	node->failed = true;
	map->stale = map->cluster;
	return status;
}

enum tw_status node_connect(struct node_map *map, struct node *node,
			    const struct settings *settings, struct tw_redis_error *error)
{
	enum tw_status status;

	if (node->failed)
		return TW_REDIS_UNREACHABLE;
	if (node->checked && node->connection.context)
		return TW_OK;
	node->checked = true;
	if (!connection_is_lost(&node->connection))
		return TW_OK;
	if (clock_read_real(CLOCK_MONOTONIC) < node->retry_at)
		return node_fail(map, node, TW_REDIS_UNREACHABLE);
	status = connection_open(&node->connection, settings, node->host, node->port, error);
	if (status != TW_OK) {
		node->backoff = node->backoff ? 2 * node->backoff : backoff_first;
		node->backoff = node->backoff < backoff_max ? node->backoff : backoff_max;
		node->retry_at = clock_read_real(CLOCK_MONOTONIC) + node->backoff;
		return node_fail(map, node, status);
	}
	node->backoff = 0;
	if (node->connection.cluster && !map->cluster)
		map->cluster = map->stale = true;
	return TW_OK;
}

/* One range of CLUSTER SLOTS: first, last, (host, port, ...) of the master, … */
static void range_read(struct node_map *map, const redisReply *range, const char *asked_host)
{
	const redisReply *master = range->elements >= 3 ? range->element[2] : NULL;
	const char *host;
	struct node *node;

	if (!master || master->elements < 2 || master->element[1]->type != REDIS_REPLY_INTEGER)
		return;
	/* No host: the one that it was reached by. */
	host = master->element[0]->str && *master->element[0]->str ? master->element[0]->str
								   : asked_host;
	node = node_map_find(map, host, (int)master->element[1]->integer);
	for (long long slot = range->element[0]->integer;
	     node && slot >= 0 && slot <= range->element[1]->integer && slot < SLOTS; slot++)
		node_map_move(map, (unsigned)slot, node);
}

void node_map_refresh(struct node_map *map, const struct settings *settings,
		      struct tw_redis_error *error)
{
	const char *words[] = {"CLUSTER", "SLOTS"};
	size_t count = map->count;

	for (size_t i = 0; i < count && map->cluster && map->stale; i++) {
		struct node *node = map->nodes[i];
		redisReply *reply;

		if (node_connect(map, node, settings, error) != TW_OK ||
		    !(reply = connection_ask(&node->connection, 2, words, error)))
			continue;
		if (reply->type == REDIS_REPLY_ARRAY && reply->elements) {
			for (size_t range = 0; range < reply->elements; range++)
				range_read(map, reply->element[range], node->host);
			map->stale = false;
		}
		freeReplyObject(reply);
	}
}
