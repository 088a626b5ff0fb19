/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "memory.h"

#include <stdio.h>
#include <unistd.h>

static void read_statm(long *size, long *resident)
{
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", size, resident), 2);
	fclose(file);
	*size *= sysconf(_SC_PAGESIZE);
	*resident *= sysconf(_SC_PAGESIZE);
}

long resident_memory(void)
{
	long size;
	long resident;

	read_statm(&size, &resident);
	return resident;
}

long mapped_memory(void)
{
	long size;
	long resident;

	read_statm(&size, &resident);
	return size;
}
