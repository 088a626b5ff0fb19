/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* All fields are bytes, and 0 if the system doesn't report them. */
struct sizes {
	int64_t mapped;
	int64_t resident;
};

static struct sizes read_sizes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	int64_t page = sysconf(_SC_PAGESIZE);
	long mapped, resident;
	struct sizes sizes = {0};

	if (!file)
		return sizes;
	if (fscanf(file, "%ld %ld", &mapped, &resident) == 2)
		sizes = (struct sizes){mapped * page, resident * page};
	fclose(file);
	return sizes;
}

int64_t process_resident(void)
{
	return read_sizes().resident;
}

int64_t process_address_space(void)
{
	return read_sizes().mapped;
}

int64_t process_resident_exact(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	long resident = -1;
	char line[256];

	if (!file)
		return process_resident();
	while (resident < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "Rss: %ld kB", &resident);
	fclose(file);
	return resident < 0 ? process_resident() : (int64_t)resident * 1024;
}

#ifdef __GLIBC__
void process_trim_heap(void)
{
	malloc_trim(0);
}

void process_use_one_heap(void)
{
	mallopt(M_ARENA_MAX, 1);
}
#else
void process_use_one_heap(void)
{
}

void process_trim_heap(void)
{
}
#endif

static struct rusage resource_usage(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage;
}

int64_t process_peak_resident(void)
{
	return (int64_t)resource_usage().ru_maxrss * 1024;
}

int64_t process_page_faults(void)
{
	return resource_usage().ru_minflt;
}

static bool ended_well(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		return false;
	if (WIFSIGNALED(status))
		fprintf(stderr, "a trial died: %s\n", strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool process_run_trial(void (*trial)(const void *argument, void *result), const void *argument,
		       void *result, size_t result_size)
{
	void *shared =
		mmap(NULL, result_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	bool well;

	if (shared == MAP_FAILED)
		process_fail("no memory for a trial's result");
	fflush(NULL);
	child = fork();
	if (child == -1)
		process_fail("no process for a trial");
	if (child == 0) {
		trial(argument, shared);
		_exit(0);
	}
	well = ended_well(child);
	memcpy(result, shared, result_size);
	munmap(shared, result_size);
	return well;
}

void *process_allocate(size_t size)
{
	volatile char *memory = calloc(1, size);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!memory)
		process_fail("out of memory: %zu bytes", size);
	/* Each page is written to, so that it is resident before the measurement. */
	for (size_t i = 0; i < size; i += page)
		memory[i] = 0;
	return (void *)memory;
}

void process_fail(const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit(1);
}
