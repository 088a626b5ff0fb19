/* SPDX-License-Identifier: MIT */
/*
 * In this harness threads take the turn lock, one of them by a try, and one waits under it until
 * another has set a flag. The data under the lock is not atomic, so GenMC reports two threads that
 * are inside at once, and one that does not see the last one's writes. A lost wake-up leaves a
 * thread in its loop, which --check-liveness reports. Bounds:
 *
 *   TAKERS    threads that enter and leave, so that some of them sleep
 *   WAITS     another one waits for a flag, which the last taker sets and broadcasts
 */
#include <assert.h>
#include <genmc.h>

#define TURN_LOCK_SPINS 1
#define __builtin_ia32_pause() (void)0
#include "base/thread.c"
#include "base/turn_lock.c"

#ifndef TAKERS
#define TAKERS 3
#endif

static struct turn_lock lock;
static struct turn_lock_sleep sleep_of_lock;
static pthread_cond_t changed;
static unsigned count;
static bool is_set;

static void *taker_run(void *is_last)
{
	turn_lock_take(&lock);
	count++;
	if (is_last) {
		is_set = true;
		turn_lock_broadcast(&lock, &changed);
	}
	turn_lock_let_go(&lock);
	return NULL;
}

#ifdef WAITS
static void *waiter_run(void *argument)
{
	turn_lock_take(&lock);
	while (!is_set)
		(void)turn_lock_wait_for(&lock, &changed, TW_FOREVER);
	count++;
	turn_lock_let_go(&lock);
	return argument;
}
#endif

static void *trier_run(void *argument)
{
	if (turn_lock_try(&lock)) {
		count++;
		turn_lock_let_go(&lock);
	}
	return argument;
}

int main(void)
{
	pthread_t threads[TAKERS + 1];

	turn_lock_init(&lock, &sleep_of_lock);
	condition_init(&changed);
	for (int i = 0; i < TAKERS; i++)
		pthread_create(&threads[i], NULL, taker_run, i == TAKERS - 1 ? &lock : NULL);
#ifdef WAITS
	pthread_create(&threads[TAKERS], NULL, waiter_run, NULL);
#else
	pthread_create(&threads[TAKERS], NULL, trier_run, NULL);
#endif
	for (int i = 0; i <= TAKERS; i++)
		pthread_join(threads[i], NULL);
	assert(count >= TAKERS && count <= TAKERS + 1);
	return 0;
}
