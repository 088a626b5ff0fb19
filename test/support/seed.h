/* SPDX-License-Identifier: MIT */
/*
 * The seed of a test program's random numbers is printed, and SEED=n in the environment replays it.
 */
#ifndef SUPPORT_SEED_H
#define SUPPORT_SEED_H

#include "random.h"

/* Returns the run's seed, chosen and printed once: SEED from the environment, or the clock's. */
uint64_t seed_choose(void);

#endif
