/* SPDX-License-Identifier: MIT */
/*
 * A test's log has all lines in their order, also those of a program that crashes, and those that
 * cmocka writes to the other stream.
 */
#include "test.h"

__attribute__((constructor)) static void write_line_by_line(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}
