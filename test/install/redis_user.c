/* SPDX-License-Identifier: MIT */
/* A user of the installed library for Redis. Nobody listens at that port: it can tell so. */
#include <stdio.h>

#include <timingwheel/redis.h>

int main(void)
{
	struct tw_redis *redis;
	struct tw_redis_error error;
	enum tw_status status;

	status = tw_redis_open(&redis, &(struct tw_redis_options){.url = "redis://127.0.0.1:1"},
			       &error);
	printf("%s: %s\n", tw_status_name(status), error.text);
	return status != TW_REDIS_UNREACHABLE;
}
