/* SPDX-License-Identifier: MIT */
/*
 * router.c runs evals in passes. A pass sends every eval that waits to the node of its slot. Then
 * it reads the replies as they come, each node's in the order of its evals. Replies that a node
 * still owes at the end of a pass are read in the next ones, which send it nothing. So a slow node
 * delays no eval for another. Most evals end with their reply. Others wait for another pass:
 *
 *   NOSCRIPT                          the text is sent in place of the name
 *   MOVED, ASK                        it is sent there, from the third time on after a pause, since
 *                                     nodes may differ. ASK comes from a node that has none of the
 *                                     keys (Redis 7): they are all there or nowhere, and one key
 *                                     stands for them
 *   TRYAGAIN, LOADING, READONLY, CLUSTERDOWN, MASTERDOWN, MISCONF, NOREPLICAS, BUSY
 *                                     it is sent again after a pause, which doubles
 *   not connected, or nothing sent    it is sent again after a pause
 *   reply lost, script repeatable     it is sent again after a pause
 *
 * This ends with the patience. All these errors came before any change. If a reply is lost and a
 * change may have been made, the eval ends with TW_REDIS_OUTCOME_UNKNOWN: only the caller knows
 * whether to repeat it.
 *
 * Where durability is asked for, a pass that sends changes to a node has the node wait behind them
 * (WAITAOF, WAIT), once for all callers. A change whose reply has come is held, as the last of what
 * is owed, until the waits have replied. What they do not confirm in time ends with
 * TW_REDIS_OUTCOME_UNKNOWN. A server waits for what the same connection has changed last. An eval
 * that is repeated over a new one may find its change made and change nothing, so a pass has a
 * change of its own before the waits, the mark. Without it they confirm nothing.
 *
 * A pass connects no node, because that may take long. Evals wait until the node has been tried
 * beside the passes, by a caller (call.c) or by a thread of the worker. The map of a cluster is
 * asked for by an eval too, from a node that owes nothing.
 */
#include "router.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shape.h"

enum { REDIRECTS_AT_ONCE = 2 };
static const tw_duration pause_first = 10 * TW_MILLISECOND;
static const tw_duration pause_max = 400 * TW_MILLISECOND;
static const tw_duration pass_most = 2 * TW_MILLISECOND;
static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
static const struct {
	enum tw_redis_durability durability;
	const char *command;
	const char *place;
} waits[] = {
	{TW_REDIS_DURABLE_DISK, "*4\r\n$7\r\nWAITAOF\r\n$1\r\n1\r\n$1\r\n0\r\n",
	 "on the server's disk"},
	{TW_REDIS_DURABLE_REPLICA, "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n", "on a replica"},
};
enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

enum tw_status router_open(struct router *router, const struct settings *settings)
{
	enum tw_status status = TW_REDIS_UNREACHABLE;

	memset(router, 0, sizeof(*router));
	router->settings = settings;
	/* All Sentinels together are one node. */
	for (size_t i = 0; i < (settings->master ? 1 : settings->address_count); i++) {
		struct attempt attempt = {.address = settings->addresses[i]};
		struct node *node =
			node_map_find(&router->map, attempt.address.host, attempt.address.port);

		if (!node)
			return error_set(&router->error, TW_NO_MEMORY, "out of memory");
		attempt_make(&attempt, settings);
		node_take_attempt(&router->map, node, &attempt);
		for (unsigned slot = 0; slot < SLOTS; slot++)
			node_map_move(&router->map, slot, node);
		router->error = attempt.error;
		status = attempt.status;
		if (status != TW_REDIS_UNREACHABLE)
			break;
	}
	if (status != TW_OK)
		return status;
	if (router->map.cluster && settings->database)
		return error_set(&router->error, TW_INVALID, "a cluster has only database 0");
	do
		router_pass(router, NULL, TW_FOREVER);
	while (router_is_owed(router));
	return TW_OK;
}

void router_close(struct router *router)
{
	node_map_close(&router->map);
	buffer_free(&router->output);
}

static void eval_stop(struct router *router, struct eval *eval, enum tw_status status)
{
	if (eval->error)
		*eval->error = router->error;
	eval_end(eval, status, NULL);
}

static void eval_wait(struct router *router, struct eval *eval, bool pause)
{
	tw_duration now;

	eval->stage = EVAL_WAITING;
	if (!pause)
		return;
	now = clock_read_real(CLOCK_MONOTONIC);
	eval->pause = !eval->pause              ? pause_first
		      : eval->pause < pause_max ? 2 * eval->pause
						: eval->pause;
	eval->retry_at = now + eval->pause;
	if (eval->retry_at > eval->deadline)
		eval_stop(router, eval, TW_REDIS_UNREACHABLE);
}

/* Sends the eval again after a pause, to the node that has its slot then. */
static void eval_retry(struct router *router, struct eval *eval)
{
	eval->node = NULL;
	eval->asking = eval->one_key = false;
	eval_wait(router, eval, true);
}

static enum tw_status append_eval(struct router *router, struct eval *eval)
{
	struct buffer *output = &router->output;
	uint64_t *known = &eval->node->connection.scripts;

	eval->whole = !(*known & eval->script->bit);

	buffer_clear(output);
	if (eval->asking)
		buffer_append_text(output, asking);
	eval_write(eval, eval->node->connection.flags, output);
	if (output->failed ||
	    !connection_append(&eval->node->connection, output->data, output->size))
		return error_set(&router->error, TW_NO_MEMORY, "out of memory");
	*known |= eval->script->bit;
	return TW_OK;
}

static void node_append(struct node *node, struct eval *eval, enum eval_stage stage)
{
	if (!node->first)
		node->last = &node->first;
	eval->stage = stage;
	eval->next = NULL;
	*node->last = eval;
	node->last = &eval->next;
}

static void node_owes(struct node *node, struct eval *eval)
{
	node_append(node, eval, eval->asking ? EVAL_ASKED : EVAL_SENT);
}

/* Asks for a stale map, unless this is under way. */
static void send_map_eval(struct router *router)
{
	static const char request[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";
	struct node *node = NULL;

	if (router->map_eval.stage != EVAL_SENT)
		node = node_map_find_teller(&router->map);
	if (!node || !connection_append(&node->connection, request, sizeof(request) - 1))
		return;
	router->map_eval.node = node;
	node_owes(node, &router->map_eval);
}

/* Ends or retries an eval whose node could not be connected, or broke. */
static void eval_fail(struct router *router, struct eval *eval, const struct node *node)
{
	router->error = node->failure;
	if (node == eval->node && node->failure.status != TW_REDIS_UNREACHABLE) {
		eval_stop(router, eval, node->failure.status);
	} else {
		eval->away = true;
		eval_retry(router, eval);
	}
}

/* Returns whether the eval can be sent to its node. */
static bool node_is_ready(struct router *router, struct eval *eval)
{
	enum node_state state = node_look(&router->map, eval->node);

	if (state == NODE_READY)
		return true;
	eval->needs = state == NODE_DOWN ? eval->node : node_map_teller(&router->map);
	if (eval->needs)
		eval->stage = EVAL_CONNECTS;
	else
		eval_fail(router, eval, eval->node);
	return false;
}

void router_settle(struct router *router, struct eval *eval)
{
	const struct node *needed = eval->needs;

	eval->needs = NULL;
	if (connection_is_open(&needed->connection))
		eval_wait(router, eval, false);
	else
		eval_fail(router, eval, needed);
}

/* Sends the eval, if its node is ready. Returns whether it was sent. */
static bool send_eval(struct router *router, struct eval *eval)
{
	enum tw_status status;

	if (!eval->node)
		eval->node = node_map_of_slot(&router->map, space_slot(eval->space, eval->shard));
	/* The eval waits for those before it, without a risk. */
	if (eval->node->owed || !node_is_ready(router, eval))
		return false;
	status = append_eval(router, eval);
	if (status == TW_OK)
		node_owes(eval->node, eval);
	else
		eval_stop(router, eval, status);
	return status == TW_OK;
}

/* Returns how long a node may wait for its disk or a replica, half as long for each of both. It
 * replies before the connection is given up. */
static int64_t wait_ms(const struct router *router, const struct node *node)
{
	int64_t ms = router->settings->reply_timeout / TW_MILLISECOND * 3 / 4;

	if (node->connection.waits == TW_REDIS_DURABLE_BOTH)
		ms /= 2;
	return ms > 1 ? ms : 1;
}

/* Returns one of the evals whose change is waited for, or NULL. One in a slot that is moving is the
 * last choice, because its keys may move between the change and the mark. */
static const struct eval *lasting_find(const struct eval *eval)
{
	const struct eval *found = NULL;

	for (; eval; eval = eval->next)
		if (eval->script && eval->script->lasting && (!found || found->asking))
			found = eval;
	return found;
}

/* Writes a change that no reader knows, so that the wait is for all changes before it. A script can
 * make it while the memory is full. */
static void mark_write(const struct eval *change, bool flagged, struct buffer *output)
{
	if (change->asking)
		buffer_append_text(output, asking);
	buffer_array(output, 4);
	buffer_bulk_text(output, "EVAL");
	buffer_bulk_of_two(output, flagged ? SCRIPT_AT_FULL_MEMORY : "",
			   "return redis.call('SET', KEYS[1], '', 'PX', 1)");
	buffer_bulk_number(output, 1);
	space_write_key(change->space, change->shard, "wait", output);
}

/* Has the node wait behind the changes of this pass, if there are any. Without memory the
 * connection breaks, and the result is false. */
static bool append_waits(struct router *router, struct node *node)
{
	const struct eval *change = lasting_find(node->first);
	struct connection *connection = &node->connection;
	struct buffer *output = &router->output;

	if (!change)
		return true;
	node->wait.status = TW_OK;
	buffer_clear(output);
	mark_write(change, connection->flags, output);
	node->mark = (struct eval){.node = node, .asking = change->asking};
	node_owes(node, &node->mark);
	for (size_t i = 0; i < WAITS; i++) {
		if (!(connection->waits & waits[i].durability))
			continue;
		buffer_append_text(output, waits[i].command);
		buffer_bulk_number(output, wait_ms(router, node));
		node->waits[i] = (struct eval){.node = node};
		node_owes(node, &node->waits[i]);
	}
	if (!output->failed && connection_append(connection, output->data, output->size))
		return true;
	connection_break(connection, "out of memory", &node->failure);
	return false;
}

/* Writes the output of every node. The evals of a node that fails see that when they read. Returns
 * the time. */
static tw_duration flush_nodes(struct router *router)
{
	tw_duration now;

	for (size_t i = 0; i < router->map.count; i++) {
		struct node *node = router->map.nodes[i];

		/* The node was ready when they were queued, so it is connected. */
		if (!node->first || node->owed)
			continue;
		if (!node->connection.waits || append_waits(router, node))
			connection_write(&node->connection, &node->failure);
	}
	now = clock_read_real(CLOCK_MONOTONIC);
	for (size_t i = 0; i < router->map.count; i++)
		if (!router->map.nodes[i]->owed)
			router->map.nodes[i]->reply_by =
				time_add(now, router->settings->reply_timeout);
	return now;
}

/* Returns the node of "MOVED 3999 host:port", or NULL if it cannot be read or made. */
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
	return node_map_find_named(&router->map, from, address, (int)port);
}

static void follow_redirect(struct router *router, struct eval *eval, const char *text)
{
	struct node *target = redirect_target(router, eval->node, text);

	error_set(&router->error, TW_REDIS_UNREACHABLE, "redirected: %s", text);
	if (!target) {
		eval_stop(router, eval, TW_REDIS_UNREACHABLE);
		return;
	}
	eval->asking = starts_with(text, "ASK");
	eval->one_key = eval->asking && eval->node->connection.flags;
	eval->node = target;
	if (!eval->asking) {
		router->map.cluster = true;
		node_map_move(&router->map, space_slot(eval->space, eval->shard), target);
	}
	eval_wait(router, eval, ++eval->redirects > REDIRECTS_AT_ONCE);
}

static void take_error(struct router *router, struct eval *eval, const char *text)
{
	enum tw_status status;

	if (starts_with(text, "NOSCRIPT") && !eval->whole) {
		/* After SCRIPT FLUSH the server knows none of them. */
		eval->node->connection.scripts = 0;
		eval_wait(router, eval, false);
		return;
	}
	if (starts_with(text, "MOVED ") || starts_with(text, "ASK ")) {
		follow_redirect(router, eval, text);
		return;
	}
	status = server_error_status(text);
	error_set(&router->error, status, "%s%s",
		  status == TW_REDIS_UNFIT ? "the server does not run scripts (EVAL): " : "",
		  *text ? text : "an error without a message");
	if (status != TW_REDIS_UNREACHABLE) {
		eval_stop(router, eval, status);
		return;
	}
	/* Another server may be the master now: ask for the map, and connect again. */
	router->map.stale = router->map.cluster;
	eval->node->is_former |= server_error_is_read_only(text);
	eval->away = !starts_with(text, "TRYAGAIN") && !starts_with(text, "BUSY");
	eval_retry(router, eval);
}

/* Ends or retries an eval whose connection broke before the reply. */
static void lose_reply(struct router *router, struct eval *eval)
{
	router->map.stale = router->map.cluster;
	eval->away = true;
	if (eval->script->repeatable || !eval->node->connection.wrote)
		eval_retry(router, eval);
	else
		eval_stop(router, eval, TW_REDIS_OUTCOME_UNKNOWN);
}

/* Ends a change with what the waits behind it have said. */
static void end_held(struct router *router, struct eval *eval)
{
	const struct tw_redis_error *wait = &eval->node->wait;

	if (wait->status == TW_OK) {
		eval_end(eval, TW_OK, eval->reply);
		return;
	}
	freeReplyObject(eval->reply);
	eval->reply = NULL;
	router->error = *wait;
	if (wait->status == TW_REDIS_UNREACHABLE)
		lose_reply(router, eval);
	else
		eval_stop(router, eval, wait->status);
}

/* Returns whether the number of disks or replicas in the reply is not 0. */
static bool is_confirmed(const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements)
		reply = reply->element[0];
	return reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
}

/* Takes the reply to a wait, or NULL if the connection is broken. The held evals end after the
 * last one. */
static void take_wait(struct router *router, const struct eval *wait, const redisReply *reply)
{
	struct node *node = wait->node;
	const char *place = waits[wait - node->waits].place;

	if (!reply)
		node->wait = node->failure;
	else if (reply->type == REDIS_REPLY_ERROR)
		error_set(&node->wait, TW_REDIS_OUTCOME_UNKNOWN,
			  "the change is made, but not confirmed %s: %.150s", place, reply->str);
	else if (!is_confirmed(reply))
		error_set(&node->wait, TW_REDIS_OUTCOME_UNKNOWN,
			  "the change is made, but not confirmed %s within %lld ms", place,
			  (long long)wait_ms(router, node));
	while (node->first && node->first->stage == EVAL_HELD) {
		struct eval *eval = node->first;

		node->first = eval->next;
		end_held(router, eval);
	}
}

static void take_reply(struct router *router, struct eval *eval, redisReply *reply)
{
	if (!shape_fits(eval->script->shape, eval->answers, reply)) {
		freeReplyObject(reply);
		error_set(&router->error, TW_REDIS_FAILED,
			  "the script %s has replied what it never would", eval->script->name);
		eval_stop(router, eval, TW_REDIS_FAILED);
	} else if (eval->node->connection.waits && eval->script->lasting) {
		eval->reply = reply;
		node_append(eval->node, eval, EVAL_HELD);
	} else {
		eval_end(eval, TW_OK, reply);
	}
}

/* Takes the reply. NULL means that the connection is broken: each eval that was sent over it ends
 * with the reason. */
static void read_eval(struct router *router, struct eval *eval, redisReply *reply)
{
	if (eval == &router->map_eval) {
		eval->stage = EVAL_ENDED;
		node_map_read(&router->map, eval->node, reply);
		freeReplyObject(reply);
	} else if (eval == &eval->node->mark) {
		/* After an error the waits may be for nothing. */
		if (reply && reply->type == REDIS_REPLY_ERROR)
			error_set(&eval->node->wait, TW_REDIS_OUTCOME_UNKNOWN,
				  "the change is made, but not confirmed: %.150s", reply->str);
		freeReplyObject(reply);
	} else if (!eval->script) {
		take_wait(router, eval, reply);
		freeReplyObject(reply);
	} else if (!reply) {
		router->error = eval->node->failure;
		lose_reply(router, eval);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		take_error(router, eval, reply->str);
		freeReplyObject(reply);
	} else {
		take_reply(router, eval, reply);
	}
}

/* Returns the next reply that has come, or NULL. If the connection is closed, none will come. */
static redisReply *node_poll(struct node *node, tw_duration now)
{
	struct connection *connection = &node->connection;
	redisReply *reply = NULL;

	if (connection_is_open(connection))
		reply = connection_poll(connection, &node->failure);
	if (!reply && connection_is_open(connection) && now >= node->reply_by)
		connection_break(connection, "the reply timed out", &node->failure);
	return reply;
}

/* Takes the replies that have come from the node. Returns whether the node has paid all it owed. */
static bool read_node(struct router *router, struct node *node, tw_duration now)
{
	bool owed = node->first;

	while (node->first) {
		struct eval *eval = node->first;
		redisReply *reply = node_poll(node, now);

		if (!reply && connection_is_open(&node->connection))
			return false;
		node->reply_by = time_add(now, router->settings->reply_timeout);
		if (reply && eval->stage == EVAL_ASKED) {
			eval->stage = EVAL_SENT;
			freeReplyObject(reply);
			continue;
		}
		node->first = eval->next;
		read_eval(router, eval, reply);
	}
	return owed;
}

nfds_t router_descriptors(const struct router *router, struct pollfd *descriptors,
			  tw_duration *until)
{
	nfds_t count = 0;

	for (size_t i = 0; i < router->map.count; i++) {
		const struct node *node = router->map.nodes[i];

		if (!node->first)
			continue;
		descriptors[count++] = (struct pollfd){
			.fd = connection_descriptor(&node->connection), .events = POLLIN};
		*until = node->reply_by < *until ? node->reply_by : *until;
	}
	return count;
}

/* Waits until a node that owes replies sends something, at most until one of them is overdue.
 * Returns false if none owes any. */
static bool replies_wait(const struct router *router, tw_duration now, tw_duration until)
{
	struct pollfd descriptors[NODES_MAX];
	nfds_t count = router_descriptors(router, descriptors, &until);
	struct timespec time;
	tw_duration left = until - now;

	if (!count)
		return false;
	/* node_poll() has given up overdue replies. */
	assert(left > 0);
	time = (struct timespec){left / TW_SECOND, left % TW_SECOND};
	ppoll(descriptors, count, &time, NULL);
	return true;
}

/* A server that can only be read from may be a former master: its address is looked up again. */
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

bool router_is_free(const struct router *router, unsigned slot)
{
	const struct node *node = router->map.nodes[router->map.slots[slot]];

	return !node->first && !node->connecting;
}

tw_duration router_pass_end(const struct router *router, const struct eval *evals)
{
	bool is_short = router->map.count > 1 || (router->settings->durability && evals);

	return is_short ? clock_read_real(CLOCK_MONOTONIC) + pass_most : TW_FOREVER;
}

bool router_pass(struct router *router, struct eval *evals, tw_duration until)
{
	bool sends = evals;
	struct eval *next;
	bool any = false;
	tw_duration now;

	node_map_begin(&router->map);
	send_map_eval(router);
	for (; evals; evals = next) {
		next = evals->next;
		any |= send_eval(router, evals);
	}
	now = flush_nodes(router);
	for (bool again = true;; again = sends) {
		for (size_t i = 0; i < router->map.count; i++)
			any |= read_node(router, router->map.nodes[i], now);
		if (!again || now >= until || !replies_wait(router, now, until))
			break;
		now = clock_read_real(CLOCK_MONOTONIC);
	}
	close_former(router);
	return any;
}
