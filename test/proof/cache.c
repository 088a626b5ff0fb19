/* SPDX-License-Identifier: MIT */
/*
 * This harness runs the cache's readers while entries are replaced, removed, retired and freed: a
 * shard with one bucket, under the code of lookups, shards, threads, eras and entries. Bounds:
 *
 *   FIRST, SECOND    what two readers do, each with a key that is there, or was: GET (a copy), PIN
 *                    (acquire, leave, look at the value, release), HAND (acquire, and let the
 *                    other release it), RELEASE (of the other's entry), FIND (look for an entry
 *                    in its cell, as a move of it does), NOTHING
 *   PINS             how often a reader pins
 *   JOINS            1: the readers join the list of readers as they begin
 *   FAST             1: the first reader, the only one, is known to its thread, so that a GET
 *                    takes the short path
 *   CHANGE, CHANGES  what the writer does, and how often: REPLACE, DELETE, GROW (another table),
 *                    MOVE (the entry gets another cell)
 *   UPKEEP           1: another thread advances the era, as the writers of other shards do;
 *                    2 also frees the writer's retired entries
 *
 * Freed memory goes to the model's free(), and GenMC reports each later use, and each value read
 * before its write is visible. A key that is there all the time must be found, with a value that it
 * had during the call.
 */
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef FIRST
#define FIRST GET
#endif
#ifndef SECOND
#define SECOND NOTHING
#endif
#ifndef PINS
#define PINS 1
#endif
#ifndef JOINS
#define JOINS 0
#endif
#ifndef CHANGE
#define CHANGE REPLACE
#endif
#ifndef CHANGES
#define CHANGES 1
#endif
#ifndef FAST
#define FAST 0
#endif
#ifndef UPKEEP
#define UPKEEP 0
#endif

/* Each entry is a block of its own; the vectors that readers use are four loads, as table.h
 * says. */
#define __SANITIZE_ADDRESS__ 1
#undef __SSE2__

/* ---- The system ---- */

typedef int pthread_key_t;
typedef int pthread_once_t;

int pthread_once(pthread_once_t *once, void (*run)(void));
int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int pthread_key_create(pthread_key_t *key, void (*destroy)(void *));
int pthread_setspecific(pthread_key_t key, const void *value);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);

int pthread_setspecific(pthread_key_t key, const void *value)
{
	(void)key;
	(void)value;
	return 0;
}

/* A thread's list of readers calls this and has one reader. */
void *realloc(void *memory, size_t size)
{
	assert(!memory);
	return malloc(size);
}

/* All memory that is copied or cleared here consists of words. */
void *memcpy(void *to, const void *from, size_t size)
{
	assert(size % 8 == 0);
	for (size_t i = 0; i < size / 8; i++)
		((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
	return to;
}

void *memset(void *memory, int value, size_t size)
{
	assert(value == 0 && size % 8 == 0);
	for (size_t i = 0; i < size / 8; i++)
		((uint64_t *)memory)[i] = 0;
	return memory;
}

/* A key of 8 bytes is its own hash. */
#define KEY_HASH_H
#include "base/key.h"

struct key_hash_seed {
	uint64_t words[4];
};

static inline uint64_t key_hash_wide(const struct key_hash_seed *seed, const void *key, size_t size)
{
	(void)seed;
	assert(size == 8);
	return *(const uint64_t *)key;
}

static inline uint64_t key_hash_short(const struct key_hash_seed *seed, const void *key,
				      size_t size)
{
	return key_hash_wide(seed, key, size);
}

/*
 * GenMC does not support a thread-local struct: the memo is one for all, and each thread's reader
 * is found by a word of the thread. So only a single reader may use the memo (FAST).
 */
#define HAZARDS 1
#define READER_BYTES 128
#define BLOCK_READERS 2
#include "cache/pins.h"
#define _Thread_local
#define __attribute__(which)
#include "cache/epoch.h"
#define epochs_find_reader epochs_find_reader_of_array
#include "cache/epoch.c"
#undef epochs_find_reader
#undef __attribute__
#undef _Thread_local

#include "cache/pool.h"
#define page_cell proof_page_cell
static void *proof_page_cell(struct pool_page *page, unsigned number);

#include "cache/compact.c"
#include "cache/entry.c"
#include "cache/lookup.c"
#include "cache/pins.c"
/* A block's readers have nothing behind them; the writer is in no block. */
#define _Static_assert(condition, text) _Static_assert(true, text)
#include "cache/retire.c"
#undef _Static_assert
#include "cache/shard.c"
#include "cache/table.c"

enum read { NOTHING, GET, PIN, HAND, RELEASE, FIND };
enum change { REPLACE, DELETE, GROW, MOVE };

enum { NOW = 1 };

static const uint64_t key_word = (uint64_t)7 << 48 | 1;

static struct tw_cache cache;
static struct shard shard;
static struct pool pool;
static struct tw_cache_entry *first_entry; /* its cell stays, for FIND looks into it */
static _Thread_local struct reader *own_reader;

/* ---- Calls from the sources ---- */

struct reader *epochs_find_reader(struct epochs *epochs)
{
	if (!own_reader)
		own_reader = epochs_add_reader(epochs);
	return own_reader;
}

tw_duration tw_now(struct tw_wheel *wheel)
{
	(void)wheel;
	return NOW;
}

void *arena_take(struct arena *arena, size_t size)
{
	(void)arena;
	return aligned_alloc(64, size);
}

bool arena_give_some(struct arena *arena, void *memory, size_t size)
{
	(void)arena;
	(void)memory;
	(void)size;
	return true;
}

void arena_give(struct arena *arena, void *memory, size_t size)
{
	(void)arena;
	(void)size;
	free(memory);
}

/* Each block is allocated alone. */
void *spare_take_any(struct pool_spare *spare, struct pool *from, size_t size)
{
	struct pool_block *block = malloc(size);

	(void)spare;
	(void)from;
	atomic_init(&block->state, 0);
	return block;
}

static void block_free(void *block)
{
	if (FIRST == FIND && block == first_entry)
		first_entry->key_size = 0; /* races with any reader of the key */
	else
		free(block);
}

void spare_give(struct pool_spare *spare, void *block, size_t size)
{
	(void)spare;
	(void)size;
	block_free(block);
}

bool spare_return_some(struct pool_spare *spare, struct pool *to, unsigned cells)
{
	(void)spare;
	(void)to;
	(void)cells;
	return false;
}

void spare_return(struct pool_spare *spare, struct pool *to)
{
	(void)spare_return_some(spare, to, 0);
}

void pool_give(void *block, size_t size)
{
	(void)size;
	block_free(block);
}

struct pool *pool_of(const void *block)
{
	(void)block;
	return &pool;
}

void pool_count_pinned(struct pool *of, size_t size, bool is_pinned)
{
	(void)of;
	(void)size;
	(void)is_pinned;
}

size_t pool_coarse_cell_size(size_t size)
{
	return size;
}

static void *proof_page_cell(struct pool_page *page, unsigned number)
{
	(void)page;
	(void)number;
	return first_entry;
}

/* No use is noted here, nothing expires, there is no listener and no load. */
static void proof_never(void)
{
	assert(false);
}

void policy_replace(struct policy *policy, struct tw_cache_entry *old, uint64_t old_weight,
		    struct tw_cache_entry *entry, uint64_t weight)
{
	(void)policy;
	(void)old;
	(void)old_weight;
	(void)entry;
	(void)weight;
}

void policy_remove(struct policy *policy, struct tw_cache_entry *entry, uint64_t weight)
{
	(void)policy;
	(void)entry;
	(void)weight;
}

enum tw_status tw_alarm_set(struct tw_alarm *alarm, tw_duration delay)
{
	(void)alarm;
	(void)delay;
	return TW_OK;
}

/* ---- Readers ---- */

static void reader_get(void)
{
	uint64_t key = key_word;
	uint64_t value = 99;
	size_t size;
	enum tw_status status =
		tw_cache_get(&cache, &key, sizeof(key), &value, sizeof(value), &size);

	assert(status == TW_OK || (status == TW_NOT_FOUND && CHANGE == DELETE));
	assert(status != TW_OK || value <= CHANGES);
}

static _Atomic(const struct tw_cache_entry *) handed;

static void entry_use(const struct tw_cache_entry *entry)
{
	size_t size;

	assert(*(const uint64_t *)tw_cache_entry_value(entry, &size) <= CHANGES);
	tw_cache_entry_release(entry);
}

static void reader_pin(void)
{
	uint64_t key = key_word;
	const struct tw_cache_entry *entry;
	enum tw_status status = tw_cache_acquire(&cache, &key, sizeof(key), 0, &entry);

	assert(status == TW_OK || (status == TW_NOT_FOUND && CHANGE == DELETE));
	if (status == TW_OK && FIRST == HAND)
		atomic_store_explicit(&handed, entry, memory_order_release);
	else if (status == TW_OK)
		entry_use(entry);
}

static void reader_release(void)
{
	const struct tw_cache_entry *entry =
		atomic_exchange_explicit(&handed, NULL, memory_order_acquire);

	if (entry)
		entry_use(entry);
}

/* The cell may be another entry's by now, but is not freed while it says that it is linked. */
static void reader_find(void)
{
	struct move moves[CELLS_A_STEP];
	unsigned first = 0;

	(void)moves_find(&cache, own_reader, NULL, &first, 1, moves);
}

static void reader_do(enum read what)
{
	if (what == GET)
		reader_get();
	else if (what == PIN || what == HAND)
		for (int i = 0; i < PINS; i++)
			reader_pin();
	else if (what == RELEASE)
		reader_release();
	else if (what == FIND)
		reader_find();
}

static void *first_run(void *reader)
{
	own_reader = reader;
	reader_do(FIRST);
	hazards_give_back();
	return NULL;
}

static void *second_run(void *reader)
{
	own_reader = reader;
	reader_do(SECOND);
	hazards_give_back();
	return NULL;
}

/* ---- The writer ---- */

static struct retiring_reader writer;

static struct tw_cache_entry *entry_of(uint64_t value)
{
	uint64_t key = key_word;
	struct entry_plan plan = {.key = &key,
				  .key_size = sizeof(key),
				  .hash = key_word,
				  .value = &value,
				  .value_size = sizeof(value),
				  .size = sizeof(struct tw_cache_entry) + sizeof(key) +
					  sizeof(value)};

	return entry_from(&writer, &cache.shared, &plan);
}

static void change_do(uint64_t value)
{
	uint64_t key = key_word;
	struct tw_cache_entry *old;
	_Atomic uint64_t *slot;

	old = table_find(shard_table(&shard), key_word, &key, sizeof(key), &slot);
	switch (CHANGE) {
	case REPLACE:
		shard_replace(&shard, slot, old, entry_of(value), NOW);
		break;
	case DELETE:
		if (old)
			shard_unlink(&shard, slot, TW_CAUSE_EXPLICIT, NOW);
		break;
	case GROW:
		shard_begin_resizing(&shard, 1);
		while (shard.next)
			shard_resize_some(&shard, 1);
		break;
	case MOVE:
		if (entry_is_alone(old))
			(void)entry_move(&cache, &shard, &writer, old, slot);
		break;
	}
}

/* A new entry is stamped, and an old one freed if no reader sees it. */
static void writer_look(void)
{
	struct garbage garbage = {.tables = NULL};

	for (int i = 0; i < 2; i++) {
		writer.era = epochs_stamp(&cache.shared.epochs);
		retire_look(&writer, &cache.shared.epochs, &garbage);
	}
	garbage_free(&garbage);
}

static void *writer_run(void *argument)
{
	for (uint64_t i = 1; i <= CHANGES; i++) {
		/* This is retire_begin() without the memo. */
		own_lock_take(&writer.reader.lock);
		shard_begin_in(&shard, &writer);
		change_do(i);
		shard_end_move(&shard);
		if (UPKEEP < 2)
			writer_look();
		own_lock_let_go(&writer.reader.lock);
	}
	return argument;
}

/* Does to the shared era what another shard's writer does. */
static void *maintenance_run(void *argument)
{
	if (UPKEEP == 2)
		(void)retire_clear(&writer, &cache.shared);
	else
		epochs_advance(&cache.shared.epochs, 1);
	return argument;
}

/* ---- The end ---- */

/* This replaces tw_cache_create(), which asks the system for too much. */
static void begin(void)
{
	struct shared_state *shared = &cache.shared;
	struct table *table = table_new(NULL, 1, 1);
	size_t cleared = 0;

	(void)table_clear_some(table, &cleared, 1);
	cache.shards = &shard;
	cache.lookups_are_plain = true;
	shared->granule = 1;
	shared->tick = 1;
	shared->epochs.id = 1;
	shared->pool = &pool;
	atomic_init(&shared->epochs.era, 1);
	shard.shared = shared;
	shard.removals = &cache.removals;
	atomic_init(&shard.table, table);
	atomic_init(&shard.place, table_place(table));
	first_entry = entry_of(0);
	entry_set_state(first_entry, ENTRY_LINKED);
	table_add(table, key_word, first_entry);
}

/* No reader is inside. GenMC reports what is not freed. */
static void end(void)
{
	uint64_t key = key_word;
	struct hazards_seen seen;
	_Atomic uint64_t *slot;

	if (SECOND == RELEASE)
		reader_release();
	retire_close(&writer, &cache.shared);
	/* All entries are retired, as in destroy. */
	hazards_look(&seen);
	hazards_count(&seen, table_find(shard_table(&shard), key_word, &key, sizeof(key), &slot));
	entry_let_go(table_find(shard_table(&shard), key_word, &key, sizeof(key), &slot));
	table_free(shard_table(&shard));
	if (cache.shared.epochs.blocks)
		free(cache.shared.epochs.blocks);
	hazards_free();
	if (FIRST == FIND && first_entry->key_size == 0)
		free(first_entry);
}

static struct reader *reader_before(enum read what)
{
	if (JOINS || what == NOTHING || what == RELEASE)
		return NULL;
	own_reader = NULL;
	(void)epochs_find_reader(&cache.shared.epochs);
	return own_reader;
}

int main(void)
{
	struct reader *first;
	struct reader *second;
	pthread_t threads[4];

	begin();
	first = reader_before(FIRST);
	second = reader_before(SECOND);
	if (FAST)
		reader_memo = (struct reader_memo){1, first};
	pthread_create(&threads[0], NULL, writer_run, NULL);
	pthread_create(&threads[1], NULL, first_run, first);
	if (SECOND != NOTHING)
		pthread_create(&threads[2], NULL, second_run, second);
	if (UPKEEP)
		pthread_create(&threads[3], NULL, maintenance_run, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	if (SECOND != NOTHING)
		pthread_join(threads[2], NULL);
	if (UPKEEP)
		pthread_join(threads[3], NULL);
	end();
	return 0;
}
