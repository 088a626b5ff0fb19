/* SPDX-License-Identifier: MIT */
/*
 * worker_nodes.c has the threads that lead nodes (router.c), as many as there are nodes, and
 * notifies the program when Redis is away. If a thread can't be started the others do its work.
 *
 * The worker is in trouble from a step that failed until that step succeeds. The successes of other
 * nodes or scripts do not end it. If the node was away, any step of that node ends it. One trouble
 * is reported at a time, and again when its reason changes. A script that fails is no trouble,
 * because the others go on.
 */
#include "worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

struct leader {
	struct thread thread;
	struct leader *next;
};

static void *leader_run(void *argument)
{
	struct tw_redis_worker *worker = argument;
	struct router *router = worker->router;
	struct caller *caller = &worker->caller;

	pthread_mutex_lock(&router->lock);
	while (!worker->leaders_end) {
		if (router_serve(router))
			continue;
		caller->waiting++;
		condition_wait(&caller->wake, &router->lock, TW_FOREVER);
		caller->waiting--;
	}
	pthread_mutex_unlock(&router->lock);
	return NULL;
}

static bool leader_start(struct tw_redis_worker *worker)
{
	struct leader *leader = calloc(1, sizeof(*leader));

	if (!leader || thread_start(&leader->thread, leader_run, worker, "redis", "node", NULL)) {
		free(leader);
		return false;
	}
	leader->next = worker->leaders;
	worker->leaders = leader;
	worker->leader_count++;
	return true;
}

/* The router's lock is held. */
static void step_has_ended(void *context)
{
	struct tw_redis_worker *worker = context;

	if (!worker->rung)
		mailbox_ring(&worker->mailbox);
	worker->rung = true;
}

bool leaders_begin(struct tw_redis_worker *worker)
{
	worker->caller = (struct caller){.ended = step_has_ended, .context = worker};
	condition_init(&worker->caller.wake);
	if (leader_start(worker))
		return true;
	pthread_cond_destroy(&worker->caller.wake);
	return false;
}

void leaders_post(struct tw_redis_worker *worker, struct eval *evals)
{
	struct router *router = worker->router;
	size_t nodes;

	pthread_mutex_lock(&router->lock);
	nodes = router->map.count;
	/* The main thread looks at the steps again in this turn. */
	worker->rung = true;
	pthread_mutex_unlock(&router->lock);
	router_post(router, &worker->caller, evals);
	while (worker->leader_count < nodes && leader_start(worker))
		continue;
}

void leaders_end(struct tw_redis_worker *worker)
{
	struct leader *leader;

	eventfd_write(worker->router->settings->stop, 1);
	pthread_mutex_lock(&worker->router->lock);
	worker->leaders_end = true;
	pthread_cond_broadcast(&worker->caller.wake);
	pthread_mutex_unlock(&worker->router->lock);
	while ((leader = worker->leaders)) {
		worker->leaders = leader->next;
		pthread_join(leader->thread.id, NULL);
		free(leader);
	}
	pthread_cond_destroy(&worker->caller.wake);
}

static const struct node *step_node(const struct tw_redis_worker *worker, const struct step *step)
{
	struct router *router = worker->router;
	const struct node *node;

	pthread_mutex_lock(&router->lock);
	node = node_map_of_slot(&router->map, space_slot(step->eval.space, step->eval.shard));
	pthread_mutex_unlock(&router->lock);
	return node;
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
static void trouble_set(struct trouble *trouble, const struct step *step,
			const struct tw_redis_error *error)
{
	trouble->step = step;
	trouble->of_node = step->eval.away || step->kind == STEP_EXTEND;
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
		  source->redis->space.name, step->shard->number, step->error.text);
	if (own && !strcmp(error.text, failure->error.text))
		return;
	trouble_set(failure, step, &error);
	worker_notice(worker, &error);
}

/* Reports that Redis is away, again when the reason changes, and that it is back. */
static void loss_note(struct tw_redis_worker *worker, const struct step *step)
{
	const struct eval *eval = &step->eval;
	const struct tw_redis_error *error = &step->error;
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
		trouble_set(trouble, step, error);
		connection_tell(worker, error);
	}
}

void worker_note_step(struct tw_redis_worker *worker, struct step *step)
{
	step->error.status = step->eval.status;
	failure_note(worker, step);
	loss_note(worker, step);
}
