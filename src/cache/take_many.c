/* SPDX-License-Identifier: MIT */
/*
 * tw_cache_take_many begins a load for every key that no thread loads, has one loader load them
 * all, and ends these loads; only then it waits for those of others. So two such calls never wait
 * for each other's keys.
 */
#include <stdlib.h>

#include "load.h"
#include "take.h"

enum { GLANCES = 16 /* at a time: their cache misses overlap */ };

/* An item that was not found at a glance. */
struct missed {
	struct take take;
	struct tw_cache_taking *item;
	enum take_step step;
};

struct many {
	struct tw_cache *cache;
	struct reader *reader;
	struct tw_cache_taking *items;
	size_t n;
	tw_cache_load_many *load;
	void *argument;
	tw_duration wait;
	/* Those that were missed, in order, and the loads among them. */
	size_t count;
	struct missed *missed;
	size_t loads;
	struct tw_cache_missing *missing;
	/* The loader's call. */
	bool is_calling;
	enum tw_status status;
	size_t returned; /* how many of `missed` */
};

/* ---- At a glance ---- */

static void many_glance_some(struct many *many, struct tw_cache_taking *items, unsigned n)
{
	struct take takes[GLANCES];

	for (unsigned i = 0; i < n; i++) {
		items[i].entry = NULL;
		items[i].status = TW_INVALID;
		if (!key_is_valid(items[i].key, items[i].key_size))
			continue;
		items[i].status = TW_RUNNING;
		take_init(&takes[i], many->cache, many->reader, items[i].key, items[i].key_size);
		shard_prefetch_bucket(takes[i].shard, takes[i].hash);
	}
	for (unsigned i = 0; i < n; i++) {
		if (items[i].status != TW_RUNNING)
			continue;
		if (take_look(&takes[i])) {
			items[i].status = takes[i].status;
			items[i].entry = takes[i].entry;
		} else {
			many->count++;
		}
	}
}

/* Notes all that was missed. Returns false if out of memory. */
static bool many_glance(struct many *many)
{
	struct missed *next;

	for (size_t i = 0; i < many->n; i += GLANCES)
		many_glance_some(many, many->items + i,
				 many->n - i < GLANCES ? (unsigned)(many->n - i) : GLANCES);
	if (many->count == 0)
		return true;
	many->missed = calloc(many->count, sizeof(struct missed));
	many->missing = malloc(many->count * sizeof(struct tw_cache_missing));
	if (!many->missed || !many->missing)
		return false;
	next = many->missed;
	for (size_t i = 0; i < many->n; i++) {
		if (many->items[i].status != TW_RUNNING)
			continue;
		take_init(&next->take, many->cache, many->reader, many->items[i].key,
			  many->items[i].key_size);
		next->item = &many->items[i];
		next++;
	}
	return true;
}

/* ---- Loads ---- */

static void many_begin(struct many *many, tw_duration now)
{
	for (size_t i = 0; i < many->count; i++) {
		struct missed *missed = &many->missed[i];

		missed->step = take_begin(&missed->take, now);
		if (missed->step == TAKE_LOADS)
			many->missing[many->loads++] = (struct tw_cache_missing){
				missed->take.key, missed->take.key_size, missed->take.loading};
	}
}

/* Ends the loads that the loader has not kept. What it gave no value for is absent. */
static void many_return(struct many *many)
{
	while (many->returned < many->count) {
		/* The list is the loader's to write. */
		const struct missed *missed = &many->missed[many->returned++];
		struct tw_cache_loading *loading = missed->take.loading;

		if (missed->step == TAKE_LOADS)
			load_return(loading, many->status == TW_OK && !load_has_value(loading)
						     ? TW_NOT_FOUND
						     : many->status);
	}
}

static void many_free(struct many *many)
{
	free(many->missed);
	free(many->missing);
}

/* The thread ends in its loader, or an exception leaves that or a waiter's function. */
static void many_abandon(void *argument)
{
	struct many *many = argument;

	if (many->is_calling)
		many->reader->callbacks--;
	many_return(many);
	for (size_t i = 0; i < many->count; i++) {
		loading_let_go(many->missed[i].take.loading);
		tw_cache_entry_release(many->missed[i].take.entry);
	}
	for (size_t i = 0; i < many->n; i++)
		tw_cache_entry_release(many->items[i].entry);
	many_free(many);
	cache_end_take(many->cache);
}

static void many_load(struct many *many, tw_duration now)
{
	for (size_t i = 0; i < many->loads; i++)
		load_note_begin(many->reader, many->missing[i].loading, now);
	many->status = TW_LOAD_FAILED;
	many->is_calling = true;
	many->reader->callbacks++;
	pthread_cleanup_push(many_abandon, many);
	many->status = many->load(many->argument, many->missing, many->loads);
	many->reader->callbacks--;
	many->is_calling = false;
	many_return(many);
	pthread_cleanup_pop(0);
}

/* Waits for all loads, others' and those that are kept. */
static void many_run(struct many *many)
{
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);

	many_begin(many, now);
	if (many->loads > 0)
		many_load(many, now);
	for (size_t i = 0; i < many->count; i++) {
		struct missed *missed = &many->missed[i];

		if (missed->step != TAKE_ENDS)
			take_join(&missed->take, take_until(now, many->wait));
		missed->item->status = missed->take.status;
		missed->item->entry = missed->take.entry;
	}
}

/* ---- The call ---- */

static enum tw_status many_take(struct many *many)
{
	if (!many_glance(many)) {
		many_free(many);
		for (size_t i = 0; i < many->n; i++) {
			tw_cache_entry_release(many->items[i].entry);
			many->items[i].entry = NULL;
			many->items[i].status = TW_NO_MEMORY;
		}
		return TW_NO_MEMORY;
	}
	if (many->count == 0)
		return TW_OK;
	cache_begin_take(many->cache);
	many_run(many);
	cache_end_take(many->cache);
	many_free(many);
	return TW_OK;
}

enum tw_status tw_cache_take_many(struct tw_cache *cache, struct tw_cache_taking *items, size_t n,
				  tw_cache_load_many *load, void *argument, tw_duration wait,
				  size_t *found)
{
	struct many many = {.cache = cache,
			    .items = items,
			    .n = n,
			    .load = load,
			    .argument = argument,
			    .wait = wait};
	enum tw_status status;

	if (found)
		*found = 0;
	if (!cache || (!items && n > 0) || !load)
		return TW_INVALID;
	status = cache_admit(cache, &many.reader);
	if (status != TW_OK)
		return status;
	status = many_take(&many);
	for (size_t i = 0; found && i < n; i++)
		*found += items[i].entry != NULL;
	return status;
}
