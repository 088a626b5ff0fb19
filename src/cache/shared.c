/* SPDX-License-Identifier: MIT */
/*
 * A thread takes a number with its first call on a cache, and gives it back when it ends. The set
 * of numbers, the lock and the key below are the one thing in the library that belongs to the
 * process, as threads do. A memo leads a thread to its caller of the last cache that it used; the
 * cache's id, which is never used twice, shows whether the cache is still that one. A cache has
 * room for the callers of all numbers; the system gives the pages that are written to.
 *
 * Invariants:
 *   a number is at most one live thread's, so a caller has at most one writer
 *   no thread had a number above `numbers_most`
 *
 * All calls may run together, except callers_init() and callers_destroy().
 */
#include "shared.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

/* A process has at most THREADS threads at once that use caches. */
enum { THREADS = 65536, WORD = 64 };

static const size_t CALLERS_SIZE = THREADS * sizeof(struct caller);

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
static _Atomic uint64_t numbers_most; /* taken at once so far; read by any thread */

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
	if (number > counter_read(&numbers_most))
		counter_set(&numbers_most, number);
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
	callers->all = pages_map_untouched(CALLERS_SIZE);
	/* The system would fill a large page for one caller. */
	if (callers->all)
		pages_use_huge(callers->all, CALLERS_SIZE, false);
	return callers->all && numbers_have_key;
}

void callers_destroy(struct callers *callers)
{
	if (callers->all)
		pages_unmap_aligned(callers->all, CALLERS_SIZE);
}

struct caller *callers_seek(struct callers *callers)
{
	if (own_number == 0)
		own_number = number_take();
	if (own_number == 0 || caller_computes == callers->id)
		return NULL;
	caller_memo = (struct caller_memo){callers->id, &callers->all[own_number - 1]};
	return caller_memo.caller;
}

size_t callers_sum(const struct callers *callers, uint64_t sums[CALLER_COUNTS])
{
	uint64_t most = counter_read(&numbers_most);

	for (uint64_t i = 0; i < most; i++)
		for (int count = 0; count < CALLER_COUNTS; count++)
			sums[count] += counter_read(&callers->all[i].counts[count]);
	return most * sizeof(struct caller);
}

__attribute__((cold)) void callback_break(const struct shared_state *shared)
{
	fprintf(stderr,
		"timingwheel: a callback of the cache \"%s\" has not returned: it threw an "
		"exception or ended its thread\n",
		shared->name);
	abort();
}
