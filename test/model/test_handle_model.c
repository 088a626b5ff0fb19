/* SPDX-License-Identifier: MIT */
/* Handles get random commands, beside a model, and from tasks. */
#include "support/test.h"

#include "support/recorder.h"
#include "model/trial.h"

enum { MODEL_STEPS = TEST_SHARE_OF(30000) };

TEST(ordered, random_commands_do_what_a_model_predicts)
{
	const struct variant *variant = *state;
	struct trial_setting setting = {.layout = variant->layout,
					.slots = 10,
					.keys = 1,
					.longest_advance = 300,
					.is_of_handles = true,
					.has_owner = variant->drive == TW_DRIVE_THREAD};
	static struct trial trial;

	trial_begin(&trial, &setting, random_from(seed_choose(), 1));
	trial_run(&trial, MODEL_STEPS);
	trial_end(&trial);
	if (trial.wrong[0] != '\0')
		fail_msg("%s", trial.wrong);
}

enum { BUSY_TIMERS = 50, BUSY_ADVANCES = TEST_SHARE_OF(10000) };

/* Tasks command the timers, their own among them, and each run checks that it was expected. */
struct bustle {
	struct tw_wheel *wheel;
	struct random random;
	struct busy {
		struct bustle *bustle;
		struct tw_timer timer;
		tw_duration deadline;
		tw_duration run_at; /* INT64_MAX for never */
		bool may_be_later;  /* set in a task for now: it waits for the next turn */
		bool is_running;
	} timers[BUSY_TIMERS];
	int runs;
	int wrong;
};

static tw_duration tick_at_or_after(tw_duration time)
{
	return (time + INTERVAL - 1) / INTERVAL * INTERVAL;
}

static void run_busy(void *argument);

static void bustle_expect(struct busy *busy, tw_duration delay)
{
	tw_duration now = tw_now(busy->bustle->wheel);

	busy->deadline = now + delay;
	busy->run_at = delay <= 0 ? now : tick_at_or_after(now + delay);
	busy->may_be_later = delay <= 0;
}

static void bustle_set(struct bustle *bustle, struct busy *busy, tw_duration delay)
{
	if (tw_after_func(bustle->wheel, delay, run_busy, busy, &busy->timer) != TW_OK)
		bustle->wrong++;
	bustle_expect(busy, delay);
}

/* Commands a timer. If it is done or stopped, it is not found, and is set again. */
static void bustle_command(struct bustle *bustle, struct busy *busy)
{
	bool is_armed = busy->run_at != INT64_MAX;
	enum tw_status expected = is_armed || busy->is_running ? TW_OK : TW_NOT_FOUND;
	tw_duration delay = random_between(&bustle->random, -1, 20) * INTERVAL / 2;

	if (random_once_in(&bustle->random, 3)) {
		if (busy->is_running)
			expected = is_armed ? TW_REARMED : TW_RUNNING;
		bustle->wrong += tw_timer_stop(bustle->wheel, busy->timer) != expected;
		busy->run_at = INT64_MAX;
		if (busy->is_running)
			return;
		bustle_set(bustle, busy, delay);
	} else if (tw_timer_reset(bustle->wheel, busy->timer, delay) != expected) {
		bustle->wrong++;
	} else if (expected == TW_OK) {
		bustle_expect(busy, delay);
	} else {
		bustle_set(bustle, busy, delay);
	}
}

static void bustle_ask(struct bustle *bustle, const struct busy *busy)
{
	bool is_armed = busy->run_at != INT64_MAX;
	enum tw_status expected = is_armed ? TW_OK : TW_NOT_FOUND;
	tw_duration left = busy->deadline - tw_now(bustle->wheel);
	tw_duration remaining = -1;

	if (busy->is_running)
		expected = TW_RUNNING;
	if (tw_timer_remaining(bustle->wheel, busy->timer, &remaining) != expected ||
	    (expected == TW_OK && remaining != (left > 0 ? left : 0)))
		bustle->wrong++;
}

static void run_busy(void *argument)
{
	struct busy *busy = argument;
	struct bustle *bustle = busy->bustle;
	tw_duration now = tw_now(bustle->wheel);
	bool stopped_itself = false;

	if (now != busy->run_at && !(busy->may_be_later && now > busy->run_at))
		bustle->wrong++;
	bustle->runs++;
	busy->run_at = INT64_MAX;
	busy->is_running = true;
	for (uint64_t commands = random_below(&bustle->random, 5); commands > 0; commands--) {
		struct busy *other = &bustle->timers[random_below(&bustle->random, BUSY_TIMERS)];

		if (other != busy || !stopped_itself)
			bustle_command(bustle, other);
		stopped_itself |= other == busy && busy->run_at == INT64_MAX;
	}
	/* Only some tasks flush: the commands of most wait for the end of the task. */
	if (random_once_in(&bustle->random, 8))
		bustle_ask(bustle, &bustle->timers[random_below(&bustle->random, BUSY_TIMERS)]);
	busy->is_running = false;
}

TEST(inline, random_commands_in_tasks_take_effect_at_once)
{
	struct tw_options options = variant_options(*state, (struct tw_options){0});
	static struct bustle bustle;

	memset(&bustle, 0, sizeof(bustle));
	bustle.random = random_from(seed_choose(), 2);
	assert_status(tw_create(&bustle.wheel, INTERVAL, 10, record_execute, &options), TW_OK);
	for (int i = 0; i < BUSY_TIMERS; i++)
		bustle.timers[i] = (struct busy){.bustle = &bustle, .run_at = INT64_MAX};
	for (int i = 0; i < BUSY_ADVANCES; i++) {
		struct busy *busy = &bustle.timers[random_below(&bustle.random, BUSY_TIMERS)];

		bustle_command(&bustle, busy);
		assert_status(
			tw_advance(bustle.wheel, random_between(&bustle.random, 0, 3) * INTERVAL),
			TW_OK);
		bustle_ask(&bustle, &bustle.timers[random_below(&bustle.random, BUSY_TIMERS)]);
		assert_int_equal(bustle.wrong, 0);
	}
	assert_true(bustle.runs > BUSY_ADVANCES / 2);
	tw_destroy(bustle.wheel);
}
