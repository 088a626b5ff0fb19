/* SPDX-License-Identifier: MIT */
/*
 * A handle's memory is never anything else, so an old id may look at its word and its place for
 * ever. Each use has a generation of its own, from 1 on; a handle that has had its 2^36 generations
 * is not used again. Pages of free handles that were given back to the system read as 0, which is
 * no generation; their chunk's floor remembers the generations that are used up.
 *
 * Invariant: a free handle's word has the generation of its next use, and is closed. One thread
 * gives a handle back: the one that alarm_end(), alarm_look() or alarm_apply_change() leave it to.
 */
#include "handle.h"

#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

static const uint64_t last_generation = ((uint64_t)1 << (64 - HANDLE_INDEX_BITS)) - 1;
static const uint64_t last_forgotten = ((uint64_t)1 << (64 - HANDLE_INDEX_BITS - 4)) - 1;

_Static_assert(offsetof(struct timer, place) >= sizeof(void *) &&
		       offsetof(struct timer, epoch) >= sizeof(void *),
	       "the slab leaves alone what an old id may look at");

/* Searching a chunk for memory in use takes as long as looking at this many handles. */
enum { LOOKS_A_CHUNK = 8 };

/* An id's bits can name this many chunks. */
static const size_t most_chunks = (((size_t)1 << HANDLE_INDEX_BITS) - 1) / CHUNK_NUMBERS + 1;

/* The words of a new chunk's handles are 0: free, of no generation yet. */
static bool handle_table_begin_chunk(void *argument, struct chunk *chunk)
{
	struct handle_table *table = argument;

	if ((chunk->number + 1) * CHUNK_NUMBERS > (size_t)1 << HANDLE_INDEX_BITS)
		return false;
	/* relaxed: published with the chunk. */
	atomic_store_explicit(&chunk->floor, 1, memory_order_relaxed);
	/* release: publishes the chunk; pairs with the acquire in handle_chunk(). */
	atomic_store_explicit(&table->chunks[chunk->number], chunk, memory_order_release);
	return true;
}

/*
 * The generations of these handles are about to become 0. Their next ones follow after all that
 * there were. A handle that has had very many keeps its memory: the others would lose as many.
 */
static bool handle_table_forget(void *argument, struct chunk *chunk, const void *block)
{
	const struct alarm *handles = block;

	/* relaxed, here and below: the handles are free, and no other thread changes the floor. The
	 * next user of one of them takes it from the slab. */
	uint64_t floor = atomic_load_explicit(&chunk->floor, memory_order_relaxed);

	(void)argument;
	for (size_t i = 0; i < HANDLES_A_PAGE; i++) {
		uint64_t generation = alarm_generation(
			atomic_load_explicit(&handles[i].word, memory_order_relaxed));

		floor = generation > floor ? generation : floor;
	}
	if (floor > last_forgotten)
		return false;
	atomic_store_explicit(&chunk->floor, floor, memory_order_relaxed);
	return true;
}

bool handle_table_init(struct handle_table *table)
{
	memset(table, 0, sizeof(*table));
	table->chunks = pages_map_untouched(most_chunks * sizeof(*table->chunks));
	if (!table->chunks)
		return false;
	table->hooks = (struct slab_hooks){handle_table_begin_chunk, handle_table_forget, table};
	slab_init(&table->slab, sizeof(struct alarm), &table->hooks);
	return true;
}

void handle_table_destroy(struct handle_table *table)
{
	slab_destroy(&table->slab);
	pages_unmap_aligned(table->chunks, most_chunks * sizeof(*table->chunks));
}

static uint64_t handle_id(const struct alarm *alarm, uint64_t generation)
{
	const struct chunk *chunk = chunk_of(alarm);
	size_t number = chunk_number(alarm, sizeof(*alarm));

	return generation << HANDLE_INDEX_BITS | (chunk->number * CHUNK_NUMBERS + number);
}

struct alarm *handle_new(struct handle_table *table, uint64_t *id)
{
	struct alarm *alarm = slab_take(&table->slab);
	uint64_t generation;
	uint64_t floor;

	if (!alarm)
		return NULL;
	/* relaxed, both: no other thread changes a free one; see handle_table_forget(). */
	generation = alarm_generation(atomic_load_explicit(&alarm->word, memory_order_relaxed));
	floor = atomic_load_explicit(&chunk_of(alarm)->floor, memory_order_relaxed);
	if (generation < floor)
		generation = floor;
	timer_set_place(&alarm->timer, TIMER_NEW);
	*id = handle_id(alarm, generation);
	/* release: what was done with it before, for those that ask by an old id; pairs with
	 * alarm_word(). */
	atomic_store_explicit(&alarm->word, alarm_closed_word(generation), memory_order_release);
	return alarm;
}

void handle_free(struct handle_table *table, struct slab_bin *bin, struct alarm *alarm)
{
	struct schedule *schedule = alarm->timer.class == TIMER_PERIODIC ? alarm->schedule : NULL;
	/* relaxed: no other thread may change it any more. */
	uint64_t word = atomic_load_explicit(&alarm->word, memory_order_relaxed);
	uint64_t generation = alarm_generation(word) + 1;

	/* release: after what was done with it; pairs with alarm_word() called with an old id. */
	atomic_store_explicit(&alarm->word, alarm_closed_word(generation), memory_order_release);
	if (generation < last_generation)
		slab_give(&table->slab, bin, alarm);
	free(schedule);
}

void handle_describe(const struct alarm *alarm, struct tw_task *task)
{
	/* relaxed: the generation is constant until it is freed. */
	uint64_t word = atomic_load_explicit(&alarm->word, memory_order_relaxed);

	task->timer.id = handle_id(alarm, alarm_generation(word));
	task->run = alarm->timer.class == TIMER_PERIODIC ? alarm->schedule->run : alarm->function;
}

uint64_t handle_table_end(const struct handle_table *table)
{
	uint64_t end = 0;

	while (handle_chunk(table, end))
		end += CHUNK_NUMBERS;
	return end;
}

/* Finds the next memory that may be in use. Returns false where there is none before the end, or
 * no look is left. */
static bool handle_scan_seek(struct handle_table *table, struct handle_scan *scan)
{
	while (scan->used == 0 && scan->number < scan->end && scan->looks > 0) {
		size_t number = scan->number % CHUNK_NUMBERS;
		const struct chunk *chunk = handle_chunk(table, scan->number);
		struct chunk_used used = slab_find_used(&table->slab, chunk, number);
		size_t looks;

		scan->number += used.number - number;
		scan->used = used.mask;
		looks = LOOKS_A_CHUNK + (size_t)__builtin_popcountll(used.mask);
		scan->looks -= looks < scan->looks ? looks : scan->looks;
	}
	return scan->used != 0;
}

struct alarm *handle_next(struct handle_table *table, struct handle_scan *scan)
{
	while (handle_scan_seek(table, scan)) {
		unsigned skipped = (unsigned)__builtin_ctzll(scan->used);
		uint64_t number = scan->number + skipped;
		struct alarm *alarm = chunk_block(handle_chunk(table, number), sizeof(*alarm),
						  number % CHUNK_NUMBERS);

		scan->used = scan->used >> skipped >> 1;
		scan->number = number + 1;
		/* No other thread frees it meanwhile. */
		if (alarm_is_filed(alarm))
			return alarm;
	}
	return NULL;
}
