/* SPDX-License-Identifier: MIT */
/*
 * A thread takes a number with its first call on a cache, and gives it back when it ends. The set
 * of numbers, the lock and the key below are the one thing in the library that belongs to the
 * process, as threads do. A memo leads a thread to its caller of the last cache that it used; the
 * cache's id, which is never used twice, shows whether the cache is still that one.
 *
 * Invariants:
 *   a number is at most one live thread's, so a caller has at most one writer
 *   a row that exists stays until the cache ends
 *
 * All calls may run together, except callers_init() and callers_destroy().
 */
#include "caller.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A process has at most THREADS threads at once that use caches. */
enum { THREADS = 65536, WORD = 64 };

_Static_assert((size_t)CALLER_ROW *((1 << CALLER_ROWS) - 1) >= THREADS, "each has its caller");

_Thread_local struct caller_memo caller_memo __attribute__((tls_model("initial-exec")));
_Thread_local uint64_t caller_computes __attribute__((tls_model("initial-exec")));

/* The thread's number plus 1, or 0 before its first call. */
static _Thread_local size_t own_number __attribute__((tls_model("initial-exec")));

static pthread_once_t numbers_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t numbers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t numbers_key;
static bool numbers_have_key;
/* These are under the lock. */
static uint64_t numbers_taken[THREADS / WORD];
static uint64_t last_id;

/* Gives back the number of a thread that ends. */
static void number_give_back(void *argument)
{
	size_t number = (size_t)(uintptr_t)argument - 1;

	memset(&caller_memo, 0, sizeof(caller_memo));
	own_number = 0;
	pthread_mutex_lock(&numbers_lock);
	numbers_taken[number / WORD] &= ~((uint64_t)1 << number % WORD);
	pthread_mutex_unlock(&numbers_lock);
}

static void numbers_keep_lock(void)
{
	pthread_mutex_lock(&numbers_lock);
}

static void numbers_let_go_lock(void)
{
	pthread_mutex_unlock(&numbers_lock);
}

/* Makes the key. A fork takes the lock, for another holder would not exist in the child. */
static void numbers_init(void)
{
	numbers_have_key =
		pthread_atfork(numbers_keep_lock, numbers_let_go_lock, numbers_let_go_lock) == 0 &&
		pthread_key_create(&numbers_key, number_give_back) == 0;
}

/* Ends the calls of number_give_back(). The static library may be part of a plugin that is unloaded
 * before threads that used a cache end. */
static __attribute__((destructor)) void numbers_forget(void)
{
	if (numbers_have_key)
		pthread_key_delete(numbers_key);
}

/* Takes the least free number. Returns it plus 1, or 0 if there is none. */
static size_t number_take(void)
{
	size_t word = 0;
	size_t number = 0;

	pthread_mutex_lock(&numbers_lock);
	while (word < THREADS / WORD && numbers_taken[word] == UINT64_MAX)
		word++;
	if (word < THREADS / WORD)
		number = word * WORD + (size_t)__builtin_ctzll(~numbers_taken[word]) + 1;
	if (number > 0 && pthread_setspecific(numbers_key, (void *)(uintptr_t)number) != 0)
		number = 0;
	if (number > 0)
		numbers_taken[word] |= (uint64_t)1 << (number - 1) % WORD;
	pthread_mutex_unlock(&numbers_lock);
	return number;
}

bool callers_init(struct callers *callers)
{
	pthread_once(&numbers_once, numbers_init);
	memset(callers, 0, sizeof(*callers));
	pthread_mutex_lock(&numbers_lock);
	callers->id = ++last_id;
	pthread_mutex_unlock(&numbers_lock);
	return numbers_have_key;
}

/* Returns a row, or NULL if it does not exist. */
static struct caller *callers_row(const struct callers *callers, unsigned row)
{
	/* acquire: it is zeroed; pairs with callers_add_row(). */
	return atomic_load_explicit(&((struct callers *)callers)->rows[row], memory_order_acquire);
}

static size_t row_size(unsigned row)
{
	return ((size_t)CALLER_ROW << row) * sizeof(struct caller);
}

void callers_destroy(struct callers *callers)
{
	for (unsigned row = 0; row < CALLER_ROWS; row++)
		free(callers_row(callers, row));
}

/* Makes a row, unless another thread does meanwhile. Returns NULL if out of memory. */
static struct caller *callers_add_row(struct callers *callers, unsigned row)
{
	struct caller *made = aligned_alloc(_Alignof(struct caller), row_size(row));
	struct caller *other = NULL;

	if (!made)
		return NULL;
	memset(made, 0, row_size(row));
	/* release: it is zeroed. acquire: so is the other; both pair with callers_row(). */
	if (atomic_compare_exchange_strong_explicit(&callers->rows[row], &other, made,
						    memory_order_release, memory_order_acquire))
		return made;
	free(made);
	return other;
}

struct caller *callers_seek(struct callers *callers)
{
	struct caller *first;
	size_t number;
	unsigned row;

	if (own_number == 0)
		own_number = number_take();
	if (own_number == 0 || caller_computes == callers->id)
		return NULL;
	number = own_number - 1;
	row = 63u - (unsigned)__builtin_clzll(number / CALLER_ROW + 1);
	first = callers_row(callers, row);
	if (!first)
		first = callers_add_row(callers, row);
	if (!first)
		return NULL;
	caller_memo = (struct caller_memo){callers->id,
					   &first[number - CALLER_ROW * (((size_t)1 << row) - 1)]};
	return caller_memo.caller;
}

size_t callers_sum(const struct callers *callers, uint64_t sums[CALLER_COUNTS])
{
	size_t bytes = 0;

	for (unsigned row = 0; row < CALLER_ROWS; row++) {
		const struct caller *first = callers_row(callers, row);

		for (size_t i = 0; first && i < (size_t)CALLER_ROW << row; i++)
			for (int count = 0; count < CALLER_COUNTS; count++)
				sums[count] += counter_read(&first[i].counts[count]);
		bytes += first ? row_size(row) : 0;
	}
	return bytes;
}
