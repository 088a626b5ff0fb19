/* SPDX-License-Identifier: MIT */
/*
 * A model of a cache's shard, with the orders of src/cache: lookups take no lock and read the cell
 * that a slot names, whatever the cell is by now; they look at the number of tables, the slot and
 * the cell's life again before they believe what they have read (look_holds). A table is one bucket
 * with SLOTS slots, for two keys that go to the first empty one. A value is two words that are
 * equal. Each order is a macro, so that it can be weakened by -D. Bounds:
 *
 *   CELLS, SLOTS, TABLES
 *   PART   what goes back to the system of a page that is one cell: the WHOLE, or, of a cell on two
 *          pages, the BEGINNING or the END
 */
#ifndef PROOF_CELLS_H
#define PROOF_CELLS_H

#include <assert.h>
#include <genmc.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "proof_threads.h"

#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release
#define SEQ_CST memory_order_seq_cst

/* ---- A lookup ---- */
#ifndef O_TABLES_LOAD /* shard_tables() */
#define O_TABLES_LOAD ACQUIRE
#endif
#ifndef O_PLACE_LOAD /* shard_place() */
#define O_PLACE_LOAD SEQ_CST
#endif
#ifndef O_SLOT_LOAD /* slot_load() */
#define O_SLOT_LOAD SEQ_CST
#endif
#ifndef O_LIFE_LOAD /* entry_life() */
#define O_LIFE_LOAD ACQUIRE
#endif
#ifndef O_LOOK_FENCE /* look_fence() */
#define O_LOOK_FENCE ACQUIRE
#endif
#ifndef O_SLOT_AGAIN /* slot_load_again() */
#define O_SLOT_AGAIN ACQUIRE
#endif
#ifndef O_PIN /* entry_try_pin() */
#define O_PIN ACQUIRE
#endif
#ifndef O_UNPIN /* entry_give_up() */
#define O_UNPIN memory_order_acq_rel
#endif
/* ---- A writer ---- */
#ifndef O_MAKE_FENCE /* entry_make() */
#define O_MAKE_FENCE RELEASE
#endif
#ifndef O_LIFE_STORE
#define O_LIFE_STORE RELEASE
#endif
#ifndef O_SLOT_STORE /* slot_store() */
#define O_SLOT_STORE SEQ_CST
#endif
#ifndef O_PLACE_STORE /* shard_end_resizing() */
#define O_PLACE_STORE SEQ_CST
#endif
#ifndef O_TABLES_STORE
#define O_TABLES_STORE RELEASE
#endif
#ifndef O_ZERO_FENCE /* pool_rest_page(), table_release_some() */
#define O_ZERO_FENCE RELEASE
#endif

#ifndef CELLS
#define CELLS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef TABLES
#define TABLES 1
#endif
#ifndef PART
#define PART WHOLE
#endif

enum { KEY = 1, OTHER = 2 };
enum part { WHOLE, BEGINNING, END };
enum outcome { AGAIN, MISS, HIT };

struct cell {
	_Atomic uint64_t life;
	_Atomic uint64_t references;
	_Atomic uint64_t key;
	_Atomic uint64_t value[2];
	uint64_t plain; /* has the same value; only those read it that have pinned the cell */
};

struct table {
	_Atomic(struct cell *) slots[SLOTS];
};

static struct cell cells[CELLS];
static struct table tables[TABLES];
static _Atomic(struct table *) place = &tables[0];
static _Atomic uint64_t table_count;

/* ---- The pool; under its lock ---- */

static pthread_mutex_t pool_lock;
static bool is_taken[CELLS];
static uint64_t last_life; /* the floor */

static void pool_give(struct cell *cell)
{
	pthread_mutex_lock(&pool_lock);
	assert(is_taken[cell - cells]);
	assert(atomic_load_explicit(&cell->references, RELAXED) == 0);
	is_taken[cell - cells] = false;
	pthread_mutex_unlock(&pool_lock);
}

/* Returns NULL if there is none. */
static struct cell *pool_take(void)
{
	struct cell *cell = NULL;

	pthread_mutex_lock(&pool_lock);
	for (int i = 0; i < CELLS && !cell; i++)
		if (!is_taken[i])
			cell = &cells[i];
	if (cell)
		is_taken[cell - cells] = true;
	pthread_mutex_unlock(&pool_lock);
	return cell;
}

/* Zeroes a free cell as the kernel does, in no order. */
static void cell_zero(struct cell *cell)
{
	uint64_t life = atomic_load_explicit(&cell->life, RELAXED);

	last_life = life > last_life ? life : last_life;
	atomic_thread_fence(O_ZERO_FENCE);
	if (PART != END) {
		atomic_store_explicit(&cell->life, 0, RELAXED);
		atomic_store_explicit(&cell->references, 0, RELAXED);
		atomic_store_explicit(&cell->key, 0, RELAXED);
	}
	if (PART != BEGINNING) {
		cell->plain = 0;
		atomic_store_explicit(&cell->value[1], 0, RELAXED);
	}
	if (PART == WHOLE)
		atomic_store_explicit(&cell->value[0], 0, RELAXED);
}

/* Gives free cells back to the system. */
static void pool_trim(void)
{
	pthread_mutex_lock(&pool_lock);
	for (int i = 0; i < CELLS; i++)
		if (!is_taken[i])
			cell_zero(&cells[i]);
	pthread_mutex_unlock(&pool_lock);
}

/* ---- Changes; under the shard's lock ---- */

static void cell_let_go(struct cell *cell)
{
	if (atomic_fetch_sub_explicit(&cell->references, 1, O_UNPIN) == 1)
		pool_give(cell);
}

static void cell_write(struct cell *cell, uint64_t key, uint64_t value)
{
	uint64_t life = atomic_load_explicit(&cell->life, RELAXED);

	life = life > last_life ? life : last_life;
	atomic_thread_fence(O_MAKE_FENCE);
	cell->plain = value;
	atomic_store_explicit(&cell->key, key, RELAXED);
	atomic_store_explicit(&cell->value[0], value, RELAXED);
	atomic_store_explicit(&cell->value[1], value, RELAXED);
	atomic_store_explicit(&cell->life, life + 1, O_LIFE_STORE);
	atomic_store_explicit(&cell->references, 1, RELEASE);
}

/* Returns the slot of the key, or if it has none the first that is empty. */
static _Atomic(struct cell *) *shard_slot(uint64_t key)
{
	struct table *table = atomic_load_explicit(&place, RELAXED);
	_Atomic(struct cell *) *empty = NULL;

	for (int i = 0; i < SLOTS; i++) {
		struct cell *cell = atomic_load_explicit(&table->slots[i], RELAXED);

		if (cell && atomic_load_explicit(&cell->key, RELAXED) == key)
			return &table->slots[i];
		if (!cell && !empty)
			empty = &table->slots[i];
	}
	return empty;
}

/* Returns false if there is no free cell. */
static bool cache_set(uint64_t key, uint64_t value)
{
	_Atomic(struct cell *) *slot = shard_slot(key);
	struct cell *old = atomic_load_explicit(slot, RELAXED);
	struct cell *cell = pool_take();

	if (!cell)
		return false;
	cell_write(cell, key, value);
	atomic_store_explicit(slot, cell, O_SLOT_STORE);
	if (old)
		cell_let_go(old);
	return true;
}

static void cache_delete(uint64_t key)
{
	_Atomic(struct cell *) *slot = shard_slot(key);
	struct cell *old = slot ? atomic_load_explicit(slot, RELAXED) : NULL;

	if (!old)
		return;
	atomic_store_explicit(slot, NULL, O_SLOT_STORE);
	cell_let_go(old);
}

/* Goes on to another table, and zeroes the old one. The next has the entries in other slots. */
static void cache_grow(void)
{
#if TABLES > 1
	struct table *old = atomic_load_explicit(&place, RELAXED);
	struct table *next = old + 1 < tables + TABLES ? old + 1 : tables;
	uint64_t count = atomic_load_explicit(&table_count, RELAXED);

	for (int i = 0; i < SLOTS; i++)
		atomic_store_explicit(&next->slots[SLOTS - 1 - i],
				      atomic_load_explicit(&old->slots[i], RELAXED), RELAXED);
	atomic_store_explicit(&place, next, O_PLACE_STORE);
	atomic_store_explicit(&table_count, count + 1, O_TABLES_STORE);
	atomic_thread_fence(O_ZERO_FENCE);
	for (int i = 0; i < SLOTS; i++)
		atomic_store_explicit(&old->slots[i], NULL, RELAXED);
#endif
}

/* ---- Lookups ---- */

struct look {
	uint64_t count;
	_Atomic(struct cell *) *slot;
	struct cell *cell;
	uint64_t life;
};

static bool look_has_table(const struct look *look)
{
	atomic_thread_fence(O_LOOK_FENCE);
	return atomic_load_explicit(&table_count, O_TABLES_LOAD) == look->count;
}

static bool look_holds(const struct look *look)
{
	return look_has_table(look) &&
	       atomic_load_explicit(look->slot, O_SLOT_AGAIN) == look->cell &&
	       atomic_load_explicit(&look->cell->life, RELAXED) == look->life;
}

/* Finds the key's cell, as far as look_holds(). */
static enum outcome look_seek(struct look *look, uint64_t key)
{
	struct table *table;

	look->count = atomic_load_explicit(&table_count, O_TABLES_LOAD);
	table = atomic_load_explicit(&place, O_PLACE_LOAD);
	for (int i = 0; i < SLOTS; i++) {
		look->slot = &table->slots[i];
		look->cell = atomic_load_explicit(look->slot, O_SLOT_LOAD);
		if (!look->cell)
			continue;
		look->life = atomic_load_explicit(&look->cell->life, O_LIFE_LOAD);
		if (atomic_load_explicit(&look->cell->key, RELAXED) == key)
			return HIT;
		if (!look_holds(look))
			return AGAIN;
	}
	return look_has_table(look) ? MISS : AGAIN;
}

/* One try of a get. */
static enum outcome cache_try_get(uint64_t key, uint64_t *value)
{
	struct look look;
	enum outcome outcome = look_seek(&look, key);
	uint64_t words[2];

	if (outcome != HIT)
		return outcome;
	words[0] = atomic_load_explicit(&look.cell->value[0], RELAXED);
	words[1] = atomic_load_explicit(&look.cell->value[1], RELAXED);
	if (!look_holds(&look))
		return AGAIN;
	assert(words[0] == words[1]);
	*value = words[0];
	return HIT;
}

/* One try of an acquire. */
static enum outcome cache_try_pin(uint64_t key, struct cell **pinned)
{
	struct look look;
	enum outcome outcome = look_seek(&look, key);
	uint64_t count;

	if (outcome != HIT)
		return outcome;
	count = atomic_load_explicit(&look.cell->references, RELAXED);
	if (count == 0 || !atomic_compare_exchange_strong_explicit(&look.cell->references, &count,
								   count + 1, O_PIN, RELAXED))
		return AGAIN;
	if (!look_holds(&look)) {
		cell_let_go(look.cell);
		return AGAIN;
	}
	*pinned = look.cell;
	return HIT;
}

#endif
