/* SPDX-License-Identifier: MIT */
/*
 * worker_nodes.c has the threads that lead nodes (router.c), as many as there are nodes, and
 * notifies the program when Redis is away. If a thread can't be started the others do its work.
 *
 * The worker is in trouble from a step that failed until that step succeeds. The successes of other
 * shards or scripts do not end it. If the node was away, any step of that shard ends it. One
 * trouble is reported at a time, and again when its reason changes. A script that fails is no
 * trouble, because the others go on.
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

/* Notes a step with its error, or one that has `failed` not. Returns whether that is news: the
 * trouble begins, has another reason, or ends. A lease that could not be extended may not come
 * again, so any step of the shard ends the trouble. */
static bool trouble_note(struct trouble *trouble, const struct step *step, bool failed,
			 const struct tw_redis_error *error)
{
	bool own = trouble->step == step ||
		   (trouble->step && trouble->of_shard && trouble->step->shard == step->shard);

	if (!failed) {
		own = own && step->eval.status == TW_OK;
		trouble->step = own ? NULL : trouble->step;
		return own;
	}
	if (trouble->step && (!own || !strcmp(error->text, trouble->error.text)))
		return false;
	trouble->step = step;
	trouble->of_shard = step->eval.away || step->kind == STEP_EXTEND;
	trouble->error = *error;
	return true;
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

void worker_note_step(struct tw_redis_worker *worker, struct step *step)
{
	const struct source *source = step->shard->source;
	enum tw_status status = step->eval.status;
	bool away = step->eval.away;
	/* A moving slot, for example, is no loss. */
	bool lost =
		status != TW_OK && (away || status == TW_REDIS_REFUSED || status == TW_REDIS_UNFIT);
	/* The script did, or the wait behind its change. */
	bool failed = status == TW_REDIS_FAILED || (status == TW_REDIS_OUTCOME_UNKNOWN && !away);
	bool was_lost = worker->trouble.step;
	struct tw_redis_error error = {0};

	step->error.status = status;
	if (failed)
		error_set(&error, status, "namespace %s, shard %u: %s", source->redis->space.name,
			  step->shard->number, step->error.text);
	if (trouble_note(&worker->failure, step, failed, &error) && failed)
		worker_notice(worker, &error);
	if (!trouble_note(&worker->trouble, step, lost, &step->error))
		return;
	worker->stats.losses += lost && !was_lost;
	worker->stats.reconnects += !lost;
	connection_tell(worker, lost ? &step->error : NULL);
}
