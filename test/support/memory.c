/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "memory.h"

#include <stdio.h>
#include <unistd.h>

long resident_memory(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size;
	long resident;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident * sysconf(_SC_PAGESIZE);
}
