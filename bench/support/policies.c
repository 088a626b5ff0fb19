/* SPDX-License-Identifier: MIT */
/*
 * Keys are in queues, which are lists through one array: a key's item has the numbers of the next
 * and of the previous one, and the heads of the queues follow the keys' items. Each queue has its
 * keys from the oldest to the newest, its count and its weight.
 *
 * LRU, CLOCK, S3-FIFO and the library's policy differ in their rules: what a use does, how one step
 * of an eviction goes, and where a new key enters. ARC and the optimum have loops of their own.
 */
#include "policies.h"

#include "process.h"

#include <stdlib.h>

/* These are the places of a key. ARC has its recent keys in SMALL and its frequent ones in MAIN. */
enum place { NOWHERE, SMALL, MAIN, GHOST_SMALL, GHOST_MAIN, PLACES };

enum { USES_MOST = 3, MAIN_AFTER_USES = 2, LOOKS = 512 };

struct item {
	uint32_t next;
	uint32_t previous;
	uint32_t weight;
	uint32_t evicted; /* the number of its eviction, or 0 */
	uint8_t place;
	uint8_t uses;
	bool was_main; /* it was evicted from the main queue */
};

struct simulation {
	const struct replay *replay;
	struct item *items;
	uint64_t count[PLACES];
	uint64_t weight[PLACES];
	/* These belong to the library's policy. */
	uint32_t evictions;
	unsigned looks; /* left to the current access */
	double share;
	double flow;
};

struct rules {
	void (*use)(struct simulation *simulation, uint32_t key);
	/* Evicts an entry, or advances to the next candidate. There is an entry. */
	void (*step)(struct simulation *simulation);
	/* Returns the queue for a new key, SMALL or MAIN, and takes the key out of the ghosts. */
	enum place (*admit)(struct simulation *simulation, uint32_t key);
};

/* ---- Queues ---- */

static uint32_t queue_head(const struct simulation *simulation, enum place place)
{
	return simulation->replay->trace->keys + place;
}

static uint32_t queue_first(const struct simulation *simulation, enum place place)
{
	return simulation->items[queue_head(simulation, place)].next;
}

static void queue_leave(struct simulation *simulation, uint32_t key)
{
	struct item *items = simulation->items;

	items[items[key].previous].next = items[key].next;
	items[items[key].next].previous = items[key].previous;
	simulation->count[items[key].place]--;
	simulation->weight[items[key].place] -= items[key].weight;
	items[key].place = NOWHERE;
}

static void queue_enter(struct simulation *simulation, uint32_t key, enum place place)
{
	struct item *items = simulation->items;
	uint32_t head = queue_head(simulation, place);
	uint32_t last = items[head].previous;

	items[key].previous = last;
	items[key].next = head;
	items[last].next = items[head].previous = key;
	items[key].place = (uint8_t)place;
	simulation->count[place]++;
	simulation->weight[place] += items[key].weight;
}

static void queue_move(struct simulation *simulation, uint32_t key, enum place place)
{
	queue_leave(simulation, key);
	queue_enter(simulation, key, place);
}

static bool is_in_cache(const struct simulation *simulation, uint32_t key)
{
	return simulation->items[key].place == SMALL || simulation->items[key].place == MAIN;
}

/* ---- Runs ---- */

static struct simulation simulation_begin(const struct replay *replay)
{
	struct simulation simulation = {.replay = replay, .share = 0.1, .flow = 0.5};
	size_t items = (size_t)replay->trace->keys + PLACES;

	simulation.items = process_allocate(items * sizeof(*simulation.items));
	for (int place = 0; place < PLACES; place++) {
		uint32_t head = queue_head(&simulation, (enum place)place);

		simulation.items[head].next = simulation.items[head].previous = head;
	}
	return simulation;
}

static void simulation_set(struct simulation *simulation, const struct rules *rules, uint32_t key,
			   uint32_t weight)
{
	uint64_t limit = simulation->replay->limit;
	enum place place;

	if (weight > limit)
		return;
	simulation->looks = LOOKS;
	while (simulation->weight[SMALL] + simulation->weight[MAIN] + weight > limit)
		rules->step(simulation);
	place = rules->admit(simulation, key);
	simulation->items[key].weight = weight;
	simulation->items[key].uses = 0;
	queue_enter(simulation, key, place);
}

static uint64_t simulate(const struct replay *replay, const struct rules *rules)
{
	struct simulation simulation = simulation_begin(replay);
	uint64_t hits = 0;

	for (size_t i = 0; i < replay->trace->length; i++) {
		uint32_t key = replay->trace->key[i];

		if (is_in_cache(&simulation, key)) {
			hits++;
			rules->use(&simulation, key);
		} else {
			simulation_set(&simulation, rules, key, replay_weight(replay, i));
		}
	}
	free(simulation.items);
	return hits;
}

/* ---- LRU and CLOCK ---- */

static void use_moves(struct simulation *simulation, uint32_t key)
{
	queue_move(simulation, key, MAIN);
}

static void use_counts(struct simulation *simulation, uint32_t key)
{
	if (simulation->items[key].uses < USES_MOST)
		simulation->items[key].uses++;
}

static void first_leaves(struct simulation *simulation)
{
	queue_leave(simulation, queue_first(simulation, MAIN));
}

/* A used entry goes round again, with one use less. */
static void first_unused_leaves(struct simulation *simulation)
{
	uint32_t key = queue_first(simulation, MAIN);

	if (simulation->items[key].uses == 0) {
		queue_leave(simulation, key);
		return;
	}
	simulation->items[key].uses--;
	queue_move(simulation, key, MAIN);
}

static enum place admit_to_main(struct simulation *simulation, uint32_t key)
{
	(void)simulation;
	(void)key;
	return MAIN;
}

uint64_t simulate_lru(const struct replay *replay)
{
	return simulate(replay, &(struct rules){use_moves, first_leaves, admit_to_main});
}

uint64_t simulate_clock(const struct replay *replay)
{
	return simulate(replay, &(struct rules){use_counts, first_unused_leaves, admit_to_main});
}

/* ---- S3-FIFO ---- */

/* Takes a used entry from the small queue to the main one. Returns false if it is not used. */
static bool small_goes_on(struct simulation *simulation, uint32_t key)
{
	if (simulation->items[key].uses < MAIN_AFTER_USES)
		return false;
	simulation->items[key].uses = 0;
	queue_move(simulation, key, MAIN);
	return true;
}

static void s3fifo_step(struct simulation *simulation)
{
	double limit = (double)simulation->replay->limit;
	uint32_t key = queue_first(simulation, SMALL);

	if (simulation->count[MAIN] > 0 &&
	    (simulation->count[SMALL] == 0 || (double)simulation->weight[SMALL] < 0.1 * limit)) {
		first_unused_leaves(simulation);
		return;
	}
	if (small_goes_on(simulation, key))
		return;
	queue_move(simulation, key, GHOST_SMALL);
	while ((double)simulation->weight[GHOST_SMALL] > 0.9 * limit)
		queue_leave(simulation, queue_first(simulation, GHOST_SMALL));
}

static enum place s3fifo_admit(struct simulation *simulation, uint32_t key)
{
	if (simulation->items[key].place != GHOST_SMALL)
		return SMALL;
	queue_leave(simulation, key);
	return MAIN;
}

uint64_t simulate_s3fifo(const struct replay *replay)
{
	return simulate(replay, &(struct rules){use_counts, s3fifo_step, s3fifo_admit});
}

/* ---- The library ---- */

static double library_count(const struct simulation *simulation)
{
	return (double)(simulation->count[SMALL] + simulation->count[MAIN]);
}

static void library_evict(struct simulation *simulation, uint32_t key)
{
	struct item *item = &simulation->items[key];

	item->was_main = item->place == MAIN;
	item->evicted = ++simulation->evictions;
	simulation->flow +=
		((item->was_main ? 0 : 1) - simulation->flow) / (library_count(simulation) + 1);
	queue_leave(simulation, key);
}

static void library_step(struct simulation *simulation)
{
	double small = (double)simulation->weight[SMALL];
	double both = small + (double)simulation->weight[MAIN];
	bool has_small = simulation->count[SMALL] > 0;
	enum place place = MAIN;
	uint32_t key;

	if (simulation->count[MAIN] == 0 ||
	    (has_small && (simulation->looks == 0 || small >= simulation->share * both)))
		place = SMALL;
	key = queue_first(simulation, place);
	if (simulation->looks == 0) {
		library_evict(simulation, key);
	} else if (place == MAIN && simulation->items[key].uses > 0) {
		simulation->looks--;
		simulation->items[key].uses--;
		queue_move(simulation, key, MAIN);
	} else if (place == SMALL && small_goes_on(simulation, key)) {
		simulation->looks--;
	} else {
		library_evict(simulation, key);
	}
}

/* Returns the change of the share in halves of an entry. */
static double library_ratio(double of_other, double of_this)
{
	return of_other > of_this ? of_other / (of_this + 1e-9) : 1;
}

static enum place library_admit(struct simulation *simulation, uint32_t key)
{
	struct item *item = &simulation->items[key];
	double age = (double)(simulation->evictions - item->evicted);
	double count = library_count(simulation) + 1;
	double flow = simulation->flow;
	double change = 0;

	if (simulation->evictions == 0)
		return MAIN;
	if (item->evicted == 0 || age >= count)
		return SMALL;
	item->evicted = 0;
	if (item->was_main)
		change = -library_ratio(flow, 1 - flow);
	else if (age + (double)simulation->count[SMALL] <= 0.9 * count)
		change = library_ratio(1 - flow, flow);
	simulation->share += change / 2 / count;
	if (simulation->share < 0.05)
		simulation->share = 0.05;
	if (simulation->share > 0.9)
		simulation->share = 0.9;
	return item->was_main ? SMALL : MAIN;
}

uint64_t simulate_library(const struct replay *replay)
{
	return simulate(replay, &(struct rules){use_counts, library_step, library_admit});
}

/* ---- ARC ---- */

static void arc_forget_first(struct simulation *simulation, enum place place)
{
	queue_leave(simulation, queue_first(simulation, place));
}

/* Turns the first recent or the first frequent entry into a ghost. */
static void arc_replace(struct simulation *simulation, double target, bool was_frequent)
{
	double recent = (double)simulation->count[SMALL];
	bool takes_recent = recent >= 1 && (recent > target || (was_frequent && recent == target));

	if (takes_recent || simulation->count[MAIN] == 0)
		queue_move(simulation, queue_first(simulation, SMALL), GHOST_SMALL);
	else
		queue_move(simulation, queue_first(simulation, MAIN), GHOST_MAIN);
}

/* Returns the new target of the recent entries after a ghost has come back. */
static double arc_learn(const struct simulation *simulation, double target, bool was_frequent)
{
	double limit = (double)simulation->replay->limit;
	double recent = (double)simulation->count[GHOST_SMALL];
	double frequent = (double)simulation->count[GHOST_MAIN];

	if (was_frequent)
		target -= recent > frequent ? recent / frequent : 1;
	else
		target += frequent > recent ? frequent / recent : 1;
	return target < 0 ? 0 : target > limit ? limit : target;
}

/* Makes room for a key that is not known. */
static void arc_make_room(struct simulation *simulation, double target)
{
	const uint64_t *count = simulation->count;
	uint64_t limit = simulation->replay->limit;
	uint64_t recent = count[SMALL] + count[GHOST_SMALL];
	uint64_t all = recent + count[MAIN] + count[GHOST_MAIN];

	if (recent == limit && count[GHOST_SMALL] == 0) {
		arc_forget_first(simulation, SMALL);
		return;
	}
	if (recent == limit)
		arc_forget_first(simulation, GHOST_SMALL);
	else if (all == 2 * limit)
		arc_forget_first(simulation, GHOST_MAIN);
	if (all >= limit)
		arc_replace(simulation, target, false);
}

uint64_t simulate_arc(const struct replay *replay)
{
	struct simulation simulation = simulation_begin(replay);
	double target = 0;
	uint64_t hits = 0;

	for (size_t i = 0; i < replay->trace->length; i++) {
		uint32_t key = replay->trace->key[i];
		enum place place = (enum place)simulation.items[key].place;

		if (place == NOWHERE) {
			arc_make_room(&simulation, target);
			simulation.items[key].weight = 1;
			queue_enter(&simulation, key, SMALL);
			continue;
		}
		if (is_in_cache(&simulation, key)) {
			hits++;
		} else {
			target = arc_learn(&simulation, target, place == GHOST_MAIN);
			arc_replace(&simulation, target, place == GHOST_MAIN);
		}
		queue_move(&simulation, key, MAIN);
	}
	free(simulation.items);
	return hits;
}

/* ---- The optimum ---- */

/* A heap has the latest next use on top. A use is its place in the trace above the key. */
struct heap {
	uint64_t *uses;
	size_t count;
};

static void heap_push(struct heap *heap, uint64_t use)
{
	size_t at = heap->count++;

	while (at > 0 && heap->uses[(at - 1) / 2] < use) {
		heap->uses[at] = heap->uses[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap->uses[at] = use;
}

static uint64_t heap_pop(struct heap *heap)
{
	uint64_t top = heap->uses[0];
	uint64_t last = heap->uses[--heap->count];
	size_t at = 0;

	for (size_t child = 1; child < heap->count; child = 2 * at + 1) {
		if (child + 1 < heap->count && heap->uses[child + 1] > heap->uses[child])
			child++;
		if (heap->uses[child] <= last)
			break;
		heap->uses[at] = heap->uses[child];
		at = child;
	}
	heap->uses[at] = last;
	return top;
}

/* Returns for each access the place of the key's next one, or UINT32_MAX. */
static uint32_t *find_next_uses(const struct trace *trace)
{
	uint32_t *next = process_allocate(trace->length * sizeof(*next));
	uint32_t *last = process_allocate(trace->keys * sizeof(*last));

	for (uint32_t key = 0; key < trace->keys; key++)
		last[key] = UINT32_MAX;
	for (size_t i = trace->length; i-- > 0;) {
		next[i] = last[trace->key[i]];
		last[trace->key[i]] = (uint32_t)i;
	}
	free(last);
	return next;
}

uint64_t simulate_optimum(const struct replay *replay)
{
	const struct trace *trace = replay->trace;
	uint32_t *next = find_next_uses(trace);
	/* This is the next use of each key in the cache, and 0 for the others. */
	uint32_t *held = process_allocate(trace->keys * sizeof(*held));
	struct heap heap = {process_allocate(trace->length * sizeof(*heap.uses)), 0};
	uint64_t count = 0;
	uint64_t hits = 0;

	for (size_t i = 0; i < trace->length; i++) {
		uint32_t key = trace->key[i];

		hits += held[key] > 0;
		count += held[key] == 0;
		held[key] = next[i];
		heap_push(&heap, (uint64_t)next[i] << 32 | key);
		while (count > replay->limit) {
			uint64_t use = heap_pop(&heap);

			/* The heap still has past uses. */
			if (held[(uint32_t)use] != use >> 32)
				continue;
			held[(uint32_t)use] = 0;
			count--;
		}
	}
	free(heap.uses);
	free(held);
	free(next);
	return hits;
}
