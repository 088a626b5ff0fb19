/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include "owner.h"
#include "apply.h"
#include "handle_changes.h"
#include "inline_jobs.h"
#include "memory.h"
#include "keyless.h"
#include "retire.h"

void owner_apply_alone(struct owner *owner, struct command *command)
{
	owner->rests_until = INT64_MIN;
	owner_apply_one(owner, command);
	owner_publish_pending(owner);
}

void owner_see_alone(struct owner *owner)
{
	owner->rests_until = INT64_MIN;
	if (!inbox_is_empty(&owner->out.alarms.changed))
		owner_see_alarms_alone(owner);
	if (!inbox_is_empty(&owner->out.handles.changed))
		owner_see_handles_alone(owner);
}

void owner_serve_alone(struct owner *owner, struct request *request)
{
	owner->rests_until = INT64_MIN;
	owner_serve_here(owner, request);
	while (!list_is_empty(&owner->memory.trims) || !list_is_empty(&owner->memory.trims_begun))
		owner_tend_memory(owner);
	owner_publish_pending(owner);
}

/* Takes the next jobs of a retired pending set that was there when the poll began. */
static void owner_retire_alone(struct owner *owner)
{
	const struct list *first = owner->retirements.next;

	owner_retire_some(owner);
	list_append_all(&owner->in.round, &owner->out.jobs);
	if (owner->retirements.next != first && first == owner->loop.last_retired)
		owner->loop.last_retired = NULL;
}

/* Returns the next timer whose job is to be done, or NULL. */
static struct timer *owner_next_alone(struct owner *owner)
{
	struct timer *timer;

	for (;;) {
		if (!list_is_empty(&owner->in.round))
			return timer_of_link(list_take_first(&owner->in.round));
		if (owner->loop.last_retired)
			owner_retire_alone(owner);
		else if (owner->is_stopped)
			return NULL;
		else if ((timer = pending_expire_next(&owner->pending))) {
			if (owner_claim_expired(owner, timer))
				return timer;
		} else if (!wheel_is_busy(owner->pending.wheel) &&
			   !owner_begin_tick(owner, owner->loop.round_end))
			return NULL;
	}
}

static void owner_begin_poll(struct owner *owner)
{
	const struct list *retirements = &owner->retirements;

	owner->rests_until = INT64_MIN;
	owner->loop.round_end = tick_before(&owner->clock.ticks, clock_now(&owner->clock));
	owner->loop.last_retired = list_is_empty(retirements) ? NULL : retirements->previous;
	list_append_all(&owner->in.round, &owner->out.jobs);
	if (!owner->is_stopped)
		wheel_begin_round(owner->pending.wheel, owner->loop.round_end);
}

static void owner_end_job(struct owner *owner)
{
	owner_see_alone(owner);
	owner->loop.in_job = false;
	if (!owner->is_stopped)
		wheel_hold_back(owner->pending.wheel, false);
}

static void owner_run_alone(struct owner *owner, struct timer *timer)
{
	owner_publish_pending(owner);
	if (!owner->is_stopped)
		wheel_hold_back(owner->pending.wheel, true);
	owner->loop.in_job = true;
	(void)job_finish(&owner->out.target, timer, &owner->out.thread);
	owner_end_job(owner);
}

void owner_poll_alone(struct owner *owner, size_t most)
{
	struct timer *timer;

	owner_begin_poll(owner);
	for (; most > 0 && (timer = owner_next_alone(owner)); most--)
		owner_run_alone(owner, timer);
}

void owner_end_poll_alone(struct owner *owner)
{
	if (owner->loop.in_job)
		owner_end_job(owner);
	if (!owner->is_stopped)
		wheel_end_round(owner->pending.wheel);
	owner_tend_memory(owner);
	owner_publish_pending(owner);
	counter_add(&owner->counts.turns, 1);
}

bool owner_is_busy_alone(struct owner *owner)
{
	return owner_has_jobs(owner) || owner_is_busy(owner) ||
	       (!owner->is_stopped && wheel_has_next_round(owner->pending.wheel));
}
