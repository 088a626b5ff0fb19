/* SPDX-License-Identifier: MIT */
/*
 * worker_turn.c begins the steps that are due at the nodes without evals, all of a node in one
 * round trip, a turn.
 *
 * Invariant: a shard begins steps only while none of its own is under way and its node is free. So
 * claims under way bring no more than one turn allowed for each node.
 *
 * Each shard has at most one step of a kind: leases first, then ended runs, then claims. Replies
 * are taken as they come. A step lives until its eval has ended, and its shard begins no other
 * meanwhile. So a node that is silent, or is being connected, delays no shard of another. A step
 * that fails goes back to its list, and the shard is blocked for a while, because its node is away.
 *
 * A turn claims as many tasks as can begin within ahead_time, by the time of recent runs, so that
 * they do not wait here while another worker is idle. The namespaces share this number, and in each
 * the shards that are due. A claim returns exactly when its shard is due next, even if it took its
 * limit.
 *
 * A claim has an equal part of turn_bytes, at least claim_bytes_least. A shard with large records
 * is claimed from with more bytes and few tasks. When a claim's reply is lost, turn_bytes falls to
 * a quarter, once for all claims under way, down to one claim of one task, and grows again by what
 * claims bring. The next claim of the shard gives the lost one's tasks back: none of them began, so
 * no attempt counts.
 *
 * After a lost reply Redis may or may not have made the step. It is made again, and then "gone"
 * means success (run.unsure). So does "stale" where the step leaves the task there. Where it takes
 * the task out, "stale" is either a later task or occurrence, or another run after a server lost
 * the step: the end is unconfirmed.
 */

#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { AHEAD_BATCHES = 10 };
/* These are bytes: of a claim at least, of one for large records, and of a record that is large. */
static const size_t claim_bytes_least = (size_t)8 * 1024;
static const size_t claim_bytes_large = (size_t)128 * 1024;
static const size_t record_large = (size_t)16 * 1024;
static const tw_duration ahead_time = 20 * TW_MILLISECOND;

static struct step *step_begin(struct worker_shard *shard, enum step_kind kind)
{
	struct tw_redis_worker *worker = shard->source->worker;
	struct step *step = &shard->steps[kind];

	step->under_way = true;
	step->begun = clock_read_real(CLOCK_MONOTONIC);
	shard->asked += kind < STEP_OF_SHARDS;
	list_append(&worker->asked, &step->link);
	list_init(&step->leases);
	run_list_init(&step->runs);
	return step;
}

static void step_extend(struct worker_shard *shard)
{
	const struct space *space = &shard->source->redis->space;
	struct list *leases = &shard->leases;
	size_t count = 0;
	struct step *step;

	if (list_is_empty(leases))
		return;
	step = step_begin(shard, STEP_EXTEND);
	extend_begin(&step->eval, space, shard->number, shard->source->worker->options.lease);
	/* The rest is for the next turn: a script takes no more at once. */
	while (count < TW_REDIS_BATCH_MAX && !list_is_empty(leases)) {
		struct list *lease = list_take_first(leases);
		struct batch *batch = list_entry(lease, struct batch, lease);

		batch->place = count++;
		extend_write(&step->eval, batch->shown.jobs, true);
		list_append(&step->leases, lease);
	}
}

static void step_finish(struct worker_shard *shard)
{
	size_t count = shard->ends.count;
	struct step *step;

	if (!count)
		return;
	if (count > TW_REDIS_BATCH_MAX)
		count = TW_REDIS_BATCH_MAX;
	step = step_begin(shard, STEP_FINISH);
	eval_begin(&step->eval, &script_finish, &shard->source->redis->space, shard->number);
	while (count--) {
		struct run *run = run_list_take(&shard->ends);

		ending_write(&step->eval, run->job, &run->ending);
		run_list_add(&step->runs, run);
	}
}

/* Returns how many tasks of the kind may be claimed, or 0 if it is not worth a claim. `aside` runs
 * hold up no others. */
static size_t feed_room(const struct feed *feed, size_t batch, size_t aside)
{
	size_t pending = feed->pending > aside ? feed->pending - aside : 0;
	size_t ahead = 0;
	size_t allowed;

	if (!feed->slots)
		return SIZE_MAX;
	if (feed->mean)
		ahead = (size_t)(feed->slots * ahead_time / feed->mean);
	if (ahead > AHEAD_BATCHES * batch)
		ahead = AHEAD_BATCHES * batch;
	allowed = feed->slots + ahead;
	if (pending >= allowed || allowed - pending < ahead / 4)
		return 0;
	return allowed - pending;
}

static size_t worker_room(const struct tw_redis_worker *worker)
{
	size_t batch = worker->options.batch;
	size_t aside = atomic_load_explicit(&worker->callbacks.aside_shown, memory_order_relaxed);
	size_t room = SIZE_MAX;

	/* Ended runs that could not be reported have a limit, too. */
	if (worker->stopping || worker->held > 2 * AHEAD_BATCHES * batch + 2048 + aside)
		return 0;
	for (size_t i = 0; i < FEEDS; i++) {
		size_t own = feed_room(&worker->feeds[i], batch, i == FEED_CALLBACKS ? aside : 0);

		room = own < room ? own : room;
	}
	return room;
}

static bool shard_wants_claim(const struct worker_shard *shard)
{
	return !shard->look_at && shard->is_free;
}

/* Returns the most tasks to claim from the shard of `part`, its part of the room. Few large records
 * fit into a claim, and its script reads several at a time. */
static size_t claim_limit(const struct worker_shard *shard, size_t part, size_t bytes)
{
	size_t batch = shard->source->worker->options.batch;
	size_t limit = part ? part : 1;

	if (shard->is_large && limit > bytes / claim_bytes_large)
		limit = bytes / claim_bytes_large;
	return limit < batch ? limit : batch;
}

static void step_claim(struct worker_shard *shard, size_t limit, size_t bytes)
{
	struct source *source = shard->source;
	struct tw_redis_worker *worker = source->worker;
	struct step *step = step_begin(shard, STEP_CLAIM);

	claim_write(&step->eval, &source->redis->space, shard->number, limit, worker->options.lease,
		    &(struct claim){.bytes = bytes,
				    .worker = worker->name,
				    .number = shard->claim_number,
				    .again = shard->is_lost,
				    .letters = source->letters});
	shard->look_at = TW_FOREVER;
}

/* Adds claims of at most `room` tasks, each of about `share` bytes, while the turn has some. */
static void step_claims(struct source *source, size_t room, size_t share)
{
	size_t *left = &source->worker->bytes_left;
	size_t part = source->due ? room / source->due : 0;
	unsigned count = source->shard_count;
	unsigned i;

	for (i = 0; i < count && room && *left; i++) {
		struct worker_shard *shard = &source->shards[(source->first_shard + i) % count];
		bool too_small = shard->is_large && share < claim_bytes_large;
		size_t bytes = too_small ? claim_bytes_large : share;

		if (shard_wants_claim(shard)) {
			size_t limit = claim_limit(shard, part, bytes);

			step_claim(shard, limit, bytes);
			room -= limit;
			*left -= bytes < *left ? bytes : *left;
		}
	}
	source->first_shard = (source->first_shard + i) % count;
}

/* Divides the room among the sources that want some. Another one is the first in each turn, so that
 * they share also what is too little for all. */
static void step_takes(struct tw_redis_worker *worker)
{
	size_t room = worker_room(worker);
	size_t wanting = 0;
	size_t due = 0;
	size_t share;

	for (size_t i = 0; i < worker->source_count; i++) {
		struct source *source = &worker->sources[i];

		source->due = 0;
		for (unsigned k = 0; k < source->shard_count; k++)
			source->due += shard_wants_claim(&source->shards[k]);
		wanting += source->due > 0;
		due += source->due;
	}
	share = due ? worker->turn_bytes / due : 0;
	share = share > claim_bytes_least ? share : claim_bytes_least;
	worker->first_source += room && wanting;
	worker->bytes_left = worker->turn_bytes;
	for (size_t i = 0; i < worker->source_count; i++) {
		size_t place = (worker->first_source + i) % worker->source_count;
		struct source *source = &worker->sources[place];
		size_t part = source->due ? (room + wanting - 1) / wanting : 0;

		room -= part;
		wanting -= source->due > 0;
		step_claims(source, part, share);
	}
}

/* Sets the most bytes of a turn's claims. */
static void turn_resize(struct tw_redis_worker *worker, size_t bytes)
{
	worker->turn_bytes = bytes < claim_bytes_least ? claim_bytes_least
			     : bytes < TURN_BYTES_MAX  ? bytes
						       : TURN_BYTES_MAX;
}

static void claim_lose(struct tw_redis_worker *worker, struct step *step)
{
	bool unknown = step->eval.status == TW_REDIS_OUTCOME_UNKNOWN;

	/* A reply that could not be read means that tasks were taken, too. */
	step->shard->is_lost |= unknown || step->eval.status == TW_OK;
	/* The reply may have been too large for its way. So were those that it broke off. */
	if (unknown && step->begun > worker->turn_shrunk) {
		turn_resize(worker, worker->turn_bytes / 4);
		worker->turn_shrunk = clock_read_real(CLOCK_MONOTONIC);
	}
	shard_look_in(step->shard, 0);
}

/* Makes a run of each job. The lease has begun at that time at the earliest. */
static void batch_take(struct tw_redis_worker *worker, struct batch *batch, tw_duration begun)
{
	struct source *source = batch->shard->source;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);

	batch->held = batch->running = batch->shown.count;
	for (size_t i = 0; i < batch->shown.count; i++) {
		struct run *run = &batch->runs[i];
		tw_duration grace = batch->records[i].task.grace;

		/* The run writes its lateness there. */
		run->job = (struct tw_redis_job *)&batch->shown.jobs[i];
		run->shard = batch->shard;
		run->fate = batch->fates[i];
		run->batch = batch;
		run->running = &source->running;
		run->claimed = now;
		run->late_at = grace ? time_add(now, grace) : TW_FOREVER;
		worker_take_run(worker, run);
	}
	if (batch->running)
		batch_leased(batch, begun);
	if (!batch->held)
		batch_free(batch);
}

static void claim_take(struct tw_redis_worker *worker, struct step *step)
{
	struct source *source = step->shard->source;
	struct batch *batch = NULL;

	if (step->eval.status != TW_OK ||
	    claim_read(&step->eval, sizeof(*batch->runs), &batch) != TW_OK) {
		claim_lose(worker, step);
		return;
	}
	batch->shard = step->shard;
	step->shard->is_lost = false;
	step->shard->claim_number++;
	step->shard->is_large = batch->shown.count
					? batch->bytes / batch->shown.count > record_large
					: !batch->next;
	turn_resize(worker, worker->turn_bytes + batch->bytes / 8);
	source->stats.claims++;
	source->stats.claimed += batch->shown.count;
	source->stats.skipped += batch->skipped;
	shard_look_in(step->shard, batch->next);
	batch_take(worker, batch, step->begun);
}

static void extend_read(struct step *step)
{
	struct list *lease;

	/* Batches whose last run has ended meanwhile have left the list. */
	while ((lease = list_take_first(&step->leases))) {
		struct batch *batch = list_entry(lease, struct batch, lease);
		enum tw_status status = jobs_answer(&step->eval, batch->place);

		batch->extending = false;
		if (step->eval.status != TW_OK)
			batch_extend(batch);
		else if (status == TW_OK)
			batch_leased(batch, step->begun);
		/* Any other status means that the lease is over, and others may run the tasks. */
		step->shard->source->stats.extended += status == TW_OK;
	}
}

/* Returns how the run has ended, by the status of its report. */
static enum tw_redis_end end_of(const struct run *run, enum tw_status status)
{
	char verb = run->ending.verb;

	if (run->fate >= FATE_LATE)
		return run->end;
	/* One that has not begun is not overtaken. */
	if (status != TW_OK && !run->unsure && (run->begun || !run->given_back))
		return TW_REDIS_END_STALE;
	if (status == TW_REDIS_STALE && (verb == 'd' || verb == 'k'))
		return TW_REDIS_END_UNCONFIRMED;
	return run->end;
}

/* Takes the confirmation of a run's end. */
static void end_read(struct tw_redis_worker *worker, struct run *run, enum tw_status status)
{
	struct worker_shard *shard = run->shard;
	const struct letters *letters = &shard->source->letters;
	char verb = run->ending.verb;

	if (verb == 'w' || (ending_waits(verb) && !worker->stopping))
		shard_look_in(shard, run->wait);
	/* A claim deletes the letters that are too many. */
	if (verb == 'k' && (letters->count || letters->age_ms))
		shard_look_in(shard, 0);
	worker_report(worker, run, end_of(run, status));
}

static void finish_read(struct tw_redis_worker *worker, struct step *step)
{
	enum tw_status status = step->eval.status;
	struct run *run;

	for (size_t i = 0; (run = run_list_take(&step->runs)); i++) {
		if (status == TW_OK) {
			end_read(worker, run, jobs_answer(&step->eval, i));
			continue;
		}
		run->unsure |= status == TW_REDIS_OUTCOME_UNKNOWN;
		run_list_add(&step->shard->ends, run);
	}
	/* Limits may allow more now. */
	if (status == TW_OK && !worker->hints_come)
		shard_look_in(step->shard, 0);
}

static void step_read(struct tw_redis_worker *worker, struct step *step)
{
	if (step->kind == STEP_PRESENT)
		return;
	if (step->eval.status == TW_OK)
		step->shard->backoff = 0;
	else if (!step->shard->blocked)
		shard_block(step->shard);
	if (step->kind == STEP_CLAIM)
		claim_take(worker, step);
	else if (step->kind == STEP_EXTEND)
		extend_read(step);
	else
		finish_read(worker, step);
}

/* Notes which shards may begin steps. */
static void shards_look(struct source *source)
{
	struct router *router = source->worker->router;

	pthread_mutex_lock(&router->lock);
	for (unsigned i = 0; i < source->shard_count; i++) {
		struct worker_shard *shard = &source->shards[i];

		shard->is_free =
			!shard->blocked && !shard->asked && router_is_free(router, shard->slot);
	}
	pthread_mutex_unlock(&router->lock);
}

static void step_runs(struct source *source)
{
	for (unsigned i = 0; i < source->shard_count; i++) {
		struct worker_shard *shard = &source->shards[i];

		if (!shard->is_free)
			continue;
		step_extend(shard);
		step_finish(shard);
	}
}

static void step_present(struct source *source)
{
	struct worker_shard *shard = &source->shards[0];

	if (!source->worker->stopping && !shard->steps[STEP_PRESENT].under_way &&
	    clock_read_real(CLOCK_MONOTONIC) >= source->present_at)
		present_write(source, &step_begin(shard, STEP_PRESENT)->eval);
}

/* Returns the evals of the steps that begin. Each is tried once: what fails comes back later. */
static struct eval *steps_begin(struct tw_redis_worker *worker)
{
	struct list *last = worker->asked.previous;
	struct eval *evals = NULL;

	for (size_t i = 0; i < worker->source_count; i++) {
		shards_look(&worker->sources[i]);
		step_runs(&worker->sources[i]);
	}
	step_takes(worker);
	/* No turn is made for it. */
	for (size_t i = 0; i < worker->source_count && worker->asked.previous != last; i++)
		step_present(&worker->sources[i]);
	for (struct list *at = worker->asked.previous; at != last; at = at->previous) {
		struct step *step = list_entry(at, struct step, link);

		step->eval.error = &step->error;
		step->eval.next = evals;
		evals = &step->eval;
	}
	return evals;
}

/* Moves the steps that have ended to the list. */
static void steps_take_ended(struct tw_redis_worker *worker, struct list *ended)
{
	struct list *next;

	pthread_mutex_lock(&worker->router->lock);
	worker->rung = false;
	for (struct list *at = worker->asked.next; at != &worker->asked; at = next) {
		next = at->next;
		if (list_entry(at, struct step, link)->eval.stage != EVAL_ENDED)
			continue;
		list_remove(at);
		list_append(ended, at);
	}
	pthread_mutex_unlock(&worker->router->lock);
}

/* Takes what has come of steps that have ended. Returns whether there were any. */
static bool steps_end(struct tw_redis_worker *worker)
{
	struct list ended;
	struct list *link;
	bool any = false;

	list_init(&ended);
	steps_take_ended(worker, &ended);
	while ((link = list_take_first(&ended))) {
		struct step *step = list_entry(link, struct step, link);

		step->under_way = false;
		step->shard->asked -= step->kind < STEP_OF_SHARDS;
		/* The worker does its work without these. */
		if (step->kind != STEP_PRESENT)
			worker_note_step(worker, step);
		step_read(worker, step);
		any = true;
	}
	return any;
}

bool worker_turn(struct tw_redis_worker *worker)
{
	bool any = steps_end(worker);
	struct eval *evals = steps_begin(worker);

	if (evals) {
		worker->stats.round_trips++;
		leaders_post(worker, evals);
		any |= steps_end(worker);
	}
	return any;
}
