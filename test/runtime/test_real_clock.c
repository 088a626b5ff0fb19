/* SPDX-License-Identifier: MIT */
/*
 * These few tests wait for real time. The machine may be busy: an upper bound is loose, leaves out
 * how long these threads had no processor, and is tried again; or the test waits for a state.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/gate.h"
#include "support/recorder.h"

#include <sys/resource.h>

#define TICK TW_MILLISECOND
/* A timer is late beyond this only if a thread had no processor. */
#define LATEST ((TEST_HAS_SANITIZER ? 2000 : 500) * TW_MILLISECOND)

enum { TIMERS = 2000, LONGEST_DELAY = 300 /* ticks */ };

/* Tasks note times here. */
struct watch {
	struct tw_wheel *wheel;
	atomic_uchar runs[TIMERS + 1]; /* by value */
	atomic_int executed;
	int64_t waited; /* processor_waited() before */
	atomic_int early;
	_Atomic tw_duration latest;       /* largest lateness */
	tw_duration earliest[TIMERS + 1]; /* by value */
};

static void execute(void *context, const struct tw_task *task)
{
	struct watch *watch = context;
	size_t value = (size_t)(uintptr_t)task->value;
	tw_duration now = tw_now(watch->wheel);
	tw_duration latest = atomic_load(&watch->latest);

	if (task->lateness < 0 || now < task->deadline || now - task->deadline < task->lateness ||
	    task->deadline < watch->earliest[value])
		atomic_fetch_add(&watch->early, 1);
	while (now - task->deadline > latest &&
	       !atomic_compare_exchange_weak(&watch->latest, &latest, now - task->deadline))
		continue;
	atomic_fetch_add(&watch->runs[value], 1);
	atomic_fetch_add(&watch->executed, 1);
}

static void watch_start(struct watch *watch, const struct variant *variant, enum tw_clock clock)
{
	struct tw_options options = {.context = watch,
				     .clock = clock,
				     .drive = variant->drive,
				     .workers = variant->workers};

	*watch = (struct watch){.waited = processor_waited()};
	assert_status(tw_create(&watch->wheel, TICK, 64, execute, &options), TW_OK);
}

static void watch_set(struct watch *watch, struct random *random, size_t count)
{
	for (size_t value = 1; value <= count; value++) {
		tw_duration delay = random_between(random, TICK, LONGEST_DELAY * TICK);

		watch->earliest[value] = tw_now(watch->wheel) + delay;
		assert_status(
			tw_set_timer(watch->wheel, &value, sizeof(value), VALUE(value), delay),
			TW_OK);
	}
}

/* Returns whether no timer was late. */
static bool watch_end(struct watch *watch, size_t count)
{
	bool prompt;

	for (size_t value = 1; value <= count; value++)
		assert_int_equal(atomic_load(&watch->runs[value]), 1);
	assert_int_equal(atomic_load(&watch->executed), count);
	assert_int_equal(atomic_load(&watch->early), 0);
	prompt = atomic_load(&watch->latest) <= LATEST + processor_waited() - watch->waited;
	tw_destroy(watch->wheel);
	return prompt;
}

static bool run_watch(const struct variant *variant, enum tw_clock clock)
{
	static struct watch watch;
	struct random random = random_from(seed_choose(), 0);

	watch_start(&watch, variant, clock);
	watch_set(&watch, &random, TIMERS);
	WAIT_UNTIL(atomic_load(&watch.executed) == TIMERS);
	return watch_end(&watch, TIMERS);
}

TEST(with_owner, timers_run_never_early_and_soon_after_their_deadline)
{
	WAIT_UNTIL(run_watch(*state, TW_CLOCK_MONOTONIC));
}

TEST(threads, timers_run_on_the_clock_that_counts_suspended_time)
{
	WAIT_UNTIL(run_watch(*state, TW_CLOCK_BOOTTIME));
}

static bool run_by_poll(const struct variant *variant)
{
	enum { FEW = 200 };
	static struct watch watch;
	struct random random = random_from(seed_choose(), 1);
	tw_duration until_next = 0;
	int polls = 0;

	watch_start(&watch, variant, TW_CLOCK_MONOTONIC);
	watch_set(&watch, &random, FEW);
	while (atomic_load(&watch.executed) < FEW && polls < 10 * LONGEST_DELAY) {
		assert_status(tw_poll(watch.wheel, &until_next), TW_OK);
		if (until_next != TW_FOREVER)
			wait_for(until_next);
		else
			settle_wheel(watch.wheel);
		polls++;
	}
	settle_wheel(watch.wheel);
	return watch_end(&watch, FEW);
}

TEST(by_caller, caller_may_sleep_as_long_as_poll_says)
{
	WAIT_UNTIL(run_by_poll(*state));
}

/* No call asks the owner, which sleeps for an hour if the command does not wake it. */
TEST(threads, move_and_remove_reach_a_sleeping_owner)
{
	static struct watch watch;
	size_t near = 1;
	size_t far = 2;
	size_t gone = 3;

	watch_start(&watch, *state, TW_CLOCK_MONOTONIC);
	assert_status(tw_set_timer(watch.wheel, &far, sizeof(far), VALUE(near), TW_HOUR), TW_OK);
	assert_status(tw_set_timer(watch.wheel, &gone, sizeof(gone), VALUE(gone), TW_HOUR), TW_OK);
	assert_status(tw_flush(watch.wheel), TW_OK);
	wait_for(20 * TICK);
	assert_status(tw_remove_timer(watch.wheel, &gone, sizeof(gone)), TW_OK);
	WAIT_UNTIL(tw_pending(watch.wheel) == 1);
	wait_for(20 * TICK);
	assert_status(tw_move_timer(watch.wheel, &far, sizeof(far), 20 * TICK), TW_OK);
	WAIT_UNTIL(atomic_load(&watch.executed) == 1);
	wait_for(100 * TICK);
	(void)watch_end(&watch, 1);
}

/* An idle wait begins while an inline task runs, and a timer comes due meanwhile. */
struct late_idle {
	struct tw_wheel *wheel;
	struct gate gate;
	atomic_bool has_run;
	bool had_run; /* when the wait was over */
};

static void run_behind_gate(void *argument)
{
	struct late_idle *late = argument;

	gate_pass(&late->gate);
}

static void note_run(void *argument)
{
	struct late_idle *late = argument;

	atomic_store(&late->has_run, true);
}

static void wait_idle_and_look(void *argument)
{
	struct late_idle *late = argument;

	(void)tw_wait_idle(late->wheel);
	late->had_run = atomic_load(&late->has_run);
}

TEST(owner, idle_wait_covers_what_comes_due_during_an_inline_task)
{
	const struct variant *variant = *state;
	struct tw_options options = {.workers = variant->workers};
	struct late_idle late = {.had_run = false};
	struct blocked_call wait;
	tw_duration due;

	gate_init(&late.gate);
	assert_status(tw_create(&late.wheel, TICK, 64, execute, &options), TW_OK);
	assert_status(tw_after_func(late.wheel, TICK, run_behind_gate, &late, NULL), TW_OK);
	gate_await(&late.gate);
	assert_status(tw_after_func(late.wheel, TICK, note_run, &late, NULL), TW_OK);
	due = tw_now(late.wheel) + 2 * TICK;
	WAIT_UNTIL(tw_now(late.wheel) > due);
	blocked_call_start(&wait, wait_idle_and_look, &late);
	blocked_call_falls_asleep(&wait);
	gate_open(&late.gate);
	blocked_call_end(&wait);
	assert_true(late.had_run);
	tw_destroy(late.wheel);
}

static void sleep_for_a_second(void *argument)
{
	wait_for(TW_SECOND);
}

static void beat(void *argument)
{
	atomic_fetch_add((atomic_int *)argument, 1);
}

/* Returns whether 40 sleeping tasks and a beat of 10 ms began in time. On an otherwise idle machine
 * the beat is 8 ms late, once: less than 15. */
static bool no_sleeper_delays_others(const struct variant *variant)
{
	struct tw_options options = {0};
	struct tw_wheel *wheel;
	atomic_int beats = 0;
	struct tw_timer timer;
	struct tw_stats stats;

	assert_status(tw_create(&wheel, TICK, 64, execute, &options), TW_OK);
	assert_status(tw_every(wheel, 10 * TICK, 10 * TICK, TW_MISSED_BURST, beat, &beats, &timer),
		      TW_OK);
	for (int i = 0; i < 40; i++)
		assert_status(tw_after_func(wheel, 20 * TICK, sleep_for_a_second, NULL, NULL),
			      TW_OK);
	WAIT_UNTIL(atomic_load(&beats) >= 100);
	(void)tw_timer_stop_wait(wheel, timer);
	assert_status(tw_get_stats(wheel, &stats), TW_OK);
	if (stats.lateness.max >= 15 * TW_MILLISECOND)
		print_message("the latest was %lld us late\n",
			      (long long)stats.lateness.max / 1000);
	tw_destroy(wheel);
	return stats.lateness.max <= LATEST;
}

TEST(threads, tasks_that_block_delay_no_others)
{
	WAIT_UNTIL(no_sleeper_delays_others(*state));
}

/* The run takes longer than its period, so missed runs never end. */
static void run_too_long(void *argument)
{
	int64_t end = wall_clock() + 2000;

	while (wall_clock() < end)
		continue;
}

TEST(owner, overloaded_wheel_still_takes_commands)
{
	struct tw_options options = {.workers = TW_WORKERS_INLINE, .queue_capacity = 64};
	struct tw_wheel *wheel;
	struct tw_timer timer;

	assert_status(tw_create(&wheel, TICK, 64, execute, &options), TW_OK);
	assert_status(tw_every(wheel, TICK, 100, TW_MISSED_BURST, run_too_long, NULL, &timer),
		      TW_OK);
	wait_for(5 * TICK);
	for (uint32_t key = 0; key < 1000; key++)
		assert_status(tw_set_timer(wheel, &key, sizeof(key), NULL, TW_HOUR), TW_OK);
	assert_true(tw_timer_stop(wheel, timer) != TW_NOT_FOUND);
	assert_status(tw_flush(wheel), TW_OK);
	assert_int_equal(tw_pending(wheel), 1000);
	tw_destroy(wheel);
}

TEST(inline, overloaded_poll_returns)
{
	struct tw_options options = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct tw_wheel *wheel;
	tw_duration until_next = -1;

	assert_status(tw_create(&wheel, TICK, 64, execute, &options), TW_OK);
	assert_status(tw_every(wheel, TICK, 100, TW_MISSED_BURST, run_too_long, NULL, NULL), TW_OK);
	wait_for(5 * TICK);
	assert_status(tw_poll(wheel, &until_next), TW_OK);
	assert_int_equal(until_next, 0);
	tw_destroy(wheel);
}

static tw_duration processor_time(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * TW_SECOND + used.tv_nsec;
}

/* Returns how often threads of this process have gone to sleep. */
static long sleeps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_nvcsw;
}

/* Says whether in a second the wheel's threads neither work nor wake more than a few times; this
 * thread sleeps, too. The thread sanitizer has a thread that wakes some 20 times. */
static bool second_costs_nothing(void)
{
	const long most = SANITIZER_THREAD ? 60 : 7;
	tw_duration used = processor_time();
	long slept = sleeps();

	wait_for(TW_SECOND);
	used = processor_time() - used;
	return sleeps() - slept <= most && (TEST_HAS_SANITIZER || used <= 50 * TW_MILLISECOND);
}

/* The owner may have things to finish first, for which a busy machine leaves it no time. */
TEST(threads, idle_wheel_full_of_far_timers_costs_nothing)
{
	struct tw_options options = {0};
	struct tw_wheel *wheel;

	assert_status(tw_create(&wheel, TICK, 512, execute, &options), TW_OK);
	for (uint32_t key = 0; key < 100000; key++)
		assert_status(tw_set_timer(wheel, &key, sizeof(key), NULL, TW_HOUR + key * TICK),
			      TW_OK);
	assert_status(tw_flush(wheel), TW_OK);
	wait_for(100 * TW_MILLISECOND);
	WAIT_UNTIL(second_costs_nothing());
	assert_int_equal(tw_pending(wheel), 100000);
	tw_destroy(wheel);
}

/* A periodic timer's run takes twice its period, and another timer is due meanwhile. */
struct overrun {
	struct tw_wheel *wheel;
	_Atomic tw_duration other_deadline; /* upper bound */
	_Atomic tw_duration began;          /* the first run since it was 0 */
	atomic_int runs;
	atomic_int too_soon; /* runs due after the other timer, before it */
	atomic_bool other_ran;
};

static void overrun_run(void *argument)
{
	struct overrun *overrun = argument;
	tw_duration now = tw_now(overrun->wheel);
	tw_duration none = 0;

	atomic_compare_exchange_strong(&overrun->began, &none, now);
	if (!atomic_load(&overrun->other_ran) &&
	    tw_current_task()->deadline > atomic_load(&overrun->other_deadline) + TICK)
		atomic_fetch_add(&overrun->too_soon, 1);
	atomic_fetch_add(&overrun->runs, 1);
	while (tw_now(overrun->wheel) < now + 2 * TICK)
		continue;
}

static void overrun_other(void *argument)
{
	struct overrun *overrun = argument;

	atomic_store(&overrun->other_ran, true);
}

/* Returns the time of the first run. */
static tw_duration overrun_start(struct overrun *overrun, const struct tw_options *options)
{
	tw_duration now;

	*overrun = (struct overrun){.other_deadline = TW_FOREVER - TICK};
	assert_status(tw_create(&overrun->wheel, TICK, 64, execute, options), TW_OK);
	now = tw_now(overrun->wheel);
	assert_status(
		tw_every(overrun->wheel, TICK, TICK, TW_MISSED_BURST, overrun_run, overrun, NULL),
		TW_OK);
	assert_status(tw_after_func(overrun->wheel, 20 * TICK, overrun_other, overrun, NULL),
		      TW_OK);
	atomic_store(&overrun->other_deadline, tw_now(overrun->wheel) + 20 * TICK);
	return now + TICK;
}

TEST(inline, poll_runs_what_was_due_when_it_began)
{
	struct tw_options options = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	static struct overrun overrun; /* a failed test leaves its wheel */
	tw_duration first = overrun_start(&overrun, &options);

	while (!atomic_load(&overrun.other_ran)) {
		atomic_store(&overrun.began, 0);
		assert_status(tw_poll(overrun.wheel, NULL), TW_OK);
		/* tw_poll reads the clock before the first run does. */
		if (overrun.began != 0)
			assert_true(atomic_load(&overrun.runs) <=
				    (overrun.began - first) / TICK + 2);
	}
	assert_int_equal(atomic_load(&overrun.too_soon), 0);
	assert_status(tw_wait_idle(overrun.wheel), TW_OK);
	tw_destroy(overrun.wheel);
}

/* A pool has fewer workers than there are such timers. There a worker may begin the other timer
 * late, while another worker goes on. */
TEST(with_owner, run_longer_than_its_period_lets_others_run)
{
	const struct variant *variant = *state;
	struct tw_options options = {.workers = variant->workers};
	static struct overrun overrun; /* a failed test leaves its wheel */

	if (variant->workers != TW_WORKERS_INLINE)
		options.max_workers = options.workers;
	(void)overrun_start(&overrun, &options);
	for (int i = 0; i < 4 && variant->workers != TW_WORKERS_INLINE; i++)
		assert_status(tw_every(overrun.wheel, TICK, TICK, TW_MISSED_BURST, overrun_run,
				       &overrun, NULL),
			      TW_OK);
	WAIT_UNTIL(atomic_load(&overrun.other_ran));
	if (variant->workers == TW_WORKERS_INLINE) {
		assert_int_equal(atomic_load(&overrun.too_soon), 0);
		assert_status(tw_wait_idle(overrun.wheel), TW_OK);
	}
	tw_destroy(overrun.wheel);
}
