/* SPDX-License-Identifier: MIT */
/*
 * The counts of all runs are the main thread's, which shows a copy of them at the end of each turn.
 * The hosts' rows are too many to be copied: the main thread changes them under the lock.
 *
 * A row is never given to another host: a count that Prometheus has seen must not go back. Which
 * hosts have one is decided by which come first.
 */
#include "worker_counts.h"

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

void worker_counts_init(struct tw_redis_worker *worker)
{
	worker->host_count = 1;
	worker->shown_at = clock_read_real(CLOCK_MONOTONIC);
}

/* A negative time counts as 0. */
static void histogram_add(struct tw_redis_histogram *histogram, tw_duration time)
{
	unsigned bucket = 0;

	while (time > bounds[bucket])
		bucket++;
	histogram->counts[bucket]++;
	histogram->total_us += time > 0 ? (uint64_t)(time / TW_MICROSECOND) : 0;
}

/* The host's row, perhaps a new one; the first where it can have none. Lock held. */
static struct tw_redis_host_stats *host_row(struct tw_redis_worker *worker, const char *url)
{
	size_t size;
	const char *name = url_host(url, &size);
	struct tw_redis_host_stats *row;

	if (!size || size > TW_REDIS_HOST_NAME_MAX)
		return &worker->hosts[0];
	for (size_t i = 1; i < worker->host_count; i++) {
		row = &worker->hosts[i];
		if (!memcmp(row->name, name, size) && !row->name[size])
			return row;
	}
	if (worker->host_count > TW_REDIS_HOSTS_MAX)
		return &worker->hosts[0];
	row = &worker->hosts[worker->host_count++];
	memcpy(row->name, name, size);
	return row;
}

void worker_count_run(struct tw_redis_worker *worker, const struct run *run)
{
	int class = run->http_status / 100;

	histogram_add(&worker->stats.lateness, run->job->lateness);
	histogram_add(&worker->stats.duration, run->took);
	if (run->by_handler)
		return;
	if (class >= TW_REDIS_ANSWERS)
		class = TW_REDIS_ANSWERS - 1;
	pthread_mutex_lock(&worker->lock);
	host_row(worker, run->job->url)->answers[class]++;
	pthread_mutex_unlock(&worker->lock);
}

enum tw_status tw_redis_worker_get_stats(struct tw_redis_worker *worker,
					 struct tw_redis_worker_stats *stats)
{
	if (!worker || !stats)
		return TW_INVALID;
	pthread_mutex_lock(&worker->lock);
	*stats = worker->shown;
	stats->turned = clock_read_real(CLOCK_MONOTONIC) - worker->shown_at;
	pthread_mutex_unlock(&worker->lock);
	return TW_OK;
}

enum tw_status tw_redis_worker_get_hosts(struct tw_redis_worker *worker,
					 struct tw_redis_host_stats *hosts, size_t room,
					 size_t *count)
{
	if (!worker || !count || (!hosts && room))
		return TW_INVALID;
	pthread_mutex_lock(&worker->lock);
	*count = worker->host_count;
	for (size_t i = 0; i < room && i < worker->host_count; i++)
		hosts[i] = worker->hosts[i];
	pthread_mutex_unlock(&worker->lock);
	return TW_OK;
}
