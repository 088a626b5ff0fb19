/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "wait.h"

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <time.h>

/* Nanoseconds: a slower yield let another program run; this is remembered for some time. */
#define SLOW_YIELD INT64_C(500000)
#define BUSY_FOR INT64_C(100000000)

int64_t wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

size_t count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	size_t count = 0;

	assert_non_null(tasks);
	while (readdir(tasks))
		count++;
	closedir(tasks);
	/* Two entries are the folder and its parent. */
	return count - 2;
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

void give_way(void)
{
	static _Thread_local int64_t busy_until;
	int64_t start = wall_clock();

	if (start < busy_until) {
		wait_for(1000);
		return;
	}
	sched_yield();
	if (wall_clock() - start > SLOW_YIELD)
		busy_until = start + BUSY_FOR;
}

/* The second number is the time on the run queue. */
static int64_t thread_waited(const char *thread)
{
	char path[300];
	int64_t waited = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", thread);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%*s %" SCNd64, &waited) != 1)
		waited = 0;
	fclose(file);
	return waited;
}

int64_t processor_waited(void)
{
	DIR *threads = opendir("/proc/self/task");
	struct dirent *thread;
	int64_t waited = 0;

	if (!threads)
		return 0;
	while ((thread = readdir(threads)))
		waited += thread_waited(thread->d_name);
	closedir(threads);
	return waited;
}
