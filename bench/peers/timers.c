/* SPDX-License-Identifier: MIT */
/*
 * How fast are timers started, restarted and cancelled, and how late do they run?
 *
 * - Rates: a million timers with delays of 1 to 60 minutes are started, restarted and cancelled,
 *   each time in another random order, by one thread, and by two if the peer allows it. The time
 *   ends when all calls have been applied; "processor" is the time of all threads.
 * - A crowd: a million timers are due within 100 ms, from the first deadline until all have run.
 * - Lateness: 50,000 timers are due within 4 s. A timer is early if it runs before the time of its
 *   start and its delay have passed.
 *
 * Each question has a process of its own. The baseline of the library is its peers.
 */
#include "peers/timers.h"

#include "support/generator.h"
#include "support/percentiles.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MINUTE_MS = 60000, THREADS_MOST = 2 };

struct question {
	const struct timers_peer *peer;
	size_t count;
	int threads;
};

struct share {
	pthread_t thread;
	pthread_barrier_t *start;
	timers_call *call;
	size_t first;
	size_t end;
	struct generator generator;
};

static uint32_t *order; /* the calls go through the timers in this one */
static int64_t *due;    /* when each is due, and once it ran how late it was */
static _Atomic size_t ran;

void timers_ran(size_t i)
{
	due[i] = stopwatch_now() - due[i];
	/* release: publishes due[i]; pairs with the acquire in run_due() */
	atomic_fetch_add_explicit(&ran, 1, memory_order_release);
}

static void print(const struct question *question, const char *name, double value, const char *unit)
{
	printf("%s,%s,%d,%.6g,%s\n", question->peer->name, name, question->threads, value, unit);
	fflush(stdout);
}

static void shuffle(size_t count)
{
	struct generator generator = {count};

	for (size_t i = 0; i < count; i++) {
		size_t j = (size_t)generator_range(&generator, 0, (int64_t)i + 1);

		order[i] = order[j];
		order[j] = (uint32_t)i;
	}
}

static void *call_share(void *argument)
{
	struct share *share = argument;

	pthread_barrier_wait(share->start);
	for (size_t i = share->first; i < share->end; i++)
		share->call(order[i],
			    generator_range(&share->generator, MINUTE_MS, 60 * MINUTE_MS));
	return NULL;
}

/* The calls of one thread are the main thread's, which is that of an event loop. */
static void ask_rate(const struct question *question, const char *name, timers_call *call)
{
	struct share shares[THREADS_MOST];
	pthread_barrier_t barrier;
	char processor[64];
	int64_t start, cpu;

	shuffle(question->count);
	pthread_barrier_init(&barrier, NULL, (unsigned)question->threads);
	for (size_t i = 0, threads = (size_t)question->threads; i < threads; i++)
		shares[i] = (struct share){.start = &barrier,
					   .call = call,
					   .first = question->count * i / threads,
					   .end = question->count * (i + 1) / threads,
					   .generator = {i}};
	start = stopwatch_now();
	cpu = stopwatch_process_cpu();
	for (int i = 1; i < question->threads; i++)
		if (pthread_create(&shares[i].thread, NULL, call_share, &shares[i]) != 0)
			process_fail("a producer could not be started");
	call_share(&shares[0]);
	for (int i = 1; i < question->threads; i++)
		pthread_join(shares[i].thread, NULL);
	if (question->peer->settle)
		question->peer->settle();
	print(question, name, (double)question->count / seconds_of(stopwatch_now() - start) / 1e6,
	      "million/s");
	snprintf(processor, sizeof(processor), "%s processor", name);
	print(question, processor,
	      (double)(stopwatch_process_cpu() - cpu) / (double)question->count, "ns");
	pthread_barrier_destroy(&barrier);
}

static void ask_rates(const void *argument, void *result)
{
	const struct question *question = argument;

	(void)result;
	question->peer->open(question->count, question->threads > 1);
	ask_rate(question, "start", question->peer->start);
	ask_rate(question, "restart", question->peer->restart);
	ask_rate(question, "cancel", question->peer->cancel);
}

/* Starts timers that are due within `spread` ms from `first` on, and waits until all have run. */
static void run_due(const struct question *question, int64_t first, int64_t spread)
{
	struct generator generator = {1};

	question->peer->open(question->count, false);
	shuffle(question->count);
	for (size_t i = 0; i < question->count; i++) {
		int64_t at = first + generator_range(&generator, 0, spread * 1000000);
		int64_t now = stopwatch_now(), delay = (at - now) / 1000000;

		due[order[i]] = now + delay * 1000000;
		if (question->peer->look)
			question->peer->look();
		question->peer->start(order[i], delay);
	}
	if (stopwatch_now() >= first)
		process_fail("the machine is too slow to start all timers before they are due");
	/* acquire: sees due[] of those that ran; pairs with the release in timers_ran() */
	while (atomic_load_explicit(&ran, memory_order_acquire) < question->count)
		question->peer->turn();
}

static void ask_crowd(const void *argument, void *result)
{
	const struct question *question = argument;
	int64_t first = stopwatch_now() + 2000000000 + (int64_t)question->count * 3000;

	(void)result;
	run_due(question, first, 100);
	print(question, "crowd", seconds_of(stopwatch_now() - first) * 1e3, "ms");
}

static void ask_lateness(const void *argument, void *result)
{
	const struct question *question = argument;
	struct percentiles *late = percentiles_create();
	int64_t early = 0;

	(void)result;
	run_due(question, stopwatch_now() + 500000000, 4000);
	for (size_t i = 0; i < question->count; i++) {
		percentiles_record(late, due[i]);
		early += due[i] < 0;
	}
	print(question, "late p50", (double)percentiles_at(late, 50) / 1e6, "ms");
	print(question, "late p99", (double)percentiles_at(late, 99) / 1e6, "ms");
	print(question, "early", (double)early, "timers");
}

int timers_ask(const struct timers_peer *peer, const char *count)
{
	struct question all = {peer, strtoul(count, NULL, 10), 1};
	struct question two = {peer, all.count, 2}, few = {peer, all.count / 20, 1};
	char nothing;

	order = process_allocate(all.count * sizeof(*order));
	due = process_allocate(all.count * sizeof(*due));
	return !process_run_trial(ask_rates, &all, &nothing, 1) ||
	       (peer->has_producers && !process_run_trial(ask_rates, &two, &nothing, 1)) ||
	       !process_run_trial(ask_crowd, &all, &nothing, 1) ||
	       !process_run_trial(ask_lateness, &few, &nothing, 1);
}
