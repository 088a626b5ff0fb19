/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "seed.h"

#include <inttypes.h>
#include <time.h>

static uint64_t chosen;

static void choose(void)
{
	const char *given = getenv("SEED");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	chosen = ((uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec) % 1000000007;
	if (given != NULL)
		chosen = strtoull(given, NULL, 0);
	print_message("seed %" PRIu64 " (SEED=%" PRIu64 " replays it)\n", chosen, chosen);
}

uint64_t seed_choose(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose);
	return chosen;
}
