/* SPDX-License-Identifier: MIT */
#include "fork_guard.h"

#include <pthread.h>

unsigned fork_generation = 2;

static void fork_generation_raise(void)
{
	fork_generation += 2;
}

bool fork_guard_open(struct fork_guard *guard)
{
	static atomic_bool has_handler;

	/* relaxed, both: two threads may add the handler twice, which does no harm. */
	if (!atomic_load_explicit(&has_handler, memory_order_relaxed)) {
		if (pthread_atfork(NULL, NULL, fork_generation_raise) != 0)
			return false;
		atomic_store_explicit(&has_handler, true, memory_order_relaxed);
	}
	/* relaxed: no other thread knows of the guard. */
	atomic_store_explicit(&guard->word, fork_generation, memory_order_relaxed);
	return true;
}
