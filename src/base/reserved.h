/* SPDX-License-Identifier: MIT */
/*
 * reserved.h checks the fields at the end of the public structs that programs fill. A later version
 * may give them a meaning, so a program that sets one asks for what this version cannot do.
 */
#ifndef BASE_RESERVED_H
#define BASE_RESERVED_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether all reserved fields of a struct are 0. */
static inline bool reserved_are_0(const uint64_t reserved[4])
{
	return (reserved[0] | reserved[1] | reserved[2] | reserved[3]) == 0;
}

#endif
