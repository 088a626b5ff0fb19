/* SPDX-License-Identifier: MIT */
/*
 * This is included before all else in a build that counts what runs: a process that ends by
 * _exit(), as a fork's child does, or by abort() first adds its counts to the files.
 */
#ifndef COVERAGE_EXIT_H
#define COVERAGE_EXIT_H

#include <stdlib.h>
#include <unistd.h>

void __gcov_dump(void);
void __gcov_reset(void);

/* The status is computed first, which may be all that a child does. */
static inline void counted_exit(int status)
{
	__gcov_dump();
	_exit(status);
}

#define _exit(status) counted_exit(status)
#define abort() (__gcov_dump(), abort())

/* Adds the counts to the files before the simulation resets all variables. */
#define keep_counts() (__gcov_dump(), __gcov_reset())

#endif
