/* SPDX-License-Identifier: MIT */
/*
 * A run is made of passes. A pass sends every command that waits, to the node of its slot, then
 * reads the replies in the order in which they were sent. Most end there. Others wait for another
 * pass:
 *
 *   NOSCRIPT                          its text is sent instead of its name
 *   MOVED, ASK                        it is sent there; a limit, for nodes may differ
 *   TRYAGAIN, LOADING, READONLY, CLUSTERDOWN, MASTERDOWN, BUSY
 *                                     the same again after a pause, which doubles
 *   not connected, or nothing sent    the same
 *   reply lost, script repeatable     the same
 *
 * until the patience is over. All these were refused before they changed anything. A reply that is
 * lost when a change may have been made ends the command with TW_REDIS_OUTCOME_UNKNOWN: only the
 * caller knows whether to do it again.
 */
#include "router.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { REDIRECTS_MAX = 16 };
static const tw_duration pause_first = 10 * TW_MILLISECOND;
static const tw_duration pause_max = 400 * TW_MILLISECOND;

enum tw_status router_open(struct router *router, const struct settings *settings,
			   const struct space *space)
{
	enum tw_status status;

	memset(router, 0, sizeof(*router));
	router->settings = settings;
	router->space = space;
	if (!node_map_find(&router->map, settings->host, settings->port))
		return error_set(&router->error, TW_NO_MEMORY, "out of memory");
	status = node_connect(&router->map, router->map.nodes[0], settings, &router->error);
	if (status != TW_OK)
		return status;
	if (router->map.cluster && settings->database)
		return error_set(&router->error, TW_INVALID, "a cluster has no databases but 0");
	node_map_refresh(&router->map, settings, &router->error);
	return TW_OK;
}

void router_close(struct router *router)
{
	node_map_close(&router->map);
	buffer_free(&router->request);
}

static void command_wait(struct router *router, struct command *command, bool pause)
{
	command->stage = COMMAND_WAITING;
	router->waiting = true;
	router->pause |= pause;
}

/* After a pause, and to where its slot lies by then. */
static void command_retry(struct router *router, struct command *command)
{
	command->node = NULL;
	command->asking = false;
	command_wait(router, command, true);
}

static enum tw_status append_command(struct router *router, const struct command *command)
{
	struct buffer *request = &router->request;

	buffer_clear(request);
	if (command->asking)
		buffer_append_text(request, "*1\r\n$6\r\nASKING\r\n");
	command_write(command, router->space, request);
	if (!request->failed &&
	    connection_append(&command->node->connection, request->data, request->size))
		return TW_OK;
	return error_set(&router->error, TW_NO_MEMORY, "out of memory");
}

static void send_command(struct router *router, struct command *command)
{
	enum tw_status status;

	if (!command->node)
		command->node =
			node_map_of_slot(&router->map, space_slot(router->space, command->shard));
	status = node_connect(&router->map, command->node, router->settings, &router->error);
	if (status == TW_OK)
		status = append_command(router, command);
	if (status == TW_OK) {
		command->stage = COMMAND_SENT;
		command->node->sent = true;
	} else if (status == TW_REDIS_UNREACHABLE) {
		command->away = true;
		command_retry(router, command);
	} else {
		command_end(command, status, NULL);
	}
}

/* Writes out what every node is to be sent. On failure its commands see that when they read. */
static void flush_nodes(struct router *router)
{
	for (size_t i = 0; i < router->map.count; i++) {
		struct node *node = router->map.nodes[i];

		if (node->sent && node->connection.context)
			connection_write(&node->connection, &router->error);
	}
}

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* "MOVED 3999 host:port": the node there; NULL if it can't be read or made. */
static struct node *redirect_target(struct router *router, const struct node *from,
				    const char *text)
{
	char address[HOST_SIZE + 8];
	char *colon;

	if (sscanf(text, "%*s %*s %263s", address) != 1 || !(colon = strrchr(address, ':')))
		return NULL;
	*colon = '\0';
	/* No host: the one that it was reached by. */
	return node_map_find(&router->map, *address ? address : from->host, atoi(colon + 1));
}

static void follow_redirect(struct router *router, struct command *command, const char *text)
{
	struct node *target = redirect_target(router, command->node, text);

	error_set(&router->error, TW_REDIS_UNREACHABLE, "redirected too often: %s", text);
	if (!target || ++command->redirects > REDIRECTS_MAX) {
		command_end(command, TW_REDIS_UNREACHABLE, NULL);
		return;
	}
	command->asking = starts_with(text, "ASK");
	command->node = target;
	if (!command->asking) {
		router->map.cluster = true;
		node_map_move(&router->map, space_slot(router->space, command->shard), target);
	}
	command_wait(router, command, command->redirects > 2);
}

/* Redis 5 and 6 begin the script, and tell it as the script's own error. */
static bool is_read_only(const char *text)
{
	return starts_with(text, "READONLY") ||
	       (starts_with(text, "ERR Error running script") && strstr(text, " -READONLY "));
}

static enum tw_status error_status(const char *text)
{
	static const char *const passing[] = {"TRYAGAIN", "LOADING", "CLUSTERDOWN", "MASTERDOWN",
					      "BUSY"};

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (starts_with(text, passing[i]))
			return TW_REDIS_UNREACHABLE;
	if (is_read_only(text))
		return TW_REDIS_UNREACHABLE;
	return starts_with(text, "NOAUTH") || starts_with(text, "NOPERM") ||
			       starts_with(text, "WRONGPASS")
		       ? TW_REDIS_REFUSED
		       : TW_REDIS_FAILED;
}

static void take_error(struct router *router, struct command *command, const char *text)
{
	enum tw_status status;

	if (starts_with(text, "NOSCRIPT") && !command->whole) {
		command->whole = true;
		command_wait(router, command, false);
		return;
	}
	if (starts_with(text, "MOVED ") || starts_with(text, "ASK ")) {
		follow_redirect(router, command, text);
		return;
	}
	status = error_set(&router->error, error_status(text), "%s", text);
	if (status != TW_REDIS_UNREACHABLE) {
		command_end(command, status, NULL);
		return;
	}
	/* It may be another server's turn now: ask for the map, and connect anew. */
	router->map.stale = router->map.cluster;
	command->node->failed |= is_read_only(text);
	command->away = !starts_with(text, "TRYAGAIN") && !starts_with(text, "BUSY");
	command_retry(router, command);
}

/* The connection broke before the reply. */
static void lose_reply(struct router *router, struct command *command)
{
	router->map.stale = router->map.cluster;
	command->away = true;
	if (command->script->repeatable || !command->node->connection.wrote)
		command_retry(router, command);
	else
		command_end(command, TW_REDIS_OUTCOME_UNKNOWN, NULL);
}

static redisReply *read_reply(struct router *router, const struct command *command)
{
	struct connection *connection = &command->node->connection;
	redisReply *reply =
		connection->context ? connection_read(connection, &router->error) : NULL;

	if (!reply || !command->asking)
		return reply;
	freeReplyObject(reply); /* that to ASKING */
	return connection_read(connection, &router->error);
}

static void read_command(struct router *router, struct command *command)
{
	redisReply *reply = read_reply(router, command);

	if (!reply) {
		lose_reply(router, command);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		take_error(router, command, reply->str);
		freeReplyObject(reply);
	} else {
		command_end(command, TW_OK, reply);
	}
}

/* A server that was only asked to be read from may be a former master: its address is looked up
 * anew. */
static void close_failed(struct router *router)
{
	for (size_t i = 0; i < router->map.count; i++)
		if (router->map.nodes[i]->failed)
			connection_close(&router->map.nodes[i]->connection);
}

static void run_pass(struct router *router, struct command *commands, size_t count)
{
	router->waiting = router->pause = false;
	node_map_begin(&router->map);
	node_map_refresh(&router->map, router->settings, &router->error);
	for (size_t i = 0; i < count; i++)
		if (commands[i].stage == COMMAND_WAITING)
			send_command(router, &commands[i]);
	flush_nodes(router);
	for (size_t i = 0; i < count; i++)
		if (commands[i].stage == COMMAND_SENT)
			read_command(router, &commands[i]);
	close_failed(router);
}

static void sleep_for(tw_duration time)
{
	struct timespec left = {time / TW_SECOND, time % TW_SECOND};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

void router_run(struct router *router, struct command *commands, size_t count)
{
	tw_duration patience = router->settings->patience;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	tw_duration deadline = time_add(now, patience > 0 ? patience : 0);
	tw_duration pause = pause_first;

	for (;;) {
		run_pass(router, commands, count);
		if (!router->waiting)
			return;
		if (!router->pause)
			continue;
		if (clock_read_real(CLOCK_MONOTONIC) + pause > deadline)
			break;
		sleep_for(pause);
		pause = pause < pause_max ? 2 * pause : pause;
	}
	for (size_t i = 0; i < count; i++)
		if (commands[i].stage == COMMAND_WAITING)
			command_end(&commands[i], TW_REDIS_UNREACHABLE, NULL);
}

enum tw_status router_ask(struct router *router, unsigned slot, int count, const char **words,
			  redisReply **reply)
{
	for (int tries = 0; tries < 3; tries++) {
		struct node *node = node_map_of_slot(&router->map, slot);
		struct node *target = NULL;
		enum tw_status status;
		const char *text;

		node_map_begin(&router->map);
		status = node_connect(&router->map, node, router->settings, &router->error);
		if (status != TW_OK)
			return status;
		*reply = connection_ask(&node->connection, count, words, &router->error);
		if (!*reply)
			return router->error.status;
		if ((*reply)->type != REDIS_REPLY_ERROR)
			return TW_OK;
		text = (*reply)->str;
		status = error_set(&router->error, error_status(text), "%s", text);
		if (starts_with(text, "MOVED "))
			target = redirect_target(router, node, text);
		freeReplyObject(*reply);
		if (!target)
			return status;
		node_map_move(&router->map, slot, target);
	}
	return TW_REDIS_UNREACHABLE;
}
