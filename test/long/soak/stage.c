/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include "checks.h"
#include "support/expect.h"
#include "support/stopwatch.h"

#include <string.h>

enum { KEYS = 2000, VALUES = 4096, WINDOWS = 3 };

/* One of this number of tasks is slow, so that the pool needs further workers. */
#define SLOW_ONE_IN 20000
#define SLOW_TIME (20 * TW_MILLISECOND)

static void fail(struct model *model, const char *text)
{
	(void)model;
	check_failed(text);
}

static tw_duration draw_delay(struct wheel_user *user)
{
	switch (random_below(&user->random, 16)) {
	case 0:
		return random_between(&user->random, 1, 2000) * TW_MICROSECOND;
	case 1:
	case 2:
		return random_between(&user->random, 1, 20000) * TW_MILLISECOND;
	default:
		return random_between(&user->random, 1, 1500) * TW_MILLISECOND;
	}
}

static void in_task(struct model *model, enum model_way way, const struct tw_task *task)
{
	if (way == WAY_RUN && task->key && atomic_load(&model->back[WAY_RUN]) % SLOW_ONE_IN == 0)
		stopwatch_sleep(SLOW_TIME);
}

void place_open(struct place *place, tw_duration interval, size_t slots,
		const struct tw_options *options, unsigned users, size_t storm_size, uint64_t seed)
{
	static const struct model_hooks hooks = {
		.fail = fail, .draw_delay = draw_delay, .in_task = in_task};
	struct model *model = &place->model;

	memset(place, 0, sizeof(*place));
	*model = (struct model){.hooks = &hooks, .users = place->users, .user_count = users};
	for (unsigned i = 0; i < users; i++) {
		wheel_user_open(&place->users[i], model, i, KEYS, VALUES, WINDOWS);
		place->users[i].random = random_from(seed, i);
		place->users[i].timers = &place->timers[i];
		timer_set_begin(&place->timers[i], place->timer[i], PLACE_TIMERS);
		place->timers[i].is_reused = true;
		place->timers[i].period_least = 20 * TW_MILLISECOND;
	}
	if (storm_size > 0) {
		wheel_user_open(&place->users[STORM], model, STORM, (unsigned)storm_size,
				storm_size + storm_size / 4, 1);
		model->user_count = STORM + 1;
	}
	expect_ok(model_begin(model, interval, slots, options), "tw_create");
	place->wheel = model->wheel;
}

void place_close(struct place *place)
{
	place_check_empty(place);
	model_judge_end(&place->model);
	for (unsigned i = 0; i < PLACE_USERS; i++)
		timers_judge_end(&place->model, &place->timers[i]);
	model_end(&place->model);
}

void place_check_empty(struct place *place)
{
	check_equal("values that did not come back", (int64_t)model_open(&place->model), 0);
}
