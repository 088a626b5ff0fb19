/* SPDX-License-Identifier: MIT */
#include "user.h"

#include "checks.h"
#include "lateness.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <stdlib.h>
#include <string.h>

enum {
	ACTS = 100, /* between two looks at the clock */
	BATCH = 16,
	LONG_KEY = 40, /* more than a command carries by itself */
	SHORT_KEY = 16
};

/* After each ACTS: the machine has other things to do, and a soak is long. */
#define PAUSE_MOST (20 * TW_MILLISECOND)

/* ---- Keys ---- */

struct user_key {
	uint64_t user;
	uint64_t number;
	char padding[LONG_KEY - SHORT_KEY];
};

static size_t key_make(const struct user *user, int64_t number, struct user_key *key)
{
	*key = (struct user_key){.user = user->number, .number = (uint64_t)number};
	return number % 8 == 0 ? LONG_KEY : SHORT_KEY;
}

static tw_duration draw_delay(struct generator *generator)
{
	switch (generator_range(generator, 0, 16)) {
	case 0:
		return generator_range(generator, 1, 2000) * TW_MICROSECOND;
	case 1:
	case 2:
		return generator_range(generator, 1, 20000) * TW_MILLISECOND;
	default:
		return generator_range(generator, 1, 1500) * TW_MILLISECOND;
	}
}

static void *give(struct user *user, struct place *place, tw_duration delay)
{
	tw_duration interval = tw_interval_of(place->wheel);

	return book_give(&user->book, &place->account,
			 tw_now(place->wheel) + (delay < interval ? interval : delay));
}

/* ---- By key ---- */

enum set_call { SET, SET_AT, ADD, SET_CALLS };

static void user_set(struct user *user, int of_place, int64_t number)
{
	struct place *place = &user->stage->places[of_place];
	tw_duration delay = draw_delay(&user->generator);
	struct user_key key;
	size_t size = key_make(user, number, &key);
	void *value = give(user, place, delay);
	enum tw_status status;

	if (!value)
		return;
	switch ((enum set_call)generator_range(&user->generator, 0, SET_CALLS)) {
	case ADD:
		status = tw_add_timer(place->wheel, &key, size, value, delay);
		break;
	case SET_AT:
		delay += tw_interval_of(place->wheel);
		status = tw_set_timer_at(place->wheel, &key, size, value,
					 tw_now(place->wheel) + delay);
		break;
	default:
		status = tw_set_timer(place->wheel, &key, size, value, delay);
	}
	place_judge_status(place, status);
	if (status == TW_OK)
		user->values[of_place][number] = value;
	else
		book_refuse(value);
}

static void user_set_many(struct user *user, int of_place, int64_t number)
{
	struct place *place = &user->stage->places[of_place];
	struct user_key keys[BATCH];
	struct tw_set sets[BATCH];
	size_t count = 0;
	size_t accepted = 0;

	for (; count < BATCH && number + (int64_t)count < USER_KEYS; count++) {
		struct tw_set *set = &sets[count];

		set->delay = draw_delay(&user->generator);
		set->key = &keys[count];
		set->key_size = key_make(user, number + (int64_t)count, &keys[count]);
		set->value = give(user, place, set->delay);
		if (!set->value)
			break;
	}
	if (count > 0)
		place_judge_status(place, tw_set_timers(place->wheel, sets, count, &accepted));
	for (size_t i = 0; i < count; i++)
		if (i < accepted)
			user->values[of_place][number + (int64_t)i] = sets[i].value;
		else
			book_refuse(sets[i].value);
}

/* Under one interval it runs at once. Else, if it is still there after the move, it runs by the new
 * deadline. */
static void user_move(struct user *user, int of_place, int64_t number)
{
	struct place *place = &user->stage->places[of_place];
	tw_duration delay = draw_delay(&user->generator);
	bool runs_now = delay < tw_interval_of(place->wheel);
	tw_duration not_before = tw_now(place->wheel) + (runs_now ? 0 : delay);
	void *value = user->values[of_place][number];
	struct user_key key;
	size_t size = key_make(user, number, &key);
	enum tw_status status;

	if (value)
		book_may_run_from(value, not_before);
	status = tw_move_timer(place->wheel, &key, size, delay);
	place_judge_status(place, status);
	if (!value || runs_now || status != TW_OK || generator_range(&user->generator, 0, 8) != 0)
		return;
	if (tw_contains(place->wheel, &key, size, NULL) == TW_OK)
		book_runs_from(value, not_before);
}

static void user_remove(struct user *user, int of_place, int64_t number)
{
	struct place *place = &user->stage->places[of_place];
	struct user_key key;
	size_t size = key_make(user, number, &key);

	place_judge_status(place, tw_remove_timer(place->wheel, &key, size));
}

static void user_take(struct user *user, int of_place, int64_t number)
{
	struct place *place = &user->stage->places[of_place];
	struct user_key key;
	size_t size = key_make(user, number, &key);
	void *value;
	enum tw_status status = tw_take_timer(place->wheel, &key, size, &value);

	place_judge_status(place, status);
	if (status != TW_OK)
		return;
	check_equal("a value taken", value == user->values[of_place][number], 1);
	book_return(value, TAKEN, TW_FOREVER);
}

/* ---- By handle ---- */

static void user_hold(struct user *user, int of_place)
{
	struct held *held = &user->held[generator_range(&user->generator, 0, USER_HANDLES)];
	enum timer_kind kind = (enum timer_kind)generator_range(&user->generator, 0, TIMER_KINDS);

	held_stop(held);
	*held = held_start(&user->stage->places[of_place], &user->book, &user->generator, kind);
}

static void user_reset(struct user *user)
{
	struct held *held = &user->held[generator_range(&user->generator, 0, USER_HANDLES)];

	if (held->place)
		held_reset(held, &user->generator);
}

/* ---- Alarms ---- */

struct user_alarm {
	struct tw_alarm *alarm;
	struct place *place;
	_Atomic uint64_t sets;
	_Atomic uint64_t runs;
	_Atomic int64_t not_before;
	atomic_int running;
};

static void run_alarm(void *argument)
{
	struct user_alarm *alarm = argument;

	if (atomic_fetch_add(&alarm->running, 1) != 0)
		check_failed("runs of one alarm at a time");
	if (atomic_fetch_add(&alarm->runs, 1) >= atomic_load(&alarm->sets))
		check_failed("runs of an alarm that was not set");
	if (tw_now(alarm->place->wheel) < atomic_load(&alarm->not_before))
		check_failed("runs of an alarm before its time");
	lateness_record(tw_current_task()->lateness);
	atomic_fetch_sub(&alarm->running, 1);
}

static void alarm_destroy(struct user_alarm *alarm)
{
	if (!alarm)
		return;
	tw_alarm_destroy(alarm->alarm);
	free(alarm);
}

static struct user_alarm *alarm_create(struct place *place)
{
	struct user_alarm *alarm = calloc(1, sizeof(*alarm));
	enum tw_status status;

	if (!alarm)
		process_fail("out of memory");
	alarm->place = place;
	status = tw_alarm_create(place->wheel, run_alarm, alarm, &alarm->alarm);
	place_judge_status(place, status);
	if (status == TW_OK)
		return alarm;
	free(alarm);
	return NULL;
}

/* A run of the set before may still come, unless the stop says it does not. */
static void alarm_set(struct user_alarm *alarm, tw_duration delay)
{
	enum tw_status stopped = tw_alarm_stop(alarm->alarm);
	tw_duration from = tw_now(alarm->place->wheel) + delay;

	place_judge_status(alarm->place, stopped);
	if (stopped == TW_OK || stopped == TW_NOT_FOUND || from < atomic_load(&alarm->not_before))
		atomic_store(&alarm->not_before, from);
	atomic_fetch_add(&alarm->sets, 1);
	place_judge_status(alarm->place, tw_alarm_set(alarm->alarm, delay));
}

static void user_alarm(struct user *user, int of_place)
{
	struct user_alarm **alarm =
		&user->alarms[generator_range(&user->generator, 0, USER_ALARMS)];

	if (*alarm && generator_range(&user->generator, 0, 64) == 0) {
		alarm_destroy(*alarm);
		*alarm = NULL;
	}
	if (!*alarm)
		*alarm = alarm_create(&user->stage->places[of_place]);
	if (*alarm)
		alarm_set(*alarm, draw_delay(&user->generator));
}

/* ---- The thread ---- */

static void use_a_wheel(struct user *user)
{
	struct generator *generator = &user->generator;
	int place = (int)generator_range(generator, 0, user->stage->place_count);
	int64_t number = generator_range(generator, 0, USER_KEYS);
	int64_t die = generator_range(generator, 0, 100);

	if (die < 42)
		user_set(user, place, number);
	else if (die < 48)
		user_set_many(user, place, number);
	else if (die < 70)
		user_move(user, place, number);
	else if (die < 82)
		user_remove(user, place, number);
	else if (die < 85)
		user_take(user, place, number);
	else if (die < 92)
		user_hold(user, place);
	else if (die < 95)
		user_reset(user);
	else
		user_alarm(user, place);
}

static void use_a_cache(struct user *user)
{
	struct stage *stage = user->stage;

	user->cache_user.use =
		&stage->caches[generator_range(&user->generator, 0, stage->cache_count)];
	cache_user_act(&user->cache_user);
}

static void let_go(struct user *user)
{
	for (int i = 0; i < USER_HANDLES; i++)
		held_stop(&user->held[i]);
	for (int i = 0; i < USER_ALARMS; i++) {
		alarm_destroy(user->alarms[i]);
		user->alarms[i] = NULL;
	}
}

void user_run(void *argument)
{
	struct user *user = argument;
	int64_t end =
		stopwatch_now() + generator_range(&user->generator, TW_MILLISECOND, user->lifetime);

	while (stopwatch_now() < end && !atomic_load(&user->stage->is_over)) {
		for (int i = 0; i < ACTS; i++)
			if (generator_range(&user->generator, 0, 4) == 0)
				use_a_cache(user);
			else
				use_a_wheel(user);
		atomic_fetch_add(&user->stage->operations, ACTS);
		stopwatch_sleep(generator_range(&user->generator, 0, PAUSE_MOST));
	}
	let_go(user);
}

void user_open(struct user *user, struct stage *stage, uint64_t number, uint64_t seed)
{
	*user = (struct user){
		.stage = stage,
		.number = number,
		.lifetime = 1500 * TW_MILLISECOND,
		.generator = {scramble(seed ^ number << 32)},
		.book = book_take(USER_ENTRIES),
		.cache_user = {.value = process_allocate(CACHE_VALUE_MOST)},
	};
	user->cache_user.generator = (struct generator){scramble(user->generator.state)};
}

void user_close(struct user *user)
{
	free(user->cache_user.value);
}
