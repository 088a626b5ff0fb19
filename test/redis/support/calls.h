/* SPDX-License-Identifier: MIT */
/* Every call that reads a script's reply, with arguments that are fine. */
#ifndef REDIS_SUPPORT_CALLS_H
#define REDIS_SUPPORT_CALLS_H

#include <stddef.h>

#include <timingwheel/redis.h>

struct redis_call {
	const char *name;
	enum tw_status (*call)(struct tw_redis *redis);
	const char *
		fits; /* the kinds of replies in test_replies.c that are one to it, by their mark */
};

extern const struct redis_call redis_calls[];
extern const size_t redis_call_count;

#endif
