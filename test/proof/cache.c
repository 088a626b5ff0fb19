/* SPDX-License-Identifier: MIT */
/*
 * A writer changes a key and another one, and readers look the key up. Bounds:
 *
 *   OP1 to OP4   what the writer does: SET, SET_OTHER, DELETE (once), DELETE_OTHER, TRIM, GROW, or
 *            NONE. With two cells, the second SET writes into the cell that readers may have found
 *            before the first. A SET without a free cell does nothing
 *   TOO      what another thread does, under the same lock, or NONE
 *   FIRST, SECOND   what two readers do: GET, PIN (acquire, look at the value twice, release),
 *            NOTHING
 *   TIMES    how often each does it
 *   TRIES    0 has a get go on until it knows; GenMC finds one that goes on for ever. 1 gives it up
 *            where it would look again, so that what it leaves behind shows
 *   STOP     1 has the writer stop for ever inside its last SET; gets go on
 *
 * The values of the key are the numbers of its changes, so they grow. What a reader gets never
 * shrinks, nor is it less than what was there before the get began, nor more than what is there
 * after all have ended. A pinned cell keeps its key and its value. A cell is free once, and only
 * without references; in the end none is lost.
 */
#include "proof_cells.h"

#ifndef OP1
#define OP1 SET
#endif
#ifndef OP2
#define OP2 NONE
#endif
#ifndef OP3
#define OP3 NONE
#endif
#ifndef OP4
#define OP4 NONE
#endif
#ifndef TOO
#define TOO NONE
#endif
#ifndef FIRST
#define FIRST GET
#endif
#ifndef SECOND
#define SECOND NOTHING
#endif
#ifndef TIMES
#define TIMES 1
#endif
#ifndef TRIES
#define TRIES 1
#endif
#ifndef STOP
#define STOP 0
#endif

enum op { NONE, SET, SET_OTHER, DELETE, DELETE_OTHER, TRIM, GROW };
enum reads { NOTHING, GET, PIN };

static const enum op ops[] = {OP1, OP2, OP3, OP4, NONE};
static const enum op ops_too[] = {TOO, NONE};
static pthread_mutex_t shard_lock;
static _Atomic uint64_t done = 1; /* the last change of the key that has ended */
static uint64_t number = 1;       /* the last change's; under the shard's lock */
static _Atomic uint64_t deletion; /* the number of the change that deletes the key, or 0 */

/* Writes half of an entry and stops. */
static void stop_inside_set(void)
{
	struct cell *cell = pool_take();

	atomic_thread_fence(O_MAKE_FENCE);
	atomic_store_explicit(&cell->key, KEY, RELAXED);
	atomic_store_explicit(&cell->value[0], 100, RELAXED);
}

/* At most one change is this. */
static void key_delete(void)
{
	atomic_store_explicit(&deletion, ++number, RELAXED);
	cache_delete(KEY);
	atomic_store_explicit(&done, number, RELEASE);
}

static void op_do(enum op op)
{
	pthread_mutex_lock(&shard_lock);
	if (op == SET && cache_set(KEY, number + 1))
		atomic_store_explicit(&done, ++number, RELEASE);
	else if (op == SET_OTHER)
		(void)cache_set(OTHER, 100);
	else if (op == DELETE)
		key_delete();
	else if (op == DELETE_OTHER)
		cache_delete(OTHER);
	else if (op == TRIM)
		pool_trim();
	else if (op == GROW)
		cache_grow();
	pthread_mutex_unlock(&shard_lock);
}

static void *writer_run(void *argument)
{
	const enum op *op = argument ? ops_too : ops;

	for (; *op != NONE; op++)
		if (STOP && op[1] == NONE)
			stop_inside_set();
		else
			op_do(*op);
	return NULL;
}

static void cell_look(struct cell *cell, uint64_t *value)
{
	assert(atomic_load_explicit(&cell->key, RELAXED) == KEY);
	*value = atomic_load_explicit(&cell->value[0], RELAXED);
	assert(atomic_load_explicit(&cell->value[1], RELAXED) == *value);
	assert(cell->plain == *value);
}

/* Does what the reader does once. */
static enum outcome read_once(enum reads what, uint64_t *value)
{
	struct cell *cell = NULL;
	enum outcome outcome;
	uint64_t again;

	if (what == GET)
		return cache_try_get(KEY, value);
	outcome = cache_try_pin(KEY, &cell);
	if (outcome != HIT)
		return outcome;
	cell_look(cell, value);
	cell_look(cell, &again);
	assert(*value == again);
	cell_let_go(cell);
	return HIT;
}

static uint64_t got[2];

static void reader_run(enum reads what, uint64_t *last)
{
	for (int i = 0; i < TIMES && what != NOTHING; i++) {
		uint64_t least = atomic_load_explicit(&done, ACQUIRE);
		enum outcome outcome;
		uint64_t value = 0;

		do
			outcome = read_once(what, &value);
		while (TRIES == 0 && outcome == AGAIN);
		/* A miss has seen the deletion. */
		if (outcome == MISS)
			value = atomic_load_explicit(&deletion, RELAXED);
		/* Half an entry is in no slot, so the first try succeeds. */
		assert(!STOP || OP2 != NONE || outcome == HIT);
		if (outcome == AGAIN)
			continue;
		assert(value > 0 && value >= least && value >= *last);
		*last = value;
	}
}

static void *first_run(void *argument)
{
	reader_run(FIRST, &got[0]);
	return argument;
}

static void *second_run(void *argument)
{
	reader_run(SECOND, &got[1]);
	return argument;
}

int main(void)
{
	void *(*const parties[])(void *) = {writer_run, ops_too[0] == NONE ? NULL : writer_run,
					    first_run, SECOND == NOTHING ? NULL : second_run};
	int taken = 0;
	int linked = 0;

	pthread_mutex_init(&pool_lock, NULL);
	pthread_mutex_init(&shard_lock, NULL);
	(void)cache_set(KEY, 1);
	proof_run(parties, 4);
	assert(got[0] <= number && got[1] <= number);
	for (int i = 0; i < CELLS; i++) {
		taken += is_taken[i];
		linked += atomic_load_explicit(&cells[i].references, RELAXED) != 0;
	}
	assert(taken == linked + STOP && linked <= 2);
	return 0;
}
