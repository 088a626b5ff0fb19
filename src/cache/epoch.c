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
 * Only the readers of live threads stand in the blocks that a look goes through. Those of ended
 * threads wait in the list for another thread, or for maintenance, which frees them when the looks
 * that may have met them have ended: each look is made under a lock of its own thread's (retire.h).
 * Readers are the cache's memory, so they are cells of its pool.
 *
 * Invariants:
 *   a live thread has at most one reader in a cache, and no other thread writes it
 *   a reader is in the cache's list until it is freed, and in a block while its thread lives
 *
 * All calls may run together, except epochs_destroy().
 */
#include "epoch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pins.h"
#include "pool.h"

_Thread_local struct reader_memo reader_memo __attribute__((tls_model("initial-exec")));

/* A model checker sets fewer, to go through all orders. */
#ifndef BLOCK_READERS
#define BLOCK_READERS 61
#endif

struct reader_block {
	_Alignas(64) _Atomic(struct reader_block *) next; /* grows only */
	atomic_size_t used;                               /* places in use */
	atomic_size_t end; /* end of the places ever used; grows only */
	_Atomic(struct reader *) readers[BLOCK_READERS];
};

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

/* Takes a reader out of its place. The caller holds the lock. */
static void epochs_leave_place(struct reader *reader)
{
	/* release, both: all its reads are done. A look that does not find it here does not see
	 * that it has left; pairs with epochs_gather(). */
	atomic_store_explicit(reader->place, NULL, memory_order_release);
	atomic_fetch_sub_explicit(&reader->block->used, 1, memory_order_release);
	reader->place = NULL;
}

/* Counts readers of live threads and of ended threads. The caller holds the lock. relaxed: see
 * epochs_readers() and epochs_ended(). */
static void epochs_count(struct epochs *epochs, unsigned live, unsigned ended)
{
	atomic_fetch_add_explicit(&epochs->reader_count, live, memory_order_relaxed);
	atomic_fetch_add_explicit(&epochs->ended_count, ended, memory_order_relaxed);
}

/* Leaves the readers of a thread that ends to others. */
static void thread_give_back(void *argument)
{
	(void)argument;
	memset(&reader_memo, 0, sizeof(reader_memo));
	pthread_mutex_lock(&threads_lock);
	for (size_t i = 0; i < mine.count && i < all_count; i++) {
		struct reader_memo *memo = &mine.memos[i];

		if (!all_epochs[i] || all_epochs[i]->id != memo->id)
			continue;
		epochs_leave_place(memo->reader);
		epochs_count(all_epochs[i], -1u, 1);
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

bool epochs_init(struct epochs *epochs, struct pool *pool)
{
	bool has_number;

	pthread_once(&threads_once, threads_init);
	if (!threads_have_key)
		return false;
	*epochs = (struct epochs){.era = 1, .pool = pool};
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
	struct reader *reader = epochs_first_reader(epochs);
	/* relaxed: no thread comes any more. */
	struct reader_block *block = atomic_load_explicit(&epochs->blocks, memory_order_relaxed);

	pthread_mutex_lock(&threads_lock);
	epochs_give_number(epochs);
	pthread_mutex_unlock(&threads_lock);

	while (reader) {
		struct reader *next = reader->next;

		pool_give_reader(reader);
		reader = next;
	}
	pthread_mutex_destroy(&epochs->walks_lock);
	while (block) {
		/* relaxed: as above. */
		struct reader_block *next =
			atomic_load_explicit(&block->next, memory_order_relaxed);

		free(block);
		block = next;
	}
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

/* Returns a block with a free place for a reader, or NULL if out of memory. */
static struct reader_block *epochs_find_block(struct epochs *epochs)
{
	_Atomic(struct reader_block *) *next = &epochs->blocks;
	struct reader_block *block;

	/* relaxed: only written under the lock, here and below. */
	while ((block = atomic_load_explicit(next, memory_order_relaxed))) {
		if (atomic_load_explicit(&block->used, memory_order_relaxed) < BLOCK_READERS)
			return block;
		next = &block->next;
	}
	block = aligned_alloc(_Alignof(struct reader_block), sizeof(*block));
	if (!block)
		return NULL;
	memset(block, 0, sizeof(*block));
	/* seq_cst: a look after a reader in it has entered finds it; pairs with epochs_gather(). */
	atomic_store_explicit(next, block, memory_order_seq_cst);
	return block;
}

/* Returns a reader left by an ended thread, or a new one, or NULL if out of memory. */
static struct reader *epochs_find_free(struct epochs *epochs)
{
	/* relaxed: only written under the lock. */
	struct reader *first = atomic_load_explicit(&epochs->readers, memory_order_relaxed);
	struct reader *reader = first;

	while (reader && reader->place)
		reader = reader->next;
	if (reader) {
		epochs_count(epochs, 1, -1u);
		return reader;
	}
	reader = pool_take_reader(epochs->pool);
	if (!reader)
		return NULL;
	reader->next = first;
	/* seq_cst: maintenance after this finds it; pairs with epochs_first_reader(). */
	atomic_store_explicit(&epochs->readers, reader, memory_order_seq_cst);
	epochs_count(epochs, 1, 0);
	return reader;
}

/* Gives the reader a place in the block, which has a free one. */
static void reader_take_place(struct reader *reader, struct reader_block *block)
{
	_Atomic(struct reader *) *place = block->readers;

	/* relaxed: only written under the lock. */
	while (atomic_load_explicit(place, memory_order_relaxed))
		place++;
	reader->place = place;
	reader->block = block;
	/* relaxed: only written under the lock. seq_cst: here and below a look after this reader
	 * has entered finds it; pairs with epochs_gather(). */
	if ((size_t)(place - block->readers) ==
	    atomic_load_explicit(&block->end, memory_order_relaxed))
		atomic_fetch_add_explicit(&block->end, 1, memory_order_seq_cst);
	atomic_fetch_add_explicit(&block->used, 1, memory_order_seq_cst);
	atomic_store_explicit(place, reader, memory_order_seq_cst);
}

/* ---- Readers ---- */

struct reader *epochs_add_reader(struct epochs *epochs)
{
	struct reader_block *block;
	struct reader *reader;

	pthread_mutex_lock(&threads_lock);
	block = epochs_find_block(epochs);
	reader = block ? epochs_find_free(epochs) : NULL;
	if (reader)
		reader_take_place(reader, block);
	pthread_mutex_unlock(&threads_lock);
	return reader;
}

struct reader *epochs_take_ended(struct epochs *epochs)
{
	struct reader *kept = NULL;
	struct reader *ended = NULL;
	struct reader *reader;
	struct reader *next;

	pthread_mutex_lock(&threads_lock);
	/* relaxed, here and below: only written under the lock. */
	reader = atomic_load_explicit(&epochs->readers, memory_order_relaxed);
	for (; reader; reader = next) {
		struct reader **list = reader->place ? &kept : &ended;

		next = reader->next;
		reader->next = *list;
		*list = reader;
	}
	atomic_store_explicit(&epochs->readers, kept, memory_order_relaxed);
	atomic_store_explicit(&epochs->ended_count, 0, memory_order_relaxed);
	pthread_mutex_unlock(&threads_lock);
	return ended;
}

void epochs_put_back(struct epochs *epochs, struct reader *reader)
{
	pthread_mutex_lock(&threads_lock);
	/* relaxed, both: as above. */
	reader->next = atomic_load_explicit(&epochs->readers, memory_order_relaxed);
	atomic_store_explicit(&epochs->readers, reader, memory_order_relaxed);
	epochs_count(epochs, 0, 1);
	pthread_mutex_unlock(&threads_lock);
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

static void block_gather(struct reader_block *block, uint64_t last, struct eras *eras)
{
	/* seq_cst: here and below pairs with reader_take_place(). */
	size_t end = atomic_load_explicit(&block->end, memory_order_seq_cst);

	for (size_t i = 0; i < end; i++) {
		struct reader *reader =
			atomic_load_explicit(&block->readers[i], memory_order_seq_cst);
		uint64_t era;

		if (!reader)
			continue;
		/* seq_cst: pairs with reader_enter() and reader_leave(). */
		era = atomic_load_explicit(&reader->era, memory_order_seq_cst);
		if (era != 0 && era <= last)
			eras_add(eras, era);
	}
}

void epochs_gather(struct epochs *epochs, uint64_t last, struct eras *eras)
{
	/* seq_cst: here and below pairs with reader_take_place(). */
	struct reader_block *block = atomic_load_explicit(&epochs->blocks, memory_order_seq_cst);

	eras->count = 0;
	eras->first = 0;
	eras->last = 0;
	for (; block; block = atomic_load_explicit(&block->next, memory_order_seq_cst))
		if (atomic_load_explicit(&block->used, memory_order_seq_cst) > 0)
			block_gather(block, last, eras);
}

uint64_t eras_find(const struct eras *eras, uint64_t birth, uint64_t stamp)
{
	for (unsigned i = 0; i < eras->count; i++)
		if (eras->eras[i] >= birth && eras->eras[i] <= stamp)
			return eras->eras[i];
	return eras->first != 0 && eras->first <= stamp && eras->last >= birth ? eras->first : 0;
}
