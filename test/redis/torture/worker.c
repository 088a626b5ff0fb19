/* SPDX-License-Identifier: MIT */
/*
 * There are two worker processes. One is a tw_redis_worker, whose hook reports ends. The other
 * claims and acknowledges by single calls, one job at a time and without extending leases, so that
 * long runs are overtaken.
 */
#include "torture.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <pthread.h>

#include "history.h"
#include "support/sockets.h"
#include "support/wait.h"

enum { HANDLERS = 24, BATCH = 20, BY_HAND = 12 };
static const int64_t again = 50 * TW_MILLISECOND;

/* Runs the job as its body says. Returns the outcome. */
static enum tw_redis_outcome job_run(const struct part *part, const struct tw_redis_job *job,
				     struct plan *plan)
{
	int key_size = (int)job->key_size;
	const char *key = job->key;
	enum tw_redis_outcome outcome = TW_REDIS_DONE;

	if (!plan_read(plan, job->body, job->body_size))
		*plan = (struct plan){.id = "?"};
	history_write(part->name, "begin %.*s %s %" PRIu64 " %u %" PRId64, key_size, key, plan->id,
		      job->token, job->attempt, job->due_ms);
	wait_for(plan->takes_ms * TW_MILLISECOND);
	if (plan->kind == PLAN_KILL)
		outcome = TW_REDIS_KILL;
	else if (plan->kind == PLAN_FAIL || (plan->kind == PLAN_RETRY && job->attempt == 1))
		outcome = TW_REDIS_RETRY;
	history_write(part->name, "end %.*s %s %" PRIu64, key_size, key, plan->id, job->token);
	return outcome;
}

static enum tw_redis_outcome handle(void *context, const struct tw_redis_job *job,
				    struct tw_redis_verdict *verdict)
{
	struct plan plan;
	enum tw_redis_outcome outcome = job_run(context, job, &plan);

	verdict->retry_in = plan.wait_ms * TW_MILLISECOND;
	return outcome;
}

static void report(void *context, const struct tw_redis_report *report)
{
	static const char *const names[] = {
		[TW_REDIS_END_DONE] = "done",         [TW_REDIS_END_RETRIED] = "retried",
		[TW_REDIS_END_DEAD] = "dead",         [TW_REDIS_END_STALE] = "stale",
		[TW_REDIS_END_RELEASED] = "released", [TW_REDIS_END_UNCONFIRMED] = "unconfirmed"};
	const struct tw_redis_job *job = report->job;
	const struct part *part = context;
	struct plan plan = {.id = "?"};

	plan_read(&plan, job->body, job->body_size);
	history_write(part->name, "report %.*s %s %" PRIu64 " %s %" PRId64, (int)job->key_size,
		      (const char *)job->key, plan.id, job->token, names[report->end],
		      report->retry_in / TW_MILLISECOND);
}

int worker_main(const struct part *part)
{
	struct tw_redis_options redis = part_options(part);
	struct tw_redis_worker_options options = {
		.context = (void *)(uintptr_t)part,
		.handler = handle,
		.report = report,
		.handlers = HANDLERS,
		.batch = BATCH,
		.lease = LEASE_MS * TW_MILLISECOND,
		.poll = 200 * TW_MILLISECOND,
	};
	struct tw_redis_worker *worker;

	signal_block();
	history_open(part->folder, part->name);
	/* Redis may be down now. */
	while (tw_redis_worker_start(&worker, &redis, &options, NULL) != TW_OK)
		wait_for(again);
	signal_await();
	(void)tw_redis_worker_stop(worker, TW_FOREVER);
	(void)tw_redis_worker_destroy(worker);
	return 0;
}

/* ---- By hand ---- */

static atomic_bool is_over;

struct hand {
	const struct part *part;
	struct tw_redis *redis;
	pthread_t thread;
};

static void end_job(const struct hand *hand, const struct tw_redis_job *job,
		    const struct plan *plan, enum tw_redis_outcome outcome)
{
	const struct tw_redis_verdict verdict = {.retry_in = plan->wait_ms * TW_MILLISECOND,
						 .reason = "as planned"};
	bool is_last = outcome == TW_REDIS_KILL || job->attempt >= job->max_attempts;
	const char *end = outcome == TW_REDIS_DONE ? "done" : is_last ? "dead" : "retried";
	enum tw_status answer = TW_OK;
	enum tw_status status = tw_redis_finish(hand->redis, job, 1, outcome, &verdict, &answer);

	if (status != TW_OK)
		end = "unconfirmed";
	else if (answer != TW_OK)
		end = "stale";
	history_write(hand->part->name, "exact %.*s %s %" PRIu64 " %s %d", (int)job->key_size,
		      (const char *)job->key, plan->id, job->token, end, plan->wait_ms);
}

static void *hand_run(void *argument)
{
	const struct hand *hand = argument;

	/* relaxed: a flag alone, orders nothing */
	for (unsigned i = 0; !atomic_load_explicit(&is_over, memory_order_relaxed); i++) {
		struct tw_redis_batch *batch = NULL;

		if (tw_redis_claim(hand->redis, i % tw_redis_shard_count(hand->redis), 1,
				   LEASE_MS * TW_MILLISECOND, &batch, NULL) == TW_OK &&
		    batch->count) {
			const struct tw_redis_job *job = batch->jobs;
			struct plan plan;
			enum tw_redis_outcome outcome = job_run(hand->part, job, &plan);

			end_job(hand, job, &plan, outcome);
		} else {
			wait_for(again);
		}
		tw_redis_batch_free(batch);
	}
	return NULL;
}

int hand_main(const struct part *part)
{
	struct tw_redis_options options = part_options(part);
	struct hand hands[BY_HAND];
	struct tw_redis *redis;

	signal_block();
	history_open(part->folder, part->name);
	while (tw_redis_open(&redis, &options, NULL) != TW_OK)
		wait_for(again);
	for (int i = 0; i < BY_HAND; i++) {
		hands[i] = (struct hand){.part = part, .redis = redis};
		if (pthread_create(&hands[i].thread, NULL, hand_run, &hands[i]))
			support_failed("pthread_create");
	}
	signal_await();
	/* relaxed: a flag alone, orders nothing */
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	for (int i = 0; i < BY_HAND; i++)
		pthread_join(hands[i].thread, NULL);
	tw_redis_close(redis);
	return 0;
}
