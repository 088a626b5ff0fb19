/* SPDX-License-Identifier: MIT */
/*
 * Tasks, releases and drain functions that run where the wheel is driven, in the order of events.
 * After each the commands that it gave are applied, so a task can still stop another one of its
 * tick; what it causes that way (a release, a move to now) runs next, and so on. A tick is settled,
 * with all that its tasks have left behind, before the next begins.
 *
 * Tasks may cause themselves for ever, and others may set faster than tasks run. Neither may keep
 * the rest waiting, so there are three bounds:
 *   a turn that has run so many jobs, or applied so much, is crowded: it ends, and the next goes on
 *   where it was;
 *   what is caused runs in rounds, and after so many of them, over however many turns, waits for
 *   the next tick, or, where none is due, the next turn;
 *   of two crowded turns in a row one applies commands before it goes on.
 */
#include "owner.h"

enum {
	APPLIED_AT_A_TIME = 1024,
	APPLIED_A_TURN = 4096, /* commands and changes */
	JOBS_A_TURN = 1024,
	ROUNDS_A_TICK = 64
};

/*
 * Applies what the task that has just run has left in the queue, and so what lies before that. If
 * it left nothing, and nobody asks, the queue can wait: what others set must not keep a turn going.
 */
static void owner_apply_calls(struct owner *owner)
{
	uint64_t end = command_queue_tail(&owner->queue);

	if (!owner->task_called && requests_first_position(&owner->requests) == REQUESTS_NONE)
		return;
	while (owner_apply(owner, APPLIED_AT_A_TIME) && command_queue_head(&owner->queue) <= end)
		continue;
}

static void owner_count_jobs(struct owner *owner, size_t count)
{
	owner->jobs_run += count;
	owner->is_crowded = owner->jobs_run >= JOBS_A_TURN || owner->applied >= APPLIED_A_TURN;
}

static void owner_run_job(struct owner *owner, struct timer *timer)
{
	tw_duration start = clock_read_real(CLOCK_MONOTONIC);

	owner->task_called = false;
	job_finish(&owner->target, timer, &owner->seat);
	owner->task_time += clock_read_real(CLOCK_MONOTONIC) - start;
	owner_apply_calls(owner);
	(void)owner_see_handles(owner, APPLIED_AT_A_TIME);
	owner_count_jobs(owner, 1);
}

bool owner_resume_turn(struct owner *owner)
{
	owner->resumed = owner->is_crowded;
	owner->jobs_run = 0;
	owner->is_crowded = false;
	if (!owner->resumed)
		owner_begin_rounds(owner);
	owner->commands_wait = owner->resumed && !owner->commands_wait;
	return owner->commands_wait;
}

void owner_begin_rounds(struct owner *owner)
{
	owner->rounds = 0;
	owner->settle_rounds = 0;
}

void owner_run_jobs(struct owner *owner)
{
	if (owner->in_dispatch)
		return;
	owner->in_dispatch = true;
	/* One round in any case, be it the rest of one that a crowded turn has left. */
	if (list_is_empty(&owner->round))
		list_append_all(&owner->round, &owner->jobs);
	for (;;) {
		while (!owner->is_crowded && !list_is_empty(&owner->round))
			owner_run_job(owner, timer_of_link(list_take_first(&owner->round)));
		if (owner->is_crowded || list_is_empty(&owner->jobs) ||
		    owner->rounds >= ROUNDS_A_TICK)
			break;
		owner->rounds++;
		list_append_all(&owner->round, &owner->jobs);
	}
	owner->in_dispatch = false;
}

/* Empties retired shelves, until the turn is crowded. */
static void owner_settle_retirements(struct owner *owner)
{
	while (!owner->is_crowded && !list_is_empty(&owner->retirements)) {
		owner_retire_some(owner);
		owner_run_jobs(owner);
		/* Where there is nobody to tell, that made no jobs. */
		owner_count_jobs(owner, SHELF_BATCH);
	}
}

void owner_settle(struct owner *owner)
{
	if (owner->pool)
		return;
	owner_settle_retirements(owner);
	while (!owner->is_crowded && owner_has_jobs(owner) &&
	       owner->settle_rounds < ROUNDS_A_TICK) {
		owner->settle_rounds++;
		list_append_all(&owner->jobs, &owner->next_jobs);
		owner_run_jobs(owner);
		owner_settle_retirements(owner);
	}
}

bool owner_has_jobs(const struct owner *owner)
{
	return !list_is_empty(&owner->round) || !list_is_empty(&owner->jobs) ||
	       !list_is_empty(&owner->next_jobs);
}
