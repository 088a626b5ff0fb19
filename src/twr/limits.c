/* SPDX-License-Identifier: MIT */
#include "limits.h"

#include <string.h>

enum tw_status limits_read(struct tw_redis *redis, struct limit_figures *limits)
{
	struct tw_redis_group_limits group = {0};
	struct tw_redis_limits whole = {0};
	struct tw_redis_stats stats = {0};
	enum tw_status status;

	if (*limits->group) {
		status = tw_redis_get_group_limits(redis, limits->group, &group);
		if (status == TW_NOT_FOUND)
			status = TW_OK;
	} else {
		status = tw_redis_get_limits(redis, &whole);
		if (status == TW_OK)
			status = tw_redis_get_stats(redis, &stats);
	}
	limits->weight = group.weight;
	limits->running = group.running + whole.running;
	limits->per_second = group.per_second + whole.per_second;
	limits->burst = group.burst;
	limits->paused = group.paused || stats.paused;
	return status;
}

enum tw_status limits_write(struct tw_redis *redis, const struct limit_figures *limits)
{
	const struct tw_redis_group_limits group = {.paused = limits->paused,
						    .weight = (unsigned)limits->weight,
						    .running = (unsigned)limits->running,
						    .per_second = (unsigned)limits->per_second,
						    .burst = (unsigned)limits->burst};
	const struct tw_redis_limits whole = {.running = group.running,
					      .per_second = group.per_second};
	enum tw_status status;

	if (*limits->group)
		return tw_redis_set_group_limits(redis, limits->group, &group);
	if (limits->weight || limits->burst)
		return TW_INVALID;
	status = tw_redis_set_limits(redis, &whole);
	if (status != TW_OK)
		return status;
	return tw_redis_pause(redis, limits->paused);
}
