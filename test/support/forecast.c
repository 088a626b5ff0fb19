/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "forecast.h"

#include <string.h>

enum { MANY = 8 };

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

	for (int i = 0; i < FORECAST_TIMERS; i++) {
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

/* Its last command gives it that delay. */
static void forecast_arm(struct forecast *forecast, struct expectation *timer, tw_duration delay)
{
	timer->deadline = forecast->now + delay;
	timer->at_once = delay <= 0;
	timer->order = forecast->orders++;
}

static tw_duration forecast_delay(struct forecast *forecast)
{
	if (random_once_in(&forecast->random, 4))
		return random_between(&forecast->random, 0, 5) * INTERVAL;
	return random_between(&forecast->random, -INTERVAL, 99 * INTERVAL);
}

static void forecast_command(struct forecast *forecast, int i)
{
	struct expectation *timer = &forecast->timers[i];
	struct probe *probe = &forecast->probes[i];
	enum tw_status expected = timer->armed ? TW_OK : TW_NOT_FOUND;
	tw_duration delay = forecast_delay(forecast);

	if (random_once_in(&forecast->random, 3)) {
		assert_status(probe_stop(probe), expected);
		timer->armed = false;
		return;
	}
	if (timer->armed || random_once_in(&forecast->random, 4))
		assert_status(probe_reset(probe, delay), expected);
	else
		forecast_set(forecast, i, delay);
	forecast_arm(forecast, timer, delay);
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
	for (int i = 0; i < FORECAST_TIMERS; i++) {
		assert_int_equal(forecast->timers[i].told, forecast->timers[i].armed);
		forecast->timers[i].told = false;
	}
}

/* Several at once; one may be there twice. */
static void forecast_stop_many(struct forecast *forecast)
{
	size_t count = random_below(&forecast->random, MANY) + 1;
	struct tw_timer timers[MANY];
	enum tw_status expected[MANY];
	enum tw_status statuses[MANY];
	size_t expected_stopped = 0;
	size_t stopped;

	for (size_t i = 0; i < count; i++) {
		uint64_t number = random_below(&forecast->random, FORECAST_TIMERS);
		bool armed = forecast->timers[number].armed;

		timers[i] = forecast->probes[number].timer;
		expected[i] = armed ? TW_OK : TW_NOT_FOUND;
		expected_stopped += armed;
		forecast->timers[number].armed = false;
	}
	assert_status(tw_timers_stop(forecast->recorder->wheel, timers, count, statuses, &stopped),
		      TW_OK);
	assert_int_equal(stopped, expected_stopped);
	for (size_t i = 0; i < count; i++)
		assert_status(statuses[i], expected[i]);
}

static void forecast_reset_many(struct forecast *forecast)
{
	size_t count = random_below(&forecast->random, MANY) + 1;
	struct tw_reset resets[MANY];
	enum tw_status expected[MANY];
	enum tw_status statuses[MANY];

	for (size_t i = 0; i < count; i++) {
		uint64_t number = random_below(&forecast->random, FORECAST_TIMERS);
		struct expectation *timer = &forecast->timers[number];
		tw_duration delay = forecast_delay(forecast);

		resets[i] = (struct tw_reset){forecast->probes[number].timer, delay};
		expected[i] = timer->armed ? TW_OK : TW_NOT_FOUND;
		forecast_arm(forecast, timer, delay);
	}
	assert_status(tw_timers_reset(forecast->recorder->wheel, resets, count, statuses, NULL),
		      TW_OK);
	for (size_t i = 0; i < count; i++)
		assert_status(statuses[i], expected[i]);
}

/* All that is armed came back in that way, in any order, and nothing else did. */
static void forecast_check_all(struct forecast *forecast, enum event_kind kind,
			       enum tw_reason reason)
{
	while (forecast->events < event_count(forecast->recorder)) {
		struct event event = event_at(forecast->recorder, forecast->events++);
		struct expectation *timer = &forecast->timers[(uintptr_t)event.value];

		assert_true(timer->armed);
		assert_int_equal(event.kind, kind);
		assert_int_equal(event.reason, reason);
		assert_int_equal(event.deadline, timer->deadline);
		timer->armed = false;
	}
	for (int i = 0; i < FORECAST_TIMERS; i++)
		assert_false(forecast->timers[i].armed);
}

static void forecast_drain(struct forecast *forecast)
{
	assert_status(tw_drain(forecast->recorder->wheel, probe_drain, forecast->recorder), TW_OK);
	settle(forecast->recorder);
	forecast_check_all(forecast, EVENT_DRAIN, 0);
}

static void forecast_ask(struct forecast *forecast, int i)
{
	const struct expectation *timer = &forecast->timers[i];
	tw_duration remaining;
	enum tw_status status = tw_timer_remaining(forecast->recorder->wheel,
						   forecast->probes[i].timer, &remaining);

	assert_status(status, timer->armed ? TW_OK : TW_NOT_FOUND);
	if (timer->armed)
		assert_int_equal(remaining, timer->deadline > forecast->now
						    ? timer->deadline - forecast->now
						    : 0);
}

void forecast_begin(struct forecast *forecast, const struct variant *variant, struct random random)
{
	memset(forecast, 0, sizeof(*forecast));
	forecast->recorder = probes_open(variant);
	forecast->random = random;
	for (uintptr_t i = 0; i < FORECAST_TIMERS; i++)
		forecast->probes[i] = (struct probe){.recorder = forecast->recorder, .number = i};
}

void forecast_step(struct forecast *forecast)
{
	struct random *random = &forecast->random;

	if (!random_once_in(random, 40))
		forecast_command(forecast, (int)random_below(random, FORECAST_TIMERS));
	else if (random_once_in(random, 20))
		forecast_drain(forecast);
	else
		random_once_in(random, 2) ? forecast_stop_many(forecast)
					  : forecast_reset_many(forecast);
	forecast_advance(forecast, 0);
	forecast_ask(forecast, (int)random_below(random, FORECAST_TIMERS));
	if (random_once_in(random, 20))
		forecast_walk(forecast);
	if (random_once_in(random, 3))
		forecast_advance(forecast, random_between(random, 0, 3 * INTERVAL));
	else if (random_once_in(random, 50))
		forecast_advance(forecast, random_between(random, 0, 300 * INTERVAL));
}

void forecast_end(struct forecast *forecast)
{
	stop_wheel(forecast->recorder);
	forecast_check_all(forecast, EVENT_RELEASE, TW_STOPPED);
	assert_status(probe_stop(&forecast->probes[0]), TW_CLOSED);
	assert_status(probe_reset(&forecast->probes[0], 1), TW_CLOSED);
	recorder_close(forecast->recorder);
}
