/* SPDX-License-Identifier: MIT */
/*
 * This program includes all headers, in C or in C++, and makes calls with buffers. check_headers.sh
 * compiles it. WRONG is a call with a mistake.
 */
#include <timingwheel/cache.h>
#include <timingwheel/cron.h>
#include <timingwheel/redis.h>
#include <timingwheel/timingwheel.h>

int use_buffers(struct tw_cache *cache, struct tw_redis *redis);
int use_nothing(struct tw_cache *cache, struct tw_redis *redis);
int be_wrong(struct tw_wheel *wheel, struct tw_cache *cache, struct tw_redis *redis);

/* Each buffer is as long as the call says. */
int use_buffers(struct tw_cache *cache, struct tw_redis *redis)
{
	struct tw_redis_group_stats groups[4];
	struct tw_redis_worker_info workers[4];
	char buffer[8];
	size_t count;

	return tw_cache_get(cache, "key", 3, buffer, sizeof(buffer), NULL) == TW_OK &&
	       tw_redis_get_groups(redis, groups, 4, &count) == TW_OK &&
	       tw_redis_get_workers(redis, workers, 4, &count) == TW_OK;
}

/* NULL is allowed where nothing is read or written. */
int use_nothing(struct tw_cache *cache, struct tw_redis *redis)
{
	size_t count;

	return tw_cache_set(cache, "key", 3, NULL, 0) == TW_OK &&
	       tw_cache_get(cache, "key", 3, NULL, 0, NULL) == TW_OK &&
	       tw_redis_add(redis, NULL, 0, NULL) == TW_OK &&
	       tw_redis_get_groups(redis, NULL, 0, &count) == TW_OK &&
	       tw_redis_finish(redis, NULL, 0, TW_REDIS_DONE, NULL, NULL) == TW_OK;
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
