/* SPDX-License-Identifier: MIT */
#include "owner_loop.h"

#include "owner.h"
#include "owner_commands.h"
#include "owner_handles.h"
#include "owner_inline.h"
#include "owner_memory.h"
#include "owner_place.h"
#include "owner_retire.h"

void owner_apply_alone(struct owner *owner, struct command *command)
{
	owner_apply_one(owner, command);
	owner_publish_pending(owner);
}

void owner_see_alone(struct owner *owner)
{
	if (!inbox_is_empty(&owner->out.alarms.changed))
		owner_see_alarms_alone(owner);
	if (!inbox_is_empty(&owner->out.handles.changed))
		owner_see_handles_alone(owner);
}

void owner_serve_alone(struct owner *owner, struct request *request)
{
	owner_serve_here(owner, request);
	while (!list_is_empty(&owner->memory.trims) || !list_is_empty(&owner->memory.trims_begun))
		owner_tend_memory(owner);
	owner_publish_pending(owner);
}

/* Takes the next job of a retired pending set that there was when the poll began. */
static void owner_retire_alone(struct owner *owner)
{
	const struct list *first = owner->retirements.next;

	owner_retire_some(owner);
	list_append_all(&owner->in.round, &owner->out.jobs);
	if (owner->retirements.next != first)
		owner->loop.retirements--;
}

/* Returns the next timer whose job is to be done, or NULL. */
static struct timer *owner_next_alone(struct owner *owner, uint64_t target)
{
	struct timer *timer;

	for (;;) {
		if (!list_is_empty(&owner->in.round))
			return timer_of_link(list_take_first(&owner->in.round));
		if (owner->loop.retirements > 0)
			owner_retire_alone(owner);
		else if (owner->is_stopped)
			return NULL;
		else if (pending_expire(&owner->pending, &timer, 1) == 1) {
			if (owner_claim_expired(owner, timer))
				return timer;
		} else if (!wheel_is_busy(owner->pending.wheel) && !owner_begin_tick(owner, target))
			return NULL;
	}
}

static void owner_begin_poll(struct owner *owner, uint64_t target)
{
	list_append_all(&owner->in.round, &owner->out.jobs);
	owner->loop.retirements = 0;
	for (const struct list *link = owner->retirements.next; link != &owner->retirements;
	     link = link->next)
		owner->loop.retirements++;
	if (!owner->is_stopped)
		wheel_begin_round(owner->pending.wheel, target);
}

static void owner_run_alone(struct owner *owner, struct timer *timer)
{
	owner_publish_pending(owner);
	owner->loop.in_job = true;
	job_finish(&owner->out.target, timer, &owner->out.thread);
	owner->loop.in_job = false;
	owner_see_alone(owner);
}

void owner_poll_alone(struct owner *owner, size_t most)
{
	uint64_t target = tick_before(&owner->clock.ticks, clock_now(&owner->clock));
	struct timer *timer;

	owner_begin_poll(owner, target);
	for (; most > 0 && (timer = owner_next_alone(owner, target)); most--)
		owner_run_alone(owner, timer);
	owner_tend_memory(owner);
	owner_publish_pending(owner);
	counter_add(&owner->counts.turns, 1);
}

bool owner_is_busy_alone(struct owner *owner)
{
	return owner_has_jobs(owner) || owner_is_busy(owner) ||
	       (!owner->is_stopped && wheel_has_next_round(owner->pending.wheel));
}
