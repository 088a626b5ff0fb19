/* SPDX-License-Identifier: MIT */
/*
 * Epoch-based reclamation. The epoch goes from e to e + 1 when every reader that is inside has seen
 * e. So while a reader is inside at e, the epoch is e or e + 1, and what is unlinked under its eyes
 * is stamped e or e + 1, or later, and not freed before e + 2, which needs the reader to leave.
 *
 * Threads come and go, and so do caches. A thread's reader is found by a memo of the last cache it
 * used, then in the thread's own list, by the cache's id, which is never used twice: what that list
 * holds of a cache that is gone is never looked at. When a thread ends, its readers are given to
 * others, counts and all; that needs to know which caches still live. Therefore the list of all
 * epochs, the lock and the key below, which are the one thing in the library that belongs to the
 * process: threads do.
 *
 * May run together: everything but epochs_destroy. Linearization of an advance: its exchange.
 */
#include "epoch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct reader_memo reader_memo __attribute__((tls_model("initial-exec")));

/* What a thread knows: its readers, those of caches that are gone too. */
static _Thread_local struct {
	size_t count;
	size_t capacity;
	struct reader_memo *memos;
} mine;

static pthread_once_t threads_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t threads_key;
static bool threads_have_key;
/* Under the lock. */
static struct epochs *all_epochs;
static uint64_t last_id;

/* Under the lock: forgets the readers of caches that are gone. */
static void thread_forget_gone(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < mine.count; i++) {
		const struct epochs *epochs = all_epochs;

		while (epochs && epochs->id != mine.memos[i].id)
			epochs = epochs->next;
		if (epochs)
			mine.memos[kept++] = mine.memos[i];
	}
	mine.count = kept;
}

/* A thread ends: its readers are for others. */
static void thread_give_back(void *argument)
{
	(void)argument;
	memset(&reader_memo, 0, sizeof(reader_memo));
	pthread_mutex_lock(&threads_lock);
	thread_forget_gone();
	for (size_t i = 0; i < mine.count; i++)
		mine.memos[i].reader->is_taken = false;
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

/* A fork keeps the lock meanwhile: in the child its holder would not be there to give it back. */
static void threads_init(void)
{
	threads_have_key =
		pthread_atfork(threads_keep_lock, threads_let_go_lock, threads_let_go_lock) == 0 &&
		pthread_key_create(&threads_key, thread_give_back) == 0;
}

bool epochs_init(struct epochs *epochs, size_t reader_size)
{
	pthread_once(&threads_once, threads_init);
	if (!threads_have_key)
		return false;
	*epochs = (struct epochs){.current = 1, .reader_size = reader_size};
	pthread_mutex_lock(&threads_lock);
	epochs->id = ++last_id;
	epochs->next = all_epochs;
	all_epochs = epochs;
	pthread_mutex_unlock(&threads_lock);
	return true;
}

void epochs_destroy(struct epochs *epochs)
{
	struct epochs **place = &all_epochs;
	struct reader *reader = epochs_first_reader(epochs);
	struct reader *next;

	pthread_mutex_lock(&threads_lock);
	while (*place && *place != epochs)
		place = &(*place)->next;
	if (*place)
		*place = epochs->next;
	pthread_mutex_unlock(&threads_lock);

	for (; reader; reader = next) {
		next = reader->next;
		free(reader);
	}
}

/* Makes room in the thread's list for one more; false: out of memory. */
static bool thread_make_room(void)
{
	struct reader_memo *larger;

	if (mine.count < mine.capacity)
		return true;
	pthread_mutex_lock(&threads_lock);
	thread_forget_gone();
	pthread_mutex_unlock(&threads_lock);
	if (mine.count < mine.capacity)
		return true;
	/* The value only has the key's destructor called. */
	if (pthread_setspecific(threads_key, &mine) != 0)
		return false;
	larger = realloc(mine.memos, (2 * mine.count + 4) * sizeof(*larger));
	if (!larger)
		return false;
	mine.memos = larger;
	mine.capacity = 2 * mine.count + 4;
	return true;
}

static struct reader *reader_new(const struct epochs *epochs)
{
	struct reader *reader = aligned_alloc(_Alignof(struct reader), epochs->reader_size);

	if (!reader)
		return NULL;
	memset(reader, 0, epochs->reader_size);
	reader->is_taken = true;
	return reader;
}

/* Under the lock: one left by a thread that has ended, or a new one; NULL: out of memory. */
static struct reader *epochs_take_reader(struct epochs *epochs)
{
	/* relaxed: only written under the lock. */
	struct reader *first = atomic_load_explicit(&epochs->readers, memory_order_relaxed);
	struct reader *reader = first;

	while (reader && reader->is_taken)
		reader = reader->next;
	if (reader) {
		reader->is_taken = true;
		return reader;
	}
	reader = reader_new(epochs);
	if (!reader)
		return NULL;
	reader->next = first;
	/* seq_cst: a scan after this reader has entered finds it; pairs with
	 * epochs_first_reader(). */
	atomic_store_explicit(&epochs->readers, reader, memory_order_seq_cst);
	/* relaxed: see epochs_readers(). */
	atomic_fetch_add_explicit(&epochs->reader_count, 1, memory_order_relaxed);
	return reader;
}

struct reader *epochs_find_reader(struct epochs *epochs)
{
	struct reader *reader;

	for (size_t i = 0; i < mine.count; i++)
		if (mine.memos[i].id == epochs->id) {
			reader_memo = mine.memos[i];
			return reader_memo.reader;
		}
	if (!thread_make_room())
		return NULL;
	pthread_mutex_lock(&threads_lock);
	reader = epochs_take_reader(epochs);
	pthread_mutex_unlock(&threads_lock);
	if (!reader)
		return NULL;
	reader_memo = (struct reader_memo){epochs->id, reader};
	mine.memos[mine.count++] = reader_memo;
	return reader;
}

bool epochs_advance(struct epochs *epochs)
{
	/* Before the scan. */
	uint64_t current = epochs_current(epochs);
	struct reader *reader = epochs_first_reader(epochs);

	for (; reader; reader = reader->next) {
		/* seq_cst: pairs with reader_enter() and reader_leave(). */
		uint64_t seen = atomic_load_explicit(&reader->epoch, memory_order_seq_cst);

		if (seen != 0 && seen != current)
			return false;
	}
	/* seq_cst: after the scan; pairs with epochs_stamp() and epochs_current(). One that fails
	 * was overtaken by another's advance. */
	atomic_compare_exchange_strong_explicit(&epochs->current, &current, current + 1,
						memory_order_seq_cst, memory_order_relaxed);
	return true;
}
