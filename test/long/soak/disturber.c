/* SPDX-License-Identifier: MIT */
#include "disturber.h"

#include "base/compiler.h"
#include "checks.h"
#include "storm.h"
#include "support/expect.h"
#include "support/stopwatch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEBIBYTE (UINT64_C(1) << 20)

enum { CHILD_SECONDS = 60 /* a child that takes longer hangs */ };

static struct place *draw_place(struct disturber *disturber)
{
	struct stage *stage = disturber->stage;

	return &stage->places[generator_range(&disturber->generator, 0, stage->place_count)];
}

static struct cache_use *draw_cache(struct disturber *disturber)
{
	struct stage *stage = disturber->stage;

	return &stage->caches[generator_range(&disturber->generator, 0, stage->cache_count)];
}

/* ---- Wheels and caches that pass ---- */

static void open_passing_wheel(struct disturber *disturber, struct place *place)
{
	struct generator *generator = &disturber->generator;
	struct tw_options options = {
		.name = "passing",
		.layout = generator_range(generator, 0, 2) ? TW_LAYOUT_LEVELS : TW_LAYOUT_ROUNDS,
		.clock = generator_range(generator, 0, 2) ? TW_CLOCK_BOOTTIME : TW_CLOCK_MONOTONIC,
		.workers = generator_range(generator, 0, 3) ? 0 : TW_WORKERS_INLINE,
		.when_full =
			generator_range(generator, 0, 2) ? TW_WHEN_FULL_WAIT : TW_WHEN_FULL_FAIL,
		.queue_capacity = (size_t)generator_range(generator, 0, 2) * 64,
	};

	place_open(place, generator_range(generator, 1, 10) * TW_MILLISECOND,
		   (size_t)generator_range(generator, 1, 600), &options, PASSING_USERS, 0,
		   generator_next(generator));
}

/* Opens a cache on the passing wheel, or on one of its own. */
static void open_passing_cache(struct disturber *disturber, struct place *place,
			       struct cache_use *use)
{
	bool has_own = generator_range(&disturber->generator, 0, 3) == 0;
	struct tw_cache_options options = {
		.wheel = has_own ? NULL : place->wheel,
		.context = use,
		.on_remove = cache_use_on_remove,
		.max_bytes = 2 * MEBIBYTE,
	};

	memset(use, 0, sizeof(*use));
	/* A cache's own wheel has the same clock as this one. */
	use->wheel = has_own ? disturber->stage->places[0].wheel : place->wheel;
	expect_ok(tw_cache_create(&use->cache, TW_SECOND, &options), "tw_cache_create");
}

static void stop_passing(struct disturber *disturber, struct place *place, struct cache_use *use)
{
	if (generator_range(&disturber->generator, 0, 2)) {
		atomic_store(&use->is_stopping, true);
		expect_ok(tw_cache_stop(use->cache), "tw_cache_stop");
	}
	if (generator_range(&disturber->generator, 0, 4))
		act_stop(&place->users[0]);
}

/* No call follows. */
static void destroy_passing(struct place *place, struct cache_use *use)
{
	struct tw_cache_stats stats;

	cache_use_release_pins(use);
	tw_cache_get_stats(use->cache, &stats);
	tw_cache_destroy(use->cache);
	cache_use_check(use, &stats);
	atomic_store(&place->model.stop_begun, true);
	tw_destroy(place->wheel);
	place_close(place);
}

static void pass(struct disturber *disturber)
{
	struct stage *passing = &disturber->passing;
	struct place *place = &passing->places[0];
	struct cache_use *use = &passing->caches[0];

	open_passing_wheel(disturber, place);
	open_passing_cache(disturber, place, use);
	atomic_store(&passing->is_over, false);
	members_tend(disturber->members, PASSING_USERS);
	stopwatch_sleep(generator_range(&disturber->generator, 20, 400) * TW_MILLISECOND);
	stop_passing(disturber, place, use);
	stopwatch_sleep(generator_range(&disturber->generator, 0, 20) * TW_MILLISECOND);
	atomic_store(&passing->is_over, true);
	members_join(disturber->members, PASSING_USERS);
	destroy_passing(place, use);
}

/* ---- Forks ---- */

static void count_call(void *context, const struct tw_task *task)
{
	(void)task;
	atomic_fetch_add((atomic_int *)context, 1);
}

static bool child_uses_its_own_wheel(void)
{
	atomic_int calls = 0;
	struct tw_options options = {.context = &calls};
	struct tw_wheel *wheel;

	if (tw_create(&wheel, TW_MILLISECOND, 64, count_call, &options) != TW_OK)
		return false;
	if (tw_set_timer(wheel, "key", 3, NULL, 5 * TW_MILLISECOND) != TW_OK)
		return false;
	tw_flush(wheel);
	while (tw_pending(wheel) > 0)
		stopwatch_sleep(TW_MILLISECOND);
	tw_wait_idle(wheel);
	tw_destroy(wheel);
	return atomic_load(&calls) == 1;
}

static bool child_uses_its_own_cache(void)
{
	struct tw_cache *cache;
	char value[6];

	if (tw_cache_create(&cache, TW_MINUTE, NULL) != TW_OK ||
	    tw_cache_set(cache, "key", 3, "value", sizeof(value)) != TW_OK ||
	    tw_cache_get(cache, "key", 3, value, sizeof(value), NULL) != TW_OK)
		return false;
	tw_cache_destroy(cache);
	return strcmp(value, "value") == 0;
}

/* Runs the child, and does not return. */
static void child_run(struct disturber *disturber)
{
	struct place *place = draw_place(disturber);
	bool is_well;

	alarm(CHILD_SECONDS);
	is_well = tw_set_timer(place->wheel, "key", 3, NULL, TW_SECOND) == TW_CLOSED &&
		  tw_flush(place->wheel) == TW_CLOSED;
	tw_destroy(place->wheel);
	_exit(is_well && child_uses_its_own_wheel() && child_uses_its_own_cache() ? 0 : 1);
}

/* The thread sanitizer has no threads in a child. */
static void fork_a_child(struct disturber *disturber)
{
	int status = -1;
	pid_t child;

	if (SANITIZER_THREAD)
		return;
	child = fork();
	if (child == 0)
		child_run(disturber);
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		check_failed("children that ended badly");
}

/* ---- The thread ---- */

static void drain(struct disturber *disturber)
{
	act_drain(&draw_place(disturber)->users[STORM]);
}

static void begin_storm(struct disturber *disturber)
{
	storm(&draw_place(disturber)->users[STORM], &disturber->generator);
}

static void change_a_cache(struct disturber *disturber)
{
	struct generator *generator = &disturber->generator;
	struct cache_use *use = draw_cache(disturber);
	enum tw_status status = TW_OK;

	/* First, as 0 is the size of no value. */
	atomic_store(&use->size, (uint64_t)generator_range(generator, 40, 3000));
	atomic_store(&use->sizes, (uint32_t)generator_range(generator, 0, SIZES));
	if (generator_range(generator, 0, 4) == 0)
		status = tw_cache_clear(use->cache);
	else if (generator_range(generator, 0, 3) == 0)
		status = tw_cache_set_limit(use->cache, 0,
					    (uint64_t)generator_range(generator, 2, 17) * MEBIBYTE);
	if (status != TW_OK)
		check_failed("changes of a cache");
}

static void disturb(struct disturber *disturber)
{
	switch (generator_range(&disturber->generator, 0, 11)) {
	case 0:
	case 1:
		begin_storm(disturber);
		break;
	case 2:
	case 3:
		drain(disturber);
		break;
	case 4:
		fork_a_child(disturber);
		break;
	case 5:
		act_walk(&draw_place(disturber)->users[STORM]);
		break;
	case 6:
	case 7:
		change_a_cache(disturber);
		break;
	default:
		pass(disturber);
	}
}

void disturber_run(void *argument)
{
	struct disturber *disturber = argument;

	while (!atomic_load(&disturber->stage->is_over)) {
		disturb(disturber);
		stopwatch_sleep(generator_range(&disturber->generator, 0, 500) * TW_MILLISECOND);
	}
}

void disturber_open(struct disturber *disturber, struct stage *stage, uint64_t seed)
{
	disturber->stage = stage;
	disturber->generator = (struct generator){scramble(seed)};
	disturber->passing.place_count = 1;
	disturber->passing.cache_count = 1;
	for (unsigned i = 0; i < PASSING_USERS; i++) {
		user_open(&disturber->users[i], &disturber->passing, i, ~seed);
		disturber->users[i].lifetime = 500 * TW_MILLISECOND;
		disturber->members[i].run = user_run;
		disturber->members[i].argument = &disturber->users[i];
	}
}

void disturber_close(struct disturber *disturber)
{
	for (int i = 0; i < PASSING_USERS; i++)
		user_close(&disturber->users[i]);
}
