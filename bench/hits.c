/* SPDX-License-Identifier: MIT */
/*
 * How many lookups hit?
 *
 * One thread replays a trace through a cache, and sets the keys that it misses. Without --folder
 * there are four traces, for a cache with room for a tenth of the keys that come again:
 * - keys by Zipf's law with exponent 0.99
 * - the same, and after each 70 % of a round 30 % are a scan of keys that never come again
 * - the same, with such keys mixed in
 * - a loop of 1.05 times the keys that fit
 * Their first half fills the cache, and the second is counted. The traces of a folder
 * (support/traces.h) are counted from the start, with room for 0.1, 1, 10 and 30 % of their keys.
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
#include "support/traces.h"
#include "support/zipf.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define ZIPF_EXPONENT 0.99

enum { ROWS_MOST = 1024, LEAST_ENTRIES = 20 };

enum { SIMULATED, LRU, S3FIFO, MEASURES };

static const struct measure measures[] = {
	{"simulated_lru_percent", "exact LRU, simulated", 1, 1, true},
	{"lru_percent", "LRU", 1, 1, true},
	{"s3fifo_percent", "S3-FIFO", 1, 1, true},
	{0},
};

/* Thousandths of a folder's keys that fit. */
static const unsigned shares[] = {1, 10, 100, 300};

static int64_t shards;
static struct figures *rows[ROWS_MOST];
static size_t row_count;

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

static uint64_t simulate_lru(const struct trace *trace, uint64_t limit)
{
	size_t items = (size_t)trace->keys + 1;
	struct lru lru = {process_allocate(items * sizeof(*lru.next)),
			  process_allocate(items * sizeof(*lru.previous)),
			  process_allocate(items * sizeof(*lru.is_in)), trace->keys, 0};
	uint64_t hits = 0;

	lru.next[lru.head] = lru.previous[lru.head] = lru.head;
	for (size_t i = 0; i < trace->length; i++) {
		uint32_t key = trace->key[i];

		hits += lru.is_in[key] && i >= trace->from;
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

static uint64_t replay(const struct trace *trace, uint64_t limit, enum tw_cache_policy policy)
{
	const struct tw_cache_options options = {
		.max_entries = limit, .policy = policy, .shards = (unsigned)shards};
	struct tw_cache *cache;
	uint64_t hits = 0;

	expect_ok(tw_cache_create(&cache, TW_FOREVER, &options), "tw_cache_create");
	for (size_t i = 0; i < trace->length; i++)
		hits += request(cache, trace->key[i]) && i >= trace->from;
	tw_cache_destroy(cache);
	return hits;
}

/* --- Rows ------------------------------------------------------------------------------------- */

static double percent(const struct trace *trace, uint64_t hits)
{
	return 100 * (double)hits / (double)(trace->length - trace->from);
}

static void run_row(const struct trace *trace, uint64_t limit)
{
	struct progress progress = progress_start(stderr, false);
	char *title = process_allocate(128);
	double result[MEASURES];

	if (row_count == ROWS_MOST)
		process_fail("more than %d rows", ROWS_MOST);
	snprintf(title, 128, "%s, room for %s", trace->name,
		 format_count((int64_t)limit).characters);
	progress_show(&progress, "%s", title);
	result[SIMULATED] = percent(trace, simulate_lru(trace, limit));
	result[LRU] = percent(trace, replay(trace, limit, TW_POLICY_LRU));
	result[S3FIFO] = percent(trace, replay(trace, limit, TW_POLICY_S3FIFO));
	progress_wipe(&progress);
	rows[row_count] = figures_create(title, title, measures);
	figures_add(rows[row_count++], result);
}

static void run_folder(const char *folder)
{
	char **names;
	size_t count = traces_find(folder, &names);

	if (count == 0)
		options_refuse("%s has no traces", folder);
	for (size_t i = 0; i < count; i++) {
		struct trace *trace = trace_read(folder, names[i]);

		for (size_t k = 0; k < sizeof(shares) / sizeof(*shares); k++) {
			if ((uint64_t)trace->keys * shares[k] / 1000 >= LEAST_ENTRIES)
				run_row(trace, (uint64_t)trace->keys * shares[k] / 1000);
		}
		trace_destroy(trace);
		free(names[i]);
	}
	free(names);
}

/* --- Traces that are made --------------------------------------------------------------------- */

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

static void run_kinds(int64_t keys, int64_t requests)
{
	struct zipf *zipf = zipf_create((size_t)keys, ZIPF_EXPONENT);

	for (enum kind kind = 0; kind < KINDS; kind++) {
		uint32_t *accesses = process_allocate((size_t)requests * sizeof(*accesses));
		struct generator generator = {1};
		struct trace *trace;

		for (int64_t i = 0; i < requests; i++)
			accesses[i] = draw(kind, keys, i, zipf, &generator);
		trace = trace_make(kind_titles[kind], accesses, (size_t)requests);
		run_row(trace, (uint64_t)keys / 10);
		trace_destroy(trace);
	}
	zipf_destroy(zipf);
}

int main(int argc, char **argv)
{
	int64_t keys = 1000000, requests = 10000000;
	const char *folder = NULL, *csv_path = NULL;
	const struct program_option options[] = {
		{"folder", OPTION_TEXT, &folder, .help = "folder of traces, NAME.u32"},
		{"keys", OPTION_COUNT, &keys, 1000, 100000000, .help = "keys that come again"},
		{"requests", OPTION_COUNT, &requests, 1000, 1000000000, .help = "of each trace"},
		{"shards", OPTION_COUNT, &shards, 0, TW_CACHE_SHARDS_MAX,
		 .help = "shards of the cache, 0 for its default"},
		{"csv", OPTION_TEXT, &csv_path, .help = "the figures to this file"},
		{0},
	};

	options_parse(argc, argv, "How many lookups hit?", options);
	figures_open(csv_path);
	machine_print();
	if (folder)
		run_folder(folder);
	else
		run_kinds(keys, requests);
	figures_print_rows("Cache: lookups that hit, percent", rows, row_count);
	figures_close();
	return 0;
}
