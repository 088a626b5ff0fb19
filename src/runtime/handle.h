/* SPDX-License-Identifier: MIT */
/*
 * A handle is the memory of an alarm (alarm.h) that the wheel owns: of a timer that a program knows
 * by its id. It is taken when the timer is set, and given back when it has ended.
 */
#ifndef HANDLE_H
#define HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "alarm.h"
#include "base/compiler.h"
#include "base/slab.h"

/* All handles of a wheel. */
struct handle_table {
	struct slab slab;                /* any thread */
	struct slab_hooks hooks;         /* constant */
	_Atomic(struct chunk *) *chunks; /* by number; set once each */
};

/* Returns false if there is no memory. */
bool handle_table_init(struct handle_table *table);
void handle_table_destroy(struct handle_table *table);

/* Any thread: takes the memory of an alarm, CLOSED as yet, and its id. Returns NULL if there is no
 * memory. */
struct alarm *handle_new(struct handle_table *table, uint64_t *id);
/* Gives back one that no other thread has, with its schedule, if it has one. */
void handle_free(struct handle_table *table, struct slab_bin *bin, struct alarm *alarm);

/* An id has a generation above these bits, and in them a number: its chunk's, above that of the
 * block in the chunk. */
enum { HANDLE_INDEX_BITS = 28, HANDLES_A_PAGE = CHUNK_PAGE / sizeof(struct alarm) };

/* Returns the chunk that has the handle of that number, or NULL. */
static inline const struct chunk *handle_chunk(const struct handle_table *table, size_t number)
{
	/* acquire: sees the chunk; pairs with the release in handle_table_begin_chunk(). */
	return atomic_load_explicit(&table->chunks[number / CHUNK_NUMBERS], memory_order_acquire);
}

/* Any thread: returns the handle of an id, maybe another timer's by now, or NULL if the id is no
 * wheel's. */
static inline struct alarm *handle_find(const struct handle_table *table, uint64_t id)
{
	size_t number = (size_t)(id & (((uint64_t)1 << HANDLE_INDEX_BITS) - 1));
	const struct chunk *chunk = handle_chunk(table, number);

	if (!chunk || id >> HANDLE_INDEX_BITS == 0 ||
	    number % CHUNK_NUMBERS < CHUNK_FIRST * CHUNK_PAGE_BLOCKS ||
	    number % CHUNK_PAGE_BLOCKS >= HANDLES_A_PAGE)
		return NULL;
	return chunk_block(chunk, sizeof(struct alarm), number % CHUNK_NUMBERS);
}

/* Returns the generation that an id has. */
static inline uint64_t handle_generation(uint64_t id)
{
	return id >> HANDLE_INDEX_BITS;
}

/* Fills in the id and the function of a handle that the caller has. */
void handle_describe(const struct alarm *alarm, struct tw_task *task);

/* Owner, from here on: all handles have numbers from 0 to before this, by their memory, which no
 * timer leaves. */
uint64_t handle_table_end(const struct handle_table *table);
/* A scan looks for handles in the order of their numbers. */
struct handle_scan {
	uint64_t number; /* the scan has passed all handles before it */
	uint64_t end;    /* the scan ends before this number */
	size_t looks;    /* handles that may still be looked at; up to 71 more are */
	uint64_t used;   /* bit i is set if the memory of handle number + i may be in use */
};
/* Returns the next handle that the owner has. NULL where there is none before the end, or where
 * `looks` is 0. Free memory costs no look. */
struct alarm *handle_next(struct handle_table *table, struct handle_scan *scan);

#endif
