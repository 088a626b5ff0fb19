/* SPDX-License-Identifier: MIT */
#include "storm.h"

#include "support/process.h"
#include "support/stopwatch.h"

#include <stdlib.h>

enum storm_kind { DUE_TOGETHER, REMOVED_TOGETHER, DRAINED_TOGETHER, STOPPED_TOGETHER, STORM_KINDS };

/* The thread waits while the queue or the wheel is full: its owner is busy. */
static void wait_a_moment(void)
{
	stopwatch_sleep(TW_MILLISECOND);
}

/* Sets all timers; those of the storm before may still hold their values for a while. */
static void set_all(struct wheel_user *user, tw_duration delay)
{
	for (unsigned key = 0; key < user->keys && !atomic_load(&user->model->stop_begun);)
		if (act_set_key(user, key, delay))
			key++;
		else
			wait_a_moment();
}

static void remove_all(struct wheel_user *user)
{
	for (unsigned key = 0; key < user->keys;)
		if (act_remove_key(user, key))
			key++;
		else
			wait_a_moment();
}

struct handles {
	struct tw_timer *timers;
	void **tokens;
	size_t count;
};

static void set_by_handle(struct wheel_user *user, tw_duration delay, struct handles *handles)
{
	struct model *model = user->model;

	while (handles->count < user->keys) {
		tw_duration low = model_now(model) + delay;
		void *token = model_offer(user, MODEL_NO_KEY, low);
		struct tw_timer *timer = &handles->timers[handles->count];

		if (!token)
			break;
		if (USER_CALL(user, tw_after_func(model->wheel, delay, model_run_once, token,
						  timer)) == TW_OK) {
			handles->tokens[handles->count++] = token;
			model_accept(user, MODEL_NO_KEY, token, model_now(model) + delay);
		} else {
			model_refuse(model, token);
			wait_a_moment();
		}
	}
}

static void stop_by_handle(struct wheel_user *user, struct handles *handles)
{
	struct model *model = user->model;

	for (size_t i = 0; i < handles->count; i++)
		if (USER_CALL(user, tw_timer_stop(model->wheel, handles->timers[i])) == TW_OK)
			model_return(model, handles->tokens[i], WAY_REMOVED, NULL);
}

static void storm_by_handle(struct wheel_user *user, tw_duration delay)
{
	struct handles handles = {
		.timers = malloc(user->keys * sizeof(*handles.timers)),
		.tokens = malloc(user->keys * sizeof(*handles.tokens)),
	};

	if (!handles.timers || !handles.tokens)
		process_fail("out of memory");
	set_by_handle(user, delay, &handles);
	stop_by_handle(user, &handles);
	free(handles.timers);
	free(handles.tokens);
}

void storm(struct wheel_user *user, struct generator *generator)
{
	tw_duration soon = generator_range(generator, 1000, 3000) * TW_MILLISECOND;

	switch ((enum storm_kind)generator_range(generator, 0, STORM_KINDS)) {
	case REMOVED_TOGETHER:
		set_all(user, TW_MINUTE);
		remove_all(user);
		break;
	case DRAINED_TOGETHER:
		set_all(user, TW_MINUTE);
		act_drain(user);
		break;
	case STOPPED_TOGETHER:
		storm_by_handle(user, soon);
		break;
	default:
		set_all(user, soon);
	}
}
