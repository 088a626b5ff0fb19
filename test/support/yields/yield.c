/* SPDX-License-Identifier: MIT */
/*
 * This makes threads of a library that was compiled with this folder's stdatomic.h yield. Each
 * thread has its own random numbers, which do not follow from a test's seed, as the system chooses
 * the order of threads anyway.
 */
#include "yield.h"

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

void yield_at_atomic(void);

/* One in this number of operations yields the processor, lingers, or sleeps. */
enum { YIELD_ONCE_IN = 4, LINGER_ONCE_IN = 8, SLEEP_ONCE_IN = 256 };

static _Thread_local uint64_t numbers;

_Thread_local void (*yield_instead)(void);

static void yield_as_planned(void)
{
	void (*instead)(void) = yield_instead;

	yield_instead = NULL;
	instead();
	yield_instead = instead;
}

void yield_at_atomic(void)
{
	static const struct timespec moment = {.tv_nsec = 1000};
	uint64_t number = numbers;

	if (yield_instead) {
		yield_as_planned();
		return;
	}
	if (number == 0)
		number = ((uint64_t)(uintptr_t)&numbers ^ (uint64_t)time(NULL) << 32) | 1;
	number ^= number << 13;
	number ^= number >> 7;
	number ^= number << 17;
	numbers = number;
	if ((number >> 8) % SLEEP_ONCE_IN == 0)
		nanosleep(&moment, NULL);
	else if (number % YIELD_ONCE_IN == 0)
		sched_yield();
	else if (number % LINGER_ONCE_IN == 1)
		for (volatile uint64_t left = number >> 32 & 0xff; left > 0; left--)
			;
}
