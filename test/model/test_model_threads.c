/* SPDX-License-Identifier: MIT */
/*
 * The laws under load: four threads give the same keys commands at random, tasks do too, a fifth
 * thread moves the clock, the wheel is stopped at some point. Each value that was accepted comes
 * back exactly once, and none before its time.
 */
#include "support/test.h"

#include "support/ledger.h"
#include "support/recorder.h"
#include "support/seed.h"
#include "support/stats.h"
#include "support/wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
	THREADS = 4,
	COMMANDS = TEST_SHARE_OF(20000), /* of each thread, at most */
	VALUES = 2 * THREADS * COMMANDS, /* the second half is for tasks */
	SHARED_KEYS = 300,
	OWN_KEYS = 100, /* of each thread: no other commands them, so it knows when they may run */
};

/* What kind of weather. */
struct setting {
	int commands; /* of each thread */
	size_t queue_capacity;
	size_t max_pending;
	enum tw_when_full when_full;
	int stop_at; /* when so many of a thousand commands have been given; 1000: at the end */
};

struct storm {
	struct tw_wheel *wheel;
	struct ledger *ledger;
	const struct setting *setting;
	atomic_int at_work;            /* threads that give commands */
	atomic_int stopping;           /* from here on TW_CLOSED is a right answer */
	atomic_int wrong;              /* calls that answered what they must not */
	atomic_int early;              /* tasks */
	atomic_int crowded;            /* times more timers were pending than may be */
	atomic_size_t in_tasks;        /* values set by tasks */
	_Atomic tw_duration *earliest; /* by value: when it may run at the earliest; 0: not known */
};

/* A command's answer: 1 if it was accepted. */
static int judge(struct storm *storm, enum tw_status status)
{
	int may_be_full = storm->setting->when_full == TW_WHEN_FULL_FAIL;

	if (status != TW_OK && !(status == TW_FULL && may_be_full) &&
	    !(status == TW_CLOSED && atomic_load(&storm->stopping)))
		atomic_fetch_add(&storm->wrong, 1);
	return status == TW_OK;
}

/* 1 if it was accepted. */
static int set_value(struct storm *storm, const void *key, size_t size, size_t value,
		     tw_duration delay)
{
	int accepted;

	ledger_accept(storm->ledger, value);
	accepted = judge(storm, tw_set_timer(storm->wheel, key, size, VALUE(value), delay));
	if (!accepted)
		ledger_refuse(storm->ledger, value);
	return accepted;
}

static void note_if_early(struct storm *storm, const struct tw_task *task)
{
	tw_duration now = tw_now(storm->wheel);
	size_t value = (size_t)(uintptr_t)task->value;

	if (now < task->deadline || task->lateness < 0 ||
	    now < atomic_load(&storm->earliest[value]))
		atomic_fetch_add(&storm->early, 1);
}

/* Every fourth task sets a shared key again. */
static void execute(void *context, const struct tw_task *task)
{
	struct storm *storm = context;
	size_t value = (size_t)(uintptr_t)task->value;
	uint64_t key = value % SHARED_KEYS & ~UINT64_C(1);

	note_if_early(storm, task);
	ledger_execute(storm->ledger, task);
	if (value % 4 != 0)
		return;
	value = VALUES / 2 + 1 + atomic_fetch_add(&storm->in_tasks, 1);
	if (value <= VALUES)
		set_value(storm, &key, sizeof(key), value, INTERVAL * 2);
}

static void release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	struct storm *storm = context;

	ledger_release(storm->ledger, task, reason);
}

/* A thread that gives commands. */
struct commander {
	struct storm *storm;
	int number;
	struct random random;
	size_t own_values[OWN_KEYS]; /* the last value of each own key; 0: none */
};

/* Every other key is long. */
struct key {
	uint64_t bytes[4];
	size_t size;
};

static struct key random_key(struct commander *commander, size_t *own)
{
	uint64_t number = random_below(&commander->random, SHARED_KEYS + OWN_KEYS);
	struct key key = {.size = number % 2 ? sizeof(key.bytes) : sizeof(key.bytes[0])};

	*own = number < SHARED_KEYS ? OWN_KEYS : number - SHARED_KEYS;
	key.bytes[0] = number + (*own < OWN_KEYS ? (uint64_t)commander->number * 1000 : 0);
	return key;
}

static void set_random_key(struct commander *commander, size_t value)
{
	struct storm *storm = commander->storm;
	tw_duration delay = INTERVAL * random_between(&commander->random, 1, 200);
	size_t own;
	struct key key = random_key(commander, &own);

	if (own < OWN_KEYS)
		atomic_store(&storm->earliest[value], tw_now(storm->wheel) + delay);
	if (!set_value(storm, key.bytes, key.size, value, delay))
		judge(storm, tw_flush(storm->wheel));
	else if (own < OWN_KEYS)
		commander->own_values[own] = value;
}

static void disturb_random_key(struct commander *commander)
{
	struct storm *storm = commander->storm;
	tw_duration delay = INTERVAL * random_between(&commander->random, 1, 200);
	tw_duration earliest = tw_now(storm->wheel) + delay;
	size_t own;
	struct key key = random_key(commander, &own);

	if (random_once_in(&commander->random, 3)) {
		judge(storm, tw_remove_timer(storm->wheel, key.bytes, key.size));
		return;
	}
	if (own < OWN_KEYS && earliest < atomic_load(&storm->earliest[commander->own_values[own]]))
		atomic_store(&storm->earliest[commander->own_values[own]], earliest);
	judge(storm, tw_move_timer(storm->wheel, key.bytes, key.size, delay));
}

/* A call that waits or looks. */
static void ask_something(struct commander *commander)
{
	struct storm *storm = commander->storm;
	size_t own;
	size_t limit = storm->setting->max_pending;
	struct key key = random_key(commander, &own);
	struct tw_stats stats;
	tw_duration out;
	enum tw_status status;

	switch (random_below(&commander->random, 5)) {
	case 0:
		judge(storm, tw_flush(storm->wheel));
		break;
	case 1:
		status = tw_contains(storm->wheel, key.bytes, key.size, &out);
		judge(storm, status == TW_NOT_FOUND ? TW_OK : status);
		break;
	case 2:
		judge(storm, tw_wait_idle(storm->wheel));
		break;
	case 3:
		judge(storm, tw_get_stats(storm->wheel, &stats));
		break;
	default:
		if (limit > 0 && tw_pending(storm->wheel) > limit)
			atomic_fetch_add(&storm->crowded, 1);
	}
}

static void *give_commands(void *argument)
{
	struct commander *commander = argument;
	struct storm *storm = commander->storm;
	struct random *random = &commander->random;

	for (int i = 0; i < storm->setting->commands; i++) {
		if (random_once_in(random, 2000))
			judge(storm, tw_drain(storm->wheel, ledger_drain, storm->ledger));
		else if (random_once_in(random, 1000))
			ask_something(commander);
		else if (random_once_in(random, 2))
			set_random_key(commander, (size_t)(1 + commander->number * COMMANDS + i));
		else
			disturb_random_key(commander);
	}
	atomic_fetch_sub(&storm->at_work, 1);
	return NULL;
}

struct clock_mover {
	struct storm *storm;
	struct random random;
};

static void *move_clock(void *argument)
{
	struct clock_mover *mover = argument;
	struct storm *storm = mover->storm;

	while (atomic_load(&storm->at_work) > 0) {
		judge(storm,
		      tw_advance(storm->wheel, random_between(&mover->random, 0, INTERVAL * 10)));
		wait_for(TW_MILLISECOND / 20);
	}
	return NULL;
}

static void start_storm(struct storm *storm, const struct variant *variant,
			const struct setting *setting)
{
	struct tw_options options = {.context = storm,
				     .release = release,
				     .layout = variant->layout,
				     .clock = TW_CLOCK_MANUAL,
				     .drive = variant->drive,
				     .workers = variant->workers,
				     .queue_capacity = setting->queue_capacity,
				     .max_pending = setting->max_pending,
				     .when_full = setting->when_full};

	*storm = (struct storm){.setting = setting, .at_work = THREADS};
	storm->ledger = ledger_create(VALUES);
	storm->earliest = calloc(VALUES + 1, sizeof(storm->earliest[0]));
	assert_non_null(storm->earliest);
	assert_status(tw_create(&storm->wheel, INTERVAL, 16, execute, &options), TW_OK);
}

static void stop_in_the_middle(struct storm *storm)
{
	size_t enough = (size_t)storm->setting->stop_at * THREADS * COMMANDS / 2000;

	WAIT_UNTIL(ledger_accepted(storm->ledger) >= enough || atomic_load(&storm->at_work) == 0);
	atomic_store(&storm->stopping, 1);
	assert_status(tw_stop(storm->wheel), TW_OK);
}

static void stop_at_the_end(struct storm *storm)
{
	assert_status(tw_advance(storm->wheel, INTERVAL * 201), TW_OK);
	assert_status(tw_wait_idle(storm->wheel), TW_OK);
	assert_true(ledger_counts(storm->ledger).executed > 0);
	atomic_store(&storm->stopping, 1);
	assert_status(tw_stop(storm->wheel), TW_OK);
}

static void end_storm(struct storm *storm)
{
	assert_status(tw_wait_idle(storm->wheel), TW_OK);
	assert_int_equal(atomic_load(&storm->wrong), 0);
	assert_int_equal(atomic_load(&storm->early), 0);
	assert_int_equal(atomic_load(&storm->crowded), 0);
	assert_int_equal(tw_pending(storm->wheel), 0);
	assert_int_equal(stats_of_wheel(storm->wheel).stopped,
			 ledger_counts(storm->ledger).released[TW_STOPPED]);
	tw_destroy(storm->wheel);
	ledger_assert_balanced(storm->ledger);
	ledger_destroy(storm->ledger);
	free(storm->earliest);
}

static void run_storm(const struct variant *variant, const struct setting *setting)
{
	struct storm storm;
	struct commander commanders[THREADS];
	struct clock_mover mover = {&storm, random_from(seed_choose(), THREADS)};
	pthread_t threads[THREADS + 1];

	start_storm(&storm, variant, setting);
	for (int i = 0; i < THREADS; i++) {
		commanders[i] =
			(struct commander){.storm = &storm,
					   .number = i,
					   .random = random_from(seed_choose(), (uint64_t)i)};
		assert_int_equal(pthread_create(&threads[i], NULL, give_commands, &commanders[i]),
				 0);
	}
	assert_int_equal(pthread_create(&threads[THREADS], NULL, move_clock, &mover), 0);
	if (setting->stop_at < 1000)
		stop_in_the_middle(&storm);
	for (int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	if (setting->stop_at >= 1000)
		stop_at_the_end(&storm);
	end_storm(&storm);
}

static void values_come_back_once_and_none_early(void **state)
{
	run_storm(*state, &(struct setting){.commands = COMMANDS, .stop_at = 1000});
}

static void values_come_back_once_with_a_small_queue(void **state)
{
	run_storm(*state, &(struct setting){
				  .commands = COMMANDS / 4, .queue_capacity = 4, .stop_at = 1000});
}

static void values_come_back_once_with_a_small_queue_that_refuses(void **state)
{
	run_storm(*state, &(struct setting){.commands = COMMANDS / 4,
					    .queue_capacity = 4,
					    .when_full = TW_WHEN_FULL_FAIL,
					    .stop_at = 1000});
}

static void values_come_back_once_with_a_limit_of_pending_timers(void **state)
{
	run_storm(*state, &(struct setting){.commands = COMMANDS / 4,
					    .max_pending = 40,
					    .when_full = TW_WHEN_FULL_FAIL,
					    .stop_at = 1000});
}

static void stop_in_the_middle_of_it_loses_and_doubles_nothing(void **state)
{
	struct random random = random_from(seed_choose(), 77);

	for (size_t i = 0; i < 4; i++)
		run_storm(*state,
			  &(struct setting){.commands = COMMANDS,
					    .queue_capacity = i % 2 * 8,
					    .stop_at = (int)random_between(&random, 0, 900)});
}

static const struct CMUnitTest tests[] = {
	TEST_EVERYWHERE(values_come_back_once_and_none_early),
	TEST_EVERYWHERE(values_come_back_once_with_a_small_queue),
	TEST_EVERYWHERE(values_come_back_once_with_a_small_queue_that_refuses),
	TEST_EVERYWHERE(values_come_back_once_with_a_limit_of_pending_timers),
	TEST_EVERYWHERE(stop_in_the_middle_of_it_loses_and_doubles_nothing),
};

TEST_PROGRAM(tests)
