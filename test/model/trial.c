/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/recorder.h"
#include "trial.h"

#include <inttypes.h>

static struct trial *trial_of(struct wheel_user *user)
{
	return (struct trial *)user->model;
}

/* ---- The model's functions ---- */

static void complain(struct model *model, const char *text)
{
	struct trial *trial = (struct trial *)model;

	if (trial->wrong[0] == '\0')
		snprintf(trial->wrong, sizeof(trial->wrong),
			 "operation %" PRIu32 ", interval %" PRId64 ": %s", trial->operation,
			 model->interval, text);
}

static int64_t draw_ticks(struct random *random, int64_t slots)
{
	switch (random_below(random, 8)) {
	case 0:
		return random_between(random, 1, 3);
	case 1:
		return slots * random_between(random, 1, 3) + random_between(random, -1, 1);
	case 2:
		return slots * slots % 100000 + random_between(random, -2, 2);
	case 3:
		return slots * slots * slots % 100000 + random_between(random, -2, 2);
	case 4:
		return random_between(random, 1, 100000);
	case 5:
		return random_between(random, 1, 5000);
	default:
		return random_between(random, 1, 100);
	}
}

static tw_duration draw_delay(struct wheel_user *user)
{
	struct random *random = &user->random;
	tw_duration interval = user->model->interval;
	tw_duration delay;

	if (trial_of(user)->setting->is_of_handles)
		return random_once_in(random, 4) ? random_between(random, 1, 5) * interval
						 : random_between(random, 1, 99 * interval);
	if (random_once_in(random, 300))
		return TW_FOREVER - random_between(random, 0, 1);
	if (random_once_in(random, 20))
		return random_between(random, 1, interval);
	delay = draw_ticks(random, (int64_t)trial_of(user)->setting->slots) * interval;
	if (random_once_in(random, 2))
		delay += random_between(random, 1 - interval, interval - 1);
	return delay > 0 ? delay : 1;
}

/* ---- Acts ---- */

static void give_command(struct wheel_user *user)
{
	static const struct wheel_act commands[] = {
		{act_set, 1650}, {act_move, 990}, {act_remove, 360}, {act_drain, 1}, {NULL, 0}};

	wheel_user_act(user, commands);
}

static const struct wheel_act commands_for_handles[] = {{act_start_timer, 1}, {act_stop_timer, 1},
							{act_reset_timer, 2}, {act_ask_timer, 1},
							{act_use_alarm, 1},   {NULL, 0}};

static void ask(struct wheel_user *user)
{
	static const struct wheel_act questions[] = {
		{act_ask, 1}, {act_add, 1}, {act_take, 1}, {NULL, 0}};

	wheel_user_act(user, questions);
}

static void in_task(struct model *model, enum model_way way, const struct tw_task *task)
{
	struct trial *trial = (struct trial *)model;
	struct wheel_user *user = &trial->user;
	struct random *random = &user->random;

	/* When the random numbers are spent, this would repeat itself without an end. */
	if (model->stop_begun || trial->wrong[0] != '\0' || model->options.queue_capacity != 0 ||
	    random_is_spent(random) || !random_once_in(random, 8))
		return;
	model->in_task = true;
	if (!task->key) {
		/* An alarm's run does not set it. */
		model->now = model_now(model);
		/* Some of up to 20 are for the same timer. */
		for (uint64_t i = random_below(random, 20); i < 20; i++)
			wheel_user_act(user, commands_for_handles);
		model->in_task = false;
		return;
	}
	for (uint64_t i = random_below(random, 3); i < 3; i++)
		give_command(user);
	if (random_once_in(random, 30))
		act_set_crowd(user);
	if (random_once_in(random, 10))
		ask(user);
	model->in_task = false;
}

static tw_duration draw_advance(struct wheel_user *user)
{
	struct random *random = &user->random;
	tw_duration interval = user->model->interval;

	if (random_once_in(random, 50))
		return interval *
		       random_between(random, 1, trial_of(user)->setting->longest_advance);
	switch (random_below(random, 9)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return random_between(random, 1, interval);
	case 3:
	case 4:
		return interval * random_between(random, 2, 10);
	case 5:
		return random_between(random, 1, interval * 50);
	default:
		return interval;
	}
}

/* The wheel is idle afterwards: an alarm that was due has run. */
static void advance_wheel(struct wheel_user *user)
{
	act_advance(user, draw_advance(user));
	if (!trial_of(user)->setting->is_of_handles)
		return;
	act_wait_idle(user);
	alarms_judge_sleep(user, user->model->interval, model_now(user->model));
}

static void renew_alarms(struct wheel_user *user)
{
	alarms_destroy(user);
	act_wait_idle(user);
	alarms_judge_end(user);
	alarms_create(user);
}

/* An owner thread would apply the first while the others are given. */
static void set_crowd_by_caller(struct wheel_user *user)
{
	if (!trial_of(user)->setting->has_owner)
		act_set_crowd(user);
}

static void poll_wheel_by_caller(struct wheel_user *user)
{
	if (!trial_of(user)->setting->has_owner)
		act_poll(user);
}

static const struct wheel_act acts_by_key[] = {{give_command, 690},
					       {set_crowd_by_caller, 5},
					       {advance_wheel, 250},
					       {ask, 30},
					       {poll_wheel_by_caller, 20},
					       {act_walk, 2},
					       {NULL, 0}};

static const struct wheel_act acts_by_handle[] = {{act_start_timer, 120}, {act_stop_timer, 150},
						  {act_reset_timer, 200}, {act_ask_timer, 400},
						  {act_use_alarm, 200},   {renew_alarms, 20},
						  {act_drain, 1},         {act_walk, 20},
						  {advance_wheel, 250},   {NULL, 0}};

/* ---- The trial ---- */

void trial_begin(struct trial *trial, const struct trial_setting *setting, struct random random)
{
	static const struct model_hooks hooks = {
		.fail = complain, .draw_delay = draw_delay, .in_task = in_task};
	static const tw_duration intervals[] = {1000, 7, 1000003};
	struct tw_options options = {.layout = setting->layout,
				     .clock = TW_CLOCK_MANUAL,
				     .drive =
					     setting->has_owner ? TW_DRIVE_THREAD : TW_DRIVE_CALLER,
				     .workers = TW_WORKERS_INLINE,
				     .queue_capacity = setting->queue_capacity};
	struct model *model = &trial->model;
	tw_duration interval = intervals[random_below(&random, 3)];

	/* An owner thread gives a place back at a time that is not known. */
	if (!setting->has_owner && !setting->is_of_handles && random_once_in(&random, 2))
		options.max_pending = setting->keys / 2 + 1;
	memset(trial, 0, sizeof(*trial));
	trial->setting = setting;
	*model = (struct model){
		.is_exact = true, .hooks = &hooks, .users = &trial->user, .user_count = 1};
	wheel_user_open(&trial->user, model, 0, setting->keys, 2 * setting->keys + 200, 1);
	trial->user.random = random;
	timer_set_begin(&trial->timers, trial->timer, TRIAL_TIMERS);
	trial->timers.is_reused = true;
	trial->user.timers = &trial->timers;
	assert_status(model_begin(model, interval, setting->slots, &options), TW_OK);
	if (setting->is_of_handles)
		alarms_create(&trial->user);
}

void trial_run(struct trial *trial, uint32_t operations)
{
	struct random *random = &trial->user.random;

	for (trial->operation = 0; trial->operation < operations; trial->operation++) {
		if (trial->wrong[0] != '\0' || random_is_spent(random))
			return;
		wheel_user_act(&trial->user,
			       trial->setting->is_of_handles ? acts_by_handle : acts_by_key);
		/* What an owner thread does by itself is over then. */
		if (trial->setting->is_of_handles || trial->setting->has_owner)
			act_wait_idle(&trial->user);
	}
}

void trial_end(struct trial *trial)
{
	alarms_destroy(&trial->user);
	if (trial->wrong[0] == '\0') {
		act_advance(&trial->user, 0);
		act_stop(&trial->user);
		act_wait_idle(&trial->user);
	}
	tw_destroy(trial->model.wheel);
	if (trial->wrong[0] == '\0')
		model_judge_end(&trial->model);
	model_end(&trial->model);
}
