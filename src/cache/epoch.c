/* SPDX-License-Identifier: MIT */
/*
 * A reader publishes the era in which it enters, then loads slots, and looks again at the era
 * before it follows what it loaded. So the birth of what it follows is not after its era, and
 * neither is its own era after the stamp of what is unlinked while it looks: the era of a reader
 * that may be looking at something lies from the one's birth to its stamp. The eras go on whether
 * readers do or not, so a reader that sleeps holds what was there when it fell asleep.
 *
 * Threads come and go, and so do caches. Each cache has a number, the least that was free, and a
 * thread finds its reader by it in an array of its own. The cache's id, which is never used twice,
 * shows whether the reader there is one of this cache. A memo leads a thread to the last cache that
 * it used. When a thread ends, its readers are given to others, counts and all; that needs to know
 * which caches still live. Therefore the array of all epochs, the lock and the key below are the
 * one thing in the library that belongs to the process, as threads do.
 *
 * The readers of ended threads wait in their blocks for other threads. Where all of a block do,
 * maintenance takes the block out of the list, and frees it when the looks that may have met it
 * have ended: each look is made under a lock of its own thread's (retire.h). Until then the block
 * still leads a look to the next one. Blocks are the cache's memory, so spans of its arena.
 *
 * Invariants:
 *   a live thread has at most one reader in a cache, and no other thread writes it
 *   a block is in the cache's list while one of its readers is taken
 *
 * All calls may run together, except epochs_destroy().
 */
#include "epoch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "pins.h"

/* A look goes from line to line in a block, and not from pointer to pointer. */
struct reader_block {
	/* Written under the lock of the threads, read by looks. */
	_Alignas(128) _Atomic(struct reader_block *) next;
	_Atomic uint64_t taken;          /* a bit for each reader whose thread lives */
	struct reader_block *next_ended; /* once it is out of the list */
	union reader_cell {
		struct reader reader;
		char bytes[READER_BYTES];
	} cells[BLOCK_READERS];
};

_Thread_local struct reader_memo reader_memo __attribute__((tls_model("initial-exec")));

/* A thread knows its readers by the numbers of their caches, also those of caches that are gone. */
static _Thread_local struct {
	size_t count;
	struct reader_memo *memos;
} mine;

static pthread_once_t threads_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t threads_key;
static bool threads_have_key;
/* These are under the lock. A number that is free has NULL. */
static struct epochs **all_epochs;
static size_t all_count;
static size_t live_count;
static size_t first_free; /* none below it is free */
static uint64_t last_id;

/* Leaves the readers of a thread that ends to others. */
static void thread_give_back(void *argument)
{
	(void)argument;
	memset(&reader_memo, 0, sizeof(reader_memo));
	pthread_mutex_lock(&threads_lock);
	for (size_t i = 0; i < mine.count && i < all_count; i++) {
		const struct reader *reader = mine.memos[i].reader;

		if (!all_epochs[i] || all_epochs[i]->id != mine.memos[i].id)
			continue;
		/* release: all its reads are done. A look that does not find it here does not see
		 * that it has left; pairs with epochs_gather(). */
		atomic_fetch_and_explicit(&reader->block->taken, ~reader->bit,
					  memory_order_release);
		/* relaxed: see epochs_readers(). */
		atomic_fetch_sub_explicit(&all_epochs[i]->reader_count, 1, memory_order_relaxed);
		if (all_epochs[i]->on_thread_end)
			all_epochs[i]->on_thread_end(all_epochs[i]);
	}
	hazards_give_back();
	if (live_count == 0)
		hazards_free();
	pthread_mutex_unlock(&threads_lock);
	free(mine.memos);
	memset(&mine, 0, sizeof(mine));
}

static void threads_keep_lock(void)
{
	pthread_mutex_lock(&threads_lock);
}

static void threads_let_go_lock(void)
{
	pthread_mutex_unlock(&threads_lock);
}

/* Makes the key. A fork takes the lock, for another holder would not exist in the child. */
static void threads_init(void)
{
	threads_have_key =
		pthread_atfork(threads_keep_lock, threads_let_go_lock, threads_let_go_lock) == 0 &&
		pthread_key_create(&threads_key, thread_give_back) == 0;
}

/* Ends the calls of thread_give_back(). The static library may be part of a plugin that is unloaded
 * before threads that used a cache end. */
static __attribute__((destructor)) void threads_forget(void)
{
	if (threads_have_key)
		pthread_key_delete(threads_key);
}

/* Takes the least free number. Returns false if out of memory. The caller holds the lock. */
static bool epochs_take_number(struct epochs *epochs)
{
	while (first_free < all_count && all_epochs[first_free])
		first_free++;
	if (first_free == all_count) {
		size_t count = 2 * all_count + 4;
		struct epochs **larger = realloc(all_epochs, count * sizeof(struct epochs *));

		if (!larger)
			return false;
		memset(larger + all_count, 0, (count - all_count) * sizeof(struct epochs *));
		all_epochs = larger;
		all_count = count;
	}
	epochs->number = first_free;
	epochs->id = ++last_id;
	all_epochs[first_free] = epochs;
	live_count++;
	return true;
}

bool epochs_init(struct epochs *epochs, struct arena *arena)
{
	bool has_number;

	pthread_once(&threads_once, threads_init);
	if (!threads_have_key)
		return false;
	*epochs = (struct epochs){.era = 1, .arena = arena};
	pthread_mutex_init(&epochs->walks_lock, NULL);
	pthread_mutex_lock(&threads_lock);
	has_number = epochs_take_number(epochs);
	pthread_mutex_unlock(&threads_lock);
	return has_number;
}

void epochs_watch_threads(struct epochs *epochs, void (*on_thread_end)(struct epochs *epochs))
{
	pthread_mutex_lock(&threads_lock);
	epochs->on_thread_end = on_thread_end;
	pthread_mutex_unlock(&threads_lock);
}

/* Frees the number, if the epochs have one. The caller holds the lock. */
static void epochs_give_number(const struct epochs *epochs)
{
	if (epochs->id == 0)
		return;
	all_epochs[epochs->number] = NULL;
	if (epochs->number < first_free)
		first_free = epochs->number;
	if (--live_count > 0)
		return;
	/* The last cache leaves only what live threads have. */
	hazards_free();
	free(all_epochs);
	all_epochs = NULL;
	all_count = 0;
	first_free = 0;
}

void epochs_destroy(struct epochs *epochs)
{
	/* relaxed, here and below: no thread comes any more. */
	struct reader_block *block = atomic_load_explicit(&epochs->blocks, memory_order_relaxed);

	pthread_mutex_lock(&threads_lock);
	epochs_give_number(epochs);
	pthread_mutex_unlock(&threads_lock);

	while (block) {
		struct reader_block *next =
			atomic_load_explicit(&block->next, memory_order_relaxed);

		arena_give(epochs->arena, block, sizeof(*block));
		block = next;
	}
	pthread_mutex_destroy(&epochs->walks_lock);
}

/* Makes room in the thread's array for that number. Returns false if out of memory. */
static bool thread_make_room(size_t number)
{
	size_t count = number + number / 2 + 4;
	struct reader_memo *larger;

	if (number < mine.count)
		return true;
	/* The value only has the key's destructor called. */
	if (pthread_setspecific(threads_key, &mine) != 0)
		return false;
	larger = realloc(mine.memos, count * sizeof(*larger));
	if (!larger)
		return false;
	memset(larger + mine.count, 0, (count - mine.count) * sizeof(*larger));
	mine.memos = larger;
	mine.count = count;
	return true;
}

/* ---- Under the lock ---- */

/* Returns a block with a free reader, or NULL if out of memory. */
static struct reader_block *epochs_find_block(struct epochs *epochs)
{
	/* relaxed, all of these: only written under the lock, and published by the last store. */
	struct reader_block *first = atomic_load_explicit(&epochs->blocks, memory_order_relaxed);
	struct reader_block *block = first;

	while (block && atomic_load_explicit(&block->taken, memory_order_relaxed) ==
				(UINT64_C(1) << BLOCK_READERS) - 1)
		block = atomic_load_explicit(&block->next, memory_order_relaxed);
	if (block)
		return block;
	block = arena_take(epochs->arena, sizeof(*block));
	if (!block)
		return NULL;
	memset(block, 0, sizeof(*block));
	for (int i = 0; i < BLOCK_READERS; i++) {
		block->cells[i].reader.block = block;
		block->cells[i].reader.bit = UINT64_C(1) << i;
	}
	atomic_store_explicit(&block->next, first, memory_order_relaxed);
	/* seq_cst: a look finds it after one of its readers has entered, and maintenance after this
	 * store; pairs with epochs_gather() and epochs_next_reader(). */
	atomic_store_explicit(&epochs->blocks, block, memory_order_seq_cst);
	return block;
}

/* Returns whether no thread has a reader of the block, and all are empty. */
static bool block_has_ended(struct reader_block *block, bool (*is_empty)(struct reader *reader))
{
	/* relaxed: only written under the lock. */
	bool has_ended = atomic_load_explicit(&block->taken, memory_order_relaxed) == 0;

	for (int i = 0; i < BLOCK_READERS && has_ended; i++)
		has_ended = is_empty(&block->cells[i].reader);
	return has_ended;
}

/* Takes the blocks that have ended out of the list and links them by next_ended. */
static struct reader_block *epochs_take_ended(struct epochs *epochs,
					      bool (*is_empty)(struct reader *reader))
{
	_Atomic(struct reader_block *) *place = &epochs->blocks;
	struct reader_block *ended = NULL;
	struct reader_block *block;

	/* relaxed, all loads: only written under the lock. */
	while ((block = atomic_load_explicit(place, memory_order_relaxed))) {
		if (!block_has_ended(block, is_empty)) {
			place = &block->next;
			continue;
		}
		/* release: all reads of its readers are done; pairs with epochs_gather(). */
		atomic_store_explicit(place,
				      atomic_load_explicit(&block->next, memory_order_relaxed),
				      memory_order_release);
		block->next_ended = ended;
		ended = block;
	}
	return ended;
}

/* ---- Readers ---- */

struct reader *epochs_add_reader(struct epochs *epochs)
{
	struct reader *reader = NULL;
	struct reader_block *block;

	pthread_mutex_lock(&threads_lock);
	block = epochs_find_block(epochs);
	if (block) {
		/* relaxed: only written under the lock. */
		uint64_t taken = atomic_load_explicit(&block->taken, memory_order_relaxed);

		reader = &block->cells[__builtin_ctzll(~taken)].reader;
		/* seq_cst: a look after it has entered finds it; pairs with epochs_gather(). */
		atomic_store_explicit(&block->taken, taken | reader->bit, memory_order_seq_cst);
		/* relaxed: see epochs_readers(). */
		atomic_fetch_add_explicit(&epochs->reader_count, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&threads_lock);
	return reader;
}

/* Adds the counts of a block's readers to those of the heir. */
static void block_leave_counts(struct reader_block *block, struct reader *heir)
{
	for (int i = 0; i < BLOCK_READERS; i++)
		for (int count = 0; count < READER_COUNTS; count++)
			reader_count(heir, (enum reader_count)count,
				     counter_read(&block->cells[i].reader.counts[count]));
}

void epochs_free_ended(struct epochs *epochs, bool (*is_empty)(struct reader *reader),
		       struct reader *heir)
{
	struct reader_block *next;
	struct reader_block *block;
	struct reader *reader = NULL;

	pthread_mutex_lock(&epochs->walks_lock);
	pthread_mutex_lock(&threads_lock);
	next = epochs_take_ended(epochs, is_empty);
	pthread_mutex_unlock(&threads_lock);
	/* A look that met one of these holds the lock of its own thread. */
	while (next && (reader = epochs_next_reader(epochs, reader))) {
		own_lock_take(&reader->lock);
		own_lock_let_go(&reader->lock);
	}
	own_lock_take(&heir->lock);
	while ((block = next)) {
		next = block->next_ended;
		block_leave_counts(block, heir);
		arena_give(epochs->arena, block, sizeof(*block));
	}
	own_lock_let_go(&heir->lock);
	pthread_mutex_unlock(&epochs->walks_lock);
}

struct reader *epochs_next_reader(struct epochs *epochs, struct reader *reader)
{
	union reader_cell *cell = (union reader_cell *)reader;
	struct reader_block *block;

	if (reader && ++cell < &reader->block->cells[BLOCK_READERS])
		return &cell->reader;
	/* seq_cst: pairs with epochs_find_block(); see also cache_maintain(). */
	block = atomic_load_explicit(reader ? &reader->block->next : &epochs->blocks,
				     memory_order_seq_cst);
	return block ? &block->cells[0].reader : NULL;
}

struct reader *epochs_find_reader(struct epochs *epochs)
{
	struct reader *reader;

	if (epochs->number < mine.count && mine.memos[epochs->number].id == epochs->id) {
		reader_memo = mine.memos[epochs->number];
		return reader_memo.reader;
	}
	if (!thread_make_room(epochs->number))
		return NULL;
	reader = epochs_add_reader(epochs);
	if (!reader)
		return NULL;
	reader_memo = (struct reader_memo){epochs->id, reader};
	mine.memos[epochs->number] = reader_memo;
	return reader;
}

/* ---- Eras ---- */

static void eras_add(struct eras *eras, uint64_t era)
{
	if (eras->count < ERAS_MOST) {
		eras->eras[eras->count++] = era;
		return;
	}
	if (era < eras->first || eras->first == 0)
		eras->first = era;
	if (era > eras->last)
		eras->last = era;
}

void epochs_gather(struct epochs *epochs, uint64_t last, struct eras *eras)
{
	/* seq_cst: here and below pairs with epochs_find_block() and epochs_add_reader(). */
	struct reader_block *block = atomic_load_explicit(&epochs->blocks, memory_order_seq_cst);

	eras->count = 0;
	eras->first = 0;
	eras->last = 0;
	/* acquire: what it misses is done; pairs with epochs_take_ended(). */
	for (; block; block = atomic_load_explicit(&block->next, memory_order_acquire)) {
		uint64_t taken = atomic_load_explicit(&block->taken, memory_order_seq_cst);

		for (; taken != 0; taken &= taken - 1) {
			struct reader *reader = &block->cells[__builtin_ctzll(taken)].reader;
			/* seq_cst: pairs with reader_enter() and reader_leave(). */
			uint64_t era = atomic_load_explicit(&reader->era, memory_order_seq_cst);

			if (era != 0 && era <= last)
				eras_add(eras, era);
		}
	}
}

uint64_t eras_find(const struct eras *eras, uint64_t birth, uint64_t stamp)
{
	for (unsigned i = 0; i < eras->count; i++)
		if (eras->eras[i] >= birth && eras->eras[i] <= stamp)
			return eras->eras[i];
	return eras->first != 0 && eras->first <= stamp && eras->last >= birth ? eras->first : 0;
}
