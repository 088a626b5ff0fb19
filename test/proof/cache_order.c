/* SPDX-License-Identifier: MIT */
/*
 * Changes and lookups of two keys in two shards have one order. TEST is
 *
 *   CROSS   one thread sets a key and looks for the other one, and another thread does so the other
 *           way round: not both miss
 *   WATCH   two threads set a key each, two look for both: they don't see them in different orders
 *   MOVE    before a thread sets a key, the table becomes another
 */
#define SLOTS 3
#define CELLS 4
#include "proof_cells.h"

#ifndef TEST
#define TEST CROSS
#endif

enum test { CROSS, WATCH, MOVE };

static uint64_t got[4];
static _Atomic uint64_t word;

/* The keys have slots of their own. */
static void set(uint64_t key)
{
	struct table *table = atomic_load_explicit(&place, RELAXED);
	struct cell *cell = &cells[key];

	cell_write(cell, key, 2);
	atomic_store_explicit(&table->slots[key], cell, O_SLOT_STORE);
}

/* Returns 0 if there is nothing. */
static uint64_t get(uint64_t key)
{
	struct look look = {.count = atomic_load_explicit(&table_count, O_TABLES_LOAD)};
	struct table *table = atomic_load_explicit(&place, O_PLACE_LOAD);
	uint64_t value = 0;
	bool holds;

	look.slot = &table->slots[key];
	look.cell = atomic_load_explicit(look.slot, O_SLOT_LOAD);
	if (look.cell) {
		look.life = atomic_load_explicit(&look.cell->life, O_LIFE_LOAD);
		value = atomic_load_explicit(&look.cell->value[0], RELAXED);
	}
	holds = look.cell ? look_holds(&look) : look_has_table(&look);
	__VERIFIER_assume(holds);
	return value;
}

static void *first_run(void *argument)
{
	if (TEST == MOVE)
		cache_grow();
	set(KEY);
	if (TEST == MOVE)
		got[0] = atomic_load_explicit(&word, SEQ_CST);
	if (TEST == CROSS)
		got[0] = get(OTHER);
	return argument;
}

static void *second_run(void *argument)
{
	if (TEST == MOVE)
		atomic_store_explicit(&word, 2, SEQ_CST);
	else
		set(OTHER);
	if (TEST != WATCH)
		got[1] = get(KEY);
	return argument;
}

static void *third_run(void *argument)
{
	got[0] = get(KEY);
	got[1] = get(OTHER);
	return argument;
}

static void *fourth_run(void *argument)
{
	got[2] = get(OTHER);
	got[3] = get(KEY);
	return argument;
}

static void *(*const runs[])(void *) = {first_run, second_run, third_run, fourth_run};

int main(void)
{
	proof_run(runs, TEST == WATCH ? 4 : 2);
	assert(TEST == WATCH || got[0] == 2 || got[1] == 2);
	if (TEST == WATCH)
		assert(!(got[0] == 2 && got[1] == 0 && got[2] == 2 && got[3] == 0));
	return 0;
}
