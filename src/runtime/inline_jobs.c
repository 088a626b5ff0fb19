/* SPDX-License-Identifier: MIT */
/*
 * Tasks, releases and drain functions that run where the wheel is driven, in the order of events,
 * one batch after the other. A batch is what was there when it was cut off; what its jobs cause (a
 * release, a move to now) is for the next one. After each job the commands that it gave are
 * applied, so a task can still stop another one of its tick. A tick is settled, with all that its
 * tasks have left behind, before the next begins.
 *
 * Tasks may cause themselves for ever, and others may set faster than tasks run. Neither may keep
 * the rest waiting: a turn that has run 1,024 jobs, or what tw_poll_some leaves it, or for 10 ms,
 * or applied 4,096 commands, is crowded. It ends, and the next goes on where it was; and it first
 * applies fewer commands than the last one has run jobs, so a batch comes to its end however many
 * jobs commands cause. And after 64 batches, over however many turns, what is caused waits for the
 * next timer or tick, or, where none is due, the next turn.
 */
#include "owner_state.h"

enum {
	APPLIED_AT_A_TIME = 1024,
	APPLIED_A_TURN = 4096, /* commands and changes */
	CHANGES_A_JOB = 1 << 20,
	BATCHES_A_TICK = 64
};

/* A turn ends after this and the task that is running. */
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

void owner_run_batch(struct owner *owner)
{
	struct owner_inline *in = &owner->in;

	/* The rest of one that a crowded turn has left comes first. */
	if (list_is_empty(&in->batch))
		list_append_all(&in->batch, &owner->out.jobs);
	owner->pending.holds = true;
	while (!in->is_crowded && !list_is_empty(&in->batch))
		owner_run_job(owner, timer_of_link(list_take_first(&in->batch)));
	owner->pending.holds = false;
}

bool owner_settle(struct owner *owner)
{
	struct owner_inline *in = &owner->in;
	bool is_new = list_is_empty(&in->batch);
	bool sweeps = is_new && owner->pending.has_stale;

	if (in->is_crowded || owner->out.pool)
		return false;
	/* The rest of a batch runs in any case, and so does all that is owed after a stop. */
	if (is_new && ((in->batches >= BATCHES_A_TICK && !owner->is_stopped) ||
		       !(sweeps || owner_has_jobs(owner))))
		return false;
	if (sweeps)
		owner_sweep(owner);
	in->batches += is_new;
	owner_run_batch(owner);
	/* Where there is no function to call, a sweep makes no jobs. */
	if (sweeps)
		owner_count_jobs(owner, PENDING_BATCH);
	return true;
}
