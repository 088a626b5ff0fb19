/* SPDX-License-Identifier: MIT */
#include "costs.h"

#include <alloca.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <valgrind/callgrind.h>

unsigned costs_n = 16384;
char (*keys)[KEY_SIZE + 1];
/* From this start no deadline of the cache crosses a multiple of 1,024 s, where an entry is filed
 * again (src/cache/expiry.c). */
struct timespec costs_time = {.tv_sec = 3000};
struct tw_wheel *wheel;
unsigned tasks_ran;

uint64_t drawn = 88172645463325252u;

/* ---- The same in each run ---- */

enum { PAGE = 4096, MALLOC_STEP = 16, MALLOC_MOST = 1024, MALLOC_KEPT = 7 };

/* Fills malloc's free lists of this thread: a block of one step more than was asked for, which a
 * hole of the heap may yield, would never be found again. */
static void fill_malloc(void)
{
	void *blocks[MALLOC_KEPT];

	for (size_t size = 1; size <= MALLOC_MOST; size += MALLOC_STEP) {
		for (int i = 0; i < MALLOC_KEPT; i++)
			blocks[i] = malloc(size);
		__asm__ volatile("" ::"r"(blocks) : "memory");
		for (int i = 0; i < MALLOC_KEPT; i++)
			free(blocks[i]);
	}
}

/*
 * Calls the program's main() with its stack and its heap at the start of a page, as the low bits
 * decide which lines meet in a cache: the stack begins behind the environment, and the heap of a
 * static program behind its path.
 */
int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);
int __wrap_main(int argc, char **argv)
{
	char *stack = alloca((uintptr_t)__builtin_frame_address(0) % PAGE + PAGE);
	char *heap = malloc(1);

	expect(heap != NULL, "malloc");
	heap = malloc(PAGE - (uintptr_t)heap % PAGE);
	expect(heap != NULL, "malloc");
	__asm__ volatile("" ::"r"(stack), "r"(heap) : "memory");
	fill_malloc();
	return __real_main(argc, argv);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	(void)id;
	*now = costs_time;
	return 0;
}

int __wrap_clock_getres(clockid_t id, struct timespec *step);
int __wrap_clock_getres(clockid_t id, struct timespec *step)
{
	(void)id;
	step->tv_sec = 0;
	step->tv_nsec = 4000000;
	return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
	static uint64_t state = 0x9e3779b97f4a7c15u;
	unsigned char *to = bytes;

	(void)flags;
	for (size_t i = 0; i < size; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		to[i] = (unsigned char)(state >> 56);
	}
	return (ssize_t)size;
}

static void *end_at_once(void *argument)
{
	return argument;
}

void costs_init(void)
{
	const char *n = getenv("COSTS_N");
	pthread_t thread;

	/* The C library uses no locked instructions before the first thread starts. */
	expect(pthread_create(&thread, NULL, end_at_once, NULL) == 0, "pthread_create");
	pthread_join(thread, NULL);
	/* Otherwise the system decides by its load which memory gets large pages. */
	(void)prctl(PR_SET_THP_DISABLE, 1UL, 0UL, 0UL, 0UL);
	if (n)
		costs_n = (unsigned)atoi(n);
	expect(costs_n >= COMMANDS && (costs_n & (costs_n - 1)) == 0, "COSTS_N: a power of two");
	keys = malloc(4 * (size_t)costs_n * sizeof(*keys));
	expect(keys != NULL, "malloc");
	for (unsigned i = 0; i < 4 * costs_n; i++)
		snprintf(keys[i], sizeof(keys[i]), "user:%011u", i);
}

/* ---- Tasks and checks ---- */

void count_run(void *argument)
{
	(void)argument;
	tasks_ran++;
}

void count_task(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	tasks_ran++;
}

void give_up(const char *what)
{
	fprintf(stderr, "costs: %s\n", what);
	exit(1);
}

/* ---- Counting ---- */

void phase_begin(void)
{
	CALLGRIND_ZERO_STATS;
	CALLGRIND_TOGGLE_COLLECT;
}

void phase_end(const char *name, unsigned count)
{
	CALLGRIND_TOGGLE_COLLECT;
	phase_write(name, count);
}

void phase_write(const char *name, unsigned count)
{
	char text[64];

	snprintf(text, sizeof(text), "%s/%u", name, count);
	CALLGRIND_DUMP_STATS_AT(text);
}

/* ---- Memory ---- */

int64_t memory_begin(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long resident = 0;

	expect(file && fscanf(file, "%*d %ld", &resident) == 1, "/proc/self/statm");
	fclose(file);
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

void memory_end(const char *name, int64_t before, unsigned count)
{
	printf("bytes.%s %.1f\n", name, (double)(memory_begin() - before) / count);
}
