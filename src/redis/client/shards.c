/* SPDX-License-Identifier: MIT */
/* shards.c has the calls about a whole namespace: counts and deleting. A call
 * makes one round trip to each node. */
#include <string.h>

#include "client.h"

/* These are the places of two counts in the reply of count.lua. */
enum { COUNT_NOW = 0, COUNT_NEXT = 5 };

/* Adds up the counts of the shards, which count.lua has in this order. No reply (NULL) means that
 * they are missing. */
static enum tw_status stats_read(void *result, const struct eval *evals, unsigned shards)
{
	struct tw_redis_stats *stats = result;
	int64_t next_ms = 0;
	uint64_t *const sums[] = {NULL,         &stats->tasks, &stats->due,    &stats->started,
				  &stats->dead, NULL,          &stats->paused, &stats->recurring,
				  &stats->added};

	for (unsigned shard = 0; shard < shards; shard++) {
		const struct eval *eval = &evals[shard];

		stats->missing += !eval->reply;
		if (!eval->reply)
			continue;
		for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
			if (sums[i])
				*sums[i] += (uint64_t)eval_integer(eval, i, 0);
		stats->now_ms = eval_integer(eval, COUNT_NOW, 0);
		next_ms = eval_integer(eval, COUNT_NEXT, -1);
		if (next_ms >= 0 && (!stats->next_ms || next_ms < stats->next_ms))
			stats->next_ms = next_ms;
	}
	return TW_OK;
}

enum tw_status answers_check(void *result, const struct eval *evals, unsigned shards)
{
	(void)result;
	for (unsigned shard = 0; shard < shards; shard++) {
		int64_t answer = eval_integer(&evals[shard], 0, 0);

		if (answer < 0)
			return answer == -1 ? TW_EXISTS : TW_REDIS_FAILED;
	}
	return TW_OK;
}

enum tw_status shards_run(struct tw_redis *redis, const struct script *script,
			  const char *const *arguments, replies_read *read, void *result)
{
	unsigned shards = redis->space.shards;
	struct call *call = call_begin(redis->access, shards);
	struct eval *evals = call ? call->evals : NULL;
	enum tw_status status = TW_OK;
	enum tw_status answer;

	if (!call)
		return TW_NO_MEMORY;
	for (unsigned shard = 0; shard < shards; shard++) {
		eval_begin(&evals[shard], script, &redis->space, shard);
		for (size_t i = 0; arguments && arguments[i]; i++)
			eval_text(&evals[shard], arguments[i]);
	}
	call_run(call, evals, shards);
	answer = read(result, evals, shards);
	for (unsigned shard = 0; shard < shards && status == TW_OK; shard++)
		status = evals[shard].status;
	if (status == TW_OK && answer != TW_OK)
		status = error_set(&call->error, answer, "%s", tw_status_text(answer));
	return call_end(call, status);
}

enum tw_status tw_redis_get_stats(struct tw_redis *redis, struct tw_redis_stats *stats)
{
	if (!redis || !stats)
		return TW_INVALID;
	*stats = (struct tw_redis_stats){0};
	return shards_run(redis, &script_count, NULL, stats_read, stats);
}

/* Refuses a namespace that is in use. */
static enum tw_status check_unused(struct tw_redis *redis)
{
	struct tw_redis_stats stats;
	enum tw_status status = tw_redis_get_stats(redis, &stats);
	size_t workers = 0;

	if (status == TW_OK && (stats.tasks || stats.dead))
		return TW_EXISTS;
	if (status == TW_OK)
		status = tw_redis_get_workers(redis, NULL, 0, &workers);
	return status == TW_OK && workers ? TW_RUNNING : status;
}

enum tw_status tw_redis_drop_namespace(struct tw_redis *redis, bool force)
{
	const char *const arguments[] = {force ? "1" : "0", NULL};
	enum tw_status status = redis ? TW_OK : TW_INVALID;

	if (status == TW_OK && !force)
		status = check_unused(redis);
	if (status == TW_OK)
		status = shards_run(redis, &script_delete, arguments, answers_check, NULL);
	if (status == TW_EXISTS)
		access_note(redis->access, status, "the namespace has tasks or dead letters");
	if (status == TW_RUNNING)
		access_note(redis->access, status,
			    "a worker has served the namespace in the last 30 s");
	if (status != TW_OK)
		return status;
	/* The layout is deleted last, so that others agree on the shards until then. */
	return redis_ask(redis, &script_delete, SHARD_NONE, NULL, NULL, "s", "1");
}
