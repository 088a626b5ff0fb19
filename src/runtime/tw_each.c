/* SPDX-License-Identifier: MIT */
/*
 * The public calls here visit all that is pending. The owner copies some timers a turn, the caller
 * visits the copies meanwhile, and asks for the next ones.
 */
#include <pthread.h>

#include "ask.h"
#include "base/thread.h"
#include "walk.h"

static void walk_end(struct walk **walk)
{
	walk_destroy(*walk);
}

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

/* Visits all and frees the walk, also where `visit` throws. */
static enum tw_status wheel_walk_to_end(struct tw_wheel *wheel, struct walk *walk,
					tw_visit_fn *visit, void *context)
{
	int cancel_state __attribute__((cleanup(thread_restore_cancel)));
	struct walk *ended __attribute__((cleanup(walk_end))) = walk;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	return wheel_walk(wheel, ended, visit, context);
}

enum tw_status tw_each(struct tw_wheel *wheel, tw_visit_fn *visit, void *context)
{
	enum tw_status status = wheel_state(wheel);
	struct walk walk;

	if (status != TW_OK)
		return status;
	if (!visit)
		return TW_INVALID;
	if (!walk_init(&walk))
		return TW_NO_MEMORY;
	return wheel_walk_to_end(wheel, &walk, visit, context);
}
