/* SPDX-License-Identifier: MIT */
/*
 * These are the checks of a long run: each is counted, and a failure is printed at once, with the
 * seed and the second. Any thread may call them.
 */
#ifndef SOAK_CHECKS_H
#define SOAK_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the seed, and the start of the seconds. It comes before all others. */
void checks_begin(uint64_t seed);
/* Returns the seconds since then. */
double checks_seconds(void);

/* Checks that `found` is at most `most`. */
void check_at_most(const char *what, int64_t found, int64_t most);
void check_equal(const char *what, int64_t found, int64_t expected);
/* Counts a failed check that has no number. */
void check_failed(const char *what);

/* Prints "N passed, N failed". Returns whether none has failed. */
bool checks_report(void);

#endif
