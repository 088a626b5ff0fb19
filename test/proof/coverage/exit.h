/* SPDX-License-Identifier: MIT */
/*
 * This is included before all else in a build that counts what runs: a process that ends by
 * _exit(), as a fork's child does, first adds its counts to the files.
 */
#ifndef COVERAGE_EXIT_H
#define COVERAGE_EXIT_H

#include <unistd.h>

void __gcov_dump(void);

static inline _Noreturn void exit_counted(int status)
{
	__gcov_dump();
	_exit(status);
}

#define _exit(status) exit_counted(status)

#endif
