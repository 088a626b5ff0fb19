/* SPDX-License-Identifier: MIT */
/*
 * How many lookups hit, when the cache may hold a tenth of the keys?
 *
 * One thread asks for keys by Zipf's law with exponent 0.99, and sets those that it misses. In the
 * second case a scan follows each 700,000 requests: 300,000 keys in a row that never come again. In
 * the third case such keys are mixed in, three of ten requests. The first half of the requests
 * fills the cache, the second is counted. The baselines of the first two are a simulator's figures,
 * which equal libCacheSim's where compared.
 */
#include "support/csv.h"
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/zipf.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define ZIPF_EXPONENT 0.99

enum load { LOAD_ZIPF, LOAD_SCANS, LOAD_ONCE, LOADS };
enum { POLICIES = 2 };

/* In a cycle, SCANS of HUNDRED requests are for keys that never come again. */
enum { HUNDRED = 100, SCANS = 30 };

static const struct {
	const char *name; /* in the CSV file */
	const char *title;
	double simulated[POLICIES]; /* 0 if not known */
} loads[LOADS] = {
	[LOAD_ZIPF] = {"zipf", "Zipf 0.99", {76.6, 81.2}},
	[LOAD_SCANS] = {"zipf_scans", "70 % Zipf, 30 % scans", {51.3, 56.9}},
	[LOAD_ONCE] = {"zipf_once", "70 % Zipf, 30 % once", {0, 0}},
};

static const char *const policy_names[POLICIES] = {"lru", "s3fifo"};
static const char *const policy_titles[POLICIES] = {"LRU", "S3-FIFO"};

struct plan {
	int64_t keys;
	int64_t limit;
	int64_t requests;
	int64_t seed;
	int64_t shards;
	enum load load;
	enum tw_cache_policy policy;
};

static struct tw_cache *open_cache(const struct plan *plan)
{
	struct tw_cache_options options = {.max_entries = (uint64_t)plan->limit,
					   .policy = plan->policy,
					   .shards = (unsigned)plan->shards};
	struct tw_cache *cache;

	if (tw_cache_create(&cache, TW_FOREVER, &options) != TW_OK)
		process_fail("no cache");
	return cache;
}

/* Returns whether the key was there. */
static bool request(struct tw_cache *cache, uint64_t number)
{
	struct random_key key = key_of(number, 1);
	enum tw_status status = tw_cache_get(cache, &key, sizeof(key), NULL, 0, NULL);

	if (status == TW_TRUNCATED)
		return true;
	if (status != TW_NOT_FOUND ||
	    tw_cache_set(cache, &key, sizeof(key), &number, sizeof(number)) != TW_OK)
		process_fail("a call failed");
	return false;
}

/* Returns whether this request is for a key that never comes again. A cycle of scans is as long as
 * the number of keys. */
static bool is_for_once(const struct plan *plan, int64_t request, struct generator *generator)
{
	switch (plan->load) {
	case LOAD_SCANS:
		return request % plan->keys >= plan->keys / HUNDRED * (HUNDRED - SCANS);
	case LOAD_ONCE:
		return generator_range(generator, 0, HUNDRED) < SCANS;
	default:
		return false;
	}
}

/* The results are percentages. */
static void run_trial(const void *argument, void *result)
{
	const struct plan *plan = argument;
	struct zipf *zipf = zipf_create((size_t)plan->keys, ZIPF_EXPONENT);
	struct tw_cache *cache = open_cache(plan);
	struct generator generator = {(uint64_t)plan->seed};
	uint64_t once = (uint64_t)plan->keys;
	int64_t hits = 0;

	for (int64_t i = 0; i < plan->requests; i++) {
		uint64_t number =
			is_for_once(plan, i, &generator) ? once++ : zipf_draw(zipf, &generator);

		hits += request(cache, number) && i >= plan->requests / 2;
	}
	*(double *)result = 100 * (double)hits / (double)(plan->requests - plan->requests / 2);
	tw_cache_destroy(cache);
	zipf_destroy(zipf);
}

int main(int argc, char **argv)
{
	struct plan plan = {.keys = 1000000, .limit = 100000, .requests = 10000000, .seed = 1};
	const char *csv_path = NULL;
	const struct program_option options[] = {
		{"keys", OPTION_COUNT, &plan.keys, 100, 100000000, .help = "keys that come again"},
		{"limit", OPTION_COUNT, &plan.limit, 1, 100000000, .help = "entries that fit"},
		{"requests", OPTION_COUNT, &plan.requests, 100, 1000000000, .help = "lookups"},
		{"shards", OPTION_COUNT, &plan.shards, 0, TW_CACHE_SHARDS_MAX,
		 .help = "shards of the cache, 0 for its default"},
		{"seed", OPTION_COUNT, &plan.seed, 0, 1000000000, .help = "seed of the requests"},
		{"csv", OPTION_TEXT, &csv_path, .help = "the figures to this file"},
		{0},
	};
	struct progress progress;
	struct csv csv;

	options_parse(argc, argv, "How many lookups hit?", options);
	csv = csv_open(csv_path, "load,policy,hit_percent,simulated_percent");
	printf("%s\n%s keys, %s of them fit, %s requests\n\n%-24s %-8s %9s %10s %11s\n",
	       machine_description(), format_count(plan.keys).characters,
	       format_count(plan.limit).characters, format_count(plan.requests).characters,
	       "hits, percent", "", "cache", "simulator", "difference");
	progress = progress_start(stderr, false);
	for (plan.load = 0; plan.load < LOADS; plan.load++) {
		for (int policy = 0; policy < POLICIES; policy++) {
			double simulated = loads[plan.load].simulated[policy];
			double hits;

			progress_show(&progress, "%s, %s", loads[plan.load].title,
				      policy_titles[policy]);
			plan.policy = policy ? TW_POLICY_S3FIFO : TW_POLICY_LRU;
			if (!process_run_trial(run_trial, &plan, &hits, sizeof(hits)))
				exit(1);
			progress_wipe(&progress);
			printf("%-24s %-8s %9.2f", loads[plan.load].title, policy_titles[policy],
			       hits);
			if (simulated > 0)
				printf(" %10.1f %+11.2f", simulated, hits - simulated);
			putchar('\n');
			csv_row(csv, "%s,%s,%.3f,%.1f", loads[plan.load].name, policy_names[policy],
				hits, simulated);
		}
	}
	csv_close(csv);
	return 0;
}
