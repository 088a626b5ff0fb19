/* SPDX-License-Identifier: MIT */
/*
 * worker_permits.c is a worker's part of a namespace's limits. With limits a turn either claims
 * with the permits that are left, or asks for more and reports the number of tasks that the worker
 * holds. It never does both, so the report is true. Tasks that claims under way may bring count as
 * held, so a silent node stops no claims from others. Redis believes a report for two leases' time,
 * and the worker repeats it before. Permits that are left half a lease after the question are not
 * used: if the worker has stood still, others may have them by now. Without limits a look every 10
 * s costs one call, and setting limits gives a hint.
 */

#include "worker.h"

#include "base/clock.h"

static const tw_duration look_time = 10 * TW_SECOND;
static const tw_duration failure_time = 100 * TW_MILLISECOND;
static const tw_duration leave_time = 2 * TW_SECOND;

static bool permits_are_old(const struct source *source)
{
	tw_duration age = clock_read_real(CLOCK_MONOTONIC) - source->permits.asked_at;

	return age > source->worker->options.lease / 2;
}

bool permits_are_due(const struct source *source, size_t wanted)
{
	const struct permits *permits = &source->permits;

	if (permits->due || !permits->limited)
		return permits->due;
	/* Others may need what is left. */
	if (permits->left)
		return !wanted || permits_are_old(source);
	/* Nothing is wanted while it waits (permits_most). */
	return permits->reported != source->stats.held + permits->claims || wanted;
}

void permits_write(struct source *source, struct eval *eval, size_t wanted)
{
	struct permits *permits = &source->permits;

	permits->asked = source->stats.held + permits->claims;
	permits->asked_at = clock_read_real(CLOCK_MONOTONIC);
	eval_begin(eval, &script_permit, &source->redis->space, SHARD_NONE);
	eval_text(eval, source->worker->name);
	eval_number(eval, (int64_t)permits->asked);
	eval_number(eval, (int64_t)wanted);
	eval_number(eval, (int64_t)permits->left);
	eval_number(eval, delay_to_ms(2 * source->worker->options.lease));
}

static void permits_become_due(void *argument)
{
	struct permits *permits = argument;

	permits->timer.id = 0;
	permits->waiting = false;
	permits->due = true;
}

static void permits_look_in(struct source *source, tw_duration wait)
{
	struct permits *permits = &source->permits;

	if (permits->timer.id)
		tw_timer_stop(source->worker->wheel, permits->timer);
	permits->timer.id = 0;
	if (tw_after_func(source->worker->wheel, wait, permits_become_due, permits,
			  &permits->timer) != TW_OK)
		permits->due = true;
}

void permits_read(struct source *source, const struct eval *eval)
{
	struct permits *permits = &source->permits;
	int64_t given = eval_integer(eval, 0, 0);
	int64_t wait_ms = eval_integer(eval, 1, -1);
	tw_duration wait = look_time;

	permits->due = false;
	permits->waiting = eval->status != TW_OK || wait_ms >= 0;
	if (eval->status != TW_OK) {
		permits->left = 0;
		permits_look_in(source, failure_time);
		return;
	}
	permits->limited = given >= 0;
	permits->left = given > 0 ? (size_t)given : 0;
	permits->reported = permits->asked + permits->left;
	if (permits->waiting && wait_ms < look_time / TW_MILLISECOND)
		wait = wait_ms * TW_MILLISECOND;
	else if (permits->limited && source->worker->options.lease / 3 < look_time)
		wait = source->worker->options.lease / 3;
	permits_look_in(source, wait);
}

size_t permits_most(const struct source *source)
{
	const struct permits *permits = &source->permits;

	if (permits->due || !permits->limited)
		return SIZE_MAX;
	if (permits->left ? permits_are_old(source) : !permits->waiting)
		return SIZE_MAX;
	return permits->left;
}

void permits_take(struct source *source, size_t limit)
{
	source->permits.left -= source->permits.limited ? limit : 0;
	source->permits.claims += limit;
}

void permits_settle(struct source *source, size_t limit, size_t count)
{
	source->permits.left += source->permits.limited ? limit - count : 0;
	source->permits.claims -= limit;
}

/* Writes the last questions of the source before *first. Returns the new first one. */
static struct eval *source_leave(struct source *source, struct eval *first)
{
	struct step *own = &source->shards[0].steps[STEP_PERMIT];
	struct step *groups = &source->shards[0].steps[STEP_GROUPS];

	if (source->permits.limited && source->permits.reported && !own->under_way) {
		permits_write(source, &own->eval, 0);
		source->permits.reported = 0;
		own->eval.next = first;
		first = &own->eval;
	}
	if (!groups->under_way && groups_leave(source, &groups->eval)) {
		groups->eval.next = first;
		first = &groups->eval;
	}
	return first;
}

void permits_leave(struct tw_redis_worker *worker)
{
	tw_duration until = time_add(clock_read_real(CLOCK_MONOTONIC), leave_time);
	struct eval *first;

	do {
		first = NULL;
		for (size_t i = 0; i < worker->source_count; i++)
			first = source_leave(&worker->sources[i], first);
		if (first)
			router_pass(worker->router, first, until);
	} while (first && clock_read_real(CLOCK_MONOTONIC) < until);
	for (size_t i = 0; i < worker->source_count; i++)
		groups_free(&worker->sources[i]);
}
