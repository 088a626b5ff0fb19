/* SPDX-License-Identifier: MIT */
/*
 * The seed of a test program's random numbers is printed, and SEED=n in the environment replays it.
 */
#ifndef SUPPORT_SEED_H
#define SUPPORT_SEED_H

#include "random.h"

/* SEED from the environment, else one of the clock's: the run's, chosen and printed once. */
uint64_t seed_choose(void);

#endif
