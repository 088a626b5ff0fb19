/* SPDX-License-Identifier: MIT */
/*
 * Every public call of the wheel and of the schedules meets the failure of each of its allocations,
 * threads and descriptors; the calls that create something also meet the failure of each pair of
 * allocations. A call that reports missing memory has changed nothing and works when there is
 * memory again; its arguments come back once. Leaks are found by the address sanitizer's run.
 */
#include "support/test.h"

#include "faults/faults.h"
#include "support/recorder.h"

#include <timingwheel/cron.h>

enum { VALUES = 64, LONG_KEY = 1000, PENDING = 5 };

/* A key of more than 24 bytes is stored in a timer, and this long one in a timer from malloc. */
static const char long_key[LONG_KEY] = "long";

/* A stage is a wheel with timers by key, two by handle and an alarm; other arguments of a call are
 * created before it. */
struct stage {
	const struct variant *variant;
	enum tw_clock clock;
	enum tw_status (*call)(struct stage *stage);
	atomic_int owed[VALUES + 1]; /* by value, 1 while the wheel has it */
	struct tw_wheel *wheel;
	struct tw_alarm alarm;
	struct tw_timer timers[2];
	size_t next_value;
	size_t failures;
};

static void never(void *argument)
{
	fail_msg("%p ran", argument);
}

static tw_duration in_an_hour(void *argument, tw_duration previous)
{
	return previous + TW_HOUR;
}

/* A value comes back: its task runs, or it is drained. */
static void take_back(void *context, const struct tw_task *task)
{
	struct stage *stage = context;
	uintptr_t value = (uintptr_t)task->value;

	atomic_fetch_sub(&stage->owed[value <= VALUES ? value : 0], 1);
}

static void release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	take_back(context, task);
}

static void *new_value(struct stage *stage)
{
	atomic_fetch_add(&stage->owed[++stage->next_value], 1);
	return VALUE(stage->next_value);
}

/* Keeps the last `count` values for the caller. */
static void keep_values(struct stage *stage, size_t count)
{
	for (size_t i = 0; i < count; i++)
		atomic_fetch_sub(&stage->owed[stage->next_value - i], 1);
}

static enum tw_status one_value(struct stage *stage, enum tw_status status)
{
	if (status != TW_OK)
		keep_values(stage, 1);
	return status;
}

static enum tw_status call_set_timer(struct stage *stage)
{
	return one_value(stage, tw_set_timer(stage->wheel, "new", 3, new_value(stage), TW_HOUR));
}

static enum tw_status call_set_timer_with_a_long_key(struct stage *stage)
{
	return one_value(stage, tw_set_timer(stage->wheel, long_key, LONG_KEY - 1, new_value(stage),
					     TW_HOUR));
}

static enum tw_status call_set_timer_again(struct stage *stage)
{
	return one_value(stage,
			 tw_set_timer(stage->wheel, long_key, LONG_KEY, new_value(stage), TW_HOUR));
}

static enum tw_status call_add_timer(struct stage *stage)
{
	return one_value(stage, tw_add_timer(stage->wheel, "new", 3, new_value(stage), TW_HOUR));
}

static enum tw_status call_add_timer_with_a_long_key(struct stage *stage)
{
	return one_value(stage, tw_add_timer(stage->wheel, long_key, LONG_KEY - 1, new_value(stage),
					     TW_HOUR));
}

static enum tw_status call_take_timer(struct stage *stage)
{
	void *value;
	enum tw_status status = tw_take_timer(stage->wheel, long_key, LONG_KEY, &value);

	if (status == TW_OK)
		atomic_fetch_sub(&stage->owed[(uintptr_t)value], 1);
	return status;
}

static enum tw_status call_move_timer(struct stage *stage)
{
	return tw_move_timer(stage->wheel, long_key, LONG_KEY, 2 * TW_HOUR);
}

static enum tw_status call_remove_timer(struct stage *stage)
{
	return tw_remove_timer(stage->wheel, long_key, LONG_KEY);
}

static enum tw_status call_drain(struct stage *stage)
{
	return tw_drain(stage->wheel, take_back, stage);
}

static int visit(void *count, const struct tw_pending_timer *timer)
{
	++*(size_t *)count;
	return 1;
}

static enum tw_status call_each(struct stage *stage)
{
	size_t count = 0;
	enum tw_status status = tw_each(stage->wheel, visit, &count);

	assert_int_equal(count, status == TW_OK ? PENDING : 0);
	return status;
}

/* This is the calendar of call_schedule_cron(). */
static struct tw_cron *hourly;

static enum tw_status call_after_func(struct stage *stage)
{
	return one_value(stage,
			 tw_after_func(stage->wheel, TW_HOUR, never, new_value(stage), NULL));
}

static enum tw_status call_every(struct stage *stage)
{
	return one_value(stage, tw_every(stage->wheel, TW_HOUR, TW_HOUR, TW_MISSED_SKIP, never,
					 new_value(stage), NULL));
}

static enum tw_status call_schedule_func(struct stage *stage)
{
	return one_value(stage,
			 tw_schedule_func(stage->wheel, in_an_hour, never, new_value(stage), NULL));
}

static enum tw_status call_schedule_cron(struct stage *stage)
{
	return one_value(stage,
			 tw_schedule_cron(stage->wheel, hourly, never, new_value(stage), NULL));
}

static enum tw_status call_timer_stop(struct stage *stage)
{
	atomic_fetch_sub(&stage->owed[3], 1);
	return tw_timer_stop(stage->wheel, stage->timers[0]);
}

static enum tw_status call_timer_stop_wait(struct stage *stage)
{
	atomic_fetch_sub(&stage->owed[3], 1);
	return tw_timer_stop_wait(stage->wheel, stage->timers[0]);
}

static enum tw_status call_timer_reset(struct stage *stage)
{
	return tw_timer_reset(stage->wheel, stage->timers[0], TW_MINUTE);
}

static enum tw_status call_timer_remaining(struct stage *stage)
{
	return tw_timer_remaining(stage->wheel, stage->timers[0], NULL);
}

static enum tw_status call_alarm_set(struct stage *stage)
{
	return tw_alarm_set(&stage->alarm, TW_HOUR);
}

static enum tw_status call_alarm_set_at(struct stage *stage)
{
	return tw_alarm_set_at(&stage->alarm, TW_HOUR);
}

static enum tw_status call_alarm_stop(struct stage *stage)
{
	return tw_alarm_stop(&stage->alarm) == TW_NOT_FOUND ? TW_OK : TW_INVALID;
}

static enum tw_status call_contains(struct stage *stage)
{
	return tw_contains(stage->wheel, long_key, LONG_KEY, NULL);
}

static enum tw_status call_flush(struct stage *stage)
{
	return tw_flush(stage->wheel);
}

static enum tw_status call_wait_idle(struct stage *stage)
{
	return tw_wait_idle(stage->wheel);
}

static enum tw_status call_wait_idle_until(struct stage *stage)
{
	return tw_wait_idle_until(stage->wheel, TW_HOUR);
}

static enum tw_status call_advance(struct stage *stage)
{
	return tw_advance(stage->wheel, INTERVAL);
}

static enum tw_status call_poll(struct stage *stage)
{
	return stage->variant->drive == TW_DRIVE_CALLER ? tw_poll(stage->wheel, NULL) : TW_OK;
}

static enum tw_status call_get_stats(struct stage *stage)
{
	struct tw_stats stats;

	return tw_get_stats(stage->wheel, &stats);
}

static void ignore_text(void *context, const char *text, size_t size)
{
}

static enum tw_status call_write_metrics(struct stage *stage)
{
	return tw_write_metrics(stage->wheel, ignore_text, NULL, NULL);
}

static enum tw_status call_stop(struct stage *stage)
{
	enum tw_status status = tw_stop(stage->wheel);

	/* This also holds for the second call. */
	return status == TW_CLOSED ? TW_OK : status;
}

static enum tw_status create(struct stage *stage)
{
	struct tw_options options = variant_options(
		stage->variant, (struct tw_options){.context = stage,
						    .release = release,
						    .queue_capacity = 64,
						    .patience_for_worker = TW_HOUR});

	options.clock = stage->clock;
	return tw_create(&stage->wheel, INTERVAL, 16, take_back, &options);
}

static void stage_fill(struct stage *stage)
{
	struct tw_wheel *wheel = stage->wheel;

	assert_status(tw_set_timer(wheel, "key", 3, new_value(stage), TW_HOUR), TW_OK);
	assert_status(tw_set_timer(wheel, long_key, LONG_KEY, new_value(stage), TW_HOUR), TW_OK);
	for (int i = 0; i < 2; i++)
		assert_status(
			tw_after_func(wheel, TW_HOUR, never, new_value(stage), &stage->timers[i]),
			TW_OK);
	assert_status(tw_set_timer(wheel, "third", 5, new_value(stage), TW_HOUR), TW_OK);
	assert_status(tw_flush(wheel), TW_OK);
}

static void stage_open(struct stage *stage)
{
	*stage = (struct stage){
		.variant = stage->variant, .clock = TW_CLOCK_MANUAL, .call = stage->call};
	assert_status(create(stage), TW_OK);
	assert_status(tw_alarm_init(stage->wheel, &stage->alarm, never, NULL), TW_OK);
}

static void stage_close(struct stage *stage)
{
	assert_status(tw_alarm_destroy(&stage->alarm), TW_OK);
	tw_destroy(stage->wheel);
	for (int value = 0; value <= VALUES; value++)
		assert_int_equal(atomic_load(&stage->owed[value]), 0);
}

/* Returns what a call that fails leaves as it is: the number of timers, and the time that the long
 * key's timer has. A stage without timers is not asked: a question may be its first call. */
static tw_duration timers_and_time(struct stage *stage)
{
	tw_duration left = 0;

	if (stage->timers[0].id == 0)
		return 0;
	may_fail(tw_contains(stage->wheel, long_key, LONG_KEY, &left));
	return left + (tw_duration)tw_pending(stage->wheel);
}

static void meet_fault(struct stage *stage)
{
	tw_duration before = timers_and_time(stage);
	enum tw_status status;
	bool met;

	begin_faults();
	status = stage->call(stage);
	met = end_faults();
	if (status == TW_OK)
		return;
	assert_true(met);
	assert_status(status, TW_NO_MEMORY);
	assert_int_equal(timers_and_time(stage), before);
	stage->failures++;
	assert_status(stage->call(stage), TW_OK);
}

static void call_with_fault(void *context)
{
	struct stage *stage = context;

	stage_open(stage);
	stage_fill(stage);
	meet_fault(stage);
	stage_close(stage);
}

/* Each call is the wheel's first, which allocates what was not needed before. */
static void call_first_with_fault(void *context)
{
	struct stage *stage = context;

	stage_open(stage);
	meet_fault(stage);
	stage_close(stage);
}

TEST(everywhere, each_call_meets_each_failure)
{
	static enum tw_status (*const calls[])(struct stage *) = {call_set_timer,
								  call_set_timer_with_a_long_key,
								  call_set_timer_again,
								  call_add_timer,
								  call_add_timer_with_a_long_key,
								  call_take_timer,
								  call_move_timer,
								  call_remove_timer,
								  call_drain,
								  call_each,
								  call_after_func,
								  call_every,
								  call_schedule_func,
								  call_schedule_cron,
								  call_timer_stop,
								  call_timer_stop_wait,
								  call_timer_reset,
								  call_timer_remaining,
								  call_alarm_set,
								  call_alarm_set_at,
								  call_alarm_stop,
								  call_contains,
								  call_flush,
								  call_wait_idle,
								  call_wait_idle_until,
								  call_advance,
								  call_poll,
								  call_get_stats,
								  call_write_metrics,
								  call_stop};

	assert_status(tw_cron_create(&hourly, "@hourly", NULL, NULL), TW_OK);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (enum fault fault = 0; fault < FAULT_KINDS; fault++) {
			struct stage stage = {.variant = *state, .call = calls[i]};

			(void)fail_each(fault, call_with_fault, &stage);
		}
	tw_cron_destroy(hourly);
}

TEST(everywhere, each_first_call_meets_each_failure)
{
	static enum tw_status (*const calls[])(struct stage *) = {
		call_set_timer,     call_set_timer_with_a_long_key,
		call_add_timer,     call_add_timer_with_a_long_key,
		call_after_func,    call_every,
		call_schedule_func, call_schedule_cron,
		call_drain};

	assert_status(tw_cron_create(&hourly, "@hourly", NULL, NULL), TW_OK);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct stage stage = {.variant = *state, .call = calls[i]};

		assert_true(fail_each(FAULT_ALLOCATION, call_first_with_fault, &stage) > 0);
		(void)fail_each(FAULT_PAIR, call_first_with_fault, &stage);
	}
	tw_cron_destroy(hourly);
}

static void create_with_fault(void *context)
{
	struct stage *stage = context;
	enum tw_status status;
	int anything;
	bool met;

	stage->wheel = (void *)&anything;
	begin_faults();
	errno = 0;
	status = create(stage);
	met = end_faults();
	if (status == TW_OK) {
		tw_destroy(stage->wheel);
	} else {
		assert_true(met);
		assert_null(stage->wheel);
		if (status != TW_NO_MEMORY) {
			assert_status(status, TW_SYSTEM);
			assert_true(errno == EAGAIN || errno == EMFILE);
		}
	}
}

TEST(everywhere, creation_meets_each_failure)
{
	struct stage stage = {.variant = *state};

	for (int clock = TW_CLOCK_MONOTONIC; clock <= TW_CLOCK_MANUAL; clock++) {
		stage.clock = (enum tw_clock)clock;
		assert_in_range(fail_each(FAULT_ALLOCATION, create_with_fault, &stage), 5, 1000);
		(void)fail_each(FAULT_PAIR, create_with_fault, &stage);
		(void)fail_each(FAULT_THREAD, create_with_fault, &stage);
		assert_int_equal(fail_each(FAULT_DESCRIPTOR, create_with_fault, &stage),
				 clock == TW_CLOCK_BOOTTIME &&
					 stage.variant->drive == TW_DRIVE_THREAD);
	}
}

TEST(everywhere, wheel_without_a_clock_is_refused)
{
	struct stage stage = {.variant = *state};

	fail_calls("clock_getres", EINVAL);
	assert_status(create(&stage), TW_SYSTEM);
	assert_true(end_faults());
	assert_null(stage.wheel);
}

/* The seed of the hash is then made from the time and an address. */
TEST(everywhere, wheel_needs_no_random_bytes)
{
	struct stage stage = {.variant = *state};

	fail_calls("getrandom", EAGAIN);
	stage_open(&stage);
	assert_true(end_faults());
	stage_fill(&stage);
	assert_status(tw_contains(stage.wheel, long_key, LONG_KEY, NULL), TW_OK);
	stage_close(&stage);
}

TEST(inline, wheel_without_a_descriptor_has_none_to_show_until_there_is_one)
{
	struct stage stage = {.variant = *state, .clock = TW_CLOCK_MONOTONIC};

	assert_status(create(&stage), TW_OK);
	fail_descriptor(1);
	assert_true(tw_fd(stage.wheel) < 0);
	assert_true(end_faults());
	assert_true(tw_fd(stage.wheel) >= 0);
	tw_destroy(stage.wheel);
}
