/* SPDX-License-Identifier: MIT */
/*
 * A connection of its own, for one that has subscribed can do nothing else. In a cluster every node
 * hears what is published at any, so one is enough; if it is gone the next is tried.
 */
#include "hints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tw_duration retry_time = TW_SECOND;

bool hints_are_connected(const struct hints *hints)
{
	return connection_is_open(&hints->connection);
}

int hints_descriptor(const struct hints *hints)
{
	return connection_descriptor(&hints->connection);
}

static bool subscribe(struct hints *hints, const char *channel)
{
	const char *words[] = {"SUBSCRIBE", channel};
	redisReply *reply = connection_ask(&hints->connection, 2, words, NULL);
	bool fine = reply && reply->type == REDIS_REPLY_ARRAY;

	if (reply)
		freeReplyObject(reply);
	return fine;
}

void hints_connect(struct hints *hints, struct tw_redis *redis, tw_duration now)
{
	struct node_map *map = &redis->access->router.map;
	const struct node *node;

	if (hints_are_connected(hints) || now < hints->retry_at)
		return;
	hints->retry_at = now + retry_time;
	node = map->cluster ? map->nodes[hints->node++ % map->count] : node_map_of_slot(map, 0);
	if (connection_open(&hints->connection, &redis->access->settings, &node->address, NULL) ==
		    TW_OK &&
	    !subscribe(hints, redis->space.channel))
		connection_close(&hints->connection);
}

/* ["message", channel, "SHARD MICROSECONDS"] */
static bool message_read(const redisReply *reply, unsigned *shard, tw_duration *wait)
{
	long long wait_us;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
	    reply->element[2]->type != REDIS_REPLY_STRING ||
	    sscanf(reply->element[2]->str, "%u %lld", shard, &wait_us) != 2 || wait_us < 0 ||
	    wait_us > TW_HOUR / TW_MICROSECOND)
		return false;
	*wait = wait_us * TW_MICROSECOND;
	return true;
}

bool hints_next(struct hints *hints, unsigned *shard, tw_duration *wait)
{
	redisReply *reply;

	while (hints_are_connected(hints) && (reply = connection_poll(&hints->connection, NULL))) {
		bool fine = message_read(reply, shard, wait);

		freeReplyObject(reply);
		if (fine)
			return true;
	}
	return false;
}
