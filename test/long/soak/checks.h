/* SPDX-License-Identifier: MIT */
/*
 * What a long run asserts: each check is counted, and one that fails is said at once, with the seed
 * and the second. Any thread.
 */
#ifndef SOAK_CHECKS_H
#define SOAK_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

/* Before all others: the seed, and the time that seconds count from. */
void checks_begin(uint64_t seed);
/* Seconds since then. */
double checks_seconds(void);

/* `found` should be at most `most`. */
void check_at_most(const char *what, int64_t found, int64_t most);
void check_equal(const char *what, int64_t found, int64_t expected);
/* Something went wrong that has no number; counts as a failed check. */
void check_failed(const char *what);

/* Prints "N passed, N failed". Returns whether none has failed. */
bool checks_report(void);

#endif
