/* SPDX-License-Identifier: MIT */
/*
 * This is a user of the installed library for Redis, in C or in C++. No server listens at that
 * port, which it reports. Both libraries know the name of that status.
 */
#include <stdio.h>
#include <string.h>

#include <timingwheel/redis.h>

static enum tw_status check(enum tw_status status)
{
	switch ((int)status) {
	case TW_OK:
		return TW_REDIS_FAILED;
	case TW_REDIS_UNREACHABLE:
		return TW_OK;
	default:
		return status == TW_REDIS_REFUSED ? TW_REDIS_UNFIT : status;
	}
}

int main(void)
{
	struct tw_redis_options options;
	struct tw_redis_error error;
	struct tw_redis *redis;
	enum tw_status status = TW_REDIS_STALE;

	memset(&options, 0, sizeof(options));
	options.url = "redis://127.0.0.1:1";
	status = tw_redis_open(&redis, &options, &error);
	printf("%s: %s: %s\n", tw_status_name(status), tw_status_text(status), error.text);
	return check(status) != TW_OK || strcmp(tw_status_name(status), "TW_REDIS_UNREACHABLE") ||
	       strcmp(tw_status_text(status), "Redis can't be reached") ||
	       strcmp(tw_status_name((enum tw_status)(TW_REDIS_STALE + 1)), "TW_UNKNOWN");
}
