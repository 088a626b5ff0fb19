/* SPDX-License-Identifier: MIT */
/*
 * This harness shows the smallest parts: a limit's places, the fork guard, a counter that is read
 * in order.
 *
 * LIMIT: no more than MOST threads hold a place, and the limit counts those. GUARD: one thread has
 * closed it, and a thread that learns of this sees it closed. COUNTER: a count that is incremented
 * first is never less than one incremented after it.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>

#include "base/counter.h"
#include "base/fork_guard.h"

#ifndef THREADS
#define THREADS 3
#endif
#ifndef MOST
#define MOST 1
#endif

#ifdef LIMIT
static struct limit limit = {.most = MOST};
static atomic_int arrivals;
static atomic_int holders;
static atomic_int taken;

static bool thread_take(void)
{
	if (!limit_take(&limit))
		return false;
	/* relaxed: a count. */
	atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
	return true;
}

static void *thread_run(void *argument)
{
	bool holds = thread_take();

	(void)argument;
	/* The first thread gives its place back, and takes one again. */
	/* relaxed: it only shares out the parts. */
	if (atomic_fetch_add_explicit(&arrivals, 1, memory_order_relaxed) == 0 && holds) {
		limit_give(&limit);
		holds = thread_take();
	}
	/* relaxed: a count. */
	atomic_fetch_add_explicit(&holders, holds, memory_order_relaxed);
	return NULL;
}

static void check_end(void)
{
	/* relaxed: all threads have ended. */
	int held = atomic_load_explicit(&holders, memory_order_relaxed);

	assert(held <= MOST && limit_taken(&limit) == (size_t)held);
	/* The first thread that asked had a place. */
	/* relaxed: all threads have ended. */
	assert(atomic_load_explicit(&taken, memory_order_relaxed) > 0);
}
#endif

#ifdef GUARD
unsigned fork_generation = 2;
static struct fork_guard guard = {.word = 2};
static atomic_int closed;
static atomic_bool closed_is_known;

static void *thread_run(void *argument)
{
	(void)argument;
	if (fork_guard_close(&guard)) {
		/* relaxed: a count. */
		atomic_fetch_add_explicit(&closed, 1, memory_order_relaxed);
		/* release: publishes the close; pairs with the acquire below. */
		atomic_store_explicit(&closed_is_known, true, memory_order_release);
	}
	/* acquire: pairs with the release above. */
	if (atomic_load_explicit(&closed_is_known, memory_order_acquire))
		assert(!fork_guard_is_open(&guard));
	assert(!fork_guard_is_left_behind(&guard));
	return NULL;
}

static void check_end(void)
{
	/* relaxed: all threads have ended. */
	assert(atomic_load_explicit(&closed, memory_order_relaxed) == 1);
}
#endif

#ifdef COUNTER
static _Atomic uint64_t accepted;
static _Atomic uint64_t done;
static atomic_int number;

static void *thread_run(void *argument)
{
	uint64_t seen_done;

	(void)argument;
	/* relaxed: it only shares out the parts. */
	if (atomic_fetch_add_explicit(&number, 1, memory_order_relaxed) == 0) {
		for (int i = 0; i < 3; i++) {
			counter_add_ordered(&accepted, 1);
			counter_add_ordered(&done, 1);
		}
	} else {
		seen_done = counter_read_ordered(&done);
		assert(counter_read(&accepted) >= seen_done);
	}
	return NULL;
}

static void check_end(void)
{
	assert(counter_read(&accepted) == 3 && counter_read(&done) == 3);
}
#endif

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread_run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check_end();
	return 0;
}
