/* SPDX-License-Identifier: MIT */
/* What is behind struct tw_redis; shared by the files with its calls and by the worker. */
#ifndef REDIS_CLIENT_CLIENT_H
#define REDIS_CLIENT_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <timingwheel/redis.h>

#include "call.h"
#include "redis/wire/eval.h"
#include "redis/wire/router.h"
#include "redis/wire/settings.h"
#include "redis/wire/space.h"

/* The connections, and the calls over them: of one handle, and of those opened beside it. */
struct access {
	/* Constant after opening. */
	struct settings settings; /* of the first handle; the namespace in them is its own alone */
	bool one_server;          /* no cluster: an eval may be about many shards */

	atomic_uint handles; /* freed with the last */

	struct router router; /* of the calls' leader; in a worker, of its main thread */
	struct calls calls;
};

/* A namespace, and the way to it. Constant after opening. */
struct tw_redis {
	struct space space;
	struct access *access;
};

/* Milliseconds, rounded up, so that nothing is early. A delay ≤ 0 is 0. */
int64_t delay_to_ms(tw_duration delay);

/*
 * Begins a call with its eval for the key's shard. TW_OK; TW_INVALID: the arguments are bad;
 * TW_NO_MEMORY: then nothing is to be ended.
 */
enum tw_status call_enter(struct tw_redis *redis, const struct script *script, const void *key,
			  size_t key_size, struct call **call);
/* Runs its eval. */
enum tw_status call_ask(struct tw_redis *redis, struct call *call);

#endif
