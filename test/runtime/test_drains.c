/* SPDX-License-Identifier: MIT */
/* Drains are limited in number, and many threads may drain. */
#include "support/test.h"

#include "support/ledger.h"
#include "support/recorder.h"
#include "support/stats.h"

enum { MOST_DRAINS = 64 };

/* Starts `drains` drains, each of one timer with a new key. Returns how many are accepted. */
static int drain_often(struct recorder *recorder, int drains, enum tw_status *refusal)
{
	for (int i = 0; i < drains; i++) {
		if (tw_set_timer(recorder->wheel, &i, sizeof(i), VALUE(i), INTERVAL) != TW_OK)
			return -1;
		*refusal = tw_drain(recorder->wheel, record_drain, recorder);
		if (*refusal != TW_OK)
			return i;
	}
	return drains;
}

RECORDED(by_caller, drain_too_many_is_refused_until_those_before_it_are_handed_over,
	 .when_full = TW_WHEN_FULL_FAIL)
{
	enum tw_status refusal;

	for (int round = 0; round < 3; round++) {
		assert_int_equal(drain_often(recorder, 100, &refusal), MOST_DRAINS);
		assert_status(refusal, TW_FULL);
		assert_int_equal(stats_of_wheel(recorder->wheel).refused, round + 1);
		assert_status(tw_poll(recorder->wheel, NULL), TW_OK);
	}
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_int_equal(event_count_of_kind(recorder, EVENT_DRAIN), 3 * (MOST_DRAINS + 1));
}

RECORDED(with_threads, drains_wait_for_those_before_them, .when_full = TW_WHEN_FULL_WAIT)
{
	enum tw_status refusal;

	assert_int_equal(drain_often(recorder, 300, &refusal), 300);
	settle(recorder);
	for (uintptr_t i = 0; i < 300; i++)
		assert_drained(recorder, i);
}

/* The caller would have to run drain functions to make room. */
RECORDED(inline, drain_too_many_runs_nothing, .when_full = TW_WHEN_FULL_WAIT)
{
	enum tw_status refusal;

	assert_int_equal(drain_often(recorder, 100, &refusal), MOST_DRAINS);
	assert_status(refusal, TW_FULL);
	assert_int_equal(event_count(recorder), 0);
}

static void drain_and_replace(void *context, const struct tw_task *task)
{
	struct recorder *recorder = context;

	record_drain(recorder, task);
	if (task->value != VALUE(201))
		return;
	may_fail(tw_set_timer(recorder->wheel, "x", 1, VALUE(501), INTERVAL));
	may_fail(tw_set_timer(recorder->wheel, "x", 1, VALUE(502), INTERVAL));
}

/* The first of two drains is over, and the second has begun. */
RECORDED(ordered, what_a_drain_function_causes_comes_after_the_rest_of_its_drain)
{
	for (int number = 1; number <= 400; number++) {
		assert_status(tw_set_timer(recorder->wheel, &number, sizeof(number), VALUE(number),
					   INTERVAL * (number % 200 + 1)),
			      TW_OK);
		if (number % 200 == 0)
			assert_status(tw_drain(recorder->wheel, drain_and_replace, recorder),
				      TW_OK);
	}
	settle(recorder);
	assert_released(recorder, 501, TW_REPLACED);
	assert_int_equal(event_count(recorder), 401);
	assert_ptr_equal(event_at(recorder, 400).value, VALUE(501));
}

/* A value is replaced between two drains. */
RECORDED(inline, value_replaced_between_two_drains_is_released_between_them)
{
	set_timer(recorder, "a", 1, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	set_timer(recorder, "a", 2, INTERVAL);
	set_timer(recorder, "a", 3, INTERVAL);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_order(recorder, 1, 2, 3);
}

/* The only worker is busy until all of the drain waits for it. */
RECORDED(pool, timer_that_is_due_overtakes_a_large_drain, .workers = 1)
{
	enum { MANY = 5000 };
	size_t before = 0;

	recorder->held = MANY + 1;
	set_timer(recorder, "holds", MANY + 1, INTERVAL);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	gate_await(&recorder->gate);
	for (int number = 1; number <= MANY; number++)
		assert_status(tw_set_timer(recorder->wheel, &number, sizeof(number), VALUE(number),
					   TW_SECOND),
			      TW_OK);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	WAIT_UNTIL((flush_wheel(recorder), stats_of_wheel(recorder->wheel).unfinished > MANY));
	set_timer(recorder, "due", MANY + 2, INTERVAL);
	assert_status(tw_advance(recorder->wheel, INTERVAL), TW_OK);
	flush_wheel(recorder);
	gate_open(&recorder->gate);
	settle(recorder);
	while (event_at(recorder, before).value != VALUE(MANY + 2))
		before++;
	assert_in_range(before, 1, MANY / 2);
}

struct drains {
	int accepted;
	enum tw_status refusal;
};

static void drain_in_task(struct recorder *recorder, const struct tw_task *task)
{
	struct drains *drains = recorder->argument;

	drains->accepted = drain_often(recorder, 300, &drains->refusal);
}

/* An inline task would wait for its own end. */
TEST(everywhere, task_never_hangs_on_drains)
{
	const struct variant *variant = *state;
	struct recorder *recorder = recorder_open_with(
		variant, 10, (struct tw_options){.when_full = TW_WHEN_FULL_WAIT});
	struct drains drains = {0};

	recorder->on_execute = drain_in_task;
	recorder->argument = &drains;
	set_timer(recorder, "drains", 1000, INTERVAL);
	pass_ticks(recorder, 1);
	settle(recorder);
	assert_int_equal(drains.accepted,
			 variant->workers == TW_WORKERS_INLINE ? MOST_DRAINS : 300);
	assert_status(drains.refusal, variant->workers == TW_WORKERS_INLINE ? TW_FULL : TW_OK);
	assert_int_equal(event_count_of_kind(recorder, EVENT_DRAIN), drains.accepted);
	recorder_close(recorder);
}

/* Setters and drainers use the same few keys. */
enum { CROWD_KEYS = 500, CROWD_SETS = TEST_SHARE_OF(60000), CROWD_SETTERS = 2, CROWD_DRAINERS = 2 };

struct crowd {
	struct tw_wheel *wheel;
	struct ledger *ledger;
	atomic_int setting; /* setters at work */
	atomic_int wrong;   /* calls that did not return TW_OK */
};

struct crowd_setter {
	struct crowd *crowd;
	int number;
};

static void *set_in_crowd(void *argument)
{
	struct crowd_setter *setter = argument;
	struct crowd *crowd = setter->crowd;
	struct random random = random_from(1, (uint64_t)setter->number);

	for (int i = 0; i < CROWD_SETS; i++) {
		size_t value = (size_t)(1 + setter->number * CROWD_SETS + i);
		uint64_t key = random_below(&random, CROWD_KEYS);

		ledger_accept(crowd->ledger, value);
		if (tw_set_timer(crowd->wheel, &key, sizeof(key), VALUE(value), TW_HOUR) != TW_OK)
			atomic_fetch_add(&crowd->wrong, 1);
	}
	atomic_fetch_sub(&crowd->setting, 1);
	return NULL;
}

static void *drain_in_crowd(void *argument)
{
	struct crowd *crowd = argument;

	while (atomic_load(&crowd->setting) > 0) {
		enum tw_status status = tw_drain(crowd->wheel, ledger_drain, crowd->ledger);

		/* With inline workers, and no owner thread, only some calls run drain functions. */
		if (status == TW_FULL)
			status = tw_flush(crowd->wheel);
		if (status != TW_OK)
			atomic_fetch_add(&crowd->wrong, 1);
		wait_for(TW_MILLISECOND / 5);
	}
	return NULL;
}

static void crowd_run(struct crowd *crowd)
{
	struct crowd_setter setters[CROWD_SETTERS];
	pthread_t threads[CROWD_SETTERS + CROWD_DRAINERS];

	for (int i = 0; i < CROWD_SETTERS; i++) {
		setters[i] = (struct crowd_setter){crowd, i};
		pthread_create(&threads[i], NULL, set_in_crowd, &setters[i]);
	}
	for (int i = 0; i < CROWD_DRAINERS; i++)
		pthread_create(&threads[CROWD_SETTERS + i], NULL, drain_in_crowd, crowd);
	for (int i = 0; i < CROWD_SETTERS + CROWD_DRAINERS; i++)
		pthread_join(threads[i], NULL);
}

TEST(everywhere, drains_of_several_threads_give_each_value_back_once)
{
	const struct variant *variant = *state;
	struct crowd crowd = {.setting = CROWD_SETTERS};
	struct tw_options options = {.layout = variant->layout,
				     .clock = TW_CLOCK_MANUAL,
				     .drive = variant->drive,
				     .workers = variant->workers,
				     .release = ledger_release};

	crowd.ledger = options.context = ledger_create(CROWD_SETTERS * CROWD_SETS);
	assert_status(tw_create(&crowd.wheel, INTERVAL, 64, ledger_execute, &options), TW_OK);
	crowd_run(&crowd);
	assert_int_equal(atomic_load(&crowd.wrong), 0);
	/* The threads may have left as many drains as are allowed. */
	assert_status(tw_wait_idle(crowd.wheel), TW_OK);
	assert_status(tw_drain(crowd.wheel, ledger_drain, crowd.ledger), TW_OK);
	assert_status(tw_wait_idle(crowd.wheel), TW_OK);
	assert_int_equal(tw_pending(crowd.wheel), 0);
	ledger_assert_balanced(crowd.ledger);
	assert_int_equal(ledger_counts(crowd.ledger).executed, 0);
	assert_true(ledger_counts(crowd.ledger).drained > 0);
	tw_destroy(crowd.wheel);
	ledger_assert_balanced(crowd.ledger);
	ledger_destroy(crowd.ledger);
}

/* These are more timers than a turn hands over. */
RECORDED(everywhere, idle_wait_covers_all_of_a_large_drain)
{
	enum { MANY = 5000 };

	for (int number = 1; number <= MANY; number++)
		assert_status(tw_set_timer(recorder->wheel, &number, sizeof(number), VALUE(number),
					   INTERVAL),
			      TW_OK);
	assert_status(tw_drain(recorder->wheel, record_drain, recorder), TW_OK);
	settle(recorder);
	assert_int_equal(event_count(recorder), MANY);
}
