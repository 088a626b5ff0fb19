/* SPDX-License-Identifier: MIT */
/*
 * A turn says all there is to say to Redis in one round trip: for each shard at most one command of
 * a kind, leases first, then what has ended, then claims. What could not be said goes back to where
 * it was, and the shard is left alone for a while: its node is away.
 *
 * How much is claimed: as many tasks as can begin within AHEAD, by what runs took lately, so that
 * they don't lie here while another worker is idle; shared out among the shards that are due.
 *
 * A reply that was lost leaves it open whether Redis was told. It is told again, and then "gone" or
 * "stale" is what success looks like (run.unsure).
 */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define AHEAD (20 * TW_MILLISECOND)
#define AHEAD_BATCHES 10
#define CLAIM_LEAST 16
#define BACKOFF_FIRST (20 * TW_MILLISECOND)
#define BACKOFF_MAX TW_SECOND

/* -------------------------------------------------------------------------------- Reporting -- */

static void count_end(struct tw_redis_worker_stats *stats, enum tw_redis_end end)
{
	uint64_t *const counts[] = {
		[TW_REDIS_END_DONE] = &stats->done,
		[TW_REDIS_END_RETRIED] = &stats->retried,
		[TW_REDIS_END_DEAD] = &stats->dead,
		[TW_REDIS_END_STALE] = &stats->stale,
		[TW_REDIS_END_RELEASED] = &stats->released,
		[TW_REDIS_END_UNTOLD] = &stats->untold,
	};

	++*counts[end];
}

void worker_report(struct tw_redis_worker *worker, struct run *run, enum tw_redis_end end)
{
	struct tw_redis_batch *batch = run->batch;
	const struct tw_redis_report report = {
		.job = run->job,
		.end = end,
		.http_status = run->http_status,
		.took = run->took,
		.retry_in = end == TW_REDIS_END_RETRIED ? run->wait : 0,
		.reason = run->verdict.reason,
	};

	count_end(&worker->stats, end);
	if (worker->options.report)
		worker->options.report(worker->options.context, &report);
	worker->held--;
	if (!--batch->held)
		tw_redis_batch_free(batch);
	free(run);
}

/* ------------------------------------------------------------------------- Redis lost, found -- */

static void shard_unblock(void *argument)
{
	struct shard *shard = argument;

	shard->blocked = false;
}

static void shard_block(struct shard *shard)
{
	shard->backoff = shard->backoff ? 2 * shard->backoff : BACKOFF_FIRST;
	if (shard->backoff > BACKOFF_MAX)
		shard->backoff = BACKOFF_MAX;
	shard->blocked = true;
	if (tw_after_func(shard->worker->wheel, shard->backoff, shard_unblock, shard, NULL) !=
	    TW_OK)
		shard->blocked = false;
}

/* A slot that is on its way to another node, say, is none. */
static bool is_loss(const struct command *command)
{
	return command->status != TW_OK &&
	       (command->away || command->status == TW_REDIS_REFUSED ||
		command->status == TW_REDIS_FAILED || command->status == TW_REDIS_UNFIT);
}

static void note_connection(struct tw_redis_worker *worker, enum tw_status failure)
{
	struct tw_redis_error *error = &worker->redis->router.error;
	bool lost = failure != TW_OK;

	if (lost == worker->lost)
		return;
	worker->lost = lost;
	worker->stats.losses += lost;
	error->status = failure;
	if (worker->options.connection)
		worker->options.connection(worker->options.context, lost ? error : NULL);
}

/* ------------------------------------------------------------------------------------ Leases -- */

static void run_extend(void *argument)
{
	struct run *run = argument;

	run->extension.id = 0;
	if (run->ended || run->extending)
		return;
	run->extending = true;
	run->extend_next = run->shard->extend;
	run->shard->extend = run;
}

void run_arm_extension(struct run *run)
{
	struct tw_redis_worker *worker = run->shard->worker;

	if (tw_after_func(worker->wheel, worker->options.lease / 3, run_extend, run,
			  &run->extension) != TW_OK)
		run_extend(run);
}

/* Takes the ended ones out of the shard's list; answers how many are left. */
static size_t extend_prune(struct shard *shard)
{
	struct run **link = &shard->extend;
	size_t count = 0;

	while (*link) {
		struct run *run = *link;

		if (run->ended) {
			*link = run->extend_next;
			run->extending = false;
			continue;
		}
		count++;
		link = &run->extend_next;
	}
	return count;
}

static void extend_read(struct tw_redis_worker *worker, struct step *step,
			const struct command *command)
{
	struct run *run = step->extend, *next;

	for (size_t i = 0; run; i++, run = next) {
		enum tw_status status = jobs_answer(command, i);

		next = run->extend_next;
		run->extending = false;
		if (command->status != TW_OK)
			run_extend(run);
		else if (status == TW_OK)
			run_arm_extension(run);
		/* Else another run has taken over: this one ends for nothing. */
		worker->stats.extended += status == TW_OK;
	}
}

/* ------------------------------------------------------------------------------------- Steps -- */

static struct command *step_begin(struct tw_redis_worker *worker, enum step_kind kind,
				  struct shard *shard)
{
	worker->steps[worker->step_count] = (struct step){.kind = kind, .shard = shard};
	return &worker->commands[worker->step_count];
}

static void step_extend(struct tw_redis_worker *worker, struct shard *shard)
{
	size_t count = extend_prune(shard);
	struct command *command;

	if (!count)
		return;
	command = step_begin(worker, STEP_EXTEND, shard);
	jobs_begin(command, &script_extend, shard->number, count);
	for (struct run *run = shard->extend; run; run = run->extend_next)
		jobs_add(command, run->job);
	command_number(command, delay_to_ms(worker->options.lease));
	worker->steps[worker->step_count++].extend = shard->extend;
	shard->extend = NULL;
}

static void step_tell(struct tw_redis_worker *worker, struct shard *shard, enum step_kind kind,
		      struct run_list *runs)
{
	static const struct script *const scripts[] = {[STEP_ACK] = &script_ack,
						       [STEP_FAIL] = &script_fail,
						       [STEP_RELEASE] = &script_release};
	size_t count = runs->count < TW_REDIS_BATCH_MAX ? runs->count : TW_REDIS_BATCH_MAX;
	struct command *command;
	struct step *step;

	if (!count)
		return;
	command = step_begin(worker, kind, shard);
	step = &worker->steps[worker->step_count++];
	jobs_begin(command, scripts[kind], shard->number, count);
	for (size_t i = 0; i < count; i++) {
		struct run *run = run_list_take(runs);

		if (kind == STEP_FAIL)
			jobs_add_failed(command, run->job, run->wait, run->verdict.reason);
		else
			jobs_add(command, run->job);
		run_list_add(&step->runs, run);
	}
	if (scripts[kind]->hints)
		command_hint(command, &worker->redis->space);
}

/* How many tasks of the kind may be taken; 0 if it is not worth a claim. */
static size_t lane_room(const struct lane *lane, size_t batch)
{
	size_t ahead = 0, allowed;

	if (lane->mean)
		ahead = (size_t)(lane->slots * AHEAD / lane->mean);
	if (ahead > AHEAD_BATCHES * batch)
		ahead = AHEAD_BATCHES * batch;
	allowed = lane->slots + ahead;
	if (lane->pending >= allowed || allowed - lane->pending < ahead / 4)
		return 0;
	return allowed - lane->pending;
}

static size_t worker_room(const struct tw_redis_worker *worker)
{
	size_t batch = worker->options.batch, room = SIZE_MAX;
	const struct lane *const lanes[] = {&worker->handler_lane, &worker->callback_lane};

	/* Ended, and Redis could not be told: there is an end to that, too. */
	if (worker->stopping || worker->held > 2 * AHEAD_BATCHES * batch + 2048)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		size_t own = lanes[i]->open ? lane_room(lanes[i], batch) : SIZE_MAX;

		room = own < room ? own : room;
	}
	return room;
}

static bool shard_wants_claim(const struct shard *shard)
{
	return shard->due && !shard->blocked;
}

static void step_claims(struct tw_redis_worker *worker)
{
	size_t room = worker_room(worker), due = 0, limit;
	unsigned count = worker->shard_count, i;

	for (i = 0; i < count && room; i++)
		due += shard_wants_claim(&worker->shards[i]);
	if (!due)
		return;
	/* Little room: much from a few, for a call costs more than a task; the others come next. */
	limit = room / due > CLAIM_LEAST ? room / due : CLAIM_LEAST;
	limit = limit < room ? limit : room;
	if (limit > worker->options.batch)
		limit = worker->options.batch;
	for (i = 0; i < count && room >= limit; i++) {
		struct shard *shard = &worker->shards[(worker->first_shard + i) % count];

		if (!shard_wants_claim(shard))
			continue;
		claim_write(step_begin(worker, STEP_CLAIM, shard), shard->number, limit,
			    worker->options.lease);
		worker->steps[worker->step_count++].limit = limit;
		shard->due = false;
		room -= limit;
	}
	worker->first_shard = (worker->first_shard + i) % count;
}

/* ----------------------------------------------------------------------------------- Replies -- */

static void claim_take(struct tw_redis_worker *worker, struct step *step, struct command *command)
{
	struct tw_redis_batch *batch = NULL;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);

	if (command->status != TW_OK || claim_read(command, &batch) != TW_OK) {
		/* What it claimed, if it did, comes back when the lease ends. */
		step->shard->due = true;
		return;
	}
	worker->stats.claims++;
	worker->stats.claimed += batch->count;
	worker->stats.buried += batch->buried;
	step->shard->look_at = TW_FOREVER;
	shard_look_in(step->shard, batch->count == step->limit ? 0 : batch->next);
	batch->held = batch->count;
	for (size_t i = 0; i < batch->count; i++) {
		struct run *run = calloc(1, sizeof(*run));

		if (!run) {
			/* Its lease ends, and it comes again. */
			batch->held--;
			continue;
		}
		run->batch = batch;
		run->job = &batch->jobs[i];
		run->shard = step->shard;
		run->claimed = now;
		worker->held++;
		worker_take_run(worker, run);
	}
	if (!batch->held)
		tw_redis_batch_free(batch);
}

static enum tw_redis_end end_of(const struct run *run, enum step_kind kind, enum tw_status status)
{
	if (status != TW_OK && !run->unsure)
		return TW_REDIS_END_STALE;
	if (kind == STEP_ACK)
		return TW_REDIS_END_DONE;
	if (kind == STEP_RELEASE)
		return TW_REDIS_END_RELEASED;
	return run->wait < 0 ? TW_REDIS_END_DEAD : TW_REDIS_END_RETRIED;
}

static struct run_list *list_of(struct shard *shard, enum step_kind kind)
{
	return kind == STEP_ACK    ? &shard->done
	       : kind == STEP_FAIL ? &shard->failed
				   : &shard->released;
}

static void tell_read(struct tw_redis_worker *worker, struct step *step,
		      const struct command *command)
{
	struct run *run;

	for (size_t i = 0; (run = run_list_take(&step->runs)); i++) {
		if (command->status != TW_OK) {
			run->unsure |= command->status == TW_REDIS_OUTCOME_UNKNOWN;
			run_list_add(list_of(step->shard, step->kind), run);
			continue;
		}
		if (step->kind == STEP_FAIL && run->wait >= 0)
			shard_look_in(step->shard, run->wait);
		worker_report(worker, run, end_of(run, step->kind, jobs_answer(command, i)));
	}
}

static void step_read(struct tw_redis_worker *worker, struct step *step, struct command *command)
{
	if (command->status == TW_OK)
		step->shard->backoff = 0;
	else if (!step->shard->blocked)
		shard_block(step->shard);
	if (step->kind == STEP_CLAIM)
		claim_take(worker, step, command);
	else if (step->kind == STEP_EXTEND)
		extend_read(worker, step, command);
	else
		tell_read(worker, step, command);
}

bool worker_turn(struct tw_redis_worker *worker)
{
	enum tw_status failure = TW_OK;

	worker->step_count = 0;
	for (unsigned i = 0; i < worker->shard_count; i++) {
		struct shard *shard = &worker->shards[i];

		if (shard->blocked)
			continue;
		step_extend(worker, shard);
		step_tell(worker, shard, STEP_ACK, &shard->done);
		step_tell(worker, shard, STEP_FAIL, &shard->failed);
		step_tell(worker, shard, STEP_RELEASE, &shard->released);
	}
	step_claims(worker);
	if (!worker->step_count)
		return false;
	router_run(&worker->redis->router, worker->commands, worker->step_count);
	for (size_t i = 0; i < worker->step_count; i++)
		if (is_loss(&worker->commands[i]))
			failure = worker->commands[i].status;
	note_connection(worker, failure);
	for (size_t i = 0; i < worker->step_count; i++)
		step_read(worker, &worker->steps[i], &worker->commands[i]);
	return true;
}
