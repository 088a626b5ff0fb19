/* SPDX-License-Identifier: MIT */
/* Each thread has its own counts, on its own cache lines, so that counting disturbs no other. */
#include "fates.h"

#include "process.h"

#include <stdatomic.h>
#include <stddef.h>

#define MAX_THREADS 1024

/* A counter is written by one thread and read by any. */
struct counter {
	_Alignas(64) _Atomic int64_t fates[FATE_COUNT];
};

static struct counter counters[MAX_THREADS];
static atomic_int counters_used;
static _Thread_local struct counter *own_counter;

static struct counter *claim_counter(void)
{
	/* relaxed: it only hands out numbers; the counter is zero from the start */
	int number = atomic_fetch_add_explicit(&counters_used, 1, memory_order_relaxed);

	if (number >= MAX_THREADS)
		process_fail("more than %d threads count", MAX_THREADS);
	return &counters[number];
}

void fates_add(enum fate fate)
{
	_Atomic int64_t *count;
	int64_t before;

	if (!own_counter)
		own_counter = claim_counter();
	count = &own_counter->fates[fate];
	/* relaxed: no other thread writes it */
	before = atomic_load_explicit(count, memory_order_relaxed);
	/* release: readers of the count see the rest; pairs with the acquire in fates_counted() */
	atomic_store_explicit(count, before + 1, memory_order_release);
}

int64_t fates_counted(enum fate fate)
{
	int64_t sum = 0;

	for (int i = 0; i < MAX_THREADS; i++) {
		/* acquire: sees the work before; pairs with the release in fates_add() */
		sum += atomic_load_explicit(&counters[i].fates[fate], memory_order_acquire);
	}
	return sum;
}
