/* SPDX-License-Identifier: MIT */
/*
 * How many lookups hit?
 *
 * One thread asks a cache for keys, and sets those that it misses. There is room for a tenth of the
 * keys that come again, and the keys are drawn in four ways:
 * - keys by Zipf's law with exponent 0.99
 * - the same, and after each 70 % of a round 30 % are a scan of keys that never come again
 * - the same, with such keys mixed in
 * - a loop of 1.05 times the keys that fit
 * The first half fills the cache, and the second is counted.
 *
 * The baseline is exact LRU, simulated. Only the cache's columns vary from run to run, as its hash
 * has a random seed.
 */
#include "support/expect.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/machine.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/zipf.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define ZIPF_EXPONENT 0.99

enum { SIMULATED, LRU, S3FIFO, MEASURES };

static const struct measure measures[] = {
	{"simulated_lru_percent", "exact LRU, simulated", 1, 1},
	{"lru_percent", "LRU", 1, 1},
	{"s3fifo_percent", "S3-FIFO", 1, 1},
	{0},
};

/* Keys of a kind, in the order in which they are asked for; all are below `end`. */
struct requests {
	const char *title;
	uint32_t *keys;
	size_t count;
	size_t end;
};

/* --- Exact LRU -------------------------------------------------------------------------------- */

/* The entries are a ring, from the oldest on. The head follows the keys. */
struct lru {
	uint32_t *next;
	uint32_t *previous;
	bool *is_in;
	uint32_t head;
	uint64_t count;
};

static void lru_remove(struct lru *lru, uint32_t key)
{
	lru->next[lru->previous[key]] = lru->next[key];
	lru->previous[lru->next[key]] = lru->previous[key];
	lru->is_in[key] = false;
	lru->count--;
}

static void lru_add(struct lru *lru, uint32_t key)
{
	uint32_t last = lru->previous[lru->head];

	lru->previous[key] = last;
	lru->next[key] = lru->head;
	lru->next[last] = lru->previous[lru->head] = key;
	lru->is_in[key] = true;
	lru->count++;
}

static uint64_t simulate_lru(const struct requests *requests, uint64_t limit)
{
	size_t items = requests->end + 1;
	struct lru lru = {process_allocate(items * sizeof(*lru.next)),
			  process_allocate(items * sizeof(*lru.previous)),
			  process_allocate(items * sizeof(*lru.is_in)), (uint32_t)requests->end, 0};
	uint64_t hits = 0;

	lru.next[lru.head] = lru.previous[lru.head] = lru.head;
	for (size_t i = 0; i < requests->count; i++) {
		uint32_t key = requests->keys[i];

		hits += lru.is_in[key] && i >= requests->count / 2;
		if (lru.is_in[key])
			lru_remove(&lru, key);
		else if (lru.count == limit)
			lru_remove(&lru, lru.next[lru.head]);
		lru_add(&lru, key);
	}
	free(lru.next);
	free(lru.previous);
	free(lru.is_in);
	return hits;
}

/* --- The cache -------------------------------------------------------------------------------- */

/* Returns whether the key was there, and sets it if not. */
static bool request(struct tw_cache *cache, uint32_t key)
{
	enum tw_status status = tw_cache_get(cache, &key, sizeof(key), NULL, 0, NULL);

	if (status == TW_TRUNCATED)
		return true;
	if (status != TW_NOT_FOUND)
		process_fail("tw_cache_get answered %s", tw_status_name(status));
	expect_ok(tw_cache_set(cache, &key, sizeof(key), &key, sizeof(key)), "tw_cache_set");
	return false;
}

static uint64_t ask_all(const struct requests *requests, uint64_t limit,
			enum tw_cache_policy policy)
{
	const struct tw_cache_options options = {.max_entries = limit, .policy = policy};
	struct tw_cache *cache;
	uint64_t hits = 0;

	expect_ok(tw_cache_create(&cache, TW_FOREVER, &options), "tw_cache_create");
	for (size_t i = 0; i < requests->count; i++)
		hits += request(cache, requests->keys[i]) && i >= requests->count / 2;
	tw_cache_destroy(cache);
	return hits;
}

/* --- Kinds ------------------------------------------------------------------------------------ */

enum kind { ZIPF, SCANS, ONCE, LOOP, KINDS };

static const char *const kind_titles[KINDS] = {"Zipf 0.99", "70 % so, 30 % scans",
					       "70 % so, 30 % once", "a loop"};

/* Keys from `keys` on never come again. */
static uint32_t draw(enum kind kind, int64_t keys, int64_t i, const struct zipf *zipf,
		     struct generator *generator)
{
	if (kind == LOOP)
		return (uint32_t)(i % (keys / 10 + keys / 200));
	if (kind == SCANS && i % keys >= keys / 10 * 7)
		return (uint32_t)(keys + i);
	if (kind == ONCE && generator_range(generator, 0, 10) < 3)
		return (uint32_t)(keys + i);
	return (uint32_t)zipf_draw(zipf, generator);
}

static struct figures *run_kind(const struct requests *requests, uint64_t limit)
{
	struct figures *row = figures_create(requests->title, requests->title, measures);
	double percent = 200 / (double)requests->count;
	double result[MEASURES];

	result[SIMULATED] = percent * (double)simulate_lru(requests, limit);
	result[LRU] = percent * (double)ask_all(requests, limit, TW_POLICY_LRU);
	result[S3FIFO] = percent * (double)ask_all(requests, limit, TW_POLICY_S3FIFO);
	figures_add(row, result);
	return row;
}

static void run_kinds(int64_t keys, int64_t count)
{
	struct progress progress = progress_start(stderr, false);
	struct zipf *zipf = zipf_create((size_t)keys, ZIPF_EXPONENT);
	struct requests requests = {NULL, process_allocate((size_t)count * sizeof(uint32_t)),
				    (size_t)count, (size_t)(keys + count)};
	struct figures *rows[KINDS];
	char titles[KINDS][128];

	for (enum kind kind = 0; kind < KINDS; kind++) {
		struct generator generator = {1};

		for (int64_t i = 0; i < count; i++)
			requests.keys[i] = draw(kind, keys, i, zipf, &generator);
		snprintf(titles[kind], sizeof(titles[kind]), "%s, room for %s", kind_titles[kind],
			 format_count(keys / 10).characters);
		requests.title = titles[kind];
		progress_show(&progress, "%s", requests.title);
		rows[kind] = run_kind(&requests, (uint64_t)keys / 10);
	}
	progress_wipe(&progress);
	figures_print_rows("Cache: lookups that hit, percent", rows, KINDS);
	for (enum kind kind = 0; kind < KINDS; kind++)
		figures_destroy(rows[kind]);
	zipf_destroy(zipf);
	free(requests.keys);
}

int main(int argc, char **argv)
{
	int64_t keys = 1000000, requests = 10000000;
	const char *csv_path = NULL;
	const struct program_option options[] = {
		{"keys", OPTION_COUNT, &keys, 1000, 100000000, .help = "keys that come again"},
		{"requests", OPTION_COUNT, &requests, 1000, 1000000000, .help = "of each kind"},
		{"csv", OPTION_TEXT, &csv_path, .help = "the figures to this file"},
		{0},
	};

	options_parse(argc, argv, "How many lookups hit?", options);
	figures_open(csv_path);
	machine_print();
	run_kinds(keys, requests);
	figures_close();
	return 0;
}
