/* SPDX-License-Identifier: MIT */
/*
 * A read-through cache in front of a slow source: how many loads does it save, and are all its
 * answers correct?
 *
 * Threads take keys by Zipf's law with exponent 0.99. A missing key is loaded from a source that
 * sleeps, one load a key at a time. Values expire; a value that is asked for in the second half of
 * its lifetime is refreshed before its deadline, on the wheel's pool (--refresh). The cache has
 * room for a tenth of the keys. The source lacks some keys. Now and then a thread changes a key in
 * the source and deletes it from the cache, as programs do.
 *
 * At the end the program verifies that every value taken was its key's, not older than the last
 * change before the take, and not past its deadline; that no key had two loads at a time; that the
 * cache's counts agree with the threads' and the source's; and that every entry that was added was
 * removed once.
 */
#include "support/format.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/percentiles.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"
#include "support/zipf.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZIPF_EXPONENT 0.99
#define MOST_THREADS 256

enum {
	ABSENT_EVERY = 97,   /* the source lacks one key in 97 */
	CHANGE_EVERY = 5000, /* a change follows one take in 5000 */
	LOADERS = 16,
	REFRESHING_MOST = 4096
};

struct settings {
	int64_t keys;
	int64_t threads;
	tw_duration seconds;
	tw_duration source_time;
	tw_duration expire;
	tw_duration refresh; /* 0 if values are not refreshed */
	int policy;
	bool quiet;
};

/* A row of the source. */
struct row {
	_Atomic uint32_t version; /* from 1 on */
	_Atomic uint32_t settled; /* changes up to this one have been deleted from the cache */
	_Atomic uint32_t loading; /* running loads of it */
	/* The deadline of the last value taken; 0 after its eviction or deletion. */
	_Atomic tw_duration deadline;
};

struct value {
	uint64_t number;
	uint64_t version;
	tw_duration loaded;  /* when its load ended, on the wheel's clock */
	uint64_t filling[5]; /* number, version and time, scrambled */
};

struct job {
	/* Constant once the threads run. */
	struct settings settings;
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	const struct zipf *zipf;
	struct row *rows;
	int64_t start;
	/* Any thread may write these. */
	_Atomic bool ended;
	_Atomic uint64_t loads;
	_Atomic uint64_t lacks; /* loads of keys that the source lacks */
	_Atomic uint64_t changes;
	_Atomic uint64_t removals; /* removed entries */
	_Atomic uint64_t late;     /* takes that had to load an expired value */
	struct taker *takers;
	/* These must stay 0. */
	_Atomic uint64_t wrong_values;
	_Atomic uint64_t stale_values;
	_Atomic uint64_t expired_values;
	_Atomic uint64_t double_loads;
	_Atomic uint64_t wrong_answers;
};

struct taker {
	struct job *job;
	pthread_t thread;
	struct generator generator;
	uint64_t takes;
	struct percentiles *hits;  /* times of takes that waited for no load */
	struct percentiles *waits; /* times of takes that did */
};

/* counts the loads that this thread has run */
static _Thread_local uint64_t loads_here;

static void count(_Atomic uint64_t *counter)
{
	/* relaxed: read after the join, or for the line only */
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static uint64_t counted(const _Atomic uint64_t *counter)
{
	/* relaxed: read after the join, or for the line only */
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* --- The source ------------------------------------------------------------------------------- */

static struct value value_of(uint64_t number, uint64_t version, tw_duration loaded)
{
	struct value value = {number, version, loaded, {0}};

	for (uint64_t i = 0; i < 5; i++)
		value.filling[i] = scramble(number * 31 + version * 7 + (uint64_t)loaded + i);
	return value;
}

static bool source_lacks(uint64_t number)
{
	return number % ABSENT_EVERY == ABSENT_EVERY - 1;
}

static enum tw_status load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct job *job = argument;
	struct value value;
	struct row *row;
	uint64_t number, version;

	memcpy(&number, key, key_size);
	row = &job->rows[number];
	loads_here++;
	count(&job->loads);
	/* relaxed: a check; the cache orders the loads */
	if (atomic_fetch_add_explicit(&row->loading, 1, memory_order_relaxed) != 0)
		count(&job->double_loads);
	/* seq_cst: a change that this misses deletes later; pairs with change() */
	version = atomic_load_explicit(&row->version, memory_order_seq_cst);
	stopwatch_sleep(job->settings.source_time);
	/* relaxed: a check, as above */
	atomic_fetch_sub_explicit(&row->loading, 1, memory_order_relaxed);
	if (source_lacks(number)) {
		count(&job->lacks);
		return TW_NOT_FOUND;
	}
	value = value_of(number, version, tw_now(job->wheel));
	return tw_cache_load_give(loading,
				  &(struct tw_cache_value){.data = &value, .size = sizeof(value)});
}

static void change(struct job *job, uint64_t number)
{
	struct row *row = &job->rows[number];
	/* seq_cst: before the delete; pairs with load() */
	uint32_t version = atomic_fetch_add_explicit(&row->version, 1, memory_order_seq_cst) + 1;

	tw_cache_delete(job->cache, &number, sizeof(number));
	/* release: after the delete; pairs with take(). Two concurrent changes may leave the
	 * smaller version here, which only weakens the check. */
	atomic_store_explicit(&row->settled, version, memory_order_release);
	count(&job->changes);
}

/* --- Takers ----------------------------------------------------------------------------------- */

/* Checks that the value is as new as the changes that were settled when the take began, also where
 * the take joined a load that had begun before them. */
static void judge(struct job *job, uint64_t number, const struct tw_cache_entry *entry,
		  uint32_t oldest, tw_duration asked)
{
	struct value value, should;
	size_t size;
	const void *bytes = tw_cache_entry_value(entry, &size);

	if (size != sizeof(value)) {
		count(&job->wrong_values);
		return;
	}
	memcpy(&value, bytes, sizeof(value));
	should = value_of(number, value.version, value.loaded);
	if (memcmp(&value, &should, sizeof(value)) != 0)
		count(&job->wrong_values);
	if (value.version < oldest)
		count(&job->stale_values);
	if (tw_cache_entry_deadline(entry) <= asked)
		count(&job->expired_values);
}

/* Returns the time of the load of this entry, which may be NULL. */
static tw_duration loaded_at(const struct tw_cache_entry *entry)
{
	struct value value = {.loaded = 0};

	if (entry)
		memcpy(&value, tw_cache_entry_value(entry, NULL), sizeof(value));
	return value.loaded;
}

static void note_time(struct taker *taker, const struct tw_cache_entry *entry, tw_duration asked,
		      bool has_loaded)
{
	tw_duration took = tw_now(taker->job->wheel) - asked;
	/* The take may have joined another thread's load. */
	bool has_waited = loaded_at(entry) > asked && took >= taker->job->settings.source_time / 2;

	percentiles_record(has_loaded || has_waited ? taker->waits : taker->hits, took);
}

/* Notes the deadline of a taken value, and counts a take that had to load an expired one. */
static void note_deadline(struct job *job, struct row *row, const struct tw_cache_entry *entry,
			  tw_duration asked, bool has_loaded)
{
	/* relaxed: a statistic */
	tw_duration before = atomic_exchange_explicit(
		&row->deadline, tw_cache_entry_deadline(entry), memory_order_relaxed);

	if (has_loaded && before > 0 && before <= asked)
		count(&job->late);
}

static void take(struct taker *taker)
{
	struct job *job = taker->job;
	uint64_t number = zipf_draw(job->zipf, &taker->generator);
	struct row *row = &job->rows[number];
	/* acquire: pairs with change() */
	uint32_t oldest = atomic_load_explicit(&row->settled, memory_order_acquire);
	const struct tw_cache_entry *entry;
	uint64_t loads_before = loads_here;
	tw_duration asked = tw_now(job->wheel);
	enum tw_status status =
		tw_cache_take(job->cache, &number, sizeof(number), load, job, TW_FOREVER, &entry);
	bool has_loaded = loads_here > loads_before;

	taker->takes++;
	note_time(taker, entry, asked, has_loaded);
	if (status != (source_lacks(number) ? TW_NOT_FOUND : TW_OK))
		count(&job->wrong_answers);
	if (status == TW_OK) {
		judge(job, number, entry, oldest, asked);
		note_deadline(job, row, entry, asked, has_loaded);
	}
	tw_cache_entry_release(entry);
	if (generator_range(&taker->generator, 0, CHANGE_EVERY) == 0)
		change(job, number);
}

static void *taker_run(void *argument)
{
	struct taker *taker = argument;

	/* relaxed: an end flag, orders nothing */
	while (!atomic_load_explicit(&taker->job->ended, memory_order_relaxed))
		take(taker);
	return NULL;
}

static struct taker *takers_start(struct job *job)
{
	struct taker *takers = process_allocate((size_t)job->settings.threads * sizeof(*takers));

	for (int64_t i = 0; i < job->settings.threads; i++) {
		takers[i].job = job;
		takers[i].generator.state = scramble((uint64_t)i + 1);
		takers[i].hits = percentiles_create();
		takers[i].waits = percentiles_create();
		if (pthread_create(&takers[i].thread, NULL, taker_run, &takers[i]) != 0)
			process_fail("thread %" PRId64 " could not be started", i + 1);
	}
	return takers;
}

/* --- Watching --------------------------------------------------------------------------------- */

static void show_head(const struct job *job)
{
	if (!job->settings.quiet)
		printf("%8s %11s %9s %8s %9s %9s %9s %9s\n", "", "takes", "takes/s", "hits",
		       "loads", "refresh", "late", "hit p99.9");
}

/* Returns the p99.9 of all takers so far. */
static tw_duration longest_hits(const struct job *job)
{
	struct percentiles *hits = percentiles_create();
	tw_duration longest;

	for (int64_t i = 0; i < job->settings.threads; i++)
		percentiles_merge(hits, job->takers[i].hits);
	longest = percentiles_at(hits, 99.9);
	percentiles_destroy(hits);
	return longest;
}

/* The line fits into 80 columns. */
static void show(struct job *job, struct progress *progress, uint64_t takes_before,
		 int64_t interval)
{
	struct tw_cache_stats stats;
	uint64_t takes;
	double hit_ratio;

	tw_cache_get_stats(job->cache, &stats);
	takes = stats.hits + stats.misses + stats.absent;
	hit_ratio = takes > 0 ? 100 * (double)(stats.hits + stats.absent) / (double)takes : 0;
	progress_show(progress, "%6.1f s %11s %9s %7.2f%% %9s %9s %9s %9s",
		      seconds_of(stopwatch_now() - job->start),
		      format_count((int64_t)takes).characters,
		      format_count((int64_t)((double)(takes - takes_before) / seconds_of(interval)))
			      .characters,
		      hit_ratio, format_count((int64_t)stats.loads).characters,
		      format_count((int64_t)stats.refreshes).characters,
		      format_count((int64_t)counted(&job->late)).characters,
		      format_duration(longest_hits(job)).characters);
}

static uint64_t takes_so_far(struct job *job)
{
	struct tw_cache_stats stats;

	tw_cache_get_stats(job->cache, &stats);
	return stats.hits + stats.misses + stats.absent;
}

static void watch(struct job *job)
{
	struct progress progress = progress_start(stdout, job->settings.quiet);
	int64_t shown = job->start;
	uint64_t takes = 0;

	progress.next += progress.interval;
	show_head(job);
	while (stopwatch_now() - job->start < job->settings.seconds) {
		stopwatch_sleep(20 * TW_MILLISECOND);
		if (progress_is_due(&progress)) {
			show(job, &progress, takes, stopwatch_now() - shown);
			shown = stopwatch_now();
			takes = takes_so_far(job);
		}
	}
	progress_wipe(&progress);
}

/* --- The verdict ------------------------------------------------------------------------------ */

static bool check(const char *what, uint64_t found, uint64_t expected)
{
	if (found != expected)
		printf("WRONG: %s: %" PRIu64 ", should be %" PRIu64 "\n", what, found, expected);
	return found == expected;
}

static bool verify_counts(struct job *job, uint64_t takes, const struct tw_cache_stats *stats)
{
	uint64_t limit = (uint64_t)job->settings.keys / 10;
	uint64_t removed = 0;
	bool right = true;

	for (int cause = 0; cause < TW_CACHE_CAUSES; cause++)
		removed += stats->removed[cause];
	right &= check("hits, misses and absences", stats->hits + stats->misses + stats->absent,
		       takes);
	right &= check("loads", stats->loads, counted(&job->loads));
	right &= check("loads that gave nothing", stats->load_errors, counted(&job->lacks));
	right &= check("misses that loaded or waited",
		       stats->loads - stats->refreshes + stats->load_waits, stats->misses);
	right &= check("entries and removals", stats->entries + removed, stats->inserts);
	right &= check("entries over the limit",
		       stats->entries > limit ? stats->entries - limit : 0, 0);
	return right;
}

static bool verify_values(struct job *job)
{
	bool right = true;

	right &= check("values of another key or torn", counted(&job->wrong_values), 0);
	right &= check("values older than the last change", counted(&job->stale_values), 0);
	right &= check("values past their deadline", counted(&job->expired_values), 0);
	right &= check("loads of a key that was being loaded", counted(&job->double_loads), 0);
	right &= check("takes with a wrong answer", counted(&job->wrong_answers), 0);
	return right;
}

static void print_times(const char *what, const struct percentiles *times)
{
	printf("%s: p50 %s, p90 %s, p99 %s, p99.9 %s\n", what,
	       format_duration(percentiles_at(times, 50)).characters,
	       format_duration(percentiles_at(times, 90)).characters,
	       format_duration(percentiles_at(times, 99)).characters,
	       format_duration(percentiles_at(times, 99.9)).characters);
}

static void print_summary(struct job *job, const struct percentiles *hits,
			  const struct percentiles *waits, uint64_t takes,
			  const struct tw_cache_stats *stats)
{
	double seconds = seconds_of(stopwatch_now() - job->start);
	uint64_t saved = takes - (stats->loads - stats->refreshes);

	printf("%s takes in %.1f s, %s a second: hit ratio %.2f %%\n",
	       format_count((int64_t)takes).characters, seconds,
	       format_count((int64_t)((double)takes / seconds)).characters,
	       100 * (double)(stats->hits + stats->absent) / (double)takes);
	printf("%s of them waited for another's load\n",
	       format_count((int64_t)stats->load_waits).characters);
	printf("%s loads of %s, %s loads saved: %s of waiting\n",
	       format_count((int64_t)stats->loads).characters,
	       format_duration(job->settings.source_time).characters,
	       format_count((int64_t)saved).characters,
	       format_duration((int64_t)saved * job->settings.source_time).characters);
	printf("%s of the loads were ahead of a deadline; %s takes came after one, and loaded\n",
	       format_count((int64_t)stats->refreshes).characters,
	       format_count((int64_t)counted(&job->late)).characters);
	print_times("a take of what is there", hits);
	print_times("a take that waits for a load", waits);
	printf("left: %s expired, %s to make room, %s deleted after %s changes\n",
	       format_count((int64_t)stats->removed[TW_CAUSE_EXPIRED]).characters,
	       format_count((int64_t)stats->removed[TW_CAUSE_SIZE]).characters,
	       format_count((int64_t)stats->removed[TW_CAUSE_EXPLICIT]).characters,
	       format_count((int64_t)counted(&job->changes)).characters);
}

/* --- The run ---------------------------------------------------------------------------------- */

static void execute_nothing(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

static void on_remove(void *context, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	struct job *job = context;
	uint64_t number;

	count(&job->removals);
	if (cause != TW_CAUSE_SIZE && cause != TW_CAUSE_EXPLICIT)
		return;
	memcpy(&number, tw_cache_entry_key(entry, NULL), sizeof(number));
	/* relaxed: a statistic */
	atomic_store_explicit(&job->rows[number].deadline, 0, memory_order_relaxed);
}

static void open_cache(struct job *job)
{
	struct tw_options wheel_options = {.max_workers = 2 + LOADERS};
	struct tw_cache_options options = {
		.context = job,
		.max_entries = (uint64_t)job->settings.keys / 10,
		.policy = job->settings.policy ? TW_POLICY_LRU : TW_POLICY_S3FIFO,
		.on_remove = on_remove,
		.load = load,
		.load_context = job,
		.loaders = LOADERS,
		.refresh_after = job->settings.refresh,
		.max_refreshing = REFRESHING_MOST,
	};

	if (tw_create(&job->wheel, TW_MILLISECOND, 512, execute_nothing, &wheel_options) != TW_OK)
		process_fail("no wheel");
	options.wheel = job->wheel;
	if (tw_cache_create(&job->cache, job->settings.expire, &options) != TW_OK)
		process_fail("no cache");
}

/* Waits for the takers. Returns the number of takes. */
static uint64_t takers_end(struct job *job, struct percentiles *hits, struct percentiles *waits)
{
	struct taker *takers = job->takers;
	uint64_t takes = 0;

	/* relaxed: an end flag; the joins follow */
	atomic_store_explicit(&job->ended, true, memory_order_relaxed);
	for (int64_t i = 0; i < job->settings.threads; i++) {
		pthread_join(takers[i].thread, NULL);
		takes += takers[i].takes;
		percentiles_merge(hits, takers[i].hits);
		percentiles_merge(waits, takers[i].waits);
		percentiles_destroy(takers[i].hits);
		percentiles_destroy(takers[i].waits);
	}
	free(takers);
	return takes;
}

static bool run(struct job *job)
{
	struct percentiles *hits = percentiles_create();
	struct percentiles *waits = percentiles_create();
	struct tw_cache_stats stats;
	uint64_t takes;
	bool right;

	open_cache(job);
	job->start = stopwatch_now();
	job->takers = takers_start(job);
	watch(job);
	takes = takers_end(job, hits, waits);
	tw_cache_flush(job->cache);
	tw_cache_get_stats(job->cache, &stats);
	print_summary(job, hits, waits, takes, &stats);
	right = verify_counts(job, takes, &stats);
	tw_cache_destroy(job->cache);
	right &= check("entries that left", counted(&job->removals), stats.inserts);
	right &= verify_values(job);
	tw_destroy(job->wheel);
	percentiles_destroy(hits);
	percentiles_destroy(waits);
	return right;
}

static void parse(int argc, char **argv, struct settings *settings)
{
	const struct program_option options[] = {
		{"keys", OPTION_COUNT, &settings->keys, 100, 100000000,
		 .help = "keys in the source; a tenth of them fits into the cache"},
		{"threads", OPTION_COUNT, &settings->threads, 1, MOST_THREADS,
		 .help = "threads that take keys"},
		{"seconds", OPTION_SECONDS, &settings->seconds, 1, TW_HOUR, .help = "time to run"},
		{"source", OPTION_DURATION, &settings->source_time, 0, TW_MINUTE,
		 .help = "time of a load"},
		{"expire", OPTION_DURATION, &settings->expire, 1, TW_HOUR,
		 .help = "lifetime of an entry"},
		{"refresh", OPTION_DURATION, &settings->refresh, 0, TW_HOUR,
		 .help = "age at which an entry is refreshed, 0 for never"},
		{"policy", OPTION_CHOICE, &settings->policy, .choices = "s3fifo,lru",
		 .help = "policy of eviction"},
		{"quiet", OPTION_FLAG, &settings->quiet, .help = "no progress line"},
		{0},
	};

	options_parse(argc, argv, "How many loads does a read-through cache save?", options);
}

int main(int argc, char **argv)
{
	static struct job job = {
		.settings = {.keys = 100000,
			     .threads = 32,
			     .seconds = 10 * TW_SECOND,
			     .source_time = TW_MILLISECOND,
			     .expire = 2 * TW_SECOND,
			     .refresh = TW_SECOND},
	};
	struct zipf *zipf;
	bool right;

	parse(argc, argv, &job.settings);
	machine_print();
	printf("%s keys, %s fit into the cache; a load takes %s; %" PRId64 " threads\n",
	       format_count(job.settings.keys).characters,
	       format_count(job.settings.keys / 10).characters,
	       format_duration(job.settings.source_time).characters, job.settings.threads);
	zipf = zipf_create((size_t)job.settings.keys, ZIPF_EXPONENT);
	job.zipf = zipf;
	job.rows = process_allocate((size_t)job.settings.keys * sizeof(*job.rows));
	for (int64_t i = 0; i < job.settings.keys; i++)
		atomic_init(&job.rows[i].version, 1);
	right = run(&job);
	free(job.rows);
	zipf_destroy(zipf);
	printf("%s\n",
	       right ? "verified: each value was its key's, current and alive; all counts agree"
		     : "NOT VERIFIED");
	return right ? 0 : 1;
}
