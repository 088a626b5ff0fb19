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
	status = node_map_init(&router->map, settings->host, settings->port);
	if (status != TW_OK)
		return error_set(&router->error, status, "out of memory");
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

/* What a pass finds out about itself. */
struct pass {
	bool waiting; /* some command is to be sent again */
	bool pause;   /* not at once */
};

static void command_wait(struct command *command, struct pass *pass, bool pause)
{
	command->stage = COMMAND_WAITING;
	pass->waiting = true;
	pass->pause |= pause;
}

static bool append_command(struct router *router, struct command *command, struct node *node)
{
	static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
	struct buffer *request = &router->request;

	buffer_clear(request);
	if (command->asking)
		buffer_append_text(request, asking);
	command_write(command, router->space, request);
	if (!request->failed && connection_append(&node->connection, request->data, request->size))
		return true;
	error_set(&router->error, TW_NO_MEMORY, "out of memory");
	return false;
}

static void send_command(struct router *router, struct command *command, struct pass *pass)
{
	enum tw_status status;

	if (!command->node)
		command->node =
			node_map_of_slot(&router->map, space_slot(router->space, command->shard));
	status = node_connect(&router->map, command->node, router->settings, &router->error);
	if (status == TW_REDIS_UNREACHABLE) {
		command->node = NULL;
		command->asking = false;
		command->away = true;
		command_wait(command, pass, true);
	} else if (status != TW_OK) {
		command_end(command, status, NULL);
	} else if (!append_command(router, command, command->node)) {
		command_end(command, TW_NO_MEMORY, NULL);
	} else {
		command->stage = COMMAND_SENT;
		command->node->sent++;
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
	char host[HOST_SIZE];
	const char *address = strchr(text, ' ');
	const char *colon = strrchr(text, ':');
	size_t size;

	address = address ? strchr(address + 1, ' ') : NULL;
	if (!address || !colon || colon < address)
		return NULL;
	size = (size_t)(colon - address - 1);
	if (size >= HOST_SIZE)
		return NULL;
	memcpy(host, address + 1, size);
	host[size] = '\0';
	return node_map_find(&router->map, size ? host : from->host, atoi(colon + 1));
}

static bool follow_redirect(struct router *router, struct command *command, const char *text)
{
	struct node *target = redirect_target(router, command->node, text);

	if (!target || ++command->redirects > REDIRECTS_MAX)
		return false;
	command->asking = starts_with(text, "ASK");
	command->node = target;
	if (!command->asking) {
		router->map.cluster = true;
		node_map_move(&router->map, space_slot(router->space, command->shard), target);
	}
	return true;
}

/* Redis 5 and 6 begin the script, and tell it as the script's own error. */
static bool is_read_only(const char *text)
{
	return starts_with(text, "READONLY") ||
	       (starts_with(text, "ERR Error running script") && strstr(text, " -READONLY "));
}

static bool is_passing(const char *text)
{
	static const char *const passing[] = {"TRYAGAIN", "LOADING", "CLUSTERDOWN", "MASTERDOWN",
					      "BUSY"};

	if (is_read_only(text))
		return true;
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (starts_with(text, passing[i]))
			return true;
	return false;
}

static void take_error(struct router *router, struct command *command, const char *text,
		       struct pass *pass)
{
	if (starts_with(text, "NOSCRIPT") && !command->whole) {
		command->whole = true;
		command_wait(command, pass, false);
	} else if (starts_with(text, "MOVED ") || starts_with(text, "ASK ")) {
		error_set(&router->error, TW_REDIS_UNREACHABLE, "redirected too often: %s", text);
		if (follow_redirect(router, command, text))
			command_wait(command, pass, command->redirects > 2);
		else
			command_end(command, TW_REDIS_UNREACHABLE, NULL);
	} else if (is_passing(text)) {
		command->away = !starts_with(text, "TRYAGAIN") && !starts_with(text, "BUSY");
		error_set(&router->error, TW_REDIS_UNREACHABLE, "%s", text);
		/* It may be another server's turn now: ask for the map, and connect anew. */
		router->map.stale = router->map.cluster;
		if (is_read_only(text))
			command->node->failed = true;
		command->node = NULL;
		command->asking = false;
		command_wait(command, pass, true);
	} else if (starts_with(text, "NOAUTH") || starts_with(text, "NOPERM") ||
		   starts_with(text, "WRONGPASS")) {
		command_end(command, error_set(&router->error, TW_REDIS_REFUSED, "%s", text), NULL);
	} else {
		command_end(command, error_set(&router->error, TW_REDIS_FAILED, "%s", text), NULL);
	}
}

/* The connection broke before the reply. */
static void lose_reply(struct router *router, struct command *command, struct pass *pass)
{
	bool wrote = command->node->connection.wrote;

	router->map.stale = router->map.cluster;
	command->node = NULL;
	command->asking = false;
	command->away = true;
	if (command->script->repeatable || !wrote)
		command_wait(command, pass, true);
	else
		command_end(command, TW_REDIS_OUTCOME_UNKNOWN, NULL);
}

static redisReply *read_reply(struct router *router, struct command *command)
{
	struct connection *connection = &command->node->connection;

	if (!connection->context)
		return NULL;
	if (command->asking) {
		redisReply *asking = connection_read(connection, &router->error);

		if (!asking)
			return NULL;
		freeReplyObject(asking);
	}
	return connection_read(connection, &router->error);
}

static void read_command(struct router *router, struct command *command, struct pass *pass)
{
	redisReply *reply = read_reply(router, command);

	if (!reply) {
		lose_reply(router, command, pass);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		take_error(router, command, reply->str, pass);
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

static struct pass run_pass(struct router *router, struct command *commands, size_t count)
{
	struct pass pass = {0};

	node_map_begin(&router->map);
	node_map_refresh(&router->map, router->settings, &router->error);
	for (size_t i = 0; i < count; i++)
		if (commands[i].stage == COMMAND_WAITING)
			send_command(router, &commands[i], &pass);
	flush_nodes(router);
	for (size_t i = 0; i < count; i++)
		if (commands[i].stage == COMMAND_SENT)
			read_command(router, &commands[i], &pass);
	close_failed(router);
	return pass;
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
		struct pass pass = run_pass(router, commands, count);

		if (!pass.waiting)
			return;
		if (!pass.pause)
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

enum tw_status router_ask(struct router *router, unsigned slot, const struct buffer *request,
			  redisReply **reply)
{
	for (int tries = 0; tries < 3; tries++) {
		struct node *node = node_map_of_slot(&router->map, slot);
		enum tw_status status;

		node_map_begin(&router->map);
		status = node_connect(&router->map, node, router->settings, &router->error);
		if (status != TW_OK)
			return status;
		if (request->failed ||
		    !connection_append(&node->connection, request->data, request->size))
			return error_set(&router->error, TW_NO_MEMORY, "out of memory");
		if (!connection_write(&node->connection, &router->error) ||
		    !(*reply = connection_read(&node->connection, &router->error)))
			return TW_REDIS_UNREACHABLE;
		if ((*reply)->type != REDIS_REPLY_ERROR)
			return TW_OK;
		status = starts_with((*reply)->str, "NOPERM") ? TW_REDIS_REFUSED
			 : is_passing((*reply)->str)          ? TW_REDIS_UNREACHABLE
							      : TW_REDIS_FAILED;
		error_set(&router->error, status, "%s", (*reply)->str);
		struct node *target = starts_with((*reply)->str, "MOVED ")
					      ? redirect_target(router, node, (*reply)->str)
					      : NULL;
		freeReplyObject(*reply);
		if (!target)
			return status;
		node_map_move(&router->map, slot, target);
	}
	return TW_REDIS_UNREACHABLE;
}
