/* SPDX-License-Identifier: MIT */
/* xorshift64 makes random numbers that are even enough to spread times, and not secret. */
#ifndef XORSHIFT_H
#define XORSHIFT_H

#include <stdint.h>

/*
 * Returns the next number. *state must not be 0. States that differ in few bits give first numbers
 * that differ little, so the first state should be mixed. Source: Marsaglia, "Xorshift RNGs", 2003.
 */
static inline uint64_t xorshift_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
