/* SPDX-License-Identifier: MIT */
/* Each line is one unbuffered write, so that it outlives a kill of its process. */
#include "history.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/sockets.h"

enum { LINE_MAX_SIZE = 512, CLOCK_TRIES = 100 };

static int file = -1;
static _Atomic int64_t *shift; /* shared with the server and all processes */

static void shift_map(const char *folder)
{
	char path[512];
	int clock;

	snprintf(path, sizeof(path), "%s/clock", folder);
	clock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (clock < 0 || ftruncate(clock, sizeof(*shift)))
		support_failed(path);
	shift = mmap(NULL, sizeof(*shift), PROT_READ | PROT_WRITE, MAP_SHARED, clock, 0);
	if (shift == MAP_FAILED)
		support_failed(path);
	close(clock);
}

void history_open(const char *folder, const char *process)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.log", folder, process);
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (file < 0)
		support_failed(path);
	shift_map(folder);
}

void history_shift_clock(int64_t by_us)
{
	/* relaxed: a number alone, orders nothing */
	atomic_store_explicit(shift, by_us, memory_order_relaxed);
}

static int64_t clock_of(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Reads both clocks at one moment. Reads again if the thread was preempted between the two. */
static void clocks_read(int64_t *time, int64_t *real_us)
{
	int64_t after;

	for (int i = 0; i < CLOCK_TRIES; i++) {
		*time = clock_of(CLOCK_MONOTONIC);
		/* relaxed: a number alone, orders nothing */
		*real_us = clock_of(CLOCK_REALTIME) / 1000 +
			   atomic_load_explicit(shift, memory_order_relaxed);
		after = clock_of(CLOCK_MONOTONIC);
		if (after - *time < 50000)
			return;
	}
}

void history_write(const char *actor, const char *format, ...)
{
	char line[LINE_MAX_SIZE];
	int64_t time;
	int64_t real_us;
	va_list arguments;
	int size;

	clocks_read(&time, &real_us);
	size = snprintf(line, sizeof(line), "%" PRId64 " %" PRId64 " %s ", time, real_us, actor);
	va_start(arguments, format);
	size += vsnprintf(line + size, sizeof(line) - (size_t)size, format, arguments);
	va_end(arguments);
	if (size >= (int)sizeof(line) - 1)
		support_failed("a line of the history is too long");
	line[size++] = '\n';
	if (write(file, line, (size_t)size) != size)
		support_failed("the history");
}
