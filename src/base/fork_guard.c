/* SPDX-License-Identifier: MIT */
/*
 * The fork guard is a page with MADV_WIPEONFORK (Linux 4.14), which the kernel clears in a child.
 * Without that advice a child's calls are not detected: comparing process numbers would cost each
 * call a system call.
 */
#include "fork_guard.h"

#include <stddef.h>
#include <sys/mman.h>

#ifdef MADV_WIPEONFORK
static const int guard_advice = MADV_WIPEONFORK;
#else
static const int guard_advice = MADV_NORMAL;
#endif

enum { GUARD_SIZE = 4096 };

struct fork_guard *fork_guard_create(enum fork_guard_state state)
{
	struct fork_guard *guard =
		mmap(NULL, GUARD_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (guard == MAP_FAILED)
		return NULL;
	if (state == FORK_GUARD_OPEN)
		(void)madvise(guard, GUARD_SIZE, guard_advice);
	atomic_init(&guard->state, (int)state);
	return guard;
}

void fork_guard_destroy(struct fork_guard *guard)
{
	munmap(guard, GUARD_SIZE);
}

bool fork_guard_close(struct fork_guard *guard)
{
	int state = (int)fork_guard_state(guard);

	/* relaxed: as in fork_guard_state(). */
	return (state == FORK_GUARD_OPEN || state == FORK_GUARD_OPEN_TO_ONE) &&
	       atomic_compare_exchange_strong_explicit(&guard->state, &state, FORK_GUARD_CLOSED,
						       memory_order_relaxed, memory_order_relaxed);
}

void fork_guard_set(struct fork_guard *guard, enum fork_guard_state state)
{
	/* relaxed: the child has one thread. */
	atomic_store_explicit(&guard->state, (int)state, memory_order_relaxed);
}
