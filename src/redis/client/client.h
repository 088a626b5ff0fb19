/* SPDX-License-Identifier: MIT */
/* client is what is behind struct tw_redis, for the files with its calls and for the worker. */
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

/* An access is connections and the calls over them. A handle shares it with those opened beside
 * it. */
struct access {
	/* These are constant after opening. */
	struct settings settings; /* the first handle's; their namespace is its own alone */
	bool cluster;             /* the server was one when it was opened */

	atomic_uint handles; /* the last one frees it */

	struct router router;
	struct calls calls;
};

/* A handle is a namespace and the way to it. It is constant after opening. */
struct tw_redis {
	struct space space;
	struct access *access;
};

/* Returns milliseconds, rounded up, so that nothing is early. A delay ≤ 0 is 0. */
int64_t delay_to_ms(tw_duration delay);

/*
 * Begins a call with its eval for the key's shard. Returns TW_OK, or TW_INVALID or TW_NO_MEMORY,
 * and then nothing is to be ended.
 */
enum tw_status call_enter(struct tw_redis *redis, const struct script *script, const void *key,
			  size_t key_size, struct call **call);
/* Reads the replies of all shards into `result`. One without a reply has failed. */
typedef enum tw_status replies_read(void *result, const struct eval *evals, unsigned shards);
/* Returns TW_EXISTS if a shard answers -1. `result` may be NULL. */
replies_read answers_check;
/* Runs the script for every shard, with the arguments up to NULL; `arguments` may be NULL. The
 * replies are read also if a shard has failed. */
enum tw_status shards_run(struct tw_redis *redis, const struct script *script,
			  const char *const *arguments, replies_read *read, void *result);
/* Writes the arguments by which list.lua returns one task. */
void task_ask(struct eval *eval, const void *key, size_t key_size);
/* Runs the call's eval. */
enum tw_status call_ask(struct tw_redis *redis, struct call *call);

#endif
