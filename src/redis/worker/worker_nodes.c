/* SPDX-License-Identifier: MIT */
/*
 * worker_nodes.c connects the nodes that steps wait for, each on a thread of its own (dial.h), and
 * notifies the program when Redis is away.
 *
 * The worker is in trouble from a step that failed until that step succeeds. The successes of other
 * nodes or scripts do not end it. If the node was away, any step of that node ends it. One trouble
 * is reported at a time, and again when its reason changes. A script that fails is no trouble,
 * because the others go on.
 */
#include "worker.h"

#include <stdlib.h>
#include <string.h>

/* A node dial connects one node. */
struct node_dial {
	struct list link;
	struct node *node;
	struct dial dial;
};

static void dial_take_node(struct tw_redis_worker *worker, struct node *node,
			   const struct attempt *attempt)
{
	node->connecting = false;
	node_take_attempt(&worker->router->map, node, attempt);
	for (struct list *at = worker->asked.next; at != &worker->asked; at = at->next) {
		struct eval *eval = &list_entry(at, struct step, link)->eval;

		if (eval->needs == node)
			router_settle(worker->router, eval);
	}
}

bool nodes_take(struct tw_redis_worker *worker)
{
	struct list *next;
	bool any = false;

	for (struct list *at = worker->dials.next; at != &worker->dials; at = next) {
		struct node_dial *dial = list_entry(at, struct node_dial, link);

		next = at->next;
		if (!dial_take(&dial->dial))
			continue;
		list_remove(at);
		dial_take_node(worker, dial->node, &dial->dial.attempt);
		free(dial);
		any = true;
	}
	return any;
}

static void node_connect_beside(struct tw_redis_worker *worker, struct node *node)
{
	struct node_dial *dial = calloc(1, sizeof(*dial));

	if (!dial) {
		struct attempt none = {.address = node->address, .status = TW_NO_MEMORY};

		error_set(&none.error, TW_NO_MEMORY, "out of memory");
		dial_take_node(worker, node, &none);
		return;
	}
	node->connecting = true;
	dial->node = node;
	list_append(&worker->dials, &dial->link);
	dial_begin(&dial->dial, worker->router->settings, &node->address, 0, NULL,
		   &worker->mailbox);
}

void nodes_connect(struct tw_redis_worker *worker)
{
	for (struct list *at = worker->asked.next; at != &worker->asked; at = at->next) {
		struct node *node = list_entry(at, struct step, link)->eval.needs;

		if (node && !node->connecting)
			node_connect_beside(worker, node);
	}
}

void nodes_end(struct tw_redis_worker *worker)
{
	struct list *link;

	while ((link = list_take_first(&worker->dials))) {
		struct node_dial *dial = list_entry(link, struct node_dial, link);

		dial_end(&dial->dial);
		free(dial);
	}
}

static struct node *step_node(const struct tw_redis_worker *worker, const struct step *step)
{
	return node_map_of_slot(&worker->router->map,
				space_slot(step->eval.space, step->eval.shard));
}

/* Returns whether the trouble is the step's or its node's. */
static bool is_trouble_of(const struct tw_redis_worker *worker, const struct trouble *trouble,
			  const struct step *step)
{
	return trouble->step == step ||
	       (trouble->step && trouble->of_node &&
		step_node(worker, trouble->step) == step_node(worker, step));
}

/* Notes the step's error. A lease that could not be extended may not come again, so any step of the
 * node ends the trouble. */
static void trouble_set(struct tw_redis_worker *worker, struct trouble *trouble,
			const struct step *step, const struct tw_redis_error *error)
{
	trouble->step = step;
	trouble->of_node = step->eval.away || step->kind == STEP_EXTEND ||
			   !connection_is_open(&step_node(worker, step)->connection);
	trouble->error = *error;
}

static void connection_tell(struct tw_redis_worker *worker, const struct tw_redis_error *error)
{
	pthread_mutex_lock(&worker->lock);
	worker->shown_error = error ? *error : (struct tw_redis_error){0};
	pthread_mutex_unlock(&worker->lock);
	if (worker->options.connection)
		worker->options.connection(worker->options.context, error);
}

void worker_notice(struct tw_redis_worker *worker, const struct tw_redis_error *error)
{
	if (worker->options.notice)
		worker->options.notice(worker->options.context, error);
}

/* Reports a step that failed, once while it fails for the same reason. */
static void failure_note(struct tw_redis_worker *worker, const struct step *step)
{
	const struct source *source = step->shard->source;
	struct trouble *failure = &worker->failure;
	bool own = is_trouble_of(worker, failure, step);
	/* The script did, or the wait behind its change. */
	bool failed = step->eval.status == TW_REDIS_FAILED ||
		      (step->eval.status == TW_REDIS_OUTCOME_UNKNOWN && !step->eval.away);
	struct tw_redis_error error;

	if (step->eval.status == TW_OK && own)
		failure->step = NULL;
	if (!failed || (failure->step && !own))
		return;
	error_set(&error, step->eval.status, "namespace %s, shard %u: %s",
		  source->redis->space.name, step->shard->number, step->shard->error.text);
	if (own && !strcmp(error.text, failure->error.text))
		return;
	trouble_set(worker, failure, step, &error);
	worker_notice(worker, &error);
}

/* Reports that Redis is away, again when the reason changes, and that it is back. */
static void loss_note(struct tw_redis_worker *worker, const struct step *step)
{
	const struct eval *eval = &step->eval;
	const struct tw_redis_error *error = &step->shard->error;
	struct trouble *trouble = &worker->trouble;
	bool own = is_trouble_of(worker, trouble, step);

	if (eval->status == TW_OK) {
		if (!own)
			return;
		trouble->step = NULL;
		worker->stats.reconnects++;
		connection_tell(worker, NULL);
		/* A moving slot, for example, is no loss. */
	} else if (eval->away || eval->status == TW_REDIS_REFUSED ||
		   eval->status == TW_REDIS_UNFIT) {
		if (trouble->step && (!own || !strcmp(error->text, trouble->error.text)))
			return;
		worker->stats.losses += !trouble->step;
		trouble_set(worker, trouble, step, error);
		connection_tell(worker, error);
	}
}

void worker_note_step(struct tw_redis_worker *worker, struct step *step)
{
	step->shard->error.status = step->eval.status;
	failure_note(worker, step);
	loss_note(worker, step);
}
