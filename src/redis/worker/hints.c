/* SPDX-License-Identifier: MIT */
/*
 * hints.c has a connection of its own, because one that has subscribed can do nothing else. In a
 * cluster every node gets the messages of all, so one is enough. If it is gone the next is tried. A
 * dial (dial.h) makes it beside the loop, to a node that the router is connected to; without such a
 * node the router's attempts are enough.
 *
 * A node that vanishes is noticed by the keepalive of its socket (stream.c). Until then, and while
 * it is silent, hints are missed, and the polls of shards find what is due (worker_shards.c).
 */
#include "hints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tw_duration retry_time = TW_SECOND;
/* A server that refuses is tried this rarely: it logs each refusal, and rights do not change
 * soon. */
static const tw_duration retry_refused = 5 * TW_MINUTE;

bool hints_are_connected(const struct hints *hints)
{
	return connection_is_open(&hints->connection);
}

int hints_descriptor(const struct hints *hints)
{
	return connection_descriptor(&hints->connection);
}

tw_duration hints_due_at(const struct hints *hints)
{
	return hints->dial.under_way || hints_are_connected(hints) ? TW_FOREVER : hints->retry_at;
}

void hints_end(struct hints *hints)
{
	dial_end(&hints->dial);
	connection_close(&hints->connection);
}

/* Returns the next node that the router is connected to and that owes it no reply; NULL if there
 * is none. */
static const struct node *node_choose(struct hints *hints, const struct node_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct node *node = map->nodes[hints->node++ % map->count];

		if (connection_is_open(&node->connection) && !node->first)
			return node;
	}
	return NULL;
}

/* Begins to connect and subscribe. Each channel has a reply; those after the first are read as
 * messages that are no hints. */
static void connect_begin(struct hints *hints, struct mailbox *mailbox, tw_duration now)
{
	struct access *access = hints->spaces[0]->access;
	const struct node *node = node_choose(hints, &access->router.map);

	hints->retry_at = now + retry_time;
	if (!node)
		return;
	hints->words[0] = "SUBSCRIBE";
	for (size_t i = 0; i < hints->count; i++)
		hints->words[1 + i] = hints->spaces[i]->space.channel;
	dial_begin(&hints->dial, &access->settings, &node->address, (int)(1 + hints->count),
		   hints->words, mailbox);
}

static const struct tw_redis_error *connect_end(struct hints *hints, tw_duration now)
{
	const struct attempt *attempt = &hints->dial.attempt;
	bool was_refused = hints->refused;

	hints->connection = attempt->connection;
	hints->dial.attempt.connection = (struct connection){0};
	hints->refused = hints->dial.refused;
	if (hints->refused)
		hints->retry_at = now + retry_refused;
	return hints->refused && !was_refused ? &attempt->error : NULL;
}

const struct tw_redis_error *hints_tend(struct hints *hints, struct mailbox *mailbox,
					tw_duration now)
{
	if (hints->dial.under_way)
		return dial_take(&hints->dial) ? connect_end(hints, now) : NULL;
	if (!hints_are_connected(hints) && now >= hints->retry_at)
		connect_begin(hints, mailbox, now);
	return NULL;
}

/* Finds the place of the channel. Returns false if it is none of ours. */
static bool place_find(struct hints *hints, const char *channel)
{
	for (hints->place = 0; hints->place < hints->count; hints->place++)
		if (!strcmp(channel, hints->spaces[hints->place]->space.channel))
			return true;
	return false;
}

/* Reads ["message", channel, "SHARD MICROSECONDS"]. */
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
