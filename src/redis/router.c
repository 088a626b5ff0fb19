/* SPDX-License-Identifier: MIT */
/*
 * A run is made of passes. A pass sends every command that waits, to the node of its slot, then
 * reads the replies as they come, of each node in the order in which it was asked. What a node
 * still owes when the pass's time is over is read in the next ones, which send it nothing, so a
 * slow node holds up no command for another. Most commands end with their reply. Others wait for
 * another pass:
 *
 *   NOSCRIPT                          its text is sent instead of its name
 *   MOVED, ASK                        it is sent there; a limit, for nodes may differ. ASK comes
 *                                     from a node that has none of the keys (Redis 7): they are
 *                                     all there, or nowhere, and one key stands for them
 *   TRYAGAIN, LOADING, READONLY, CLUSTERDOWN, MASTERDOWN, BUSY
 *                                     the same again after a pause, which doubles
 *   not connected, or nothing sent    the same
 *   reply lost, script repeatable     the same
 *
 * until the patience is over. All these were refused before they changed anything. A reply that is
 * lost when a change may have been made ends the command with TW_REDIS_OUTCOME_UNKNOWN: only the
 * caller knows whether to do it again.
 *
 * A pass connects no node, for that may take long: commands wait until the node has been tried, by
 * router_run(), or by a caller beside the passes (call.c).
 */
#include "router.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shape.h"

enum { REDIRECTS_MAX = 16 };
static const tw_duration pause_first = 10 * TW_MILLISECOND;
static const tw_duration pause_max = 400 * TW_MILLISECOND;

enum tw_status router_open(struct router *router, const struct settings *settings)
{
	enum tw_status status = TW_REDIS_UNREACHABLE;

	memset(router, 0, sizeof(*router));
	router->settings = settings;
	/* Sentinels stand for one node. */
	for (size_t i = 0; i < (settings->master ? 1 : settings->address_count); i++) {
		const struct address *address = &settings->addresses[i];
		struct node *node = node_map_find(&router->map, address->host, address->port);

		if (!node)
			return error_set(&router->error, TW_NO_MEMORY, "out of memory");
		status = node_connect(&router->map, node, settings, &router->error);
		node_map_set_only(&router->map, node);
		if (status != TW_REDIS_UNREACHABLE)
			break;
	}
	if (status != TW_OK)
		return status;
	if (router->map.cluster && settings->database)
		return error_set(&router->error, TW_INVALID, "a cluster has no databases but 0");
	node_map_refresh(&router->map, &router->error);
	return TW_OK;
}

void router_close(struct router *router)
{
	node_map_close(&router->map);
	buffer_free(&router->request);
}

void router_renew(struct router *router, bool torn)
{
	for (size_t i = 0; i < router->map.count; i++) {
		struct node *node = router->map.nodes[i];

		if (torn)
			node->connection = (struct connection){0};
		else
			connection_close(&node->connection);
		node->first = NULL;
		node->connecting = node->tried = false;
		node->attempt = (struct attempt){0};
	}
	if (torn)
		router->request = (struct buffer){0};
}

static void command_stop(struct router *router, struct command *command, enum tw_status status)
{
	if (command->error)
		*command->error = router->error;
	command_end(command, status, NULL);
}

static void command_wait(struct router *router, struct command *command, bool pause)
{
	tw_duration now;

	command->stage = COMMAND_WAITING;
	if (!pause)
		return;
	now = clock_read_real(CLOCK_MONOTONIC);
	command->pause = !command->pause              ? pause_first
			 : command->pause < pause_max ? 2 * command->pause
						      : command->pause;
	command->retry_at = now + command->pause;
	if (command->retry_at > command->deadline)
		command_stop(router, command, TW_REDIS_UNREACHABLE);
}

/* After a pause, and to where its slot lies by then. */
static void command_retry(struct router *router, struct command *command)
{
	command->node = NULL;
	command->asking = command->one_key = false;
	command_wait(router, command, true);
}

static enum tw_status append_command(struct router *router, const struct command *command)
{
	struct buffer *request = &router->request;

	buffer_clear(request);
	if (command->asking)
		buffer_append_text(request, "*1\r\n$6\r\nASKING\r\n");
	command_write(command, command->node->connection.flags, request);
	if (!request->failed &&
	    connection_append(&command->node->connection, request->data, request->size))
		return TW_OK;
	return error_set(&router->error, TW_NO_MEMORY, "out of memory");
}

static void node_owes(struct node *node, struct command *command)
{
	if (!node->first)
		node->last = &node->first;
	command->stage = command->asking ? COMMAND_ASKED : COMMAND_SENT;
	command->next = NULL;
	*node->last = command;
	node->last = &command->next;
}

/* The node could not be connected, or broke. */
static void command_fail(struct router *router, struct command *command, const struct node *node)
{
	router->error = node->failure;
	if (node == command->node && node->failure.status != TW_REDIS_UNREACHABLE) {
		command_stop(router, command, node->failure.status);
	} else {
		command->away = true;
		command_retry(router, command);
	}
}

/* Whether the command's node can be sent it. */
static bool node_is_ready(struct router *router, struct command *command)
{
	enum node_state state = node_look(&router->map, command->node);

	if (state == NODE_READY)
		return true;
	command->needs = state == NODE_DOWN ? command->node : node_map_teller(&router->map);
	if (command->needs)
		command->stage = COMMAND_CONNECTS;
	else
		command_fail(router, command, command->node);
	return false;
}

void router_settle(struct router *router, struct command *command)
{
	const struct node *needed = command->needs;

	command->needs = NULL;
	if (connection_is_open(&needed->connection))
		command_wait(router, command, false);
	else
		command_fail(router, command, needed);
}

static void send_command(struct router *router, struct command *command)
{
	enum tw_status status;

	if (!command->node)
		command->node =
			node_map_of_slot(&router->map, space_slot(command->space, command->shard));
	/* Its turn comes when those before it have theirs: it can wait without a risk. */
	if (command->node->owed || !node_is_ready(router, command))
		return;
	if (command->one_server && router->map.cluster)
		status = error_set(&router->error, TW_REDIS_UNFIT,
				   "the server has become a cluster: open it anew");
	else
		status = append_command(router, command);
	if (status == TW_OK)
		node_owes(command->node, command);
	else
		command_stop(router, command, status);
}

/* Writes out what every node is to be sent. On failure its commands see that when they read.
 * Returns the time. */
static tw_duration flush_nodes(struct router *router)
{
	tw_duration now;

	for (size_t i = 0; i < router->map.count; i++) {
		struct node *node = router->map.nodes[i];

		if (node->first && !node->owed && connection_is_open(&node->connection))
			connection_write(&node->connection, &node->failure);
	}
	now = clock_read_real(CLOCK_MONOTONIC);
	for (size_t i = 0; i < router->map.count; i++)
		if (!router->map.nodes[i]->owed)
			router->map.nodes[i]->reply_by =
				time_add(now, router->settings->reply_timeout);
	return now;
}

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* "MOVED 3999 host:port": the node there; NULL if it can't be read or made. */
static struct node *redirect_target(struct router *router, struct node *from, const char *text)
{
	char address[HOST_SIZE + 8];
	char *colon;
	long port;

	if (sscanf(text, "%*s %*s %263s", address) != 1 || !(colon = strrchr(address, ':')))
		return NULL;
	*colon = '\0';
	port = strtol(colon + 1, NULL, 10);
	if (port <= 0 || port > 65535)
		return NULL;
	return node_map_find_told(&router->map, from, address, (int)port);
}

static void follow_redirect(struct router *router, struct command *command, const char *text)
{
	struct node *target = redirect_target(router, command->node, text);

	error_set(&router->error, TW_REDIS_UNREACHABLE, "redirected too often: %s", text);
	if (!target || ++command->redirects > REDIRECTS_MAX) {
		command_stop(router, command, TW_REDIS_UNREACHABLE);
		return;
	}
	command->asking = starts_with(text, "ASK");
	command->one_key = command->asking && command->node->connection.flags;
	command->node = target;
	if (!command->asking) {
		router->map.cluster = true;
		node_map_move(&router->map, space_slot(command->space, command->shard), target);
	}
	command_wait(router, command, command->redirects > 2);
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
	status = error_set(&router->error, server_error_status(text), "%s",
			   *text ? text : "an error without a word");
	if (status != TW_REDIS_UNREACHABLE) {
		command_stop(router, command, status);
		return;
	}
	/* It may be another server's turn now: ask for the map, and connect anew. */
	router->map.stale = router->map.cluster;
	command->node->is_former |= server_error_is_read_only(text);
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
		command_stop(router, command, TW_REDIS_OUTCOME_UNKNOWN);
}

static void take_reply(struct router *router, struct command *command, redisReply *reply)
{
	char came[SHAPE_SIZE];

	if (shape_fits(command->script->shape, command->answers, reply)) {
		command_end(command, TW_OK, reply);
		return;
	}
	shape_write(reply, came);
	freeReplyObject(reply);
	error_set(&router->error, TW_REDIS_FAILED,
		  "the script %s answered %s, not %s (i: number, s: string, -: nothing, "
		  "[]: several)",
		  command->script->name, came, command->script->shape);
	command_stop(router, command, TW_REDIS_FAILED);
}

/* NULL: the connection is broken; each command that was sent over it is told why. */
static void read_command(struct router *router, struct command *command, redisReply *reply)
{
	if (!reply) {
		router->error = command->node->failure;
		lose_reply(router, command);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		take_error(router, command, reply->str);
		freeReplyObject(reply);
	} else {
		take_reply(router, command, reply);
	}
}

/* The next reply that has come, NULL: none. It is too late for it if the connection is closed. */
static redisReply *node_poll(struct node *node, tw_duration now)
{
	struct connection *connection = &node->connection;
	redisReply *reply = NULL;

	if (connection_is_open(connection))
		reply = connection_poll(connection, &node->failure);
	if (!reply && connection_is_open(connection) && now >= node->reply_by)
		connection_break(connection, "no reply in time", &node->failure);
	return reply;
}

/* Takes what has come of the replies that the node owes. */
static void read_node(struct router *router, struct node *node, tw_duration now)
{
	while (node->first) {
		struct command *command = node->first;
		redisReply *reply = node_poll(node, now);

		if (!reply && connection_is_open(&node->connection))
			return;
		node->reply_by = time_add(now, router->settings->reply_timeout);
		if (reply && command->stage == COMMAND_ASKED) {
			command->stage = COMMAND_SENT;
			freeReplyObject(reply);
			continue;
		}
		node->first = command->next;
		read_command(router, command, reply);
	}
}

/* Waits until a node says something that owes replies, no longer than until one of them is overdue.
 * False: none owes any. */
static bool replies_wait(const struct router *router, tw_duration now, tw_duration until)
{
	struct pollfd descriptors[NODES_MAX];
	struct timespec time;
	tw_duration left;
	nfds_t count = 0;

	for (size_t i = 0; i < router->map.count; i++) {
		const struct node *node = router->map.nodes[i];

		if (!node->first)
			continue;
		descriptors[count++] = (struct pollfd){
			.fd = connection_descriptor(&node->connection), .events = POLLIN};
		until = node->reply_by < until ? node->reply_by : until;
	}
	if (!count)
		return false;
	left = until > now ? until - now : 0;
	time = (struct timespec){left / TW_SECOND, left % TW_SECOND};
	ppoll(descriptors, count, &time, NULL);
	return true;
}

/* A server that was only asked to be read from may be a former master: its address is looked up
 * anew. */
static void close_former(struct router *router)
{
	for (size_t i = 0; i < router->map.count; i++) {
		struct node *node = router->map.nodes[i];

		if (!node->is_former || node->first)
			continue;
		connection_close(&node->connection);
		node->is_former = false;
	}
}

bool router_is_owed(const struct router *router)
{
	for (size_t i = 0; i < router->map.count; i++)
		if (router->map.nodes[i]->first)
			return true;
	return false;
}

void router_pass(struct router *router, struct command *commands, tw_duration until)
{
	struct command *next;
	tw_duration now;

	node_map_begin(&router->map);
	node_map_refresh(&router->map, &router->error);
	for (; commands; commands = next) {
		next = commands->next;
		send_command(router, commands);
	}
	now = flush_nodes(router);
	for (;;) {
		for (size_t i = 0; i < router->map.count; i++)
			read_node(router, router->map.nodes[i], now);
		if (now >= until || !replies_wait(router, now, until))
			break;
		now = clock_read_real(CLOCK_MONOTONIC);
	}
	close_former(router);
}

static void sleep_for(tw_duration time)
{
	struct timespec left = {time / TW_SECOND, time % TW_SECOND};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* Connects the nodes that commands wait for. */
static void connect_nodes(struct router *router, struct command *commands, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct node *node = commands[i].needs;

		if (!node)
			continue;
		node_map_begin(&router->map);
		node_connect(&router->map, node, router->settings, &router->error);
		for (size_t j = i; j < count; j++)
			if (commands[j].needs == node)
				router_settle(router, &commands[j]);
	}
}

void router_run(struct router *router, struct command *commands, size_t count)
{
	tw_duration patience = router->settings->patience;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	tw_duration deadline = time_add(now, patience > 0 ? patience : 0);

	for (size_t i = 0; i < count; i++)
		commands[i].deadline = deadline;
	for (;;) {
		struct command *first = NULL;
		struct command **last = &first;
		tw_duration next = TW_FOREVER;

		now = clock_read_real(CLOCK_MONOTONIC);
		for (size_t i = 0; i < count; i++)
			last = command_queue(&commands[i], now, last, &next);
		if (first) {
			router_pass(router, first, TW_FOREVER);
			connect_nodes(router, commands, count);
		} else if (next != TW_FOREVER) {
			sleep_for(next - now);
		} else {
			return;
		}
	}
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
		status = error_set(&router->error, server_error_status(text), "%s", text);
		if (starts_with(text, "MOVED "))
			target = redirect_target(router, node, text);
		freeReplyObject(*reply);
		if (!target)
			return status;
		node_map_move(&router->map, slot, target);
	}
	return TW_REDIS_UNREACHABLE;
}
