/* SPDX-License-Identifier: MIT */
#include "user.h"

#include "support/process.h"
#include "support/stopwatch.h"

#include <stdlib.h>

enum { ACTS = 100 /* between two readings of the clock */ };

/* A user pauses after each ACTS: the machine has other things to do, and a soak is long. */
#define PAUSE_MOST (20 * TW_MILLISECOND)

static const struct wheel_act acts[] = {
	{act_set, 350},
	{act_add, 70},
	{act_set_crowd, 60},
	{act_move, 220},
	{act_remove, 120},
	{act_take, 30},
	{act_ask, 30},
	{act_start_timer, 70},
	{act_stop_timer, 10},
	{act_reset_timer, 30},
	{act_use_alarm, 50},
	{act_flush, 1},
	{NULL, 0},
};

static struct wheel_user *user_of(const struct user *user, int place)
{
	return &user->stage->places[place].users[user->number];
}

static void use_a_wheel(struct user *user)
{
	int place = (int)generator_range(&user->generator, 0, user->stage->place_count);

	wheel_user_act(user_of(user, place), acts);
}

static void use_a_cache(struct user *user)
{
	struct stage *stage = user->stage;

	user->cache_user.use =
		&stage->caches[generator_range(&user->generator, 0, stage->cache_count)];
	cache_user_act(&user->cache_user);
}

void user_run(void *argument)
{
	struct user *user = argument;
	int places = user->stage->place_count;
	int64_t end =
		stopwatch_now() + generator_range(&user->generator, TW_MILLISECOND, user->lifetime);

	for (int i = 0; i < places; i++) {
		/* The user before this one closed its alarms. */
		while (!alarms_are_closed(user_of(user, i)))
			stopwatch_sleep(TW_MILLISECOND);
		alarms_create(user_of(user, i));
	}
	while (stopwatch_now() < end && !atomic_load(&user->stage->is_over)) {
		for (int i = 0; i < ACTS; i++)
			if (generator_range(&user->generator, 0, 4) == 0)
				use_a_cache(user);
			else
				use_a_wheel(user);
		atomic_fetch_add(&user->stage->operations, ACTS);
		stopwatch_sleep(generator_range(&user->generator, 0, PAUSE_MOST));
	}
	for (int i = 0; i < places; i++) {
		timers_stop_all(user_of(user, i));
		alarms_destroy(user_of(user, i));
	}
}

void user_open(struct user *user, struct stage *stage, unsigned number, uint64_t seed)
{
	*user = (struct user){
		.stage = stage,
		.number = number,
		.lifetime = 1500 * TW_MILLISECOND,
		.generator = {scramble(seed ^ (uint64_t)number << 32)},
		.cache_user = {.value = process_allocate(CACHE_VALUE_MOST)},
	};
	user->cache_user.generator = (struct generator){scramble(user->generator.state)};
}

void user_close(struct user *user)
{
	free(user->cache_user.value);
}
