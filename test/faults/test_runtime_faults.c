/* SPDX-License-Identifier: MIT */
/*
 * Every allocation and every thread creation fails once: the call reports it, nothing is lost,
 * nothing leaks (found by the address sanitizer's run). The library's allocations are linked to
 * come here first.
 */
#include "support/test.h"

#include "faults/faults.h"
#include "support/ledger.h"
#include "support/recorder.h"
#include "support/stats.h"

#include <semaphore.h>

enum {
	TIMERS = 300,
	VALUES = 3 * TIMERS,
};

struct scenario {
	struct tw_wheel *wheel;
	struct ledger *ledger;
	size_t next_value;
	size_t no_memory; /* calls with that status */
};

/* Two are stored in a timer, one of these from malloc. */
enum { LONGEST_KEY = 1000 };
static const size_t key_sizes[] = {16, 40, 100, LONGEST_KEY};

/* Writes the key of a timer. Returns its size. */
static size_t key_of(size_t timer, char key[LONGEST_KEY])
{
	memset(key, 'k', LONGEST_KEY);
	snprintf(key, LONGEST_KEY, "%zu", timer);
	return key_sizes[timer % 4];
}

static bool judge(struct scenario *scenario, enum tw_status status)
{
	if (status == TW_NO_MEMORY)
		scenario->no_memory++;
	else
		assert_status(status, TW_OK);
	return status == TW_OK;
}

static void set_all(struct scenario *scenario, tw_duration delay)
{
	char key[LONGEST_KEY];

	for (size_t timer = 0; timer < TIMERS; timer++) {
		size_t size = key_of(timer, key);
		size_t value = scenario->next_value++;

		ledger_accept(scenario->ledger, value);
		if (!judge(scenario, tw_set_timer(scenario->wheel, key, size, VALUE(value), delay)))
			ledger_refuse(scenario->ledger, value);
	}
}

static void move_some(struct scenario *scenario, size_t first, tw_duration delay)
{
	char key[LONGEST_KEY];

	for (size_t timer = first; timer < TIMERS; timer += 3) {
		size_t size = key_of(timer, key);

		judge(scenario, tw_move_timer(scenario->wheel, key, size, delay));
	}
}

static void remove_some(struct scenario *scenario)
{
	char key[LONGEST_KEY];

	for (size_t timer = 1; timer < TIMERS; timer += 5) {
		size_t size = key_of(timer, key);

		judge(scenario, tw_remove_timer(scenario->wheel, key, size));
	}
}

static void count(void *runs)
{
	++*(int *)runs;
}

static void live(struct scenario *scenario)
{
	struct tw_wheel *wheel = scenario->wheel;
	enum tw_status contained;
	struct tw_alarm alarm;
	int runs = 0;

	/* An alarm needs no memory. */
	assert_status(tw_alarm_init(wheel, &alarm, count, &runs), TW_OK);
	assert_status(tw_alarm_set(&alarm, INTERVAL * 6), TW_OK);
	set_all(scenario, INTERVAL * 20);
	move_some(scenario, 0, INTERVAL * 4);
	move_some(scenario, 1, INTERVAL * 400);
	move_some(scenario, 2, INTERVAL / 2);
	assert_status(tw_flush(wheel), TW_OK);
	remove_some(scenario);
	assert_status(tw_advance(wheel, INTERVAL * 5), TW_OK);
	set_all(scenario, INTERVAL * 7);
	judge(scenario, tw_drain(wheel, ledger_drain, scenario->ledger));
	set_all(scenario, INTERVAL * 9);
	assert_status(tw_advance(wheel, INTERVAL * 3), TW_OK);
	contained = tw_contains(wheel, "0kkkkkkkkkkkkkkk", 16, NULL);
	assert_true(contained == TW_OK || contained == TW_NOT_FOUND);
	settle_wheel(wheel);
	assert_int_equal(runs, 1);
	assert_status(tw_alarm_destroy(&alarm), TW_OK);
	assert_status(tw_stop(wheel), TW_OK);
}

static enum tw_status create(struct scenario *scenario, const struct variant *variant)
{
	struct tw_options options =
		variant_options(variant, (struct tw_options){.context = scenario->ledger,
							     .release = ledger_release,
							     .queue_capacity = 64,
							     .max_workers = 64,
							     /* No worker is started meanwhile. */
							     .patience_for_worker = TW_HOUR,
							     .name = "faults"});

	return tw_create(&scenario->wheel, INTERVAL, 10, ledger_execute, &options);
}

static void live_through_fault(void *variant)
{
	int anything;
	struct scenario scenario = {.wheel = (struct tw_wheel *)&anything, .next_value = 1};
	enum tw_status created;
	bool met;

	scenario.ledger = ledger_create(VALUES);
	begin_faults();
	created = create(&scenario, variant);
	if (created == TW_OK) {
		live(&scenario);
		tw_destroy(scenario.wheel);
		met = end_faults();
		assert_true(met || scenario.no_memory == 0);
	} else {
		met = end_faults();
		assert_true(met);
		assert_status(created, TW_NO_MEMORY);
		assert_null(scenario.wheel);
	}
	ledger_assert_balanced(scenario.ledger);
	ledger_destroy(scenario.ledger);
}

TEST(everywhere, each_allocation_may_fail_once)
{
	assert_in_range(fail_each(FAULT_ALLOCATION, live_through_fault, *state), 10, 20000);
}

TEST(inline_and_threads, memory_may_run_out_at_any_allocation)
{
	assert_in_range(fail_each(FAULT_REST, live_through_fault, *state), 10, 20000);
}

/* Some of these wheels may grow, so that they have one thread more. */
TEST(once, wheel_whose_threads_cannot_all_start_ends_those_that_did)
{
	struct tw_options options = {.clock = TW_CLOCK_MANUAL};
	struct tw_wheel *wheel;
	size_t threads;

	/* The thread sanitizer starts one of its own with the first. */
	assert_status(tw_create(&wheel, INTERVAL, 10, record_execute, &options), TW_OK);
	tw_destroy(wheel);
	WAIT_UNTIL(count_threads() <= 2);
	threads = count_threads();
	for (options.workers = 1; options.workers <= 4; options.workers++) {
		/* This includes the owner's thread. */
		int started = options.workers + 1 + options.workers % 2;

		options.max_workers = options.workers + options.workers % 2;
		for (int failing = 1; failing <= started; failing++) {
			fail_thread(failing);
			errno = 0;
			assert_status(tw_create(&wheel, INTERVAL, 10, record_execute, &options),
				      TW_SYSTEM);
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(threads_until_fault(), 0);
			WAIT_UNTIL(count_threads() == threads);
		}
	}
	fail_thread(0);
}

struct hold {
	sem_t gate;
	atomic_int begun;
};

static void pass_gate(void *argument)
{
	struct hold *hold = argument;

	atomic_fetch_add(&hold->begun, 1);
	while (sem_wait(&hold->gate) != 0)
		continue;
}

/* The pool's first attempt to grow fails. On a busy machine it would want a fourth worker. */
TEST(pool, worker_that_cannot_start_is_tried_again)
{
	const struct variant *variant = *state;
	struct tw_options options = {.layout = variant->layout,
				     .drive = variant->drive,
				     .clock = TW_CLOCK_MANUAL,
				     .max_workers = 3};
	struct tw_wheel *wheel;
	struct hold hold = {.begun = 0};

	sem_init(&hold.gate, 0, 0);
	assert_status(tw_create(&wheel, INTERVAL, 10, record_execute, &options), TW_OK);
	fail_thread(1);
	for (int i = 0; i < 3; i++)
		assert_status(tw_after_func(wheel, 0, pass_gate, &hold, NULL), TW_OK);
	assert_status(tw_advance(wheel, 0), TW_OK);
	WAIT_UNTIL(atomic_load(&hold.begun) == 3);
	assert_int_equal(threads_until_fault(), 0);
	assert_int_equal(stats_of_wheel(wheel).workers, 3);
	for (int i = 0; i < 3; i++)
		sem_post(&hold.gate);
	assert_status(tw_wait_idle(wheel), TW_OK);
	assert_int_equal(stats_of_wheel(wheel).fired, 3);
	tw_destroy(wheel);
	sem_destroy(&hold.gate);
}

static int count_keys(void *count, const struct tw_pending_timer *timer)
{
	*(size_t *)count += timer->key_size == LONGEST_KEY;
	return 1;
}

/* The walk must allocate more room for some of these long keys. */
RECORDED(everywhere, walk_without_memory_says_so_and_changes_nothing)
{
	enum { MANY = 5, LONG_ONE = 60000 };
	char *key = calloc(1, LONG_ONE);
	enum tw_status status = TW_NO_MEMORY;
	size_t count = 0;
	long failures = 0;

	assert_non_null(key);
	for (int i = 0; i < MANY; i++) {
		key[0] = (char)i;
		assert_status(tw_set_timer(recorder->wheel, key, LONGEST_KEY, NULL, TW_HOUR),
			      TW_OK);
	}
	assert_status(tw_set_timer(recorder->wheel, key, LONG_ONE, NULL, TW_HOUR), TW_OK);
	free(key);
	settle(recorder);
	for (; status == TW_NO_MEMORY; failures++) {
		count = 0;
		fail_allocation(failures + 1, false);
		status = tw_each(recorder->wheel, count_keys, &count);
		assert_int_equal(end_faults(), status == TW_NO_MEMORY);
	}
	assert_status(status, TW_OK);
	assert_int_equal(count, MANY);
	/* These are for the timers, for their keys, and for a longer one. */
	assert_int_equal(failures, 4);
	assert_int_equal(tw_pending(recorder->wheel), MANY + 1);
}

/* There are more than the drains that may run at a time. */
RECORDED(inline, drains_without_memory_leave_room_for_others)
{
	for (int i = 0; i < 100; i++) {
		fail_allocation(1, false);
		assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_NO_MEMORY);
		assert_true(end_faults());
	}
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
}
