/* SPDX-License-Identifier: MIT */
/*
 * The public calls that tell all that is pending. The owner copies some timers a turn, the caller
 * visits the copies meanwhile, and asks for the next ones.
 */
#include <pthread.h>

#include "ask.h"
#include "walk.h"

static enum tw_status wheel_walk(struct tw_wheel *wheel, struct walk *walk, tw_visit_fn *visit,
				 void *context)
{
	while (walk->position != WALK_END) {
		struct request request = {.kind = REQUEST_WALK, .walk = walk};
		enum tw_status status = wheel_state(wheel);

		if (status == TW_OK)
			status = wheel_ask_and_wait(wheel, &request);
		if (status != TW_OK)
			return status;
		for (size_t i = 0; i < walk->count; i++)
			if (!visit(context, &walk->timers[i]))
				return TW_OK;
		if (!walk_grow(walk))
			return TW_NO_MEMORY;
	}
	return TW_OK;
}

enum tw_status tw_each(struct tw_wheel *wheel, tw_visit_fn *visit, void *context)
{
	enum tw_status status = wheel_state(wheel);
	struct walk walk;
	int cancel_state;

	if (status != TW_OK)
		return status;
	if (!visit)
		return TW_INVALID;
	if (!walk_init(&walk))
		return TW_NO_MEMORY;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	status = wheel_walk(wheel, &walk, visit, context);
	walk_destroy(&walk);
	pthread_setcancelstate(cancel_state, &cancel_state);
	return status;
}
