/* SPDX-License-Identifier: MIT */
#include "processor.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>

/* Returns the size of the calling thread's affinity mask. */
static size_t processors_by_mask(void)
{
	cpu_set_t processors;

	CPU_ZERO(&processors);
	/* It fails where there are over 1024 processors: then these are as good as endless. */
	if (sched_getaffinity(0, sizeof(processors), &processors) != 0)
		return CPU_SETSIZE;
	return CPU_COUNT(&processors) > 0 ? (size_t)CPU_COUNT(&processors) : 1;
}
#else
static size_t processors_by_mask(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count > 0 ? (size_t)count : 1;
}
#endif

/* Reads the number, or two, that the file begins with. Returns how many there are. */
static int read_numbers(const char *folder, const char *name, long long *first, long long *second)
{
	char path[640];
	FILE *file;
	int count;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	count = fscanf(file, "%lld %lld", first, second);
	fclose(file);
	return count;
}

/* Returns the least number by the quota of the group in `folder` and of those above it, up to the
 * folder of `top` bytes; SIZE_MAX without a quota. It cuts `folder`. */
static size_t processors_of_groups(char *folder, size_t top)
{
	size_t least = SIZE_MAX;

	for (; strlen(folder) >= top; *strrchr(folder, '/') = '\0') {
		long long quota = 0; /* microseconds, in each period */
		long long period = 0;
		long long none;
		size_t count;

		/* Without a quota, version 2 has a word, and version 1 a negative number. */
		if (read_numbers(folder, "cpu.max", &quota, &period) != 2 &&
		    read_numbers(folder, "cpu.cfs_quota_us", &quota, &none) == 1)
			(void)read_numbers(folder, "cpu.cfs_period_us", &period, &none);
		if (quota <= 0 || period <= 0)
			continue;
		count = (size_t)((quota + period - 1) / period);
		least = count < least ? count : least;
	}
	return least;
}

size_t processors_by_quota(const char *list, const char *root)
{
	FILE *file = fopen(list, "re");
	size_t least = SIZE_MAX;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		/* A line has a number, the controllers, if it is of version 1, and the group. */
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		char folder[600];
		size_t count;

		if (!group || (group > controllers + 1 && strncmp(controllers, ":cpu", 4) != 0))
			continue;
		*group = '\0';
		group[1 + strcspn(group + 1, "\n")] = '\0';
		snprintf(folder, sizeof(folder), "%s/%s%s", root, controllers + 1, group + 1);
		count = processors_of_groups(folder, strlen(root) + 1 + strlen(controllers + 1));
		least = count < least ? count : least;
	}
	if (file)
		fclose(file);
	return least;
}

size_t processors_available(void)
{
	size_t by_quota = processors_by_quota("/proc/self/cgroup", "/sys/fs/cgroup");
	size_t by_mask = processors_by_mask();

	return by_quota < by_mask ? by_quota : by_mask;
}
