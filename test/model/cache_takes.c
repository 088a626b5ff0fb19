/* SPDX-License-Identifier: MIT */
/*
 * These are takes, waiting or not. Loaders take time, fail, find nothing, give
 * two values, end their load themselves, set the key, take other keys, or end their thread. Some
 * keep their load: another thread ends it, at times only when the cache is gone.
 *
 * An unchanged key has one running load at a time, and none if the taker must find the key. A take
 * gets only permitted results: a value whose load began after the last completed change of the key;
 * TW_STALE with a value past its deadline, or an error, only if a load has failed since. A take's
 * callback is called once, before the end of the cache.
 */
#include "cache_model.h"
#include "support/cache_calls.h"

#include <string.h>

#include "base/clock.h"

/* Does what CACHE_CALL does, for loadings, which stay when the cache is gone. */
#define LOADING_CALL(client, expression)           \
	__extension__({                            \
		enum tw_status status_;            \
		host_enter((client), #expression); \
		status_ = (expression);            \
		host_leave(client);                \
		status_;                           \
	})

static void client_take(struct cache_client *client, unsigned number);

static struct cache_client guest_of(struct cache_model *model)
{
	return (struct cache_client){
		.model = model, .number = 99, .own_keys = model->key_count, .is_guest = true};
}

/* A take inside a loader may close a circle of several threads, which only the end of its wait
 * opens: it is too short for a world that checks why all threads wait. */
static tw_duration draw_wait(const struct cache_client *client)
{
	/* One thread alone would wait for itself. */
	if (client->model->is_alone)
		return 0;
	switch (host_draw(4)) {
	case 0:
		return 0;
	case 1:
		return client->is_guest ? TW_MICROSECOND : TW_MILLISECOND;
	default:
		return client->is_guest ? TW_MICROSECOND : TW_FOREVER;
	}
}

/* ---- Takers ---- */

static struct call_begun taker_begin(struct cache_client *client, const struct key_call *take,
				     struct cache_load *loaded)
{
	client->thread = host_thread();
	client->take = take;
	client->loaded = loaded;
	client->has_loaded = false;
	client->outer = client->model->takers;
	client->model->takers = client;
	return client_enter(client, "tw_cache_take");
}

/* Returns the taker whose loader this thread calls, or NULL on the pool. */
static struct cache_client *taker_here(const struct cache_model *model)
{
	struct cache_client *client = model->takers;

	while (client && client->thread != host_thread())
		client = client->outer;
	return client;
}

static void taker_forget(const struct cache_client *client)
{
	struct cache_client **place = &client->model->takers;

	while (*place != client)
		place = &(*place)->outer;
	*place = client->outer;
}

static void taker_end(struct cache_client *client, struct call_begun begun, enum tw_status status)
{
	taker_forget(client);
	/* The load that it has waited for may have had no memory before. */
	begun.refused = 0;
	client_leave(client, "tw_cache_take", begun, status);
	if (client->has_loaded)
		cache_load_settle(client->model, client->loaded);
}

/* ---- A take's results ---- */

/* With `is_late`, the take's wait may have timed out. */
static void check_status(struct key_call *take, enum tw_status status, bool is_late)
{
	const struct cache_model *model = take->model;
	const struct cache_key *key = &model->keys[take->key];
	const struct cache_key *then = &take->then;
	/* A load that was over first may land last, if a change came between their begins. */
	bool may_be_overtaken =
		!model->is_alone && key->loads > 1 && key->puts_begun + key->deletes_begun > 0;
	/* Without memory, and on a stopped wheel, loads fail by themselves. */
	bool has_failed =
		then->outcome == CACHE_FAILED || key->failures > then->failures ||
		((model->options.retry_after > 0 || may_be_overtaken) && key->failures > 0) ||
		host_refusals() > 0 || model->wheel_is_stopped;
	bool may_be = true;

	switch ((int)status) {
	case TW_OK:
		break;
	case TW_STALE:
		may_be = (has_failed || is_late) && model->options.stale_if_error > 0;
		break;
	case TW_TIMED_OUT:
		may_be = is_late && !key_call_has_stale(take);
		break;
	case TW_LOAD_FAILED:
	case LOADER_ERROR:
		may_be = has_failed && !key_call_has_stale(take);
		break;
	case TW_NOT_FOUND:
		may_be = then->outcome == CACHE_ABSENT || key->absences > then->absences ||
			 ((model->options.negative_expire > 0 || may_be_overtaken) &&
			  key->absences > 0);
		if (model->is_alone && key->absences == then->absences)
			may_be = then->absent_until > take->now;
		break;
	case TW_NO_MEMORY:
		may_be = host_refusals() > 0;
		break;
	case TW_CLOSED:
		may_be = model->stop_begun || model->wheel_is_stopped;
		break;
	default:
		may_be = false;
	}
	if (!may_be)
		host_fail("a take of key %u gets %s", take->key, tw_status_name(status));
}

static void check_taken(struct key_call *take, enum tw_status status,
			const struct tw_cache_entry *entry, bool is_late)
{
	struct cache_model *model = take->model;
	tw_duration deadline;

	if ((status == TW_OK || status == TW_STALE) != (entry != NULL))
		host_fail("a take gets %s %s an entry", tw_status_name(status),
			  entry ? "with" : "without");
	check_status(take, status, is_late);
	model->timeouts += status == TW_TIMED_OUT;
	if (!entry)
		return;
	model->stale += status == TW_STALE;
	key_call_check_known(take, cache_value_of_entry(model, entry));
	deadline = tw_cache_entry_deadline(entry);
	if (status == TW_OK
		    ? deadline <= take->now && !key_call_met_touch(take)
		    : deadline > host_now(model) ||
			      time_add(deadline, model->options.stale_if_error) <= take->now)
		host_fail("a take at %lld is given with %s what has the deadline %lld",
			  (long long)take->now, tw_status_name(status), (long long)deadline);
}

static void count_take(struct key_call *take, enum tw_status status,
		       const struct tw_cache_entry *entry)
{
	struct cache_model *model = take->model;
	bool is_hit = status == TW_OK && model->keys[take->key].loads == take->then.loads;

	key_call_count(take, is_hit, is_hit ? cache_value_of_entry(model, entry) : NULL);
}

/* Checks the answer of a take that waits. */
static void check_waited(struct cache_client *client, struct key_call *take, enum tw_status status,
			 const struct tw_cache_entry *entry, tw_duration wait)
{
	if (status != TW_CLOSED && status != TW_NO_MEMORY)
		count_take(take, status, entry);
	if (status == TW_TIMED_OUT && !entry)
		key_call_see(take, NULL);
	if (status != TW_INVALID || !client->is_guest || entry)
		check_taken(take, status, entry, wait != TW_FOREVER);
	if (entry)
		client_pin(client, entry);
}

/* ---- Loaders ---- */

static unsigned key_number(const struct cache_model *model, const void *bytes, size_t size)
{
	char name[CACHE_NAME_SIZE];

	for (unsigned number = 0; number < model->key_count; number++)
		if (cache_key_name(number, name) == size && memcmp(name, bytes, size) == 0)
			return number;
	host_fail("a load of a key that is none");
}

/* Checks that other loads of the key run only if it was set or deleted since the first of them, or
 * this one, was listed: not before its take began. */
static void check_beside(struct cache_key *key, const struct cache_key *then)
{
	uint64_t over = then ? then->puts_over + then->deletes_over : 0;

	if (key->loading > 0 && over > key->loading_over)
		over = key->loading_over;
	if (key->loading++ > 0 && over == key->puts_begun + key->deletes_begun)
		host_fail("two loads of a key at a time");
	key->loading_over = over;
}

static void load_begin(struct cache_model *model, struct cache_load *load,
		       struct cache_client *taker, unsigned number,
		       struct tw_cache_loading *loading)
{
	struct cache_key *key = &model->keys[number];

	*load = (struct cache_load){.loading = loading,
				    .taker = taker,
				    .key = number,
				    .refused = host_refusals(),
				    .began = ++model->events};
	if (model->is_over)
		host_fail("a loader is called, and the cache is gone");
	if (taker) {
		load->take = *taker->take;
		key_call_see(&load->take, NULL);
		if (load->take.key != number)
			host_fail("the loader of a take is given another key");
		if (model->is_alone && key->absent_until > host_now(model))
			host_fail("key %u is loaded, and known to be absent", number);
	}
	check_beside(key, taker ? &load->take.then : NULL);
	key->loads++;
	key->outcome = CACHE_NOT_YET;
	model->loads++;
}

/* Notes that the load is about to end so. */
static void load_over(struct cache_model *model, struct cache_load *load, enum tw_status status)
{
	struct cache_key *key = &model->keys[load->key];
	struct cache_client *taker = load->taker;
	bool is_value = status == TW_OK && load->given;

	host_trace("  load of key %u is over: %s, value %llu", load->key, tw_status_name(status),
		   (unsigned long long)(is_value ? load->given->number : 0));
	if (load->given && !is_value)
		load->given->fate = CACHE_DROPPED;
	load->outcome = is_value                 ? CACHE_LOADED
			: status == TW_NOT_FOUND ? CACHE_ABSENT
						 : CACHE_FAILED;
	if (taker) {
		*taker->loaded = *load;
		taker->has_loaded = true;
	}
	key->outcome = load->outcome;
	key->failures += key->outcome == CACHE_FAILED;
	key->absences += key->outcome == CACHE_ABSENT;
	model->loads_failed += !is_value;
	if (key->outcome != CACHE_FAILED && load->began > key->loaded)
		key->loaded = load->began;
	key->is_outgrown |= is_value && cache_value_is_too_heavy(load->given);
	key->loading--;
	load->is_out = true;
}

static enum tw_status load_give(struct cache_model *model, struct cache_load *load,
				struct cache_client *by)
{
	tw_duration life = host_draw(3) == 0 ? cache_draw_lifetime(model) : 0;
	struct cache_value *value = cache_value_new(model, load->key, life);
	enum tw_status status;

	if (!value)
		return (enum tw_status)LOADER_ERROR;
	value->is_loaded = true;
	value->began = load->began;
	value->is_adopted = model->adopts && host_draw(2) == 0;
	if (value->is_adopted)
		status = LOADING_CALL(by,
				      give_adopted(load->loading, value->bytes, value->size,
						   value->weight, cache_value_free, value, life));
	else
		status = LOADING_CALL(by,
				      give_copied(load->loading, value->bytes, value->size, life));
	host_trace("  value %llu of key %u", (unsigned long long)value->number, load->key);
	cache_value_settle(value, status == TW_OK);
	if (status != TW_OK) {
		cache_value_retire(value);
		return status;
	}
	if (load->given)
		load->given->fate = CACHE_DROPPED;
	load->given = value;
	return status;
}

/* Keeps the load, which another thread ends later. */
static void load_keep(struct cache_model *model, struct cache_load *load, struct cache_client *by)
{
	if (LOADING_CALL(by, tw_cache_load_keep(load->loading)) != TW_OK)
		host_fail("tw_cache_load_keep in a loader");
	if (host_draw(8) == 0 && LOADING_CALL(by, tw_cache_load_keep(load->loading)) != TW_INVALID)
		host_fail("a load is kept twice");
	model->kept[model->kept_count] = *load;
	model->kept[model->kept_count++].taker = NULL;
	load->is_out = true;
	host_kept();
}

static void load_end_here(struct cache_model *model, struct cache_load *load,
			  struct cache_client *by, enum tw_status status)
{
	load_over(model, load, status);
	if (LOADING_CALL(by, tw_cache_load_end(load->loading, status)) != TW_OK)
		host_fail("tw_cache_load_end in a loader");
	if (host_draw(8) == 0 &&
	    LOADING_CALL(by, tw_cache_load_end(load->loading, status)) != TW_CLOSED)
		host_fail("a load is ended twice");
}

/* Fetches a value, fails or keeps the load; returns what the loader does. */
static enum tw_status load_fetch(struct cache_model *model, struct cache_load *load,
				 struct cache_client *by)
{
	static const int failures[] = {LOADER_ERROR, LOADER_ERROR, TW_NOT_FOUND};
	static const int ignored[] = {TW_OK, TW_NOT_FOUND, LOADER_ERROR};
	enum tw_status status;

	if (!model->keeps_all && host_draw(16) < model->failures) {
		if (host_draw(4) == 0)
			(void)load_give(model, load, by);
		return (enum tw_status)failures[host_draw(3)];
	}
	switch (model->keeps_all ? 2 : host_draw(16)) {
	case 0:
		return TW_OK;
	case 1:
		(void)load_give(model, load, by);
		break;
	case 2:
	case 3:
		if (!model->keeps || model->kept_count == CACHE_KEPT)
			break;
		if (host_draw(2) == 0)
			(void)load_give(model, load, by);
		load_keep(model, load, by);
		return (enum tw_status)ignored[host_draw(3)];
	case 4:
		status = load_give(model, load, by);
		load_end_here(model, load, by,
			      host_draw(2) == 0 ? status : (enum tw_status)LOADER_ERROR);
		return TW_NOT_FOUND;
	default:
		break;
	}
	return load_give(model, load, by);
}

/* Takes time, or uses the cache, before a loader answers. */
static void load_prepare(struct cache_model *model, const struct cache_client *taker,
			 const struct cache_load *load)
{
	struct cache_client guest = guest_of(model);

	host_pause(model);
	if (taker && taker->is_guest)
		return;
	switch (host_draw(32)) {
	case 0:
	case 1:
		client_get(&guest, (unsigned)host_draw(model->key_count));
		break;
	case 2:
	case 3:
	case 4:
		model->has_guest = true;
		client_take(&guest, client_draw_taken(model));
		break;
	case 5:
		client_delete(&guest, load->key);
		break;
	case 6:
		client_set(&guest, load->key);
		break;
	default:
		break;
	}
	client_unpin_all(&guest);
}

/* The loader is the program's own, and may call the cache. */
static enum tw_status load_one(struct cache_model *model, struct cache_client *taker,
			       const void *name, size_t size, struct tw_cache_loading *loading)
{
	struct cache_client guest = guest_of(model);
	struct cache_load load;
	enum tw_status status;
	unsigned epoch;

	host_leave(taker);
	epoch = cache_model_begin(model);
	model->running++;
	load_begin(model, &load, taker, key_number(model, name, size), loading);
	load_prepare(model, taker, &load);
	status = load_fetch(model, &load, &guest);
	if (!load.is_out)
		load_over(model, &load, status);
	model->running--;
	cache_model_end(model, epoch);
	host_enter(taker, taker ? "tw_cache_take" : NULL);
	return status;
}

static enum tw_status load_for_client(void *argument, const void *key, size_t key_size,
				      struct tw_cache_loading *loading)
{
	struct cache_client *client = argument;

	if (client != taker_here(client->model))
		host_fail("a loader is called for another take");
	return load_one(client->model, client, key, key_size, loading);
}

enum tw_status cache_model_load(void *context, const void *key, size_t key_size,
				struct tw_cache_loading *loading)
{
	struct cache_model *model = context;

	return load_one(model, taker_here(model), key, key_size, loading);
}

/* ---- Kept loads ---- */

/* Checks that the load's waiters were notified, for the cache was stopped before its end. */
static void check_dismissed(const struct cache_model *model, const struct cache_load *load)
{
	for (unsigned i = 0; i < model->ask_count; i++) {
		const struct cache_ask *ask = &model->asks[i];

		if (ask->is_listed && ask->reported == 0 && ask->take.key == load->key &&
		    ask->take.began > load->began)
			host_fail("a take of key %u waits, and the cache is stopped", load->key);
	}
}

void client_end_kept(struct cache_client *by)
{
	struct cache_model *model = by->model;
	unsigned place = (unsigned)host_draw(model->kept_count);
	unsigned epoch = cache_model_begin(model);
	struct cache_load load = model->kept[place];
	bool was_over = model->is_over;
	enum tw_status status = TW_OK;
	enum tw_status answer;

	model->kept[place] = model->kept[--model->kept_count];
	if (model->is_stopped)
		check_dismissed(model, &load);
	switch (host_draw(8)) {
	case 0:
		status = TW_NOT_FOUND;
		break;
	case 1:
		status = TW_LOAD_FAILED;
		break;
	case 2:
		break;
	default:
		status = load_give(model, &load, by);
	}
	load_over(model, &load, status);
	answer = LOADING_CALL(by, tw_cache_load_end(load.loading, status));
	if (answer != (was_over ? TW_CLOSED : TW_OK) && !(answer == TW_CLOSED && model->is_ending))
		host_fail("the end of a load that was kept: %s", tw_status_name(answer));
	if (answer == TW_CLOSED && load.given)
		load.given->fate = CACHE_DROPPED;
	else if (answer == TW_OK)
		cache_load_settle(model, &load);
	cache_model_end(model, epoch);
}

/* ---- Takes ---- */

static void client_take(struct cache_client *client, unsigned number)
{
	struct cache_model *model = client->model;
	struct key_call take = key_call_begin(client, CALL_TAKE, number, NULL, 0);
	const struct tw_cache_entry *entry;
	struct cache_load loaded;
	tw_duration wait = draw_wait(client);
	bool is_own = model->options.load && host_draw(2) == 0;
	struct call_begun begun = taker_begin(client, &take, &loaded);
	enum tw_status status =
		tw_cache_take(model->cache, take.name, take.size, is_own ? NULL : load_for_client,
			      client, wait, &entry);

	taker_end(client, begun, status);
	check_waited(client, &take, status, entry, wait);
}

static void on_value(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct cache_ask *ask = context;
	struct cache_model *model = ask->take.model;
	struct cache_client guest = guest_of(model);

	host_leave(NULL);
	if (++ask->reported > 1)
		host_fail("a take of key %u gets a second result", ask->take.key);
	if (ask->is_refused || model->is_over)
		host_fail("a take gets a result after %s",
			  model->is_over ? "the end" : "it was refused");
	host_trace("  a take of key %u gets %s", ask->take.key, tw_status_name(status));
	model->pending--;
	model->running++;
	count_take(&ask->take, status, entry);
	check_taken(&ask->take, status, entry, false);
	if (entry && host_draw(4) == 0)
		client_pin(&guest, tw_cache_entry_pin(entry));
	if (host_draw(8) == 0)
		client_get(&guest, (unsigned)host_draw(model->key_count));
	else if (host_draw(8) == 0)
		client_take_async(&guest, client_draw_taken(model));
	if (entry)
		(void)cache_value_of_entry(model, entry);
	client_unpin_all(&guest);
	model->running--;
	cache_model_end(model, ask->epoch);
	host_enter(NULL, NULL);
}

void client_take_async(struct cache_client *client, unsigned number)
{
	struct cache_model *model = client->model;
	struct cache_ask *ask = &model->asks[model->ask_count];
	enum tw_status status;

	if (!model->options.load || model->ask_count == CACHE_ASKS)
		return;
	model->ask_count++;
	model->pending++;
	*ask = (struct cache_ask){.take = key_call_begin(client, CALL_TAKE, number, NULL, 0),
				  .epoch = cache_model_begin(model)};
	status = CACHE_CALL(client, tw_cache_take_async(model->cache, ask->take.name,
							ask->take.size, on_value, ask));
	ask->is_listed = status == TW_OK;
	while (ask->is_listed && model->is_alone && !client->is_guest &&
	       model->pending + model->running > 0)
		host_pause(model);
	if (ask->is_listed)
		return;
	client_check_answer("tw_cache_take_async", status, ask->reported, 0);
	ask->is_refused = true;
	model->pending--;
	cache_model_end(model, ask->epoch);
}

void client_load(struct cache_client *client)
{
	switch (host_draw(8)) {
	case 0:
	case 1:
	case 2:
	case 3:
		/* One thread alone waits each time. */
		if (client->model->options.load && (!client->model->is_alone || host_draw(8) == 0))
			client_take_async(client, client_draw_taken(client->model));
		else
			client_take(client, client_draw_taken(client->model));
		break;
	case 4:
		if (client->model->kept_count > 0)
			client_end_kept(client);
		break;
	default:
		client_take(client, client_draw_taken(client->model));
	}
}
