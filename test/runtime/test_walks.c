/* SPDX-License-Identifier: MIT */
/*
 * tw_each visits all pending timers with what is known of each. A timer that stays is visited once,
 * whatever becomes of the others, and of the index and the memory, between two steps of the walk.
 */
#include "support/test.h"

#include "support/script.h"

enum {
	STAYING = TEST_SHARE_OF(3000), /* more than a step copies, under a sanitizer too */
	COMING = 4 * STAYING,
	TIMERS = STAYING + COMING,
	LONG_KEY = 40000
};

/* ---- Contents of a visit ---- */

struct seen {
	size_t count;
	size_t most; /* visits wanted; 0 means all */
	struct tw_pending_timer timers[16];
	char keys[16][16];
};

static int note(void *context, const struct tw_pending_timer *timer)
{
	struct seen *seen = context;
	size_t i = seen->count++;

	assert_true(i < 16);
	seen->timers[i] = *timer;
	if (timer->key) {
		assert_true(timer->key_size < sizeof(seen->keys[0]));
		memcpy(seen->keys[i], timer->key, timer->key_size);
	}
	return seen->count != seen->most;
}

static const struct tw_pending_timer *seen_value(const struct seen *seen, uintptr_t value)
{
	const struct tw_pending_timer *found = NULL;

	for (size_t i = 0; i < seen->count; i++) {
		if (seen->timers[i].value != VALUE(value))
			continue;
		assert_null(found);
		found = &seen->timers[i];
	}
	assert_non_null(found);
	return found;
}

static void run_nothing(void *argument)
{
}

static tw_duration next_hour(void *argument, tw_duration previous)
{
	return previous + TW_HOUR;
}

static void assert_by_handle(const struct tw_pending_timer *timer, struct tw_timer handle,
			     tw_duration deadline, tw_duration period)
{
	assert_null(timer->key);
	assert_int_equal(timer->key_size, 0);
	assert_true(timer->timer.id == handle.id && handle.id != 0);
	assert_true(timer->run == run_nothing);
	assert_int_equal(timer->deadline, deadline);
	assert_int_equal(timer->period, period);
}

RECORDED(everywhere, each_timer_is_visited_with_all_its_fields)
{
	struct tw_wheel *wheel = recorder->wheel;
	struct tw_timer once;
	struct tw_timer every;
	struct tw_timer schedule;
	struct tw_alarm alarm;
	struct seen seen = {0};

	advance(recorder, INTERVAL * 3);
	set_timer(recorder, "key", 1, INTERVAL * 5);
	set_timer(recorder, "moved", 2, INTERVAL * 5);
	move_timer(recorder, "moved", INTERVAL * 900);
	assert_status(tw_after_func(wheel, TW_FOREVER, run_nothing, VALUE(3), &once), TW_OK);
	assert_status(tw_every(wheel, INTERVAL * 7, TW_SECOND, TW_MISSED_SKIP, run_nothing,
			       VALUE(4), &every),
		      TW_OK);
	assert_status(tw_schedule_func(wheel, next_hour, run_nothing, VALUE(5), &schedule), TW_OK);
	assert_status(tw_alarm_init(wheel, &alarm, run_nothing, NULL), TW_OK);
	assert_status(tw_alarm_set(&alarm, INTERVAL), TW_OK);
	assert_status(tw_each(wheel, note, &seen), TW_OK);
	assert_int_equal(seen.count, 5);
	for (size_t i = 0; i < seen.count; i++) {
		const char *key = seen.timers[i].value == VALUE(1) ? "key" : "moved";

		if (!seen.timers[i].key)
			continue;
		assert_string_equal(seen.keys[i], key);
		assert_int_equal(seen.timers[i].key_size, strlen(key));
		assert_int_equal(seen.timers[i].timer.id, 0);
		assert_null(seen.timers[i].run);
		assert_int_equal(seen.timers[i].period, 0);
	}
	assert_int_equal(seen_value(&seen, 1)->deadline, INTERVAL * 8);
	assert_int_equal(seen_value(&seen, 2)->deadline, INTERVAL * 903);
	assert_by_handle(seen_value(&seen, 3), once, TW_FOREVER, 0);
	assert_by_handle(seen_value(&seen, 4), every, INTERVAL * 10, TW_SECOND);
	assert_by_handle(seen_value(&seen, 5), schedule, INTERVAL * 3 + TW_HOUR, 0);
	tw_alarm_destroy(&alarm);
}

SCRIPT(everywhere, timers_that_are_not_pending_are_not_visited,
       "set d 9; after p 9; drain; idle -> d:drained p:drained; set e 1; after q 1;"
       "pass 2 -> e@1 q@1; set f 9; remove f; after r 1h; stop r; walk = 0; idle -> f:removed")

RECORDED(everywhere, visit_that_answers_0_is_the_last)
{
	struct seen seen = {.most = 2};

	set_letters_ms(recorder, 1, 2, 3, 4, 5);
	assert_status(tw_each(recorder->wheel, note, &seen), TW_OK);
	assert_int_equal(seen.count, 2);
}

static int note_long(void *context, const struct tw_pending_timer *timer)
{
	uintptr_t value = (uintptr_t)timer->value;
	const char *key = timer->key;

	for (size_t i = 0; i < timer->key_size; i++)
		assert_int_equal(key[i], (char)(value + i));
	assert_int_equal(timer->key_size, LONG_KEY - value);
	((int *)context)[value]++;
	return 1;
}

/* The keys are longer than a step has room for at first. */
RECORDED(everywhere, long_keys_are_visited_whole)
{
	enum { MANY = 20 };
	char *key = malloc(LONG_KEY);
	int visits[MANY + 1] = {0};

	assert_non_null(key);
	for (uintptr_t value = 1; value <= MANY; value++) {
		for (size_t i = 0; i < LONG_KEY; i++)
			key[i] = (char)(value + i);
		assert_status(tw_set_timer(recorder->wheel, key, LONG_KEY - value, VALUE(value),
					   INTERVAL),
			      TW_OK);
	}
	free(key);
	assert_status(tw_each(recorder->wheel, note_long, visits), TW_OK);
	for (uintptr_t value = 1; value <= MANY; value++)
		assert_int_equal(visits[value], 1);
}

/* ---- Changes during a walk ---- */

/* The first STAYING keys and handles are there throughout, the others come and go. */
struct crowd {
	struct tw_wheel *wheel;
	struct random random;
	bool may_advance;
	size_t visits;
	uint32_t came;
	uint32_t gone;
	struct tw_timer handles[TIMERS];
	unsigned char key_visits[TIMERS];
	unsigned char handle_visits[TIMERS];
};

/* Far enough for some to come down from one level to the next, none to expire. */
static tw_duration far_delay(struct crowd *crowd)
{
	return random_between(&crowd->random, STAYING, 100 * STAYING) * INTERVAL;
}

static void come(struct crowd *crowd, uint32_t number, tw_duration delay)
{
	void *value = VALUE(number + 1);

	assert_status(tw_set_timer(crowd->wheel, &number, sizeof(number), value, delay), TW_OK);
	assert_status(
		tw_after_func(crowd->wheel, delay, run_nothing, value, &crowd->handles[number]),
		TW_OK);
}

static void go(struct crowd *crowd, uint32_t number)
{
	enum tw_status stopped = tw_timer_stop(crowd->wheel, crowd->handles[number]);

	assert_true(stopped == TW_OK || stopped == TW_NOT_FOUND || stopped == TW_RUNNING);
	assert_status(tw_remove_timer(crowd->wheel, &number, sizeof(number)), TW_OK);
}

static struct crowd *crowd_open(struct tw_wheel *wheel)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));

	assert_non_null(crowd);
	crowd->wheel = wheel;
	crowd->random = random_from(seed_choose(), 1);
	for (uint32_t i = 0; i < STAYING; i++)
		come(crowd, i, far_delay(crowd));
	crowd->came = STAYING;
	crowd->gone = STAYING;
	return crowd;
}

static void move_one_that_stays(struct crowd *crowd)
{
	uint32_t number = (uint32_t)random_below(&crowd->random, STAYING);
	void *value = VALUE(number + 1);
	tw_duration delay = far_delay(crowd);

	assert_status(tw_timer_reset(crowd->wheel, crowd->handles[number], delay), TW_OK);
	if (random_once_in(&crowd->random, 2))
		assert_status(tw_move_timer(crowd->wheel, &number, sizeof(number), delay), TW_OK);
	else
		assert_status(tw_set_timer(crowd->wheel, &number, sizeof(number), value, delay),
			      TW_OK);
}

/* Adds many, for which the index grows, then removes them. One that has gone comes again. */
static void change_crowd(struct crowd *crowd)
{
	move_one_that_stays(crowd);
	for (int i = 0; i < 5 && crowd->visits < STAYING / 2 && crowd->came < TIMERS; i++)
		come(crowd, crowd->came++, random_between(&crowd->random, 1, 400) * INTERVAL);
	for (int i = 0; i < 9 && crowd->visits > STAYING / 2 && crowd->gone < crowd->came; i++)
		go(crowd, crowd->gone++);
	if (crowd->gone > STAYING && random_once_in(&crowd->random, 20))
		come(crowd, crowd->gone - 1, far_delay(crowd));
	if (crowd->may_advance && random_once_in(&crowd->random, 20))
		assert_status(tw_advance(crowd->wheel, INTERVAL), TW_OK);
}

static uint32_t crowd_count(struct crowd *crowd, const struct tw_pending_timer *timer)
{
	uint32_t number = (uint32_t)(uintptr_t)timer->value - 1;

	assert_true(number < TIMERS);
	if (timer->key) {
		assert_int_equal(timer->key_size, sizeof(number));
		assert_memory_equal(timer->key, &number, sizeof(number));
		assert_int_equal(++crowd->key_visits[number], 1);
	} else {
		/* Those that came again are other timers. */
		crowd->handle_visits[number]++;
		assert_true(number >= STAYING || crowd->handle_visits[number] == 1);
		assert_true(number >= STAYING || timer->timer.id == crowd->handles[number].id);
	}
	crowd->visits++;
	return number;
}

static void assert_all_that_stayed_were_visited(const struct crowd *crowd)
{
	for (uint32_t i = 0; i < STAYING; i++) {
		assert_int_equal(crowd->key_visits[i], 1);
		assert_int_equal(crowd->handle_visits[i], 1);
	}
}

static int count_and_change(void *context, const struct tw_pending_timer *timer)
{
	struct crowd *crowd = context;

	(void)crowd_count(crowd, timer);
	change_crowd(crowd);
	return 1;
}

RECORDED(everywhere, those_that_stay_are_visited_once_while_others_come_and_go)
{
	struct tw_wheel *wheel = recorder->wheel;
	struct crowd *crowd = crowd_open(wheel);

	crowd->may_advance = true;
	assert_status(tw_each(wheel, count_and_change, crowd), TW_OK);
	assert_all_that_stayed_were_visited(crowd);
	assert_true(crowd->came > 2 * STAYING && crowd->gone > 2 * STAYING);
	free(crowd);
}

/* ---- Other threads ---- */

struct neighbour {
	struct tw_wheel *wheel;
	atomic_bool *is_over;
	uint32_t first; /* number of its first key */
};

static void *set_and_remove(void *argument)
{
	struct neighbour *neighbour = argument;
	struct random random = random_from(seed_choose(), neighbour->first);
	struct tw_timer timers[64] = {{0}};

	while (!atomic_load(neighbour->is_over)) {
		uint32_t number = neighbour->first + (uint32_t)random_below(&random, COMING / 2);
		struct tw_timer *timer = &timers[random_below(&random, 64)];

		(void)tw_timer_stop(neighbour->wheel, *timer);
		may_fail(tw_set_timer(neighbour->wheel, &number, sizeof(number), VALUE(number + 1),
				      TW_HOUR));
		may_fail(tw_after_func(neighbour->wheel, TW_HOUR, run_nothing, VALUE(number + 1),
				       timer));
		number = neighbour->first + (uint32_t)random_below(&random, COMING / 2);
		(void)tw_remove_timer(neighbour->wheel, &number, sizeof(number));
	}
	return NULL;
}

static int count_visit(void *context, const struct tw_pending_timer *timer)
{
	(void)crowd_count(context, timer);
	return 1;
}

RECORDED(everywhere, those_that_stay_are_visited_once_beside_threads_that_set_and_remove)
{
	struct tw_wheel *wheel = recorder->wheel;
	struct crowd *crowd = crowd_open(wheel);
	atomic_bool is_over = false;
	struct neighbour neighbours[2];
	pthread_t threads[2];

	for (uint32_t i = 0; i < 2; i++) {
		neighbours[i] = (struct neighbour){wheel, &is_over, STAYING + i * COMING / 2};
		assert_int_equal(pthread_create(&threads[i], NULL, set_and_remove, &neighbours[i]),
				 0);
	}
	for (int round = 0; round < (TEST_HAS_SANITIZER ? 3 : 10); round++) {
		memset(crowd->key_visits, 0, sizeof(crowd->key_visits));
		memset(crowd->handle_visits, 0, sizeof(crowd->handle_visits));
		assert_status(tw_each(wheel, count_visit, crowd), TW_OK);
		assert_all_that_stayed_were_visited(crowd);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	free(crowd);
}

/* ---- Callers ---- */

static int count_one(void *count, const struct tw_pending_timer *timer)
{
	++*(size_t *)count;
	return 1;
}

struct nest {
	struct tw_wheel *wheel;
	size_t outer;
	size_t inner;
};

static int walk_within(void *context, const struct tw_pending_timer *timer)
{
	struct nest *nest = context;

	nest->outer++;
	assert_status(tw_each(nest->wheel, count_one, &nest->inner), TW_OK);
	return 1;
}

RECORDED(everywhere, visit_may_walk_too)
{
	struct nest nest = {recorder->wheel, 0, 0};

	set_letters_ms(recorder, 1, 2, 3, 4, 5);
	assert_status(tw_each(recorder->wheel, walk_within, &nest), TW_OK);
	assert_int_equal(nest.outer, 5);
	assert_int_equal(nest.inner, 25);
}

/* Its own timer has left by then, and the one it has just set is there. */
SCRIPT(everywhere, task_may_walk, "in a: set n 1h, walk = 2; set a 1; set b 4; pass 1 -> a@1")

static int stop_at_once(void *wheel, const struct tw_pending_timer *timer)
{
	(void)tw_stop(wheel);
	return 1;
}

RECORDED(everywhere, walk_ends_where_the_wheel_is_stopped)
{
	size_t count = 0;

	for (uint32_t key = 0; key < 1000; key++)
		assert_status(tw_set_timer(recorder->wheel, &key, sizeof(key), NULL, TW_HOUR),
			      TW_OK);
	assert_status(tw_each(recorder->wheel, stop_at_once, recorder->wheel), TW_CLOSED);
	assert_status(tw_each(recorder->wheel, count_one, &count), TW_CLOSED);
	assert_int_equal(count, 0);
}
