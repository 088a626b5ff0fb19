/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "wait.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

int64_t wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void wait_for(int64_t nanoseconds)
{
	struct timespec pause = {(time_t)(nanoseconds / 1000000000),
				 (long)(nanoseconds % 1000000000)};

	nanosleep(&pause, NULL);
}

bool thread_is_asleep(int id)
{
	char path[64];
	char line[256] = "";
	const char *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	name_end = strrchr(line, ')');
	return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}
