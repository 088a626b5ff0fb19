/* SPDX-License-Identifier: MIT */
#include "retire.h"

#include <stdlib.h>

#include "keyless.h"

struct drain_request *drain_request_create(const struct pending_plan *plan, tw_execute_fn *each,
					   void *context)
{
	struct drain_request *request = calloc(1, sizeof(*request));
	struct drain *drain = malloc(sizeof(*drain));

	if (!request || !drain || !pending_init(&request->retirement.pending, plan)) {
		free(drain);
		free(request);
		return NULL;
	}
	drain->each = each;
	drain->context = context;
	atomic_init(&drain->references, 1);
	request->request.kind = REQUEST_DRAIN;
	request->retirement.drain = drain;
	return request;
}

/* The drain has handed over all its timers, or was too late. */
static void owner_end_drain(struct owner *owner, struct retirement *retirement)
{
	drain_release(retirement->drain);
	free(list_entry(retirement, struct drain_request, retirement));
	limit_give(&owner->drains);
}

/* All its timers are handed over, and its memory is given back. */
static void owner_end_retirement(struct owner *owner, struct retirement *retirement)
{
	list_remove(&retirement->link);
	list_append_all(&owner->out.jobs, &retirement->after);
	if (list_is_empty(&owner->retirements))
		owner->out.jobs_end = &owner->out.jobs;
	if (retirement->drain)
		owner_end_drain(owner, retirement);
}

void owner_retire_some(struct owner *owner)
{
	struct retirement *retirement =
		list_entry(owner->retirements.next, struct retirement, link);
	struct timer *taken[PENDING_BATCH];
	struct drain *drain = retirement->drain;
	size_t count = 0;

	if (!retirement->is_empty)
		count = wheel_take(retirement->pending.wheel, taken, PENDING_BATCH);
	retirement->is_empty = count == 0;
	if (drain) {
		/* relaxed: the jobs are published by their submission. */
		atomic_fetch_add_explicit(&drain->references, count, memory_order_relaxed);
	}
	for (size_t i = 0; i < count; i++)
		owner_retire_timer(owner, taken[i], drain);
	if (retirement->is_empty && pending_discard(&retirement->pending))
		owner_end_retirement(owner, retirement);
}

/* The owner's pending set becomes the retirement's, to be emptied by later turns. */
static void owner_retire_pending(struct owner *owner, struct retirement *retirement)
{
	retirement->pending = owner->pending;
	/* Inline jobs keep the order of events, so they wait while the set is being emptied. */
	list_init(&retirement->after);
	owner->out.jobs_end = &retirement->after;
	list_append(&owner->retirements, &retirement->link);
	counter_set(&owner->pending_count, 0);
}

void owner_drain(struct owner *owner, struct drain_request *request)
{
	struct pending fresh = request->retirement.pending;
	uint64_t now;

	if (owner->is_stopped) {
		pending_destroy(&fresh);
		owner_end_drain(owner, &request->retirement);
		return;
	}
	(void)owner_begin_next_turn(owner);
	now = wheel_now(owner->pending.wheel);
	fresh.number = (uint16_t)(owner->pending.number + 1);
	owner_retire_pending(owner, &request->retirement);
	wheel_advance(fresh.wheel, now);
	owner->pending = fresh;
}

void owner_stop(struct owner *owner)
{
	(void)owner_begin_next_turn(owner);
	owner_retire_pending(owner, &owner->asked.stop_retirement);
	owner->is_stopped = true;
}
