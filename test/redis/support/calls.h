/* SPDX-License-Identifier: MIT */
/* calls.h lists every call that reads a script's reply, with valid arguments. */
#ifndef REDIS_SUPPORT_CALLS_H
#define REDIS_SUPPORT_CALLS_H

#include <stddef.h>

#include <timingwheel/redis.h>

struct redis_call {
	const char *name;
	enum tw_status (*call)(struct tw_redis *redis);
	const char *fine; /* a reply that ends it with TW_OK; NULL for a call of several steps */
};

extern const struct redis_call redis_calls[];
extern const size_t redis_call_count;

#endif
