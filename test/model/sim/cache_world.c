/* SPDX-License-Identifier: MIT */
/*
 * This world is a cache with random options, and a few threads that use it beside its model
 * (model/cache_model.h). Each thread mostly changes keys of its own and reads all; a few keys, or
 * all, are loaded by any thread. Kept loads are ended by users, or by the source, a thread that
 * does nothing else, at times only when the cache is gone.
 *
 * The world also checks that only pinned values are left after the end. When all threads sleep, no
 * call may be waiting for time to pass, no take for a load if none is kept, and no entry may be
 * past its deadline for more than two ticks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "caller.h"
#include "model/cache_model.h"
#include "support/cache_check.h"
#include "world.h"

enum { USERS_MOST = 4, OWN_KEYS = 3, LOADED_KEYS = 3, FIRST_LOADED = USERS_MOST * OWN_KEYS };

struct user {
	struct caller caller;
	struct cache_client client;
};

static struct world {
	struct cache_model model;
	struct tw_options wheel_options;
	tw_duration interval;
	bool is_manual;
	unsigned users;
	unsigned calls;
	unsigned sleeping; /* listeners, loaders and the source */
	struct user user[USERS_MOST];
	/* This thread ends kept loads. */
	struct user source;
	tw_duration source_nap;
	bool has_source;
	bool source_rests;
	bool source_hurries;
	bool source_ends;
} world;

/* ---- The host's functions ---- */

uint64_t host_draw(uint64_t limit)
{
	return sim_draw(limit);
}

_Noreturn void host_fail(const char *format, ...)
{
	char text[300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	sim_fail("%s", text);
}

void host_trace(const char *format, ...)
{
	static int is_traced = -1;
	char text[300];
	va_list arguments;

	if (is_traced < 0)
		is_traced = getenv("SIM_TRACE") != NULL;
	if (!is_traced)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	sim_trace("%s", text);
}

tw_duration host_now(const struct cache_model *model)
{
	struct timespec now;

	if (model->wheel)
		return tw_now(model->wheel);
	/* The cache's own wheel has the system's clock. */
	sim_clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * TW_SECOND + now.tv_nsec;
}

/* These surround the library, whose calls are no cancellation points. */
void host_enter(struct cache_client *client, const char *call)
{
	if (client && client->host)
		caller_begin(client->host, call);
	else if (client)
		sim_call_begin();
}

void host_leave(struct cache_client *client)
{
	if (client && client->host)
		caller_end(client->host);
	else if (client)
		sim_call_end();
}

void host_pause(struct cache_model *model)
{
	struct timespec time = {.tv_nsec = draw_between(1, 3 * TW_MILLISECOND)};
	int state;

	if (sim_draw(5) != 0)
		return;
	world.sleeping++;
	/* A callback returns: a user that is cancelled in it would end the process. */
	sim_pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	sim_nanosleep(&time, NULL);
	sim_pthread_setcancelstate(state, NULL);
	world.sleeping--;
}

uint64_t host_refusals(void)
{
	return sim_memory_refused();
}

uint64_t host_thread(void)
{
	return (uint64_t)sim_pthread_self();
}

void host_kept(void)
{
	sim_wake_all(&world.source);
}

/* ---- Threads ---- */

/* Does a part of the wheel's work, where callers do it. */
static void drive(void)
{
	if (world.model.wheel && world.wheel_options.drive == TW_DRIVE_CALLER)
		(void)tw_poll(world.model.wheel, NULL);
}

static void user_sleep(void)
{
	struct timespec time = {.tv_nsec = draw_between(1, 8 * TW_MILLISECOND)};

	if (world.is_manual)
		(void)tw_advance(world.model.wheel, draw_between(0, 3) * world.interval / 2);
	else
		sim_nanosleep(&time, NULL);
	drive();
}

static void *user_run(void *argument)
{
	struct user *user = argument;

	for (unsigned i = 0; i < world.calls; i++) {
		if (sim_draw(28) == 0)
			user_sleep();
		else
			cache_client_call(&user->client);
		sim_pthread_testcancel();
	}
	return NULL;
}

/* Sleeps for a while, or until something changes. */
static void source_sleep(void)
{
	world.sleeping++;
	(void)sim_wait(&world.source, sim_now() + draw_between(1, world.source_nap), "a time");
	world.sleeping--;
}

static void *source_run(void *unused)
{
	struct cache_model *model = &world.model;

	for (;;) {
		while (!world.source_ends && (model->kept_count == 0 || world.source_rests))
			(void)sim_wait(&world.source, INT64_MAX, "loads that are kept");
		if (model->kept_count == 0)
			return unused;
		if (!world.source_ends && !world.source_hurries && sim_draw(4) != 0)
			source_sleep();
		if (model->kept_count > 0 && (world.source_ends || !world.source_rests))
			client_end_kept(&world.source.client);
	}
}

static void user_open(struct user *user, unsigned number)
{
	user->caller.number = number;
	user->client = (struct cache_client){.model = &world.model,
					     .number = number,
					     .first_key = number * OWN_KEYS,
					     .own_keys = OWN_KEYS,
					     .host = &user->caller};
}

/* ---- Random options ---- */

static void draw_loads(void)
{
	struct cache_model *model = &world.model;
	struct tw_cache_options *options = &model->options;

	model->failures = (unsigned)DRAW_ONE_OF(1, 3, 8);
	world.source_nap = DRAW_ONE_OF(TW_MICROSECOND, 3 * TW_MILLISECOND, 100 * TW_MILLISECOND);
	model->loads_all = sim_draw(2) == 0;
	model->loads_much = sim_draw(2) == 0;
	if (sim_draw(3) == 0)
		options->stale_if_error = draw_between(1, DRAW_ONE_OF(1, 10, 100) * world.interval);
	if (sim_draw(3) == 0)
		options->retry_after = draw_between(1, DRAW_ONE_OF(1, 10) * world.interval);
	if (sim_draw(3) == 0)
		return;
	options->load = cache_model_load;
	options->load_context = model;
	options->loaders = (unsigned)draw_between(1, 3);
	if (sim_draw(2) == 0) {
		options->refresh_after =
			draw_between(1, DRAW_ONE_OF(TW_MICROSECOND, 4 * world.interval));
		options->max_refreshing = (unsigned)sim_draw(4);
	}
}

static void draw_options(struct tw_cache_options *options)
{
	options->context = &world.model;
	options->jitter = -1;
	options->shards = (unsigned)DRAW_ONE_OF(1, 2, 4);
	options->policy = (enum tw_cache_policy)sim_draw(2);
	if (sim_draw(3) == 0)
		options->max_entries = (uint64_t)DRAW_ONE_OF(1, 3, 8);
	if (sim_draw(4) == 0)
		options->max_bytes = (uint64_t)DRAW_ONE_OF(200, 2000, 5000);
	if (sim_draw(5) == 0)
		options->idle = draw_between(1, 4 * world.interval);
	if (sim_draw(2) == 0)
		options->negative_expire = draw_between(1, 4 * world.interval);
	if (sim_draw(4) != 0)
		options->on_remove = cache_model_on_remove;
}

static void draw_world(void)
{
	struct cache_model *model = &world.model;
	struct tw_options *wheel = &world.wheel_options;

	memset(&world, 0, sizeof(world));
	world.interval = DRAW_ONE_OF(TW_MILLISECOND, 10 * TW_MILLISECOND, 300000);
	model->key_count = FIRST_LOADED + LOADED_KEYS;
	model->first_loaded = FIRST_LOADED;
	model->value_count = 2048;
	model->unit = world.interval;
	model->adopts = true;
	model->writes_much = sim_draw(2) == 0;
	draw_options(&model->options);
	if (model->options.max_entries > 0 || model->options.max_bytes > 0)
		model->sets_limits = sim_draw(3) == 0;
	draw_loads();
	model->expire = draw_between(world.interval, 5 * world.interval);
	world.users = (unsigned)draw_between(1, USERS_MOST);
	world.calls = (unsigned)DRAW_ONE_OF(5, 10, 20, 40, 80, 300);
	for (unsigned i = 0; i < USERS_MOST; i++)
		user_open(&world.user[i], i);
	user_open(&world.source, USERS_MOST);
	wheel->clock =
		(enum tw_clock)DRAW_ONE_OF(TW_CLOCK_MONOTONIC, TW_CLOCK_MANUAL, TW_CLOCK_BOOTTIME);
	wheel->workers = (int)DRAW_ONE_OF(TW_WORKERS_INLINE, 1, 2);
	wheel->drive =
		(enum tw_drive)DRAW_ONE_OF(TW_DRIVE_THREAD, TW_DRIVE_THREAD, TW_DRIVE_CALLER);
	wheel->layout = (enum tw_layout)sim_draw(2);
}

/* ---- A case ---- */

static bool may_fail(void)
{
	return sim_plan_here()->memory_failures > 0 || sim_plan_here()->thread_failures > 0;
}

static bool open_cache(void)
{
	struct cache_model *model = &world.model;
	enum tw_status status = TW_OK;

	if (sim_draw(4) != 0) {
		/* It has no timers but the cache's own. */
		status = tw_create(&model->wheel, world.interval, 4, NULL, &world.wheel_options);
		world.is_manual = world.wheel_options.clock == TW_CLOCK_MANUAL;
	} else {
		world.interval = TW_SECOND;
	}
	model->options.wheel = model->wheel;
	if (status == TW_OK)
		status = tw_cache_create(&model->cache, model->expire, &model->options);
	if (status != TW_OK && !may_fail())
		sim_fail("the cache or its wheel can't be made: %s", tw_status_name(status));
	return status == TW_OK;
}

static void stop_cache(void)
{
	world.model.stop_begun = true;
	if (tw_cache_stop(world.model.cache) != TW_OK)
		sim_fail("tw_cache_stop");
	world.model.is_stopped = true;
}

static void run_users(void)
{
	struct cache_model *model = &world.model;
	bool has_user[USERS_MOST] = {false};

	for (unsigned i = 0; i < world.users; i++)
		has_user[i] = sim_pthread_create(&world.user[i].caller.thread, NULL, user_run,
						 &world.user[i]) == 0;
	if (sim_draw(6) == 0 && has_user[0]) {
		user_sleep();
		(void)sim_pthread_cancel(world.user[0].caller.thread);
	}
	if (sim_draw(model->options.load ? 6 : 12) == 0) {
		user_sleep();
		stop_cache();
	}
	if (model->wheel && sim_draw(16) == 0) {
		model->wheel_is_stopped = true;
		(void)tw_stop(model->wheel);
	}
	for (unsigned i = 0; i < world.users; i++)
		if (has_user[i])
			sim_pthread_join(world.user[i].caller.thread, NULL);
}

/* Has loads kept, and takes wait for their ends; some wait for a second load, after a delete. */
static void crowd_loads(void)
{
	struct timespec time = {.tv_nsec = TW_MILLISECOND};
	struct cache_model *model = &world.model;
	struct cache_client *client = &world.user[0].client;

	world.source_rests = model->keeps_all = true;
	for (int i = (int)sim_draw(4); i > 0; i--)
		client_take_async(client, (unsigned)sim_draw(model->key_count));
	for (int i = 0; i < 10 && model->running > 0; i++) {
		drive();
		sim_nanosleep(&time, NULL);
	}
	for (unsigned i = 0; i < model->kept_count; i++) {
		unsigned number = model->kept[i].key;

		if (sim_draw(2) == 0)
			client_delete(client, number);
		client_take_async(client, number);
	}
}

static void rest(void)
{
	struct timespec time = {.tv_nsec = TW_MILLISECOND};
	const struct cache_model *model = &world.model;

	if (sim_draw(2) == 0)
		for (int i = 0; i < 40 && model->running + model->pending + model->kept_count > 0;
		     i++) {
			drive();
			sim_nanosleep(&time, NULL);
		}
	else
		crowd_loads();
	if (sim_draw(2) == 0)
		client_flush(&world.user[0].client);
	cache_check(model->cache);
}

/* Destroys the cache; kept loads end during that, or after it. */
static void close_cache(void)
{
	struct cache_model *model = &world.model;
	struct caller *body = &world.user[0].caller;
	struct tw_cache_stats stats = {.inserts = 0};

	world.source_rests = sim_draw(3) == 0;
	world.source_hurries = sim_draw(4) != 0;
	sim_wake_all(&world.source);
	if (!model->is_stopped && sim_draw(2) == 0)
		stop_cache();
	if (model->is_stopped)
		(void)tw_cache_get_stats(model->cache, &stats);
	model->is_ending = model->stop_begun = true;
	caller_begin(body, "tw_cache_destroy");
	tw_cache_destroy(model->cache);
	caller_end(body);
	model->is_over = true;
	model->cache = NULL;
	world.source_ends = true;
	sim_wake_all(&world.source);
	if (world.has_source)
		sim_pthread_join(world.source.caller.thread, NULL);
	for (unsigned i = 0; i < USERS_MOST; i++)
		client_unpin_all(&world.user[i].client);
	cache_model_close(model, stats.inserts);
}

void cache_world_run(void *argument)
{
	struct cache_model *model = &world.model;

	draw_world();
	sim_limit_time_step(world.interval / 4);
	if (open_cache()) {
		cache_model_open(model);
		world.has_source = model->keeps = sim_pthread_create(&world.source.caller.thread,
								     NULL, source_run, NULL) == 0;
		run_users();
		rest();
		cache_model_check_stats(model);
		close_cache();
	}
	tw_destroy(model->wheel);
	sim_pthread_exit(NULL);
}

void cache_world_describe(void)
{
	const struct tw_cache_options *options = &world.model.options;

	printf("   %s wheel, %s clock, interval %lld, %s, %d workers; %u shards, %s, max_entries "
	       "%llu, max_bytes %llu, idle %lld, negative_expire %lld, %s; %u users of %u calls\n",
	       world.model.wheel ? "a given" : "its own", world.is_manual ? "manual" : "real",
	       (long long)world.interval,
	       world.wheel_options.drive == TW_DRIVE_THREAD ? "owner thread" : "driven by callers",
	       world.wheel_options.workers, options->shards,
	       options->policy == TW_POLICY_LRU ? "LRU" : "S3-FIFO",
	       (unsigned long long)options->max_entries, (unsigned long long)options->max_bytes,
	       (long long)options->idle, (long long)options->negative_expire,
	       options->on_remove ? "on_remove" : "no listener", world.users, world.calls);
	printf("   %s keys are loaded, %u at a time; refresh_after %lld, "
	       "max_refreshing %u, stale_if_error %lld, retry_after %lld\n",
	       world.model.loads_all ? "all" : "some", options->loaders,
	       (long long)options->refresh_after, options->max_refreshing,
	       (long long)options->stale_if_error, (long long)options->retry_after);
}

void cache_world_idle(void *argument, int64_t now, int64_t next)
{
	const struct cache_model *model = &world.model;
	/* A flush looks this often whether the wheel goes on. */
	tw_duration longest_look = 21 * TW_MILLISECOND;
	tw_duration slack =
		2 * world.interval + 20 * TW_MILLISECOND + model->options.stale_if_error;

	if (!model->cache || !model->keys || world.sleeping > 0 || next - now <= WORLD_NAP)
		return;
	if (model->pending > 0 && (model->kept_count == 0 || model->is_stopped) &&
	    !model->wheel_is_stopped &&
	    (!model->wheel || world.wheel_options.drive == TW_DRIVE_THREAD))
		sim_fail("%u takes wait for results, and nothing is loaded", model->pending);
	if (model->takers && model->kept_count == 0)
		sim_fail("a take waits, and nothing is loaded");
	for (unsigned i = 0; i < USERS_MOST && next - now > longest_look; i++)
		if (world.user[i].caller.call)
			sim_fail("%s waits, and all sleep for %lld ns", world.user[i].caller.call,
				 (long long)(next - now));
	if (world.is_manual || !model->options.on_remove || model->wheel_is_stopped ||
	    model->is_ending || (model->wheel && world.wheel_options.drive == TW_DRIVE_CALLER))
		return;
	cache_model_check_overdue(model, next - slack);
}
