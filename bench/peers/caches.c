/* SPDX-License-Identifier: MIT */
/*
 * How fast is a cache, how many lookups hit, and what does an entry take?
 *
 * A million keys are drawn by Zipf's law with exponent 0.99.
 * - Gets: all keys are there; one call in ten is a set. By one thread and by two.
 * - Through: there is room for a tenth of the keys; what a get misses is loaded. The first two
 *   million calls fill the cache, and the next are counted.
 * - Bytes: resident memory of an entry without a limit.
 * - Deadline: all entries expire at one time, and one thread gets keys from 100 ms before that on,
 *   for 1.1 s.
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

enum { DRAWS = 1 << 22, CALLS = 2000000, THREADS_MOST = 2 };

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
	size_t position = DRAWS / THREADS_MOST * caller->number;
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

static void ask_gets(const void *argument, void *result)
{
	struct question question = *(const struct question *)argument;
	struct generator generator = {1};
	struct random_key *keys = keys_create((size_t)question.count, 1);
	int64_t resident;

	(void)result;
	keys_shuffle(keys, (size_t)question.count, &generator);
	resident = process_resident_exact();
	question.cache = question.peer->open(0);
	for (int64_t i = 0; i < question.count; i++) {
		struct cached value = caches_load(&keys[i]);

		question.peer->set(question.cache, &keys[i], &value);
	}
	resident = process_resident_exact() - resident;
	print(&question, "bytes", (double)resident / (double)question.count, "bytes");
	for (question.threads = 1; question.threads <= THREADS_MOST; question.threads++)
		ask_calls(&question, "gets", false);
}

static void ask_through(const void *argument, void *result)
{
	struct question question = *(const struct question *)argument;
	struct caller first = {.question = &question, .takes = true};

	(void)result;
	question.cache = question.peer->open((uint64_t)question.count / 10);
	call(&first);
	ask_calls(&question, "through", true);
}

static void ask_deadline(const void *argument, void *result)
{
	const struct question *question = argument;
	const struct caches_peer *peer = question->peer;
	struct percentiles *times = percentiles_create();
	void *cache = peer->open(0);
	int64_t due = stopwatch_now() + 2000000000 + question->count * 5000, now;

	(void)result;
	for (int64_t i = 0; i < question->count; i++) {
		struct random_key key = key_of((uint64_t)i, 1);
		struct cached value = caches_load(&key);

		peer->set_for(cache, &key, &value, due - stopwatch_now());
	}
	if (stopwatch_now() >= due)
		process_fail("the machine is too slow to set all entries before they expire");
	stopwatch_sleep(due - 100000000 - stopwatch_now());
	now = stopwatch_now();
	for (size_t i = 0; now < due + 1000000000; i++) {
		struct random_key key = drawn(i);
		struct cached value;
		int64_t before = now;

		peer->get(cache, &key, &value);
		now = stopwatch_now();
		percentiles_record(times, now - before);
	}
	print(question, "deadline p99.9", (double)percentiles_at(times, 99.9) / 1e3, "us");
	print(question, "deadline max", (double)percentiles_most(times) / 1e3, "us");
}

void caches_ask(const struct caches_peer *peer, const char *count)
{
	struct question one = {peer, strtol(count, NULL, 10), 1, NULL};
	struct question two = {peer, one.count, 2, NULL};
	struct zipf *zipf = zipf_create((size_t)one.count, 0.99);
	struct generator generator = {1};
	char nothing;

	for (size_t i = 0; i < DRAWS; i++)
		draws[i] = (uint32_t)zipf_draw(zipf, &generator);
	zipf_destroy(zipf);
	/* One that fails has printed why. */
	(void)process_run_trial(ask_gets, &one, &nothing, 1);
	(void)process_run_trial(ask_through, &one, &nothing, 1);
	(void)process_run_trial(ask_through, &two, &nothing, 1);
	if (peer->set_for)
		(void)process_run_trial(ask_deadline, &one, &nothing, 1);
}
