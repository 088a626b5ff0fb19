/* SPDX-License-Identifier: MIT */
/*
 * This program includes all headers, in C or in C++, and makes each inline call. check_headers.sh
 * compiles it. WRONG is a call with a mistake.
 */
#include <timingwheel/cache.h>
#include <timingwheel/cron.h>
#include <timingwheel/redis.h>
#include <timingwheel/timingwheel.h>

int use_core(struct tw_wheel **wheel, struct tw_cache **cache, struct tw_cron **cron);
int use_redis(struct tw_redis **redis, struct tw_redis_task *task, struct tw_redis_error *error);
int use_lists(struct tw_redis *redis, tw_redis_each_fn *each, size_t *count);
int use_limits(struct tw_redis *redis, struct tw_redis_group_limits *limits);
int use_jobs(struct tw_redis *redis, struct tw_redis_batch **batch, enum tw_status *statuses);
int use_worker(struct tw_redis_worker **worker, struct tw_redis_options *redis_options,
	       struct tw_redis_worker_options *options, struct tw_redis_error *error);
int use_nothing(struct tw_cache *cache, struct tw_redis *redis);
int be_wrong(struct tw_wheel *wheel, struct tw_cache *cache, struct tw_redis *redis);

int use_core(struct tw_wheel **wheel, struct tw_cache **cache, struct tw_cron **cron)
{
	struct tw_stats stats;
	struct tw_cache_stats cache_stats;
	struct tw_cron_error error;

	return tw_create(wheel, TW_MILLISECOND, 512, NULL, NULL) == TW_OK &&
	       tw_get_stats(*wheel, &stats) == TW_OK &&
	       tw_cache_create(cache, TW_HOUR, NULL) == TW_OK &&
	       tw_cache_get_stats(*cache, &cache_stats) == TW_OK &&
	       tw_cron_create(cron, "@daily", NULL, &error) == TW_OK;
}

int use_redis(struct tw_redis **redis, struct tw_redis_task *task, struct tw_redis_error *error)
{
	struct tw_redis *beside;
	struct tw_redis_info infos[2];
	int64_t due_ms;

	for (int i = 0; i < 2; i++)
		infos[i].task = *task;
	tw_redis_last_error(*redis, error);
	return tw_redis_open(redis, NULL, error) == TW_OK &&
	       tw_redis_open_beside(*redis, "other", 1, &beside, error) == TW_OK &&
	       tw_redis_add(beside, task, &due_ms) == TW_OK &&
	       tw_redis_add_many(beside, task, 1, NULL) == TW_OK &&
	       tw_redis_dead_add(beside, infos) == TW_OK &&
	       tw_redis_restore(beside, infos, 2, NULL) == TW_OK;
}

int use_lists(struct tw_redis *redis, tw_redis_each_fn *each, size_t *count)
{
	struct tw_redis_stats stats;
	struct tw_redis_group_stats groups[4];
	struct tw_redis_worker_info workers[4];

	return tw_redis_get(redis, "key", 3, each, count) == TW_OK &&
	       tw_redis_each(redis, each, count) == TW_OK &&
	       tw_redis_dead_each(redis, each, count) == TW_OK &&
	       tw_redis_get_stats(redis, &stats) == TW_OK &&
	       tw_redis_get_groups(redis, groups, 4, count) == TW_OK &&
	       tw_redis_get_workers(redis, workers, 4, count) == TW_OK;
}

int use_limits(struct tw_redis *redis, struct tw_redis_group_limits *limits)
{
	struct tw_redis_limits all;

	return tw_redis_get_limits(redis, &all) == TW_OK &&
	       tw_redis_set_limits(redis, &all) == TW_OK &&
	       tw_redis_get_group_limits(redis, "group", limits) == TW_OK &&
	       tw_redis_set_group_limits(redis, "group", limits) == TW_OK;
}

int use_jobs(struct tw_redis *redis, struct tw_redis_batch **batch, enum tw_status *statuses)
{
	enum tw_status status = tw_redis_claim(redis, 0, 8, TW_MINUTE, batch, NULL);
	const struct tw_redis_job *jobs = tw_redis_batch_jobs(*batch);

	return status == TW_OK && tw_redis_extend(redis, jobs, 1, TW_MINUTE, statuses) == TW_OK &&
	       tw_redis_ack(redis, jobs, 1, statuses) == TW_OK &&
	       tw_redis_fail(redis, jobs, 1, 0, "why", statuses) == TW_OK &&
	       tw_redis_release(redis, jobs, 1, statuses) == TW_OK;
}

int use_worker(struct tw_redis_worker **worker, struct tw_redis_options *redis_options,
	       struct tw_redis_worker_options *options, struct tw_redis_error *error)
{
	struct tw_redis_worker_stats stats;
	struct tw_redis_host_stats hosts[2];
	size_t count;

	return tw_redis_worker_start(worker, redis_options, options, error) == TW_OK &&
	       tw_redis_worker_get_stats(*worker, &stats) == TW_OK &&
	       tw_redis_worker_get_source_stats(*worker, "other", &stats) == TW_OK &&
	       tw_redis_worker_get_hosts(*worker, hosts, 2, &count) == TW_OK &&
	       tw_redis_worker_last_error(*worker, error) == TW_OK;
}

/* NULL is allowed where nothing is read or written. */
int use_nothing(struct tw_cache *cache, struct tw_redis *redis)
{
	size_t count;

	return tw_cache_set(cache, "key", 3, NULL, 0) == TW_OK &&
	       tw_cache_get(cache, "key", 3, NULL, 0, NULL) == TW_OK &&
	       tw_redis_add_many(redis, NULL, 0, NULL) == TW_OK &&
	       tw_redis_get_groups(redis, NULL, 0, &count) == TW_OK &&
	       tw_redis_ack(redis, NULL, 0, NULL) == TW_OK;
}

#ifdef WRONG
int be_wrong(struct tw_wheel *wheel, struct tw_cache *cache, struct tw_redis *redis)
{
	struct tw_redis_job job = {};
	char buffer[8];

	(void)cache;
	(void)redis;
	(void)job;
	(void)buffer;
	WRONG;
	return wheel != NULL;
}
#endif
