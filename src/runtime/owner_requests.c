/* SPDX-License-Identifier: MIT */
/* Flush and contains are answered on the spot; the other requests that are waited for stand in a
 * list of their own until what they wait for has come. */
#include "owner_requests.h"

#include "owner_commands.h"
#include "owner_handles.h"
#include "owner_retire.h"

static void owner_answer_all(struct owner *owner, struct list *requests, enum tw_status status)
{
	struct list *link;

	while ((link = list_take_first(requests)))
		requests_answer(&owner->requests, list_entry(link, struct request, link), status);
}

static void owner_look_up(struct owner *owner, struct request *request)
{
	const struct keyed_timer *timer = timer_index_find(&owner->shelf.index, request->key.bytes,
							   request->key.size, request->key.hash);
	if (timer)
		request->deadline = timer->timer.deadline;
	requests_answer(&owner->requests, request, timer ? TW_OK : TW_NOT_FOUND);
}

enum tw_status owner_set_within_limit(struct owner *owner, struct timer *timer)
{
	struct keyed_timer *old;

	if (owner->is_stopped)
		return TW_CLOSED;
	old = owner_find_old(owner, timer);
	if (!old && !limit_take(&owner->out.places))
		return TW_FULL;
	owner_set_placed(owner, timer, old);
	return TW_OK;
}

static void owner_set_or_park(struct owner *owner, struct request *request)
{
	enum tw_status status = owner_set_within_limit(owner, request->timer);

	if (status != TW_FULL || !request->may_wait) {
		requests_answer(&owner->requests, request, status);
		return;
	}
	list_append(&owner->asked.parked, &request->link);
	owner->asked.parked_count++;
	/* The next free place counts as taken from here on, so that no later set gets it. */
	(void)limit_take_over(&owner->out.places);
}

/* A later set that is about to find no place may count as one, too; its request comes next. */
static bool owner_has_place_for_parked(struct owner *owner)
{
	const struct limit *places = &owner->out.places;

	return limit_taken(places) - owner->asked.parked_count < places->most;
}

void owner_answer_parked(struct owner *owner)
{
	while (!list_is_empty(&owner->asked.parked)) {
		struct request *request =
			list_entry(owner->asked.parked.next, struct request, link);
		struct keyed_timer *old = owner_find_old(owner, request->timer);

		if (!old && !owner_has_place_for_parked(owner))
			break;
		list_remove(&request->link);
		owner->asked.parked_count--;
		if (old)
			limit_give(&owner->out.places, 1);
		owner_set_placed(owner, request->timer, old);
		requests_answer(&owner->requests, request, TW_OK);
	}
}

static void owner_serve(struct owner *owner, struct request *request)
{
	if (owner->is_stopped &&
	    (request->kind == REQUEST_CONTAINS || request->kind == REQUEST_ADVANCE)) {
		requests_answer(&owner->requests, request, TW_CLOSED);
		return;
	}
	switch (request->kind) {
	case REQUEST_FLUSH:
		requests_answer(&owner->requests, request, TW_OK);
		break;
	case REQUEST_IDLE:
		list_append(&owner->asked.idlers, &request->link);
		break;
	case REQUEST_CONTAINS:
		owner_look_up(owner, request);
		break;
	case REQUEST_SET:
		owner_set_or_park(owner, request);
		break;
	case REQUEST_ADVANCE:
		list_append(&owner->asked.advances, &request->link);
		break;
	case REQUEST_DRAIN:
		owner_drain(owner, (struct drain_request *)request);
		break;
	case REQUEST_STOP:
		owner_stop(owner);
		owner_answer_all(owner, &owner->asked.advances, TW_CLOSED);
		owner_answer_all(owner, &owner->asked.parked, TW_CLOSED);
		break;
	}
}

/* How many of the next commands, up to `most`, can be applied before the next request. */
static size_t owner_peek(struct owner *owner, size_t most, bool *request_is_next)
{
	size_t count = command_queue_peek(&owner->queue, most);
	uint64_t head = command_queue_head(&owner->queue);
	/* After the look at the commands: see request.c on order. */
	uint64_t position = requests_first_position(&owner->requests);

	*request_is_next = position <= head;
	if (position - head < count && !*request_is_next)
		count = (size_t)(position - head);
	return count;
}

bool owner_apply(struct owner *owner, size_t most)
{
	while (most > 0) {
		bool request_is_next;
		size_t batch = most < SHELF_BATCH ? most : SHELF_BATCH;
		size_t count = owner_peek(owner, batch, &request_is_next);

		if (request_is_next) {
			/* It comes after the changes that were made before it, too. */
			size_t seen = owner_see_handles(owner, most);

			if (seen == most)
				return true;
			owner_serve(owner, requests_take(&owner->requests));
			most -= seen + 1;
			continue;
		}
		if (count == 0)
			return false;
		owner_apply_commands(owner, count);
		owner->applied += count;
		most -= count;
	}
	return true;
}

void owner_answer_idlers(struct owner *owner)
{
	owner_answer_all(owner, &owner->asked.idlers, TW_OK);
}

/* The first advance, or NULL. */
static struct request *owner_first_advance(struct owner *owner)
{
	if (list_is_empty(&owner->asked.advances))
		return NULL;
	return list_entry(owner->asked.advances.next, struct request, link);
}

void owner_begin_advances(struct owner *owner)
{
	struct request *request = owner_first_advance(owner);

	if (!request || request->begun)
		return;
	request->begun = true;
	request->time = time_add(clock_now(&owner->clock), request->time);
}

tw_duration owner_target_time(struct owner *owner)
{
	const struct request *request = owner_first_advance(owner);

	return request ? request->time : clock_now(&owner->clock);
}

bool owner_end_advance(struct owner *owner)
{
	struct request *request = owner_first_advance(owner);

	if (!request)
		return false;
	if (!request->begun)
		return true;
	list_remove(&request->link);
	if (request->time > clock_now(&owner->clock))
		clock_set_manual(&owner->clock, request->time);
	requests_answer(&owner->requests, request, TW_OK);
	return true;
}
