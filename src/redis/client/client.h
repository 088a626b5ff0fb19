/* SPDX-License-Identifier: MIT */
/* client is what is behind struct tw_redis, for the files with its calls and for the worker. */
#ifndef REDIS_CLIENT_CLIENT_H
#define REDIS_CLIENT_CLIENT_H

#include <stdbool.h>

#include <timingwheel/redis.h>

#include "call.h"
#include "redis/wire/eval.h"
#include "redis/wire/space.h"

/* A handle is a namespace and the way to it. It is constant after opening. */
struct tw_redis {
	struct space space;
	struct access *access;
};

/* Returns milliseconds, rounded up, so that nothing is early. A delay ≤ 0 is 0. */
int64_t delay_to_ms(tw_duration delay);

/* Notes why an argument is invalid, unless the handle is NULL. Returns TW_INVALID. */
enum tw_status redis_refuse(struct tw_redis *redis, const char *text);
/* Returns the key's shard, or SHARD_REFUSED if there is no handle, or it is no key. */
unsigned key_shard(const struct tw_redis *redis, const void *key, size_t key_size);
/* Reads a call's reply into `result`. Of a status other than TW_OK the call may get the text. */
typedef enum tw_status reply_read(void *result, struct call *call);
/* Takes the reply away. *result becomes it. */
reply_read reply_take;
/*
 * Runs the script for one shard, with an argument for each letter of `kinds`: s a text, m one that
 * begins what has an answer of its own, k bytes and their size_t size, i an int64_t. `read`, which
 * may be NULL, reads the reply. Returns TW_INVALID for SHARD_REFUSED, or the call's status.
 */
enum tw_status redis_ask(struct tw_redis *redis, const struct script *script, unsigned shard,
			 reply_read *read, void *result, const char *kinds, ...);
/* Reads the replies of all shards into `result`. One without a reply has failed. */
typedef enum tw_status replies_read(void *result, const struct eval *evals, unsigned shards);
/* Returns TW_EXISTS if a shard answers -1. `result` may be NULL. */
replies_read answers_check;
/* Runs the script for every shard, with the arguments up to NULL; `arguments` may be NULL. The
 * replies are read also if a shard has failed. */
enum tw_status shards_run(struct tw_redis *redis, const struct script *script,
			  const char *const *arguments, replies_read *read, void *result);
/* A scan goes through a hash of a shard by pages. All but the place begin as 0. */
struct scan {
	int place;       /* the hash's among a script's keys */
	char cursor[24]; /* Redis's own; "" at the beginning, "0" there and at the end */
	int64_t entries; /* the entries that the next page looks at, by what the last one did */
};
/* Asks for the next page: the reply has fields and values as its third element, and the caller
 * frees it. Returns a call's status, also TW_REDIS_FAILED if the server repeats itself. */
enum tw_status scan_page(struct tw_redis *redis, unsigned shard, struct scan *scan,
			 redisReply **reply);
/* Returns whether the last page was the hash's last. */
bool scan_is_over(const struct scan *scan);

#endif
