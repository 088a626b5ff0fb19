/* SPDX-License-Identifier: MIT */
#include "checks.h"

#include "support/stopwatch.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

/* A repeated fault would fill the disk. */
#define LINES_MOST 1000

static struct {
	uint64_t seed;
	int64_t start;
	_Atomic uint64_t passed;
	_Atomic uint64_t failed;
} checks;

void checks_begin(uint64_t seed)
{
	checks.seed = seed;
	checks.start = stopwatch_now();
	printf("SEED=%" PRIu64 "\n", seed);
}

double checks_seconds(void)
{
	return seconds_of(stopwatch_now() - checks.start);
}

static void count(bool is_right, const char *what, int64_t found, const char *relation,
		  int64_t expected)
{
	if (is_right) {
		atomic_fetch_add(&checks.passed, 1);
		return;
	}
	if (atomic_fetch_add(&checks.failed, 1) < LINES_MOST)
		printf("FAILED: SEED=%" PRIu64 ", after %.1f s: %s: %" PRId64
		       ", and should be %s%" PRId64 "\n",
		       checks.seed, checks_seconds(), what, found, relation, expected);
	fflush(stdout);
}

void check_at_most(const char *what, int64_t found, int64_t most)
{
	count(found <= most, what, found, "at most ", most);
}

void check_equal(const char *what, int64_t found, int64_t expected)
{
	count(found == expected, what, found, "", expected);
}

void check_failed(const char *what)
{
	count(false, what, 1, "", 0);
}

bool checks_report(void)
{
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", atomic_load(&checks.passed),
	       atomic_load(&checks.failed));
	return atomic_load(&checks.failed) == 0;
}
