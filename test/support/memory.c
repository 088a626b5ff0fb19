/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "memory.h"

#include <sys/mman.h>
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

/* The counts in statm are wrong by some pages a processor. */
static long read_rollup(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kibibytes = 0;

	if (!file)
		return 0;
	while (kibibytes == 0 && fgets(line, sizeof(line), file))
		(void)sscanf(line, "Rss: %ld kB", &kibibytes);
	fclose(file);
	return kibibytes << 10;
}

long resident_memory(void)
{
	long exact = read_rollup();
	long size;
	long resident;

	if (exact > 0)
		return exact;
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

size_t resident_pages(const void *memory, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t count = (size + page - 1) / page;
	unsigned char *pages = calloc(count, 1);
	size_t resident = 0;

	assert_non_null(pages);
	assert_int_equal(mincore((void *)(uintptr_t)memory, size, pages), 0);
	for (size_t i = 0; i < count; i++)
		resident += pages[i] & 1;
	free(pages);
	return resident;
}
