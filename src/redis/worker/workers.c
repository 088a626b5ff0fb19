/* SPDX-License-Identifier: MIT */
/* The workers of a namespace, by what each has told of itself (worker_present.c). */
#include <inttypes.h>
#include <stdio.h>

#include "redis/client/client.h"
#include "worker_present.h"

/* False: something else has written it. */
static bool worker_read(struct tw_redis_worker_info *worker, const char *text, int64_t good_ms)
{
	int64_t up_ms;

	*worker = (struct tw_redis_worker_info){0};
	if (sscanf(text,
		   "%255s %18" SCNd64 " %18" SCNu64 " %18" SCNu64 " %18" SCNu64 " %18" SCNu64
		   " %18" SCNu64,
		   worker->name, &up_ms, &worker->running, &worker->held, &worker->done,
		   &worker->retried, &worker->dead) != 7 ||
	    up_ms < 0 || up_ms > TW_REDIS_DELAY_MAX / TW_MILLISECOND ||
	    good_ms > PRESENT_TIME / TW_MILLISECOND)
		return false;
	worker->up = up_ms * TW_MILLISECOND;
	worker->told = PRESENT_TIME - good_ms * TW_MILLISECOND;
	return true;
}

static size_t workers_read(const struct eval *eval, struct tw_redis_worker_info *workers,
			   size_t room)
{
	const redisReply *reply = eval->reply;
	struct tw_redis_worker_info worker;
	size_t count = 0;

	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		if (!worker_read(&worker, reply->element[i + 1]->str, reply->element[i]->integer))
			continue;
		if (count < room)
			workers[count] = worker;
		count++;
	}
	return count;
}

enum tw_status tw_redis_get_workers(struct tw_redis *redis, struct tw_redis_worker_info *workers,
				    size_t room, size_t *count)
{
	struct call *call;
	enum tw_status status;

	if (!redis || !count || (!workers && room))
		return TW_INVALID;
	call = call_begin(&redis->access->calls);
	if (!call)
		return TW_NO_MEMORY;
	eval_begin(&call->eval, &script_workers, &redis->space, SHARD_NONE);
	status = call_ask(redis, call);
	if (status == TW_OK)
		*count = workers_read(&call->eval, workers, room);
	return call_end(&redis->access->calls, call, status);
}
