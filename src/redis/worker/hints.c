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

/* In the order of their places. */
static const char *channel_at(const struct hints *hints, size_t place)
{
	const struct tw_redis *redis = place ? hints->beside[place - 1] : hints->redis;

	return redis->space.channel;
}

/* There is a reply for each channel; those behind the first are read as hints that are none. */
static bool subscribe(struct hints *hints)
{
	const char *words[1 + TW_REDIS_SOURCES_MAX] = {"SUBSCRIBE"};
	size_t count = 1 + hints->beside_count;
	redisReply *reply;
	bool fine;

	for (size_t i = 0; i < count; i++)
		words[1 + i] = channel_at(hints, i);
	reply = connection_ask(&hints->connection, (int)(1 + count), words, NULL);
	fine = reply && reply->type == REDIS_REPLY_ARRAY;
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
	hints->redis = redis;
	hints->retry_at = now + retry_time;
	node = map->cluster ? map->nodes[hints->node++ % map->count] : node_map_of_slot(map, 0);
	if (connection_open(&hints->connection, &redis->access->settings, &node->address, NULL) ==
		    TW_OK &&
	    !subscribe(hints))
		connection_close(&hints->connection);
}

/* False: it is none of ours. */
static bool place_find(struct hints *hints, const char *channel)
{
	for (hints->place = 0; hints->place <= hints->beside_count; hints->place++)
		if (!strcmp(channel, channel_at(hints, hints->place)))
			return true;
	return false;
}

/* ["message", channel, "SHARD MICROSECONDS"] */
static bool message_read(struct hints *hints, const redisReply *reply, unsigned *shard,
			 tw_duration *wait)
{
	long long wait_us;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
	    reply->element[1]->type != REDIS_REPLY_STRING ||
	    reply->element[2]->type != REDIS_REPLY_STRING ||
	    !place_find(hints, reply->element[1]->str) ||
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
		bool fine = message_read(hints, reply, shard, wait);

		freeReplyObject(reply);
		if (fine)
			return true;
	}
	return false;
}
