/* SPDX-License-Identifier: MIT */
#include "resources.h"

#include <dirent.h>

static int64_t entries_of(const char *folder)
{
	DIR *entries = opendir(folder);
	const struct dirent *entry;
	int64_t count = 0;

	if (!entries)
		return 0;
	while ((entry = readdir(entries)))
		count += entry->d_name[0] != '.';
	closedir(entries);
	return count;
}

int64_t resources_threads(void)
{
	return entries_of("/proc/self/task");
}

/* This excludes the one by which they are read. */
int64_t resources_descriptors(void)
{
	int64_t count = entries_of("/proc/self/fd");

	return count > 0 ? count - 1 : 0;
}
