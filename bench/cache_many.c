/* SPDX-License-Identifier: MIT */
/*
 * What is gained by the cache's calls for many keys?
 *
 * One thread sets, gets, deletes and loads keys of 16 bytes with values of 64, in random order: by
 * calls for --batch keys each, and by calls for one key. Loads are of missing keys, by a loader
 * that has the values at once, and by one whose source answers after 100 us, however many keys it
 * is asked for. Rates are of keys; each run is a process of its own.
 */
#include "support/csv.h"
#include "support/figures.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <timingwheel/cache.h>

#include <stdio.h>
#include <stdlib.h>

#define SOURCE_TIME (100 * TW_MICROSECOND)

enum { VALUE = 64, BATCH_MOST = 1024, SLOW_KEYS = 2000 };

static const char value[VALUE];

struct plan {
	size_t count;
	size_t batch;
	bool is_many;
};

/* Keys a second. */
struct result {
	double set;
	double get;
	double delete;
	double load;
	double slow;
};

struct job {
	struct tw_cache *cache;
	const struct random_key *keys;
	size_t batch;
};

static void expect(enum tw_status status, size_t found, size_t wanted)
{
	if (status != TW_OK || found != wanted)
		process_fail("a call answers %s for %zu of %zu keys", tw_status_name(status), found,
			     wanted);
}

/* --- Many in a call --------------------------------------------------------------------------- */

static void set_many(const struct job *job, size_t first, void *unused)
{
	struct tw_cache_item items[BATCH_MOST];
	enum tw_status status;
	size_t set;

	(void)unused;
	for (size_t i = 0; i < job->batch; i++)
		items[i] = (struct tw_cache_item){.key = &job->keys[first + i],
						  .key_size = sizeof(job->keys[0]),
						  .value = value,
						  .value_size = VALUE};
	status = tw_cache_set_many(job->cache, items, job->batch, &set);
	expect(status, set, job->batch);
}

static void get_many(const struct job *job, size_t first, void *unused)
{
	static char copies[BATCH_MOST][VALUE];
	struct tw_cache_lookup items[BATCH_MOST];
	enum tw_status status;
	size_t found;

	(void)unused;
	for (size_t i = 0; i < job->batch; i++)
		items[i] = (struct tw_cache_lookup){.key = &job->keys[first + i],
						    .key_size = sizeof(job->keys[0]),
						    .buffer = copies[i],
						    .capacity = VALUE};
	status = tw_cache_get_many(job->cache, items, job->batch, &found);
	expect(status, found, job->batch);
}

static void delete_many(const struct job *job, size_t first, void *unused)
{
	struct tw_cache_key keys[BATCH_MOST];
	enum tw_status status;
	size_t deleted;

	(void)unused;
	for (size_t i = 0; i < job->batch; i++)
		keys[i] = (struct tw_cache_key){.key = &job->keys[first + i],
						.key_size = sizeof(job->keys[0])};
	status = tw_cache_delete_many(job->cache, keys, job->batch, &deleted);
	expect(status, deleted, job->batch);
}

static enum tw_status load_many(void *argument, struct tw_cache_missing *missing, size_t n)
{
	const tw_duration *source_time = argument;
	enum tw_status status = TW_OK;

	if (source_time)
		stopwatch_sleep(*source_time);
	for (size_t i = 0; i < n && status == TW_OK; i++)
		status = tw_cache_load_copy(missing[i].loading, value, VALUE, 0);
	return status;
}

static void take_many(const struct job *job, size_t first, void *source_time)
{
	struct tw_cache_taking items[BATCH_MOST];
	enum tw_status status;
	size_t found;

	for (size_t i = 0; i < job->batch; i++)
		items[i] = (struct tw_cache_taking){.key = &job->keys[first + i],
						    .key_size = sizeof(job->keys[0])};
	status = tw_cache_take_many(job->cache, items, job->batch, load_many, source_time,
				    TW_FOREVER, &found);
	expect(status, found, job->batch);
	for (size_t i = 0; i < job->batch; i++)
		tw_cache_entry_release(items[i].entry);
}

/* --- One by one ------------------------------------------------------------------------------- */

static void set_each(const struct job *job, size_t first, void *unused)
{
	(void)unused;
	for (size_t i = first; i < first + job->batch; i++)
		expect(tw_cache_set(job->cache, &job->keys[i], sizeof(job->keys[i]), value, VALUE),
		       1, 1);
}

static void get_each(const struct job *job, size_t first, void *unused)
{
	char copy[VALUE];

	(void)unused;
	for (size_t i = first; i < first + job->batch; i++)
		expect(tw_cache_get(job->cache, &job->keys[i], sizeof(job->keys[i]), copy, VALUE,
				    NULL),
		       1, 1);
}

static void delete_each(const struct job *job, size_t first, void *unused)
{
	(void)unused;
	for (size_t i = first; i < first + job->batch; i++)
		expect(tw_cache_delete(job->cache, &job->keys[i], sizeof(job->keys[i])), 1, 1);
}

static enum tw_status load_one(void *argument, const void *key, size_t key_size,
			       struct tw_cache_loading *loading)
{
	const tw_duration *source_time = argument;

	(void)key;
	(void)key_size;
	if (source_time)
		stopwatch_sleep(*source_time);
	return tw_cache_load_copy(loading, value, VALUE, 0);
}

static void take_each(const struct job *job, size_t first, void *source_time)
{
	for (size_t i = first; i < first + job->batch; i++) {
		const struct tw_cache_entry *entry;

		expect(tw_cache_take(job->cache, &job->keys[i], sizeof(job->keys[i]), load_one,
				     source_time, TW_FOREVER, &entry),
		       1, 1);
		tw_cache_entry_release(entry);
	}
}

/* --- Runs ------------------------------------------------------------------------------------- */

static double rate(const struct job *job, size_t count, void *argument,
		   void (*call)(const struct job *job, size_t first, void *argument))
{
	int64_t started = stopwatch_now();

	for (size_t first = 0; first < count; first += job->batch)
		call(job, first, argument);
	return (double)count / seconds_of(stopwatch_now() - started);
}

static void run(const void *argument, void *result_of_run)
{
	const struct plan *plan = argument;
	struct result *result = result_of_run;
	size_t count = plan->count / plan->batch * plan->batch;
	size_t slow = (SLOW_KEYS + plan->batch - 1) / plan->batch * plan->batch;
	struct job job = {.keys = keys_create(count + slow, 1), .batch = plan->batch};
	tw_duration source_time = SOURCE_TIME;
	bool many = plan->is_many;

	if (tw_cache_create(&job.cache, TW_HOUR, NULL) != TW_OK)
		process_fail("no cache");
	/* The first round is not timed, so that memory and tables exist. */
	(void)rate(&job, count, NULL, many ? set_many : set_each);
	(void)rate(&job, count, NULL, many ? delete_many : delete_each);
	result->set = rate(&job, count, NULL, many ? set_many : set_each);
	result->get = rate(&job, count, NULL, many ? get_many : get_each);
	result->delete = rate(&job, count, NULL, many ? delete_many : delete_each);
	result->load = rate(&job, count, NULL, many ? take_many : take_each);
	(void)rate(&job, count, NULL, many ? delete_many : delete_each);
	result->slow = rate(&job, slow, &source_time, many ? take_many : take_each);
	tw_cache_destroy(job.cache);
	free((void *)job.keys);
}

int main(int argc, char **argv)
{
	int64_t count = 1000000;
	int64_t batch = 100;
	int64_t runs = 5;
	const char *csv_path = NULL;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &count, 1000, 100000000, .help = "keys"},
		{"batch", OPTION_COUNT, &batch, 1, BATCH_MOST, .help = "keys in a call"},
		FIGURES_OPTIONS(&runs, 1, &csv_path),
		{0},
	};
	struct figures *columns[2];
	struct result result;
	struct csv csv;

	options_parse(argc, argv, "What is gained by calls for many keys?", options);
	csv = csv_open(csv_path, "contender,run,set,get,delete,load,slow");
	machine_print();
	columns[0] = figures_create("many");
	columns[1] = figures_create("one by one");
	for (int64_t number = 1; number <= runs; number++)
		for (int i = 0; i < 2; i++) {
			struct plan plan = {(size_t)count, (size_t)batch, i == 0};

			figures_run(columns[i], run, &plan, &result, sizeof(result));
			csv_row(csv, "%s,%d,%.0f,%.0f,%.0f,%.0f,%.0f", figures_title(columns[i]),
				(int)number, result.set, result.get, result.delete, result.load,
				result.slow);
		}
	figures_print_head("keys a second", columns);
	figures_print_rate("set", columns, FIGURE(struct result, set));
	figures_print_rate("get", columns, FIGURE(struct result, get));
	figures_print_rate("delete", columns, FIGURE(struct result, delete));
	figures_print_rate("load, values at hand", columns, FIGURE(struct result, load));
	figures_print_rate("load, source of 100 us", columns, FIGURE(struct result, slow));
	figures_destroy(columns[0]);
	figures_destroy(columns[1]);
	csv_close(csv);
	return 0;
}
