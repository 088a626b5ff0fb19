/* SPDX-License-Identifier: MIT */
/*
 * worker_counts.c is the counts of all runs. The main thread shows a copy of them at the end of
 * each turn.
 */

#include "worker.h"

#include <string.h>

#include "base/clock.h"

static const tw_duration bounds[] = {
	1 * TW_MILLISECOND,   2500 * TW_MICROSECOND, 5 * TW_MILLISECOND,
	10 * TW_MILLISECOND,  25 * TW_MILLISECOND,   50 * TW_MILLISECOND,
	100 * TW_MILLISECOND, 250 * TW_MILLISECOND,  500 * TW_MILLISECOND,
	1 * TW_SECOND,        2500 * TW_MILLISECOND, 5 * TW_SECOND,
	10 * TW_SECOND,       30 * TW_SECOND,        1 * TW_MINUTE,
	2 * TW_MINUTE,        5 * TW_MINUTE,         TW_FOREVER,
};
_Static_assert(sizeof(bounds) / sizeof(bounds[0]) == TW_REDIS_BUCKETS, "a bound for each bucket");

tw_duration tw_redis_bucket_bound(unsigned bucket)
{
	return bucket < TW_REDIS_BUCKETS ? bounds[bucket] : TW_FOREVER;
}

static void redis_histogram_record(struct tw_redis_histogram *histogram, tw_duration time)
{
	unsigned bucket = 0;

	while (time > bounds[bucket])
		bucket++;
	histogram->counts[bucket]++;
	histogram->total_us += (uint64_t)(time / TW_MICROSECOND);
}

void worker_count_run(const struct run *run)
{
	struct tw_redis_worker_stats *stats = &run->shard->source->stats;

	redis_histogram_record(&stats->lateness, run->job->lateness);
	redis_histogram_record(&stats->duration, run->took);
}

static void histogram_sum(struct tw_redis_histogram *sum, const struct tw_redis_histogram *more)
{
	for (unsigned i = 0; i < TW_REDIS_BUCKETS; i++)
		sum->counts[i] += more->counts[i];
	sum->total_us += more->total_us;
}

static void stats_sum(struct tw_redis_worker_stats *sum, const struct tw_redis_worker_stats *more)
{
#define COUNT_ADD(field, type, help) sum->field += more->field;
	TW_REDIS_NAMESPACE_COUNTS(COUNT_ADD)
#undef COUNT_ADD
	histogram_sum(&sum->lateness, &more->lateness);
	histogram_sum(&sum->duration, &more->duration);
}

void worker_counts_show(struct tw_redis_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->shown = worker->stats;
	for (size_t i = 0; i < worker->source_count; i++) {
		struct source *source = &worker->sources[i];

		source->shown = source->stats;
		source->shown.running =
			atomic_load_explicit(&source->running, memory_order_relaxed);
	}
	worker->shown_at = clock_read_real(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&worker->lock);
}

enum tw_status tw_redis_worker_get_stats(struct tw_redis_worker *worker, const char *name_space,
					 struct tw_redis_worker_stats *stats)
{
	enum tw_status status = name_space ? TW_NOT_FOUND : TW_OK;

	if (!worker_is_own(worker) || !stats)
		return TW_INVALID;
	pthread_mutex_lock(&worker->lock);
	*stats = worker->shown;
	stats->error = worker->shown_error;
	stats->turned = clock_read_real(CLOCK_MONOTONIC) - worker->shown_at;
	for (size_t i = 0; i < worker->source_count; i++) {
		const struct source *source = &worker->sources[i];

		if (name_space && strcmp(name_space, source->redis->space.name) != 0)
			continue;
		stats_sum(stats, &source->shown);
		status = TW_OK;
	}
	pthread_mutex_unlock(&worker->lock);
	return status;
}
