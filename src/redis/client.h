/* SPDX-License-Identifier: MIT */
/* What is behind struct tw_redis; shared by the files with its calls and by the worker. */
#ifndef TIMINGWHEEL_REDIS_CLIENT_H
#define TIMINGWHEEL_REDIS_CLIENT_H

#include <timingwheel/redis.h>

#include "call.h"
#include "command.h"
#include "router.h"
#include "settings.h"
#include "space.h"

struct tw_redis {
	/* Constant after opening. */
	struct settings settings;
	struct space space;

	bool one_server; /* no cluster: a command may be about many shards */

	struct router router; /* of the calls' leader; in a worker, of its main thread */
	struct calls calls;
};

/* Milliseconds, rounded up, so that nothing is early. A delay ≤ 0 is 0. */
int64_t delay_to_ms(tw_duration delay);

/*
 * Begins a call with its command for the key's shard. TW_OK; TW_INVALID: the arguments are bad;
 * TW_NO_MEMORY: then nothing is to be ended.
 */
enum tw_status call_enter(struct tw_redis *redis, const struct script *script, const void *key,
			  size_t key_size, struct call **call);
/* Runs its command. */
enum tw_status call_ask(struct tw_redis *redis, struct call *call);

#endif
