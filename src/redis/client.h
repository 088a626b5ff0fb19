/* SPDX-License-Identifier: MIT */
/* What is behind struct tw_redis; shared by the files with its calls and by the worker. */
#ifndef TIMINGWHEEL_REDIS_CLIENT_H
#define TIMINGWHEEL_REDIS_CLIENT_H

#include <pthread.h>

#include <timingwheel/redis.h>

#include "command.h"
#include "router.h"
#include "settings.h"
#include "space.h"

struct tw_redis {
	/* Constant after opening. */
	struct settings settings;
	struct space space;

	pthread_mutex_t lock; /* for all below, but in a worker, which has one to itself */
	struct router router;
	struct command command; /* for calls that need one */
	struct buffer record;   /* for adding */
};

/* Milliseconds, rounded up, so that nothing is early. A delay ≤ 0 is 0. */
int64_t delay_to_ms(tw_duration delay);

/*
 * Locks it and begins its command for the key's shard. False: the arguments are bad, and nothing is
 * locked. Then call_end runs the command, notes what went wrong and answers the status; the lock is
 * held until call_leave.
 */
bool call_enter(struct tw_redis *redis, const struct script *script, const void *key,
		size_t key_size);
enum tw_status call_run(struct tw_redis *redis);
void call_leave(struct tw_redis *redis);

#endif
