/* SPDX-License-Identifier: MIT */
/*
 * The public calls here visit all that is pending. The owner copies some timers a turn, the caller
 * visits the copies meanwhile, and asks for the next ones.
 */
#include "ask.h"
#include "walk.h"

static enum tw_status wheel_walk(struct tw_wheel *wheel, struct walk *walk, tw_visit_fn *visit,
				 void *context)
{
	while (walk->position != WALK_END) {
		struct question question = {.kind = QUESTION_WALK, .walk = walk};
		enum tw_status status = wheel_state(wheel);

		if (status == TW_OK)
			status = wheel_ask(wheel, &question);
		if (status != TW_OK)
			return status;
		if (!job_visit(&wheel->owner.out.target, visit, context, walk->timers, walk->count))
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

	if (status != TW_OK)
		return status;
	if (!visit)
		return TW_INVALID;
	if (!walk_init(&walk))
		return TW_NO_MEMORY;
	status = wheel_walk(wheel, &walk, visit, context);
	walk_destroy(&walk);
	return status;
}
