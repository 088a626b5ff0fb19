/* SPDX-License-Identifier: MIT */
/*
 * This harness has a lock that one thread takes nearly always: it enters and leaves while another
 * waits for the lock, and a third tries. The data under it is not atomic, so GenMC reports two
 * threads that are inside at once, and one that does not see the last one's writes. Bounds:
 *
 *   TURNS    how often the lock's own thread enters
 */
#include <assert.h>
#include <genmc.h>

#include "base/own_lock.h"
#include "proof_threads.h"

#ifndef TURNS
#define TURNS 2
#endif

static struct own_lock lock;
static unsigned count;
static unsigned tried;

/* Goes on when the lock is free: in other orders it only waits longer. */
void thread_back_off(unsigned *tries)
{
	(void)tries;
	__VERIFIER_assume(false);
}

static void *owner_run(void *argument)
{
	for (int i = 0; i < TURNS; i++) {
		own_lock_take(&lock);
		count++;
		own_lock_let_go(&lock);
	}
	return argument;
}

static void *other_run(void *argument)
{
	own_lock_take(&lock);
	count++;
	own_lock_let_go(&lock);
	return argument;
}

static void *trier_run(void *argument)
{
	if (own_lock_try(&lock)) {
		count++;
		tried = 1;
		own_lock_let_go(&lock);
	}
	return argument;
}

int main(void)
{
	void *(*const runs[])(void *) = {owner_run, other_run, trier_run};

	proof_run(runs, 3);
	assert(count == TURNS + 1 + tried);
	return 0;
}
