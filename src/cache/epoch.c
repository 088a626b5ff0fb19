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
 * The readers of ended threads wait in the list for another thread, or for maintenance, which takes
 * them out and frees them when the looks that may have met them have ended: each look is made under
 * a lock of its own thread's (retire.h). Until then they still lead a look to the next reader.
 * Readers are the cache's memory, so they are cells of its pool.
 *
 * Invariants:
 *   a live thread has at most one reader in a cache, and no other thread writes it
 *   a reader is in the cache's list while its thread lives
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
		memo->reader->is_taken = false;
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

	pthread_mutex_lock(&threads_lock);
	epochs_give_number(epochs);
	pthread_mutex_unlock(&threads_lock);

	while (reader) {
		struct reader *next = reader_next(reader);

		pool_give_reader(reader);
		reader = next;
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

/* Puts a reader into the list. */
static void epochs_link(struct epochs *epochs, struct reader *reader)
{
	/* relaxed, both: only written under the lock, and published with the reader. */
	struct reader *first = atomic_load_explicit(&epochs->readers, memory_order_relaxed);

	atomic_store_explicit(&reader->next, first, memory_order_relaxed);
	/* seq_cst: a look after it has entered finds it, and maintenance after this; pairs with
	 * epochs_first_reader(). */
	atomic_store_explicit(&epochs->readers, reader, memory_order_seq_cst);
}

/* Returns a reader left by an ended thread, or a new one, or NULL if out of memory. */
static struct reader *epochs_find_free(struct epochs *epochs)
{
	/* relaxed: only written under the lock. */
	struct reader *reader = atomic_load_explicit(&epochs->readers, memory_order_relaxed);

	while (reader && reader->is_taken)
		reader = reader_next(reader);
	if (reader) {
		epochs_count(epochs, 1, -1u);
		return reader;
	}
	reader = pool_take_reader(epochs->pool);
	if (!reader)
		return NULL;
	epochs_link(epochs, reader);
	epochs_count(epochs, 1, 0);
	return reader;
}

/* ---- Readers ---- */

struct reader *epochs_add_reader(struct epochs *epochs)
{
	struct reader *reader;

	pthread_mutex_lock(&threads_lock);
	reader = epochs_find_free(epochs);
	if (reader)
		reader->is_taken = true;
	pthread_mutex_unlock(&threads_lock);
	return reader;
}

struct reader *epochs_take_ended(struct epochs *epochs)
{
	_Atomic(struct reader *) *place = &epochs->readers;
	struct reader *ended = NULL;
	struct reader *reader;

	pthread_mutex_lock(&threads_lock);
	/* relaxed, all loads: only written under the lock. */
	while ((reader = atomic_load_explicit(place, memory_order_relaxed))) {
		if (reader->is_taken) {
			place = &reader->next;
			continue;
		}
		/* release: all its reads are done; pairs with reader_next() and
		 * epochs_first_reader(). */
		atomic_store_explicit(place, reader_next(reader), memory_order_release);
		reader->next_ended = ended;
		ended = reader;
	}
	atomic_store_explicit(&epochs->ended_count, 0, memory_order_relaxed);
	pthread_mutex_unlock(&threads_lock);
	return ended;
}

void epochs_put_back(struct epochs *epochs, struct reader *reader)
{
	pthread_mutex_lock(&threads_lock);
	epochs_link(epochs, reader);
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

void epochs_gather(struct epochs *epochs, uint64_t last, struct eras *eras)
{
	struct reader *reader = epochs_first_reader(epochs);

	eras->count = 0;
	eras->first = 0;
	eras->last = 0;
	for (; reader; reader = reader_next(reader)) {
		/* seq_cst: pairs with reader_enter() and reader_leave(). */
		uint64_t era = atomic_load_explicit(&reader->era, memory_order_seq_cst);

		if (era != 0 && era <= last)
			eras_add(eras, era);
	}
}

uint64_t eras_find(const struct eras *eras, uint64_t birth, uint64_t stamp)
{
	for (unsigned i = 0; i < eras->count; i++)
		if (eras->eras[i] >= birth && eras->eras[i] <= stamp)
			return eras->eras[i];
	return eras->first != 0 && eras->first <= stamp && eras->last >= birth ? eras->first : 0;
}
