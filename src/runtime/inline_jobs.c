/* SPDX-License-Identifier: MIT */
/*
 * Tasks, releases and drain functions that run where the wheel is driven, in the order of events.
 * After each the commands that it gave are applied, so a task can still stop another one of its
 * tick; what it causes that way (a release, a move to now) runs next, and so on. A tick is settled,
 * with all that its tasks have left behind, before the next begins.
 *
 * Tasks may cause themselves for ever, and others may set faster than tasks run. Neither may keep
 * the rest waiting, so there are three bounds:
 *   a turn that has run 1,024 jobs, or what tw_poll_some leaves it, or for 10 ms, or applied 4,096
 *   commands, is crowded: it ends, and the next goes on where it was;
 *   what is caused runs in rounds, and after 64 of them, over however many turns, waits for
 *   the next tick, or, where none is due, the next turn;
 *   of two crowded turns in a row one applies commands before it goes on.
 */
#include "owner_state.h"

enum {
	APPLIED_AT_A_TIME = 1024,
	APPLIED_A_TURN = 4096, /* commands and changes */
	CHANGES_A_JOB = 1 << 20,
	ROUNDS_A_TICK = 64
};

/* Commands wait no longer than this and the task that is running. */
static const tw_duration task_time_a_turn = 10 * TW_MILLISECOND;

static void owner_count_jobs(struct owner *owner, size_t count)
{
	owner->in.jobs_run += count;
	owner->in.is_crowded = owner->in.jobs_run >= owner->in.jobs_most ||
			       owner->applied >= APPLIED_A_TURN ||
			       owner->in.task_time >= task_time_a_turn;
}

/*
 * Applies what the task that has just run has left in the queue and in the inboxes, and so what
 * lies before that. If other threads change very many alarms meanwhile, or a drain waits for the
 * one under way, this turn is crowded, and the next sees the rest.
 */
static void owner_apply_calls(struct owner *owner)
{
	size_t seen;

	owner_apply_until(owner, APPLIED_AT_A_TIME, command_queue_tail(&owner->queue), false);
	if (owner_drain_waits(owner))
		owner->applied += APPLIED_A_TURN;
	do
		seen = owner_apply_changes(owner, APPLIED_AT_A_TIME);
	while (seen >= APPLIED_AT_A_TIME && owner->applied < CHANGES_A_JOB);
}

static void owner_run_job(struct owner *owner, struct timer *timer)
{
	tw_duration took;

	/* An alarm that waits for its run is in a list until here. */
	timer_set_place(timer, TIMER_AWAY);
	owner->out.thread.has_called = false;
	owner->out.thread.back = NULL;
	took = job_finish(&owner->out.target, timer, &owner->out.thread);
	if (took < 0)
		took = time_since(clock_read_real(owner->clock.id), -took);
	owner->in.task_time += took;
	if (owner->out.thread.back)
		owner_settle_alarm(owner, owner->out.thread.back);
	/* What others have left can wait: it must not keep a turn going. */
	if (owner->out.thread.has_called || event_count_is_hurried(&owner->event))
		owner_apply_calls(owner);
	owner_publish_pending(owner);
	owner_count_jobs(owner, 1);
}

bool owner_resume_turn(struct owner *owner)
{
	owner->in.resumed = owner->in.is_crowded;
	owner->in.jobs_run = 0;
	owner->in.is_crowded = false;
	if (!owner->in.resumed)
		owner_begin_rounds(owner);
	owner->in.commands_wait = owner->in.resumed && !owner->in.commands_wait;
	return owner->in.commands_wait;
}

void owner_begin_rounds(struct owner *owner)
{
	owner->in.rounds = 0;
	owner->in.held_waits = owner->poll_began != TW_FOREVER;
	owner->idle.is_early &= owner->in.held_waits;
}

static void owner_run_jobs(struct owner *owner)
{
	owner->pending.holds = true;
	/* One round in any case, be it the rest of one that a crowded turn has left. */
	if (list_is_empty(&owner->in.round))
		list_append_all(&owner->in.round, &owner->out.jobs);
	for (;;) {
		while (!owner->in.is_crowded && !list_is_empty(&owner->in.round))
			owner_run_job(owner, timer_of_link(list_take_first(&owner->in.round)));
		if (owner->in.is_crowded || list_is_empty(&owner->out.jobs) ||
		    owner->in.rounds >= ROUNDS_A_TICK)
			break;
		owner->in.rounds++;
		list_append_all(&owner->in.round, &owner->out.jobs);
	}
	owner->pending.holds = false;
}

void owner_dispatch(struct owner *owner)
{
	if (owner->out.pool)
		outbox_submit(&owner->out);
	else
		owner_run_jobs(owner);
}

/* Hands over what is stale, until the turn is crowded. */
static void owner_settle_drains(struct owner *owner)
{
	while (!owner->in.is_crowded && owner->pending.has_stale) {
		owner_sweep(owner);
		owner_run_jobs(owner);
		/* Where there is no function to call, that made no jobs. */
		owner_count_jobs(owner, PENDING_BATCH);
	}
}

bool owner_settle(struct owner *owner)
{
	if (owner->out.pool || (!owner->pending.has_stale && !owner_has_jobs(owner)))
		return false;
	owner_settle_drains(owner);
	while (!owner->in.is_crowded && owner_has_jobs(owner) && owner->in.rounds < ROUNDS_A_TICK) {
		owner->in.rounds++;
		owner_run_jobs(owner);
		owner_settle_drains(owner);
	}
	return true;
}
