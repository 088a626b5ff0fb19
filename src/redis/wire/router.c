/* SPDX-License-Identifier: MIT */
/*
 * router.c runs evals. Each waits in the queue of its slot's node until a thread leads the node.
 * The leader connects the node if needed, sends all that is queued, reads the replies, and leaves.
 * It may block, and only callers that need the node wait. Then another thread with evals there
 * leads, so more threads share more round trips.
 *
 * Invariants:
 *  - The lock guards everything, except that a leader alone uses the connection of its node, and
 *    the evals that it has taken from the queue, while it has let the lock go.
 *  - A node with a queue has a leader, or a thread that was woken to lead it, or each thread with
 *    evals there leads another node and looks at its other evals after that.
 *
 * Most evals end with their reply. Others are sent again:
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
 * Where durability is asked for, a leader that has sent changes has the node wait behind them
 * (WAITAOF, WAIT), once for all callers. A change whose reply has come ends after the waits have
 * replied. What they do not confirm in time ends with TW_REDIS_OUTCOME_UNKNOWN. A server waits for
 * what the same connection has changed last. An eval that is repeated over a new one may find its
 * change made and change nothing, so there is a change of the leader's own before the waits, the
 * mark. Without it they confirm nothing.
 *
 * The map of a cluster is asked for by the next leader after it was found stale. A thread whose
 * evals pause, because their node is away, leads another node for that alone.
 */
#include "router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "shape.h"

enum { REDIRECTS_AT_ONCE = 2 };
static const tw_duration pause_first = 10 * TW_MILLISECOND;
static const tw_duration pause_max = 400 * TW_MILLISECOND;
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

/* Wakes a thread that waits for the caller, if there is one. */
static void caller_wake(struct caller *caller)
{
	if (caller->waiting)
		pthread_cond_signal(&caller->wake);
}

static void eval_end(struct eval *eval, enum tw_status status)
{
	struct caller *caller = eval->caller;

	eval->stage = EVAL_ENDED;
	eval->status = status;
	caller->left--;
	if (caller->ended)
		caller->ended(caller->context);
	else if (!caller->left)
		caller_wake(caller);
}

static void eval_stop(struct router *router, struct eval *eval, enum tw_status status)
{
	*eval->error = router->error;
	eval_end(eval, status);
}

/* Sends the eval to its node, or to that of its slot. */
static void eval_send(struct router *router, struct eval *eval)
{
	struct node *node = eval->node;

	/* To compute a slot takes as long as to write the request. */
	if (!node && router->map.count == 1)
		node = router->map.nodes[0];
	if (!node)
		node = node_map_of_slot(&router->map, space_slot(eval->space, eval->shard));
	node_queue(node, eval);
}

/* Has the eval sent again after a pause. */
static void eval_pause(struct router *router, struct eval *eval)
{
	eval->pause = !eval->pause              ? pause_first
		      : eval->pause < pause_max ? 2 * eval->pause
						: eval->pause;
	eval->retry_at = clock_read_real(CLOCK_MONOTONIC) + eval->pause;
	eval->stage = EVAL_PAUSED;
	if (eval->retry_at > eval->deadline)
		eval_stop(router, eval, TW_REDIS_UNREACHABLE);
	else
		caller_wake(eval->caller);
}

/* Has the eval sent after a pause, to the node that has its slot then. */
static void eval_retry(struct router *router, struct eval *eval)
{
	eval->node = NULL;
	eval->asking = eval->one_key = false;
	eval_pause(router, eval);
}

/* Ends or retries an eval whose node is not connected. */
static void eval_fail(struct router *router, struct eval *eval)
{
	const struct tw_redis_error *failure = &eval->node->failure;

	router->error = *failure;
	router->map.stale = router->map.cluster;
	eval->away = true;
	if (failure->status == TW_REDIS_UNREACHABLE)
		eval_retry(router, eval);
	else
		eval_stop(router, eval, failure->status);
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
	if (++eval->redirects > REDIRECTS_AT_ONCE)
		eval_pause(router, eval);
	else
		eval_send(router, eval);
}

static void take_error(struct router *router, struct eval *eval, const char *text)
{
	enum tw_status status;

	if (starts_with(text, "NOSCRIPT") && !eval->whole) {
		/* After SCRIPT FLUSH the server knows none of them. */
		eval->node->connection.scripts = 0;
		eval_send(router, eval);
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
	eval->node->former |= server_error_is_read_only(text);
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
static void take_wait(struct router *router, struct eval *eval, const struct tw_redis_error *wait)
{
	if (wait->status == TW_OK) {
		eval_end(eval, TW_OK);
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

/* Takes the reply that the leader has put into the eval. Without one the connection is broken.
 * Returns whether the eval is a change that is done, so that it may have to be waited for. */
static bool take_reply(struct router *router, struct eval *eval)
{
	redisReply *reply = eval->reply;

	if (!eval->sent) {
		error_set(&router->error, TW_NO_MEMORY, "out of memory");
		eval_stop(router, eval, TW_NO_MEMORY);
		return false;
	}
	if (reply && reply->type != REDIS_REPLY_ERROR &&
	    shape_fits(eval->script->shape, eval->answers, reply))
		return true;
	eval->reply = NULL;
	if (!reply) {
		router->error = eval->node->failure;
		lose_reply(router, eval);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		take_error(router, eval, reply->str);
	} else {
		error_set(&router->error, TW_REDIS_FAILED,
			  "the script %s has replied what it never would", eval->script->name);
		eval_stop(router, eval, TW_REDIS_FAILED);
	}
	freeReplyObject(reply);
	return false;
}

/* Appends the eval to what is written. Without memory the others are sent. */
static void append_eval(struct eval *eval)
{
	struct connection *connection = &eval->node->connection;
	struct buffer *output = &connection->output;
	size_t before = output->size;

	eval->whole = !(connection->scripts & eval->script->bit);
	if (eval->asking)
		buffer_append_text(output, asking);
	eval_write(eval, connection->flags, output);
	eval->sent = !output->failed;
	if (!eval->sent) {
		output->size = before;
		output->failed = false;
		return;
	}
	connection->scripts |= eval->script->bit;
}

/* Returns how long a node may wait for its disk or a replica, half as long for each of both. It
 * replies before the connection is given up. */
static int64_t wait_ms(const struct router *router, enum tw_redis_durability durability)
{
	int64_t ms = router->settings->reply_timeout / TW_MILLISECOND * 3 / 4;

	if (durability == TW_REDIS_DURABLE_BOTH)
		ms /= 2;
	return ms > 1 ? ms : 1;
}

/* Returns one of the evals whose change is waited for, or NULL. One in a slot that is moving is the
 * last choice, because its keys may move between the change and the mark. */
static const struct eval *lasting_find(const struct eval *eval)
{
	const struct eval *found = NULL;

	for (; eval; eval = eval->next)
		if (eval->sent && eval->script->lasting && (!found || found->asking))
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

/* Has the node wait behind the change. Without memory the connection breaks. */
static void append_waits(const struct router *router, struct node *node, const struct eval *change)
{
	struct connection *connection = &node->connection;
	struct buffer *output = &connection->output;

	mark_write(change, connection->flags, output);
	for (size_t i = 0; i < WAITS; i++) {
		if (!(connection->waits & waits[i].durability))
			continue;
		buffer_append_text(output, waits[i].command);
		buffer_bulk_number(output, wait_ms(router, connection->waits));
	}
	if (output->failed)
		connection_break(connection, "out of memory", &node->failure);
}

/* Returns the node's next reply, or NULL if the connection is broken. */
static redisReply *node_read(struct node *node)
{
	if (!connection_is_open(&node->connection))
		return NULL;
	return connection_read(&node->connection, &node->failure);
}

/* Returns whether the number of disks or replicas in the reply is not 0. */
static bool is_confirmed(const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements)
		reply = reply->element[0];
	return reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
}

/* Reads the replies to the mark and the waits. *result becomes TW_OK, or says why the changes are
 * not confirmed. */
static void read_waits(const struct router *router, struct node *node, bool asked,
		       enum tw_redis_durability durability, struct tw_redis_error *result)
{
	redisReply *reply;

	result->status = TW_OK;
	if (asked)
		freeReplyObject(node_read(node));
	reply = node_read(node);
	/* After an error the waits may be for nothing. */
	if (reply && reply->type == REDIS_REPLY_ERROR)
		error_set(result, TW_REDIS_OUTCOME_UNKNOWN,
			  "the change is made, but not confirmed: %.150s", reply->str);
	freeReplyObject(reply);
	for (size_t i = 0; i < WAITS; i++) {
		if (!(durability & waits[i].durability))
			continue;
		reply = node_read(node);
		if (!reply)
			*result = node->failure;
		else if (reply->type == REDIS_REPLY_ERROR)
			error_set(result, TW_REDIS_OUTCOME_UNKNOWN,
				  "the change is made, but not confirmed %s: %.150s",
				  waits[i].place, reply->str);
		else if (!is_confirmed(reply))
			error_set(result, TW_REDIS_OUTCOME_UNKNOWN,
				  "the change is made, but not confirmed %s within %lld ms",
				  waits[i].place, (long long)wait_ms(router, durability));
		freeReplyObject(reply);
	}
}

static struct eval *queue_take(struct node *node)
{
	struct eval *evals = node->queue;

	node->queue = NULL;
	node->last = &node->queue;
	return evals;
}

/* Writes the evals, after a request for the map if `maps`, and has the node wait behind changes.
 * Returns one of the changes that it waits for, or NULL. */
static const struct eval *exchange_write(const struct router *router, struct node *node,
					 struct eval *evals, bool maps)
{
	static const char map_request[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";
	struct connection *connection = &node->connection;
	const struct eval *change;

	connection->wrote = false;
	if (maps)
		buffer_append_text(&connection->output, map_request);
	for (struct eval *eval = evals; eval; eval = eval->next)
		append_eval(eval);
	change = connection->waits ? lasting_find(evals) : NULL;
	if (change)
		append_waits(router, node, change);
	if (connection_is_open(connection) && connection->output.size)
		connection_write(connection, &node->failure);
	return change;
}

/* Takes the replies. Returns the changes that are done, if they are waited for. */
static struct eval *exchange_take(struct router *router, struct eval *evals, bool waited)
{
	struct eval *held = NULL;
	struct eval *next;

	for (; evals; evals = next) {
		next = evals->next;
		if (!take_reply(router, evals))
			continue;
		if (!waited || !evals->script->lasting) {
			eval_end(evals, TW_OK);
			continue;
		}
		evals->next = held;
		held = evals;
	}
	return held;
}

/* Runs what is queued at a connected node. The lock is held, except while it waits. */
static void exchange(struct router *router, struct node *node)
{
	bool maps = router->map.cluster && router->map.stale;
	struct eval *evals = queue_take(node);
	enum tw_redis_durability durability = node->connection.waits;
	const struct eval *change;
	struct tw_redis_error wait;
	redisReply *map = NULL;
	struct eval *next;
	bool waited;
	bool asked;

	router->map.stale &= !maps;
	pthread_mutex_unlock(&router->lock);
	change = exchange_write(router, node, evals, maps);
	waited = change;
	asked = change && change->asking;
	if (maps)
		map = node_read(node);
	for (struct eval *eval = evals; eval; eval = eval->next) {
		if (eval->sent && eval->asking)
			freeReplyObject(node_read(node));
		if (eval->sent)
			eval->reply = node_read(node);
	}
	pthread_mutex_lock(&router->lock);
	if (maps)
		node_map_read(&router->map, node, map);
	freeReplyObject(map);
	evals = exchange_take(router, evals, waited);
	if (!waited)
		return;
	pthread_mutex_unlock(&router->lock);
	read_waits(router, node, asked, durability, &wait);
	pthread_mutex_lock(&router->lock);
	for (; evals; evals = next) {
		next = evals->next;
		take_wait(router, evals, &wait);
	}
}

/* Connects the node that the caller leads, unless it is connected, or not `connects`. Returns
 * whether it is connected. The lock is held, except while it connects. */
static bool lead_connected(struct router *router, struct node *node, bool connects)
{
	struct address found;
	enum tw_status status;

	if (!node->former && !connection_is_lost(&node->connection))
		return true;
	node->former = false;
	connection_close(&node->connection);
	if (!connects || clock_read_real(CLOCK_MONOTONIC) < node->retry_at)
		return false;
	found = node->address;
	pthread_mutex_unlock(&router->lock);
	status = node_connect(node, router->settings, &found);
	node->failure.status = status;
	pthread_mutex_lock(&router->lock);
	node->address = found;
	node_note_attempt(&router->map, node, status);
	return status == TW_OK;
}

/* Wakes a thread for each node that has evals to send and no leader. */
static void nodes_offer(struct router *router)
{
	for (size_t i = 0; i < router->map.count; i++) {
		const struct node *node = router->map.nodes[i];
		const struct eval *eval = node->led ? NULL : node->queue;

		while (eval && !eval->caller->waiting)
			eval = eval->next;
		if (eval)
			pthread_cond_signal(&eval->caller->wake);
	}
}

/* Leads the node once. If it is not connected, evals wait for another leader unless `connects`. */
static void lead(struct router *router, struct node *node, bool connects)
{
	node->led = true;
	/* This thread may have been woken for another node, too. */
	nodes_offer(router);
	if (lead_connected(router, node, connects)) {
		exchange(router, node);
	} else if (connects) {
		struct eval *next;

		for (struct eval *eval = queue_take(node); eval; eval = next) {
			next = eval->next;
			eval_fail(router, eval);
		}
	}
	node->open = connection_is_open(&node->connection);
	node->led = false;
	nodes_offer(router);
}

bool router_serve(struct router *router)
{
	struct node *node = NULL;

	for (size_t i = 0; i < router->map.count && !node; i++)
		if (router->map.nodes[i]->queue && !router->map.nodes[i]->led)
			node = router->map.nodes[i];
	if (!node)
		node = node_map_find_teller(&router->map);
	if (node)
		lead(router, node, true);
	return node;
}

void router_post(struct router *router, struct caller *caller, struct eval *evals)
{
	struct node *only = router->map.nodes[0];
	struct eval *next;

	pthread_mutex_lock(&router->lock);
	for (; evals; evals = next) {
		next = evals->next;
		evals->caller = caller;
		evals->deadline = 0;
		caller->left++;
		eval_send(router, evals);
	}
	/* A thread less takes part where no other node waits, and nothing takes long. */
	if (router->map.count == 1 && only->open && !only->led && !router->settings->durability)
		lead(router, only, false);
	else
		nodes_offer(router);
	pthread_mutex_unlock(&router->lock);
}

bool router_is_free(struct router *router, unsigned slot)
{
	const struct node *node = node_map_of_slot(&router->map, slot);

	return !node->led && !node->queue;
}

/* Returns the node that the caller of these evals is to lead now, or NULL; *until becomes the time
 * of the next try. */
static struct node *caller_find_node(struct router *router, struct eval *evals, size_t count,
				     tw_duration *until)
{
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	struct node *needed = NULL;

	*until = TW_FOREVER;
	for (size_t i = 0; i < count && !needed; i++) {
		struct eval *eval = &evals[i];

		if (eval->stage == EVAL_PAUSED && eval->retry_at <= now)
			eval_send(router, eval);
		if (eval->stage == EVAL_QUEUED && !eval->node->led)
			needed = eval->node;
		if (eval->stage == EVAL_PAUSED && eval->retry_at < *until)
			*until = eval->retry_at;
	}
	/* Another node may know where the slot is by now. */
	if ((needed && !needed->open) || (!needed && *until < TW_FOREVER)) {
		struct node *teller = node_map_find_teller(&router->map);

		return teller ? teller : needed;
	}
	return needed;
}

void router_run(struct router *router, struct eval *evals, size_t count)
{
	tw_duration patience = router->settings->patience;
	tw_duration deadline =
		time_add(clock_read_real(CLOCK_MONOTONIC), patience > 0 ? patience : 0);
	struct caller caller = {.left = count};
	bool has_waited = false;

	pthread_mutex_lock(&router->lock);
	router->callers++;
	for (size_t i = 0; i < count; i++) {
		evals[i].caller = &caller;
		evals[i].deadline = deadline;
		eval_send(router, &evals[i]);
	}
	while (caller.left) {
		tw_duration until;
		struct node *node = caller_find_node(router, evals, count, &until);

		if (node) {
			lead(router, node, true);
			continue;
		}
		if (!has_waited)
			condition_init(&caller.wake);
		has_waited = true;
		caller.waiting++;
		condition_wait(&caller.wake, &router->lock, until);
		caller.waiting--;
	}
	router->callers--;
	pthread_mutex_unlock(&router->lock);
	if (has_waited)
		pthread_cond_destroy(&caller.wake);
}

/* Connects to the first server that can be reached, which has all slots unless it knows better. */
static enum tw_status first_connect(struct router *router, struct tw_redis_error *error)
{
	const struct settings *settings = router->settings;
	enum tw_status status = TW_REDIS_UNREACHABLE;

	/* All Sentinels together are one node. */
	for (size_t i = 0; i < (settings->master ? 1 : settings->address_count); i++) {
		const struct address *address = &settings->addresses[i];
		struct node *node = node_map_find(&router->map, address->host, address->port);

		if (!node)
			return error_set(error, TW_NO_MEMORY, "out of memory");
		for (unsigned slot = 0; slot < SLOTS; slot++)
			node_map_move(&router->map, slot, node);
		lead(router, node, true);
		if (!node->backoff)
			return TW_OK;
		status = error_set(error, node->failure.status, "%s", node->failure.text);
		if (status != TW_REDIS_UNREACHABLE)
			break;
	}
	return status;
}

void router_init(struct router *router, const struct settings *settings)
{
	memset(router, 0, sizeof(*router));
	router->settings = settings;
	pthread_mutex_init(&router->lock, NULL);
}

enum tw_status router_open(struct router *router, struct tw_redis_error *error)
{
	enum tw_status status;

	pthread_mutex_lock(&router->lock);
	status = first_connect(router, error);
	if (status == TW_OK && router->map.cluster && router->settings->database)
		status = error_set(error, TW_INVALID, "a cluster has only database 0");
	pthread_mutex_unlock(&router->lock);
	return status;
}

void router_close(struct router *router)
{
	node_map_close(&router->map);
	pthread_mutex_destroy(&router->lock);
}
