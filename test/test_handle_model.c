/* SPDX-License-Identifier: MIT */
/* Handles at random: against a model, and commanded by tasks. */
#include "support/test.h"

#include "support/probe.h"
#include "support/seed.h"

#include <stdbool.h>
#include <string.h>

enum { MODEL_TIMERS = 60, MODEL_STEPS = TEST_SHARE_OF(30000) };

/* What a timer must do, reckoned by hand. */
struct expectation {
	bool armed;
	bool told;    /* by tw_each */
	bool at_once; /* when the wheel is next driven */
	tw_duration deadline;
	tw_duration period; /* 0: once */
	uint64_t order;     /* of its last command */
};

struct forecast {
	struct recorder *recorder;
	struct random random;
	struct probe probes[MODEL_TIMERS];
	struct expectation timers[MODEL_TIMERS];
	uint64_t orders;
	tw_duration now;
	size_t events; /* of the recorder, checked so far */
};

static tw_duration tick_at_or_after(tw_duration time)
{
	return (time + INTERVAL - 1) / INTERVAL * INTERVAL;
}

static tw_duration expected_time(const struct forecast *forecast, const struct expectation *timer)
{
	return timer->at_once ? forecast->now : tick_at_or_after(timer->deadline);
}

/* The armed timer that must run next, or NULL. */
static struct expectation *forecast_next(struct forecast *forecast)
{
	struct expectation *next = NULL;

	for (int i = 0; i < MODEL_TIMERS; i++) {
		struct expectation *timer = &forecast->timers[i];
		tw_duration earlier;

		if (!timer->armed)
			continue;
		earlier = next == NULL
				  ? 1
				  : expected_time(forecast, next) - expected_time(forecast, timer);
		if (earlier > 0 || (earlier == 0 && timer->order < next->order))
			next = timer;
	}
	return next;
}

static void forecast_run(struct forecast *forecast, struct expectation *timer)
{
	struct event event = event_at(forecast->recorder, forecast->events++);

	assert_int_equal((uintptr_t)event.value, timer - forecast->timers);
	assert_int_equal(event.now, expected_time(forecast, timer));
	assert_int_equal(event.kind, EVENT_EXECUTE);
	timer->armed = timer->period > 0;
	timer->at_once = false;
	timer->deadline += timer->period;
	timer->order = forecast->orders++;
}

static void forecast_advance(struct forecast *forecast, tw_duration by)
{
	tw_duration until = forecast->now + by;
	struct expectation *next;

	advance(forecast->recorder, by);
	while ((next = forecast_next(forecast)) && expected_time(forecast, next) <= until)
		forecast_run(forecast, next);
	assert_int_equal(event_count(forecast->recorder), forecast->events);
	forecast->now = until;
}

/* Periods of two intervals or more: none is ever missed. */
static void forecast_set(struct forecast *forecast, int i, tw_duration delay)
{
	struct expectation *timer = &forecast->timers[i];
	struct probe *probe = &forecast->probes[i];
	tw_duration period = 0;

	if (random_once_in(&forecast->random, 3))
		period = random_between(&forecast->random, 2 * INTERVAL, 40 * INTERVAL);
	if (period > 0)
		assert_status(tw_every(forecast->recorder->wheel, delay, period,
				       random_below(&forecast->random, 3), probe_run, probe,
				       &probe->timer),
			      TW_OK);
	else
		assert_status(tw_after_func(forecast->recorder->wheel, delay, probe_run, probe,
					    &probe->timer),
			      TW_OK);
	*timer = (struct expectation){.armed = true, .period = period};
}

static void forecast_command(struct forecast *forecast, int i)
{
	struct expectation *timer = &forecast->timers[i];
	struct probe *probe = &forecast->probes[i];
	enum tw_status expected = timer->armed ? TW_OK : TW_NOT_FOUND;
	tw_duration delay = random_between(&forecast->random, -INTERVAL, 99 * INTERVAL);

	if (random_once_in(&forecast->random, 4))
		delay = random_between(&forecast->random, 0, 5) * INTERVAL;
	if (random_once_in(&forecast->random, 3)) {
		assert_status(probe_stop(probe), expected);
		timer->armed = false;
		return;
	}
	if (timer->armed || random_once_in(&forecast->random, 4))
		assert_status(probe_reset(probe, delay), expected);
	else
		forecast_set(forecast, i, delay);
	timer->deadline = forecast->now + delay;
	timer->at_once = delay <= 0;
	timer->order = forecast->orders++;
}

static int forecast_compare(void *context, const struct tw_pending_timer *timer)
{
	struct forecast *forecast = context;
	const struct probe *probe = timer->value;
	struct expectation *expected = &forecast->timers[probe - forecast->probes];

	assert_true(expected->armed && !expected->told);
	assert_true(timer->timer.id == probe->timer.id);
	assert_true(timer->run == probe_run);
	assert_int_equal(timer->deadline, expected->deadline);
	assert_int_equal(timer->period, expected->period);
	expected->told = true;
	return 1;
}

/* tw_each tells of those that are armed. */
static void forecast_walk(struct forecast *forecast)
{
	assert_status(tw_each(forecast->recorder->wheel, forecast_compare, forecast), TW_OK);
	for (int i = 0; i < MODEL_TIMERS; i++) {
		assert_int_equal(forecast->timers[i].told, forecast->timers[i].armed);
		forecast->timers[i].told = false;
	}
}

static void random_commands_do_what_a_model_foretells(void **state)
{
	static struct forecast forecast;

	memset(&forecast, 0, sizeof(forecast));
	forecast.recorder = probes_open(*state);
	forecast.random = random_from(seed_choose(), 1);
	for (uintptr_t i = 0; i < MODEL_TIMERS; i++)
		forecast.probes[i] = (struct probe){.recorder = forecast.recorder, .number = i};
	for (int step = 0; step < MODEL_STEPS; step++) {
		int i = (int)random_below(&forecast.random, MODEL_TIMERS);

		forecast_command(&forecast, i);
		forecast_advance(&forecast, 0);
		if (random_once_in(&forecast.random, 20))
			forecast_walk(&forecast);
		if (random_once_in(&forecast.random, 3))
			forecast_advance(&forecast,
					 random_between(&forecast.random, 0, 3 * INTERVAL));
		else if (random_once_in(&forecast.random, 50))
			forecast_advance(&forecast,
					 random_between(&forecast.random, 0, 300 * INTERVAL));
	}
	recorder_close(forecast.recorder);
}

enum { BUSY_TIMERS = 50, BUSY_ADVANCES = TEST_SHARE_OF(10000) };

/* Tasks command the timers, their own among them, and each run looks whether it was to be. */
struct bustle {
	struct tw_wheel *wheel;
	struct random random;
	struct busy {
		struct bustle *bustle;
		struct tw_timer timer;
		tw_duration deadline;
		tw_duration run_at; /* INT64_MAX: never */
		bool may_be_later;  /* set in a task for now: it waits for the next turn */
		bool is_running;
	} timers[BUSY_TIMERS];
	int runs;
	int wrong;
};

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

/* Of one that is done or stopped: nothing is found, and it is set anew. */
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
	/* Not in each: the commands of most wait for the end of the task. */
	if (random_once_in(&bustle->random, 8))
		bustle_ask(bustle, &bustle->timers[random_below(&bustle->random, BUSY_TIMERS)]);
	busy->is_running = false;
}

static void random_commands_in_tasks_take_effect_at_once(void **state)
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

static const struct CMUnitTest tests[] = {
	TEST_INLINE(random_commands_do_what_a_model_foretells),
	TEST_DRIVEN(random_commands_in_tasks_take_effect_at_once),
};

TEST_PROGRAM(tests)
