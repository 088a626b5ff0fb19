/* SPDX-License-Identifier: MIT */
/*
 * How fast is a cache, how many lookups hit, and what does an entry take?
 *
 * A million keys are drawn by Zipf's law with exponent 0.99. Caches are filled in the order of the
 * keys' numbers, among which the hot ones are scattered.
 * - Gets: all keys are there; one call in ten is a set. By one thread and by two.
 * - Through: there is room for a tenth of the keys; what a get misses is loaded. Two million
 *   calls fill the cache, and then others are counted.
 * - Bytes: resident memory of an entry without a limit.
 * - Deadline: all entries expire at one time, and one thread gets keys from 100 ms before that on,
 *   for 1.1 s. A peer that removes entries later is asked for more such times: the worst counts.
 *
 * Each question has a process of its own. The baseline of the library is its peers.
 */
#include "peers/caches.h"

#include "support/generator.h"
#include "support/percentiles.h"
#include "support/process.h"
#include "support/stopwatch.h"
#include "support/zipf.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Each caller has its part of the draws, and so has the fill before them. */
enum { CALLS = 2000000, THREADS_MOST = 2, DRAWS = (THREADS_MOST + 1) * CALLS };

struct question {
	const struct caches_peer *peer;
	int64_t count;
	int threads;
	void *cache;
};

struct caller {
	pthread_t thread;
	const struct question *question;
	size_t number;
	bool takes;
	int64_t hits;
};

static uint32_t draws[DRAWS]; /* numbers of keys */

struct cached caches_load(const struct random_key *key)
{
	return (struct cached){{key->words[0], key->words[1]}};
}

static struct random_key drawn(size_t position)
{
	return key_of(draws[position % DRAWS], 1);
}

static void print(const struct question *question, const char *name, double value, const char *unit)
{
	printf("%s,%s,%d,%.6g,%s\n", question->peer->name, name, question->threads, value, unit);
	fflush(stdout);
}

static void *call(void *argument)
{
	struct caller *caller = argument;
	const struct caches_peer *peer = caller->question->peer;
	void *cache = caller->question->cache;
	size_t position = CALLS * caller->number;
	struct cached value;
	int64_t hits = 0;

	for (size_t i = 0; i < CALLS; i++) {
		struct random_key key = drawn(position + i);

		if (caller->takes && peer->take) {
			hits += peer->take(cache, &key, &value);
		} else if (!caller->takes && i % 10 == 0) {
			value = caches_load(&key);
			peer->set(cache, &key, &value);
		} else if (peer->get(cache, &key, &value)) {
			hits++;
		} else if (caller->takes) {
			value = caches_load(&key);
			peer->set(cache, &key, &value);
		}
	}
	caller->hits = hits;
	return NULL;
}

/* Prints the rate of this many calls by each thread, and the share of them that hit. */
static void ask_calls(const struct question *question, const char *name, bool takes)
{
	struct caller callers[THREADS_MOST];
	int64_t start = stopwatch_now(), hits = 0;
	double calls = (double)CALLS * question->threads;
	char title[64];

	for (int i = 0; i < question->threads; i++) {
		callers[i] =
			(struct caller){.question = question, .number = (size_t)i, .takes = takes};
		if (pthread_create(&callers[i].thread, NULL, call, &callers[i]) != 0)
			process_fail("a caller could not be started");
	}
	for (int i = 0; i < question->threads; i++) {
		pthread_join(callers[i].thread, NULL);
		hits += callers[i].hits;
	}
	print(question, name, calls / seconds_of(stopwatch_now() - start) / 1e6, "million/s");
	snprintf(title, sizeof(title), "%s hits", name);
	print(question, title, 100 * (double)hits / (takes ? calls : calls * 0.9), "%");
}

/* Opens a cache and sets all keys, which expire at `due` unless it is 0. */
static void *open_full(const struct question *question, int64_t due)
{
	void *cache = question->peer->open(0);

	for (int64_t i = 0; i < question->count; i++) {
		struct random_key key = key_of((uint64_t)i, 1);
		struct cached value = caches_load(&key);

		if (due)
			question->peer->set_for(cache, &key, &value, due - stopwatch_now());
		else
			question->peer->set(cache, &key, &value);
	}
	return cache;
}

static void ask_gets(const void *argument, void *result)
{
	struct question question = *(const struct question *)argument;
	int64_t resident = process_resident_exact();

	(void)result;
	question.cache = open_full(&question, 0);
	resident = process_resident_exact() - resident;
	print(&question, "bytes", (double)resident / (double)question.count, "bytes");
	for (question.threads = 1; question.threads <= THREADS_MOST; question.threads++)
		ask_calls(&question, "gets", false);
}

static void ask_through(const void *argument, void *result)
{
	struct question question = *(const struct question *)argument;
	struct caller first = {.question = &question, .number = THREADS_MOST, .takes = true};

	(void)result;
	question.cache = question.peer->open((uint64_t)question.count / 10);
	call(&first);
	ask_calls(&question, "through", true);
}

static void ask_deadline(const void *argument, void *result)
{
	const struct question *question = argument;
	struct percentiles *times = percentiles_create();
	int64_t due = stopwatch_now() + 5000000000 + question->count * 3000, now;
	void *cache = open_full(question, due);

	(void)result;
	if (stopwatch_now() >= due)
		process_fail("the machine is too slow to set all entries before they expire");
	stopwatch_sleep(due - 100000000 - stopwatch_now());
	now = stopwatch_now();
	for (size_t i = 0; now < due + 1000000000; i++) {
		struct random_key key = drawn(i);
		struct cached value;
		int64_t before = now;

		question->peer->get(cache, &key, &value);
		now = stopwatch_now();
		percentiles_record(times, now - before);
	}
	print(question, "deadline p99.9", (double)percentiles_at(times, 99.9) / 1e3, "us");
	print(question, "deadline max", (double)percentiles_most(times) / 1e3, "us");
}

int caches_ask(const struct caches_peer *peer, const char *count)
{
	struct question one = {peer, strtol(count, NULL, 10), 1, NULL};
	struct question two = {peer, one.count, 2, NULL};
	struct zipf *zipf = zipf_create((size_t)one.count, 0.99);
	struct generator generator = {1};
	char nothing;

	/* The factor is a prime: each rank has its own key. */
	for (size_t i = 0; i < DRAWS; i++)
		draws[i] = (uint32_t)(zipf_draw(zipf, &generator) * 611953 % (size_t)one.count);
	zipf_destroy(zipf);
	return !process_run_trial(ask_gets, &one, &nothing, 1) ||
	       !process_run_trial(ask_through, &one, &nothing, 1) ||
	       !process_run_trial(ask_through, &two, &nothing, 1) ||
	       (peer->set_for && !process_run_trial(ask_deadline, &one, &nothing, 1));
}
