/* SPDX-License-Identifier: MIT */
/*
 * The timerfd is armed without the heap's lock, so the thread checks the heap again after it has
 * armed: a setter in between may have armed first. A setter that comes later arms last.
 */
#include "timerfd_timers.h"

#include "process.h"
#include "stopwatch.h"
#include "timer_heap.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct timerfd_timers {
	/* These are constant while the thread runs. */
	size_t count; /* the heap's timer of this number ends the thread */
	void (*run)(void *argument, size_t timer);
	void *argument;
	struct timer_heap *heap;
	int descriptor;
	pthread_t thread;
};

static void arm(const struct timerfd_timers *timers, int64_t deadline)
{
	struct itimerspec ring = {
		.it_value = {deadline / NANOSECONDS_PER_SECOND, deadline % NANOSECONDS_PER_SECOND}};

	if (timerfd_settime(timers->descriptor, TFD_TIMER_ABSTIME, &ring, NULL) != 0)
		process_fail("a timerfd could not be set");
}

static void arm_earliest(const struct timerfd_timers *timers)
{
	int64_t armed;

	do {
		armed = timer_heap_next(timers->heap);
		arm(timers, armed);
	} while (timer_heap_next(timers->heap) < armed);
}

static void *thread_run(void *argument)
{
	const struct timerfd_timers *timers = argument;
	uint64_t rings;
	size_t timer;

	do {
		while (timer_heap_take(timers->heap, stopwatch_now(), &timer)) {
			if (timer == timers->count)
				return NULL;
			timers->run(timers->argument, timer);
		}
		arm_earliest(timers);
	} while (read(timers->descriptor, &rings, sizeof(rings)) == sizeof(rings));
	process_fail("a timerfd could not be read");
}

struct timerfd_timers *timerfd_timers_create(size_t count, void (*run)(void *argument, size_t),
					     void *argument)
{
	struct timerfd_timers *timers = process_allocate(sizeof(*timers));

	timers->count = count;
	timers->run = run;
	timers->argument = argument;
	timers->heap = timer_heap_create(count + 1);
	timers->descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (timers->descriptor < 0)
		process_fail("a timerfd could not be made");
	if (pthread_create(&timers->thread, NULL, thread_run, timers) != 0)
		process_fail("the timerfd's thread could not be started");
	return timers;
}

void timerfd_timers_set(struct timerfd_timers *timers, size_t timer, int64_t deadline)
{
	if (timer_heap_set(timers->heap, timer, deadline))
		arm(timers, deadline);
}

void timerfd_timers_destroy(struct timerfd_timers *timers)
{
	timerfd_timers_set(timers, timers->count, 1);
	pthread_join(timers->thread, NULL);
	close(timers->descriptor);
	timer_heap_destroy(timers->heap);
	free(timers);
}
