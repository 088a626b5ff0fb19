/* SPDX-License-Identifier: MIT */

#include "worker.h"

#include <stdlib.h>

#include "base/xorshift.h"

static void extension_is_due(void *argument)
{
	struct batch *batch = argument;

	batch->extension.id = 0;
	batch_extend(batch);
}

void batch_extend(struct batch *batch)
{
	batch->extending = true;
	list_append(&batch->shard->leases, &batch->lease);
}

void batch_leased(struct batch *batch, tw_duration begun)
{
	struct tw_redis_worker *worker = batch->shard->source->worker;

	atomic_store_explicit(&batch->leased_until, begun + worker->options.lease,
			      memory_order_relaxed);
	batch->extending = false;
	if (tw_after_func(worker->wheel, worker->options.lease / 3, extension_is_due, batch,
			  &batch->extension) != TW_OK)
		batch_extend(batch);
}

/* Notes that a run of the batch has ended. The last one ends the extensions of the lease. */
static void batch_end_run(struct tw_redis_worker *worker, struct batch *batch)
{
	if (--batch->running)
		return;
	if (batch->extension.id)
		tw_timer_stop(worker->wheel, batch->extension);
	if (batch->extending)
		list_remove(&batch->lease);
}

void worker_take_run(struct tw_redis_worker *worker, struct run *run)
{
	struct feed *feed;

	worker->held++;
	run->shard->source->stats.held++;
	run->by_handler = !run->job->url;
	feed = &worker->feeds[run->by_handler];
	feed->pending++;
	if (run->fate == FATE_RUN && feed->slots && !worker->stopping) {
		run_list_add(&feed->fresh, run);
		return;
	}
	if (run->fate != FATE_RUN && run->fate < FATE_LATE)
		run_judge(run, TW_REDIS_KILL, "%s", fate_ending(run->fate)->reason);
	else if (run->fate == FATE_RUN && !feed->slots)
		run_judge(run, TW_REDIS_RETRY,
			  "the task has no callback, and this worker has no handler");
	else
		run->given_back = run->fate == FATE_RUN;
	worker_end_run(worker, run);
}

/* Returns the wait of a failed run. It doubles with each attempt, less a random part up to half. */
static tw_duration run_backoff(struct tw_redis_worker *worker, const struct run *run)
{
	tw_duration wait = worker->options.retry_first;

	for (unsigned i = 1; i < run->job->attempt && wait < worker->options.retry_max; i++)
		wait *= 2;
	if (wait > worker->options.retry_max)
		wait = worker->options.retry_max;
	/* Tasks that failed together should not come back together. */
	wait -= (tw_duration)(xorshift_next(&worker->random) % (uint64_t)(wait / 2 + 1));
	return wait > run->retry_least ? wait : run->retry_least;
}

/* Returns the wait of a run whose task is to run again. */
static tw_duration run_wait(struct tw_redis_worker *worker, const struct run *run)
{
	if (run->put_off || run->given_back)
		return run->put_off;
	if (run->verdict.retry_in > 0)
		return run->verdict.retry_in < TW_REDIS_DELAY_MAX ? run->verdict.retry_in
								  : TW_REDIS_DELAY_MAX;
	return run->outcome == TW_REDIS_SNOOZE ? worker->options.retry_first
					       : run_backoff(worker, run);
}

/* These are the verbs of finish.lua for the ends, and their counts. */
#define COUNT(field) offsetof(struct tw_redis_worker_stats, field)
static const struct {
	char verb;
	size_t count;
} ends[] = {
	[TW_REDIS_END_DONE] = {'d', COUNT(done)},
	[TW_REDIS_END_RETRIED] = {'w', COUNT(retried)},
	[TW_REDIS_END_DEAD] = {'k', COUNT(dead)},
	[TW_REDIS_END_STALE] = {'\0', COUNT(stale)},
	[TW_REDIS_END_RELEASED] = {'p', COUNT(released)},
	[TW_REDIS_END_UNCONFIRMED] = {'\0', COUNT(unconfirmed)},
	[TW_REDIS_END_SNOOZED] = {'r', COUNT(snoozed)},
	[END_PUT_OFF] = {'p', COUNT(put_off)},
};

static enum tw_redis_end run_end_of(const struct run *run)
{
	if (run->fate >= FATE_LATE)
		return run->fate == FATE_UNKNOWN ? END_PUT_OFF : END_PASSED;
	if (run->given_back)
		return run->put_off ? END_PUT_OFF : TW_REDIS_END_RELEASED;
	if (run->outcome == TW_REDIS_SNOOZE)
		return TW_REDIS_END_SNOOZED;
	if (run->outcome == TW_REDIS_DONE)
		return TW_REDIS_END_DONE;
	return run->outcome == TW_REDIS_RETRY && run->job->attempt < run->job->max_attempts
		       ? TW_REDIS_END_RETRIED
		       : TW_REDIS_END_DEAD;
}

/* Decides how the run ends. */
static void run_settle(struct tw_redis_worker *worker, struct run *run)
{
	struct ending *ending = &run->ending;

	run->end = run_end_of(run);
	if (run->fate >= FATE_LATE) {
		*ending = *fate_ending(run->fate);
		run->wait = ending->wait_ms * TW_MILLISECOND;
		return;
	}
	ending->reason = run->verdict.reason;
	ending->verb = ends[run->end].verb;
	if (!ending_waits(ending->verb))
		return;
	run->wait = run_wait(worker, run);
	ending->wait_ms = delay_to_ms(run->wait);
}

void worker_end_run(struct tw_redis_worker *worker, struct run *run)
{
	struct feed *feed = &worker->feeds[run->by_handler];

	feed->pending--;
	if (run->begun && !run->given_back)
		feed->mean += feed->mean ? (run->took - feed->mean) / 16 : run->took + 1;
	batch_end_run(worker, run->batch);
	/* A claim has counted what was too late then. */
	if (run->fate == FATE_LATE && (run->given_back || run->begun))
		run->shard->source->stats.skipped++;
	run_settle(worker, run);
	run_list_add(&run->shard->ends, run);
}

void worker_report(struct tw_redis_worker *worker, struct run *run, enum tw_redis_end end)
{
	struct batch *batch = run->batch;
	struct tw_redis_worker_stats *stats = &run->shard->source->stats;
	const struct tw_redis_report report = {
		.job = run->job,
		.end = end,
		.http_status = run->http_status,
		.took = run->took,
		.retry_in =
			end == TW_REDIS_END_RETRIED || end == TW_REDIS_END_SNOOZED ? run->wait : 0,
		.reason = run->verdict.reason,
	};

	if (end != END_PASSED)
		++*(uint64_t *)(void *)((char *)stats + ends[end].count);
	if (run->begun && !run->given_back)
		worker_count_run(run);
	/* What was not to run was no run. */
	if (worker->options.report && end != END_PUT_OFF && run->fate <= FATE_BROKEN)
		worker->options.report(worker->options.context, &report);
	worker->held--;
	stats->held--;
	if (!--batch->held)
		batch_free(batch);
}
