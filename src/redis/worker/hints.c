/* SPDX-License-Identifier: MIT */
/*
 * hints.c has a thread and a connection of its own, because one that has subscribed can do nothing
 * else. In a cluster every node gets the messages of all, so one is enough. If it is gone the next
 * is tried, of those that the router is connected to; without such a node the router's attempts are
 * enough.
 *
 * A node that vanishes is noticed by the keepalive of its socket (stream.c). Until then, and while
 * it is silent, hints are missed, and the polls of shards find what is due (worker_shards.c).
 */
#include "hints.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const tw_duration retry_time = TW_SECOND;
/* A server that refuses logs each refusal, and rights do not change soon. */
static const tw_duration retry_refused = 5 * TW_MINUTE;

static void news_end(struct hints *hints)
{
	bool rings = !hints->heard.any;

	hints->heard.any = true;
	pthread_mutex_unlock(&hints->lock);
	if (rings)
		mailbox_ring(hints->mailbox);
}

/* Notes whether hints come from now on, and a new refusal of them. */
static void connected_note(struct hints *hints, bool connected,
			   const struct tw_redis_error *refusal)
{
	pthread_mutex_lock(&hints->lock);
	hints->heard.missed |= connected != hints->heard.connected;
	hints->heard.connected = connected;
	if (refusal)
		hints->heard.refusal = *refusal;
	news_end(hints);
}

static void hint_note(struct hints *hints, const struct hint *hint)
{
	struct heard *heard = &hints->heard;

	assert(hint->place < hints->count);
	pthread_mutex_lock(&hints->lock);
	if (heard->count < HINTS_MAX)
		heard->hints[heard->count++] = *hint;
	else
		heard->missed = true;
	news_end(hints);
}

bool hints_take(struct hints *hints, struct heard *heard)
{
	pthread_mutex_lock(&hints->lock);
	heard->any = hints->heard.any;
	if (heard->any) {
		*heard = hints->heard;
		hints->heard.any = hints->heard.missed = false;
		hints->heard.refusal.status = TW_OK;
		hints->heard.count = 0;
	}
	pthread_mutex_unlock(&hints->lock);
	return heard->any;
}

/* Finds the address of the next node that the router is connected to, one without a leader if
 * there is any. Returns false if there is none. */
static bool address_choose(struct hints *hints, struct router *router, struct address *address)
{
	const struct node *chosen = NULL;

	pthread_mutex_lock(&router->lock);
	for (size_t i = 0; i < router->map.count && (!chosen || chosen->led); i++) {
		const struct node *node = router->map.nodes[hints->node++ % router->map.count];

		if (node->open)
			chosen = node;
	}
	if (chosen)
		*address = chosen->address;
	pthread_mutex_unlock(&router->lock);
	return chosen;
}

/* Subscribes to the hints of all namespaces. Each channel has a reply; those after the first are
 * read as messages that are no hints. */
static enum tw_status subscribe(struct hints *hints, struct tw_redis_error *error)
{
	const char *words[1 + TW_REDIS_SOURCES_MAX] = {"SUBSCRIBE"};
	enum tw_status status = TW_OK;
	redisReply *reply;

	for (size_t i = 0; i < hints->count; i++)
		words[1 + i] = hints->spaces[i]->space.channel;
	reply = connection_ask(&hints->connection, (int)(1 + hints->count), words, error);
	if (!reply)
		status = error->status;
	else if (reply->type == REDIS_REPLY_ERROR)
		status = error_set(error, server_error_status(reply->str), "%s", reply->str);
	else if (reply->type != REDIS_REPLY_ARRAY)
		status = error_set(error, TW_REDIS_FAILED, "the reply to SUBSCRIBE is no array");
	freeReplyObject(reply);
	return status;
}

/* Connects to a node and subscribes. Returns whether that was done. */
static bool hints_connect(struct hints *hints)
{
	struct access *access = hints->spaces[0]->access;
	struct tw_redis_error error = {0};
	bool was_refused = hints->refused;
	struct address address;
	enum tw_status status;

	hints->refused = false;
	if (!address_choose(hints, &access->router, &address) ||
	    connection_open(&hints->connection, &access->settings, &address, false, &error) !=
		    TW_OK)
		return false;
	status = subscribe(hints, &error);
	hints->refused = status == TW_REDIS_REFUSED;
	if (status == TW_OK)
		return true;
	connection_close(&hints->connection);
	if (hints->refused && !was_refused)
		connected_note(hints, false, &error);
	return false;
}

/* Reads ["message", channel, "SHARD MICROSECONDS"]. Returns false if it is no hint of ours. */
static bool message_read(const struct hints *hints, const redisReply *reply, struct hint *hint)
{
	long long wait_us;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
	    reply->element[1]->type != REDIS_REPLY_STRING ||
	    reply->element[2]->type != REDIS_REPLY_STRING)
		return false;
	hint->place = 0;
	while (hint->place < hints->count &&
	       strcmp(reply->element[1]->str, hints->spaces[hint->place]->space.channel) != 0)
		hint->place++;
	if (hint->place == hints->count ||
	    sscanf(reply->element[2]->str, "%u %lld", &hint->shard, &wait_us) != 2 || wait_us < 0 ||
	    wait_us > TW_HOUR / TW_MICROSECOND)
		return false;
	hint->wait = wait_us * TW_MICROSECOND;
	return true;
}

/* Takes hints until the connection is closed. */
static void hints_read(struct hints *hints)
{
	redisReply *reply;
	struct hint hint;

	connected_note(hints, true, NULL);
	/* A message may come at any time. */
	hints->connection.reply_timeout = TW_FOREVER;
	while ((reply = connection_read(&hints->connection, NULL))) {
		if (message_read(hints, reply, &hint))
			hint_note(hints, &hint);
		freeReplyObject(reply);
	}
	connected_note(hints, false, NULL);
}

/* Waits until that time. Returns false if the connections are to stop. */
static bool pause_until(const struct hints *hints, tw_duration at)
{
	struct pollfd stop = {.fd = hints->spaces[0]->access->settings.stop, .events = POLLIN};
	tw_duration left = time_left(at, clock_read_real(CLOCK_MONOTONIC));
	const struct timespec time = {left / TW_SECOND, left % TW_SECOND};

	return ppoll(&stop, 1, &time, NULL) <= 0;
}

static void *hints_run(void *argument)
{
	struct hints *hints = argument;
	tw_duration begun;

	do {
		begun = clock_read_real(CLOCK_MONOTONIC);
		if (hints_connect(hints))
			hints_read(hints);
	} while (pause_until(hints, begun + (hints->refused ? retry_refused : retry_time)));
	return NULL;
}

bool hints_begin(struct hints *hints)
{
	pthread_mutex_init(&hints->lock, NULL);
	if (thread_start(&hints->thread, hints_run, hints, "redis", "hints", NULL) == 0)
		return true;
	pthread_mutex_destroy(&hints->lock);
	return false;
}

void hints_end(struct hints *hints)
{
	pthread_join(hints->thread.id, NULL);
	pthread_mutex_destroy(&hints->lock);
}
