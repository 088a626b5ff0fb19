/* SPDX-License-Identifier: MIT */
/* Random numbers that are even enough to spread times by, and no secret. */
#ifndef XORSHIFT_H
#define XORSHIFT_H

#include <stdint.h>

/*
 * The next one; *state is not 0. From states that differ in few bits the first numbers differ
 * little: it begins with one that is mixed. xorshift64: Marsaglia, "Xorshift RNGs", 2003.
 */
static inline uint64_t xorshift_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
