/* SPDX-License-Identifier: MIT */
/*
 * Keys are taken by users, one or many at a time, waiting or not, and loaded by loaders that take
 * time, fail, find nothing, give two values, end their load themselves, take other keys, or end
 * their thread. Some keep their load: it is ended later by a user, or by a thread that does nothing
 * else, the source, at times only when the cache is gone.
 *
 * The oracle: of a key one load runs at a time, and none where the taker must find the key; a take
 * is told what it may be told: a value whose load began after the last change of the key that was
 * over, a value past its deadline as TW_STALE alone, and that and errors only where a load has
 * failed since; one that is told by a call is told once, before the end of the cache; what was
 * given and not kept is freed once; and the statistics agree. When all threads sleep, and no load
 * is kept, no take waits.
 */
#include "cache_loads.h"

#include <stdio.h>
#include <string.h>

enum { ASKS_MOST = 256, KEPT_MOST = 32, LOADER_ERROR = 200, GUEST = USERS_MOST };

/* A load that its loader has under way, or keeps. */
struct load {
	struct tw_cache_loading *loading;
	struct user *taker; /* NULL: on a thread of the cache, or kept */
	unsigned key;
	uint64_t began;
	struct value *given;
	bool is_out; /* kept, or ended by itself: not by the loader's return */
};

/* A take that is told by a call. */
struct ask {
	struct look look;
	bool is_listed; /* the call has returned, and all is well */
	bool is_refused;
	unsigned told;
};

static struct {
	/* Takes that are under way, of all threads. */
	struct user *takers;
	unsigned running; /* loaders, and functions that are told */
	unsigned ask_count;
	unsigned pending; /* not told yet */
	struct ask asks[ASKS_MOST];
	unsigned kept_count;
	struct load kept[KEPT_MOST];
	unsigned failures; /* of 16 loads */
	struct user source;
	tw_duration source_nap;
	bool has_source;
	bool keeps_all; /* loaders keep their loads */
	bool source_rests;
	bool source_hurries;
	bool source_ends;
	/* For the statistics. */
	uint64_t begun;
	uint64_t failed;
	uint64_t timeouts;
	uint64_t stale;
} loads;

/* As CALL, of loadings, which stay when the cache is gone. */
#define LOADING_CALL(user, expression) CALLER_CALLS(&(user)->caller, expression)

static struct user guest_new(void)
{
	return (struct user){.caller.number = GUEST, .is_guest = true};
}

/* ---- Takers ---- */

static void taker_begin(struct user *user, const char *call, const struct look *looks,
			unsigned count)
{
	user->taker = sim_pthread_self();
	user->call = call;
	user->looks = looks;
	user->look_count = count;
	user->loaded_count = 0;
	user->outer = loads.takers;
	loads.takers = user;
	caller_begin(&user->caller, call);
}

/* The one whose loader is called by this thread; NULL: it is a thread of the cache. */
static struct user *taker_here(void)
{
	struct user *user = loads.takers;

	while (user && user->taker != sim_pthread_self())
		user = user->outer;
	return user;
}

static void taker_forget(const struct user *user)
{
	struct user **place = &loads.takers;

	while (*place != user)
		place = &(*place)->outer;
	*place = user->outer;
}

/* What it has loaded lives from some time before. */
static void taker_end(struct user *user, enum tw_status status)
{
	caller_end(&user->caller);
	taker_forget(user);
	for (unsigned i = 0; i < user->loaded_count; i++) {
		user->loaded[i]->high = time_add(now_here(), user->loaded[i]->life);
		user->loaded[i]->over = ++world.events;
	}
	sim_trace("user %u: %s of key %u: %s", user->caller.number, user->call, user->looks[0].key,
		  tw_status_name(status));
}

/* ---- What a take is told ---- */

static void check_deadline(const struct look *look, enum tw_status status,
			   const struct tw_cache_entry *entry)
{
	tw_duration deadline = tw_cache_entry_deadline(entry);
	tw_duration stale = world.options.stale_if_error;

	if (status == TW_OK && deadline <= look->now)
		sim_fail("a take at %lld is given what was past its deadline %lld",
			 (long long)look->now, (long long)deadline);
	if (status == TW_STALE && (deadline > now_here() || time_add(deadline, stale) <= look->now))
		sim_fail("a take at %lld is given with TW_STALE what has the deadline %lld",
			 (long long)look->now, (long long)deadline);
}

static void check_taken(const struct look *look, enum tw_status status,
			const struct tw_cache_entry *entry)
{
	const struct key *key = &world.key[look->key];
	bool is_entry = status == TW_OK || status == TW_STALE;
	bool has_failed = look->outcome == FAILED || key->failures > look->failures;
	bool is_absent = look->outcome == ABSENT || key->absences > look->absences;
	bool may_be = true;

	if (is_entry != (entry != NULL))
		sim_fail("a take is told %s %s an entry", tw_status_name(status),
			 entry ? "with" : "without");
	if (is_entry) {
		check_known(look, value_of_entry(entry));
		check_deadline(look, status, entry);
	}
	switch ((int)status) {
	case TW_OK:
		break;
	case TW_STALE:
	case TW_LOAD_FAILED:
	case LOADER_ERROR:
		/* Without memory loads fail by themselves. */
		may_be = has_failed || sim_memory_refused() > 0;
		break;
	case TW_NOT_FOUND:
		may_be = is_absent || (world.options.negative_expire > 0 && key->absences > 0);
		break;
	case TW_NO_MEMORY:
		may_be = sim_memory_refused() > 0;
		break;
	case TW_CLOSED:
		may_be = world.stop_begun;
		break;
	default:
		may_be = false;
	}
	if (!may_be || (status == TW_STALE && world.options.stale_if_error == 0))
		sim_fail("a take of key %u is told %s", look->key, tw_status_name(status));
}

/* Of a take that waits. */
static void check_waited(const struct user *user, const struct look *look, enum tw_status status,
			 const struct tw_cache_entry *entry, tw_duration wait)
{
	world.asked += status != TW_CLOSED && status != TW_NO_MEMORY;
	loads.stale += status == TW_STALE;
	if (status == TW_TIMED_OUT && wait != TW_FOREVER && !entry) {
		loads.timeouts++;
		check_not_found(look);
	} else if (status != TW_INVALID || !user->is_guest || entry) {
		check_taken(look, status, entry);
	}
}

/* ---- Loaders ---- */

static unsigned key_number(const void *bytes, size_t size)
{
	char name[NAME_SIZE];

	for (unsigned number = 0; number < KEYS; number++)
		if (key_name(number, name) == size && memcmp(name, bytes, size) == 0)
			return number;
	sim_fail("a load of a key that is none");
}

static void load_begin(struct load *load, struct user *taker, const void *name, size_t size,
		       struct tw_cache_loading *loading)
{
	struct key *key;

	*load = (struct load){.loading = loading, .taker = taker, .key = key_number(name, size)};
	key = &world.key[load->key];
	if (world.is_over)
		sim_fail("a loader is called, and the cache is gone");
	if (key->is_loading)
		sim_fail("two loads of a key at a time");
	for (unsigned i = 0; taker && i < taker->look_count; i++)
		if (taker->looks[i].key == load->key)
			check_not_found(&taker->looks[i]);
	key->is_loading = true;
	key->outcome = NOT_YET;
	key->load_began = load->began = ++world.events;
	loads.begun++;
}

/* It is about to end so. */
static void load_over(struct load *load, enum tw_status status)
{
	struct key *key = &world.key[load->key];
	bool is_value = status == TW_OK && load->given;
	struct user *taker = load->taker;

	sim_trace("  load of key %u is over: %s, value %d", load->key, tw_status_name(status),
		  is_value ? value_number(load->given) : -1);
	if (load->given && !is_value)
		load->given->fate = DROPPED;
	if (is_value && taker && taker->loaded_count < ITEMS_MOST)
		taker->loaded[taker->loaded_count++] = load->given;
	key->outcome = is_value ? LOADED : status == TW_NOT_FOUND ? ABSENT : FAILED;
	key->failures += key->outcome == FAILED;
	key->absences += key->outcome == ABSENT;
	loads.failed += !is_value;
	key->loaded = load->began;
	key->is_loading = false;
	load->is_out = true;
}

static enum tw_status load_give(struct load *load, struct user *by)
{
	struct value *value = value_new(load->key);
	tw_duration life = sim_draw(5) == 0 ? 0 : draw_lifetime();
	enum tw_status status;

	if (!value)
		return (enum tw_status)LOADER_ERROR;
	value->is_loaded = true;
	value->began = load->began;
	/* Its lifetime counts from the load's end. */
	value->life = life > 0 ? life : world.expire;
	value->low = time_add(now_here(), value->life);
	value->is_adopted = sim_draw(2) == 0;
	if (value->is_adopted)
		status = LOADING_CALL(by,
				      tw_cache_load_adopt(load->loading, value->memory, value->size,
							  0, free_value, value, life));
	else
		status = LOADING_CALL(
			by, tw_cache_load_copy(load->loading, value->memory, value->size, life));
	sim_trace("  value %d of key %u", value_number(value), load->key);
	if (status != TW_OK) {
		value->fate = REFUSED;
		return status;
	}
	if (load->given)
		load->given->fate = DROPPED;
	load->given = value;
	return status;
}

/* To be ended later by another thread. */
static void load_keep(struct load *load, struct user *by)
{
	if (LOADING_CALL(by, tw_cache_load_keep(load->loading)) != TW_OK)
		sim_fail("tw_cache_load_keep in a loader");
	if (sim_draw(8) == 0 && LOADING_CALL(by, tw_cache_load_keep(load->loading)) != TW_INVALID)
		sim_fail("a load is kept twice");
	loads.kept[loads.kept_count] = *load;
	loads.kept[loads.kept_count++].taker = NULL;
	load->is_out = true;
	sim_wake_all(&loads);
}

static void load_end_here(struct load *load, struct user *by, enum tw_status status)
{
	load_over(load, status);
	if (LOADING_CALL(by, tw_cache_load_end(load->loading, status)) != TW_OK)
		sim_fail("tw_cache_load_end in a loader");
	if (sim_draw(8) == 0 &&
	    LOADING_CALL(by, tw_cache_load_end(load->loading, status)) != TW_CLOSED)
		sim_fail("a load is ended twice");
}

/* Answers what the loader does. */
static enum tw_status load_fetch(struct load *load, struct user *by)
{
	enum tw_status status = TW_OK;

	if (!loads.keeps_all && sim_draw(16) < loads.failures) {
		if (sim_draw(4) == 0)
			(void)load_give(load, by);
		return (enum tw_status)DRAW_ONE_OF(LOADER_ERROR, LOADER_ERROR, TW_NOT_FOUND);
	}
	switch (loads.keeps_all ? 2 : sim_draw(16)) {
	case 0:
		return TW_OK;
	case 1:
		(void)load_give(load, by);
		break;
	case 2:
	case 3:
		if (!loads.has_source || loads.kept_count == KEPT_MOST)
			break;
		if (sim_draw(2) == 0)
			(void)load_give(load, by);
		load_keep(load, by);
		return (enum tw_status)DRAW_ONE_OF(TW_OK, TW_NOT_FOUND, LOADER_ERROR);
	case 4:
		status = load_give(load, by);
		load_end_here(load, by, sim_draw(2) == 0 ? status : (enum tw_status)LOADER_ERROR);
		return TW_NOT_FOUND;
	default:
		break;
	}
	return load_give(load, by);
}

static void user_take(struct user *user, unsigned number);

/* What comes before any loader's answer: it takes time, or uses the cache, or ends its thread. */
static void load_prepare(const struct user *taker)
{
	struct user guest = guest_new();

	if (sim_draw(3) == 0)
		sleep_for(3 * TW_MILLISECOND);
	if (taker && taker->is_guest)
		return;
	switch (sim_draw(32)) {
	case 0:
	case 1:
		user_get(&guest, (unsigned)sim_draw(KEYS));
		break;
	case 2:
	case 3:
	case 4:
		user_take(&guest, FIRST_LOADED + (unsigned)sim_draw(LOADED_KEYS));
		break;
	case 5:
		world.ends_threads = true;
		sim_pthread_exit(NULL);
	default:
		break;
	}
	user_unpin_all(&guest);
}

/* A loader's call, of one key or many. */
struct loader_call {
	struct user *taker;
	unsigned count;
	struct load loads[ITEMS_MOST];
};

/* The loader is the program's own: there it may be cancelled. */
static void loader_begin(struct loader_call *call, struct user *taker)
{
	*call = (struct loader_call){.taker = taker};
	loads.running++;
	if (taker)
		caller_end(&taker->caller);
}

static void loader_end(struct loader_call *call)
{
	loads.running--;
	if (call->taker)
		caller_begin(&call->taker->caller, call->taker->call);
}

/* The thread ends in its loader. */
static void loader_abandon(void *argument)
{
	struct loader_call *call = argument;

	for (unsigned i = 0; i < call->count; i++)
		if (!call->loads[i].is_out)
			load_over(&call->loads[i], TW_LOAD_FAILED);
	/* The library's handlers run as in a call. */
	loader_end(call);
	if (call->taker)
		taker_forget(call->taker);
}

static enum tw_status load_one(struct user *taker, const void *name, size_t size,
			       struct tw_cache_loading *loading)
{
	struct user guest = guest_new();
	struct loader_call call;
	struct sim_cleanup cleanup;
	enum tw_status status;

	loader_begin(&call, taker);
	load_begin(&call.loads[call.count++], taker, name, size, loading);
	sim_cleanup_push(&cleanup, loader_abandon, &call);
	load_prepare(taker);
	status = load_fetch(&call.loads[0], &guest);
	if (!call.loads[0].is_out)
		load_over(&call.loads[0], status);
	sim_cleanup_pop(&cleanup, 0);
	loader_end(&call);
	return status;
}

static enum tw_status load_for_user(void *argument, const void *key, size_t key_size,
				    struct tw_cache_loading *loading)
{
	if (argument != taker_here())
		sim_fail("a loader is called for another take");
	return load_one(argument, key, key_size, loading);
}

static enum tw_status load_for_cache(void *context, const void *key, size_t key_size,
				     struct tw_cache_loading *loading)
{
	if (context != &world)
		sim_fail("the cache's loader is called without its context");
	return load_one(taker_here(), key, key_size, loading);
}

/* They come in the order of the keys that were asked for. */
static void check_order(const struct user *taker, const struct loader_call *call)
{
	unsigned next = 0;

	for (unsigned i = 0; i < taker->look_count && next < call->count; i++)
		next += taker->looks[i].key == call->loads[next].key;
	if (call->count == 0 || next < call->count)
		sim_fail("the loader of many keys is given others, or in another order");
}

static enum tw_status load_many(void *argument, struct tw_cache_missing *missing, size_t n)
{
	struct user guest = guest_new();
	struct user *taker = taker_here();
	struct loader_call call;
	struct sim_cleanup cleanup;
	enum tw_status status;

	if (argument != taker)
		sim_fail("a loader is called for another take");
	loader_begin(&call, taker);
	for (size_t i = 0; i < n; i++)
		load_begin(&call.loads[call.count++], taker, missing[i].key, missing[i].key_size,
			   missing[i].loading);
	check_order(taker, &call);
	sim_cleanup_push(&cleanup, loader_abandon, &call);
	load_prepare(taker);
	for (unsigned i = 0; i < call.count; i++)
		(void)load_fetch(&call.loads[i], &guest);
	status = sim_draw(4) == 0 ? (enum tw_status)LOADER_ERROR : TW_OK;
	for (unsigned i = 0; i < call.count; i++)
		if (!call.loads[i].is_out)
			load_over(&call.loads[i],
				  status == TW_OK && !call.loads[i].given ? TW_NOT_FOUND : status);
	sim_cleanup_pop(&cleanup, 0);
	loader_end(&call);
	return status;
}

/* ---- Loads that are kept ---- */

/* The cache was stopped before the load's end: those that had come to wait for it were told. */
static void check_dismissed(const struct load *load)
{
	for (unsigned i = 0; i < loads.ask_count; i++) {
		const struct ask *ask = &loads.asks[i];

		if (ask->is_listed && ask->told == 0 && ask->look.key == load->key &&
		    ask->look.event > load->began)
			sim_fail("a take of key %u waits, and the cache is stopped", load->key);
	}
}

static void kept_end_one(struct user *by)
{
	unsigned place = (unsigned)sim_draw(loads.kept_count);
	struct load load = loads.kept[place];
	bool was_over = world.is_over;
	enum tw_status status = TW_OK;
	enum tw_status answer;

	loads.kept[place] = loads.kept[--loads.kept_count];
	if (world.is_stopped)
		check_dismissed(&load);
	switch (sim_draw(8)) {
	case 0:
		status = TW_NOT_FOUND;
		break;
	case 1:
		status = TW_LOAD_FAILED;
		break;
	case 2:
		break;
	default:
		status = load_give(&load, by);
	}
	load_over(&load, status);
	answer = LOADING_CALL(by, tw_cache_load_end(load.loading, status));
	if (answer != (was_over ? TW_CLOSED : TW_OK) && !(answer == TW_CLOSED && world.is_ending))
		sim_fail("the end of a load that was kept: %s", tw_status_name(answer));
	if (!load.given || load.given->fate == DROPPED)
		return;
	load.given->high = time_add(now_here(), load.given->life);
	load.given->over = ++world.events;
	if (answer == TW_CLOSED)
		load.given->fate = DROPPED;
}

/* For a while; or until something changes. */
static void source_sleep(void)
{
	world.sleeping++;
	(void)sim_wait(&loads, sim_now() + draw_between(1, loads.source_nap), "a time");
	world.sleeping--;
}

static void *source_run(void *argument)
{
	struct user *source = argument;

	for (;;) {
		while (!loads.source_ends && (loads.kept_count == 0 || loads.source_rests))
			(void)sim_wait(&loads, INT64_MAX, "loads that are kept");
		if (loads.kept_count == 0)
			return NULL;
		if (!loads.source_ends && !loads.source_hurries && sim_draw(4) != 0)
			source_sleep();
		if (loads.kept_count > 0 && (loads.source_ends || !loads.source_rests))
			kept_end_one(source);
	}
}

/* ---- Takes ---- */

static void user_take(struct user *user, unsigned number)
{
	struct look look = look_begin(number);
	const struct tw_cache_entry *entry;
	char name[NAME_SIZE];
	size_t size = key_name(number, name);
	tw_duration wait = DRAW_ONE_OF(0, TW_MILLISECOND, TW_FOREVER, TW_FOREVER);
	bool is_own = world.options.load && sim_draw(2) == 0;
	bool was_stopped = world.is_stopped;
	enum tw_status status;

	taker_begin(user, "tw_cache_take", &look, 1);
	status = tw_cache_take(world.cache, name, size, is_own ? NULL : load_for_user, user, wait,
			       &entry);
	taker_end(user, status);
	check_stopped(was_stopped, "tw_cache_take", status);
	check_waited(user, &look, status, entry, wait);
	if (entry)
		user_pin(user, entry);
}

static void user_take_many(struct user *user)
{
	struct tw_cache_taking items[ITEMS_MOST];
	struct look looks[ITEMS_MOST];
	char names[ITEMS_MOST][NAME_SIZE];
	unsigned count = (unsigned)draw_between(1, ITEMS_MOST);
	tw_duration wait = DRAW_ONE_OF(0, TW_MILLISECOND, TW_FOREVER, TW_FOREVER);
	bool was_stopped = world.is_stopped;
	enum tw_status status;
	size_t found;
	size_t sum = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned number = world.loads_all ? (unsigned)sim_draw(KEYS)
						  : FIRST_LOADED + (unsigned)sim_draw(LOADED_KEYS);

		items[i].key = names[i];
		items[i].key_size = key_name(number, names[i]);
		looks[i] = look_begin(number);
	}
	taker_begin(user, "tw_cache_take_many", looks, count);
	status = tw_cache_take_many(world.cache, items, count, load_many, user, wait, &found);
	taker_end(user, status);
	check_stopped(was_stopped, "tw_cache_take_many", status);
	if (status != TW_OK && (status != TW_NO_MEMORY || sim_memory_refused() == 0) &&
	    status != TW_CLOSED)
		sim_fail("tw_cache_take_many: %s", tw_status_name(status));
	for (unsigned i = 0; i < count && status == TW_OK; i++) {
		check_waited(user, &looks[i], items[i].status, items[i].entry, wait);
		sum += items[i].entry != NULL;
		if (items[i].entry)
			user_pin(user, items[i].entry);
	}
	if (sum != found)
		sim_fail("tw_cache_take_many: %zu of %zu are found", sum, found);
}

static void user_take_async(struct user *user, unsigned number);

static void on_value(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct ask *ask = context;
	struct user guest = guest_new();

	if (++ask->told > 1)
		sim_fail("a take of key %u is told again", ask->look.key);
	if (ask->is_refused || world.is_over)
		sim_fail("a take is told after %s", world.is_over ? "the end" : "it was refused");
	sim_trace("  a take of key %u is told %s", ask->look.key, tw_status_name(status));
	loads.pending--;
	loads.running++;
	loads.stale += status == TW_STALE;
	check_taken(&ask->look, status, entry);
	if (entry && sim_draw(4) == 0)
		user_pin(&guest, tw_cache_entry_pin(entry));
	if (sim_draw(8) == 0)
		user_get(&guest, (unsigned)sim_draw(KEYS));
	else if (sim_draw(8) == 0)
		user_take_async(&guest, FIRST_LOADED + (unsigned)sim_draw(LOADED_KEYS));
	if (entry)
		(void)value_of_entry(entry);
	user_unpin_all(&guest);
	loads.running--;
}

static void user_take_async(struct user *user, unsigned number)
{
	struct ask *ask = &loads.asks[loads.ask_count];
	char name[NAME_SIZE];
	size_t size = key_name(number, name);
	enum tw_status status;

	if (!world.options.load || loads.ask_count == ASKS_MOST)
		return;
	loads.ask_count++;
	loads.pending++;
	ask->look = look_begin(number);
	status = CALL(user, tw_cache_take_async(world.cache, name, size, on_value, ask));
	world.asked += status == TW_OK;
	ask->is_listed = status == TW_OK;
	if (ask->is_listed)
		return;
	if (status != TW_CLOSED && status != TW_NO_MEMORY)
		sim_fail("tw_cache_take_async: %s", tw_status_name(status));
	if (ask->told > 0)
		sim_fail("a take that is refused is told");
	ask->is_refused = true;
	loads.pending--;
}

void loads_command(struct user *user)
{
	unsigned number = world.loads_all ? (unsigned)sim_draw(KEYS)
					  : FIRST_LOADED + (unsigned)sim_draw(LOADED_KEYS);

	switch (sim_draw(8)) {
	case 0:
		user_take_many(user);
		break;
	case 1:
	case 2:
	case 3:
		user_take_async(user, number);
		break;
	case 4:
		if (loads.kept_count > 0)
			kept_end_one(user);
		break;
	default:
		user_take(user, number);
	}
}

/* ---- A case ---- */

void loads_draw(void)
{
	struct tw_cache_options *options = &world.options;

	memset(&loads, 0, sizeof(loads));
	loads.failures = (unsigned)DRAW_ONE_OF(1, 3, 8);
	loads.source_nap = DRAW_ONE_OF(TW_MICROSECOND, 3 * TW_MILLISECOND, 100 * TW_MILLISECOND);
	world.loads_all = sim_draw(2) == 0;
	world.loads_much = sim_draw(2) == 0;
	if (sim_draw(3) == 0)
		options->stale_if_error = draw_between(1, DRAW_ONE_OF(1, 10, 100) * world.interval);
	if (sim_draw(3) == 0)
		return;
	options->load = load_for_cache;
	options->load_context = &world;
	options->loaders = (unsigned)draw_between(1, 3);
	if (sim_draw(2) == 0) {
		options->refresh_after =
			draw_between(1, DRAW_ONE_OF(TW_MICROSECOND, 4 * world.interval));
		options->max_refreshing = (unsigned)sim_draw(4);
	}
}

void loads_open(void)
{
	loads.source.caller.number = USERS_MOST;
	loads.has_source = sim_pthread_create(&loads.source.caller.thread, NULL, source_run,
					      &loads.source) == 0;
}

/* Loads that are kept, and takes that are told by their ends; some look again then. */
static void loads_crowd(void)
{
	struct timespec time = {.tv_nsec = TW_MILLISECOND};
	struct user guest = guest_new();

	loads.source_rests = loads.keeps_all = true;
	for (int i = (int)sim_draw(4); i > 0; i--)
		user_take_async(&guest, (unsigned)sim_draw(KEYS));
	for (int i = 0; i < 10 && loads.running > 0; i++)
		sim_nanosleep(&time, NULL);
	for (unsigned i = 0; i < loads.kept_count; i++) {
		unsigned number = loads.kept[i].key;

		if (sim_draw(2) == 0)
			user_delete(&guest, number);
		user_take_async(&guest, number);
	}
}

void loads_rest(void)
{
	struct timespec time = {.tv_nsec = TW_MILLISECOND};

	if (sim_draw(2) == 0)
		for (int i = 0; i < 40 && loads.running + loads.pending + loads.kept_count > 0; i++)
			sim_nanosleep(&time, NULL);
	else
		loads_crowd();
}

void loads_let_go(void)
{
	loads.source_rests = sim_draw(3) == 0;
	loads.source_hurries = sim_draw(4) != 0;
	sim_wake_all(&loads);
}

/* No user runs any more, and nothing else uses the cache. */
static bool loads_are_quiet(void)
{
	return loads.running == 0 && loads.pending == 0;
}

void loads_check_stats(void)
{
	struct tw_cache_stats stats;
	uint64_t begun = loads.begun;
	bool is_quiet = loads_are_quiet();

	(void)tw_cache_get_stats(world.cache, &stats);
	if (stats.refreshes > 0 && world.options.refresh_after == 0)
		sim_fail("a value is loaded anew without refresh_after");
	if (!is_quiet || !loads_are_quiet() || begun != loads.begun || sim_memory_refused() > 0 ||
	    world.stop_begun || world.ends_threads)
		return;
	/* A thread of the cache's may be about to call the loader. */
	if (stats.loads < begun || stats.loads > begun + world.options.loaders ||
	    stats.refreshes > stats.loads || stats.load_errors > loads.failed)
		sim_fail("%llu loads and %llu errors, says the cache; there were %llu and %llu",
			 (unsigned long long)stats.loads, (unsigned long long)stats.load_errors,
			 (unsigned long long)begun, (unsigned long long)loads.failed);
	if (stats.hits + stats.misses + stats.absent != world.asked)
		sim_fail("%llu hits, %llu misses, %llu absent; %llu keys were asked for",
			 (unsigned long long)stats.hits, (unsigned long long)stats.misses,
			 (unsigned long long)stats.absent, (unsigned long long)world.asked);
	if (stats.wait_timeouts != loads.timeouts || stats.stale != loads.stale)
		sim_fail("%llu timeouts, %llu stale; there were %llu and %llu",
			 (unsigned long long)stats.wait_timeouts, (unsigned long long)stats.stale,
			 (unsigned long long)loads.timeouts, (unsigned long long)loads.stale);
}

void loads_close(void)
{
	loads.source_ends = true;
	sim_wake_all(&loads);
	if (loads.has_source)
		sim_pthread_join(loads.source.caller.thread, NULL);
	for (unsigned i = 0; i < loads.ask_count; i++)
		if (loads.asks[i].told != !loads.asks[i].is_refused)
			sim_fail("a take of key %u was told %u times", loads.asks[i].look.key,
				 loads.asks[i].told);
}

void loads_describe(void)
{
	const struct tw_cache_options *options = &world.options;

	printf("   %s keys are loaded, by %u threads of the cache; refresh_after %lld, "
	       "max_refreshing %u, stale_if_error %lld\n",
	       world.loads_all ? "all" : "some", options->loaders,
	       (long long)options->refresh_after, options->max_refreshing,
	       (long long)options->stale_if_error);
}

void loads_check_idle(void)
{
	if (loads.pending > 0 && (loads.kept_count == 0 || world.is_stopped))
		sim_fail("%u takes wait to be told, and nothing is loaded", loads.pending);
	if (loads.takers && loads.kept_count == 0)
		sim_fail("a take waits, and nothing is loaded");
}
