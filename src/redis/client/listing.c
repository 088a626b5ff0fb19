/* SPDX-License-Identifier: MIT */
/*
 * The calls that look: one task, all tasks, dead letters; and the one that puts a letter back that
 * comes from a listing. A listing goes through the shards
 * one page at a time and remembers where it was: tasks by due time, and how many of that time it
 * has seen; dead letters by Redis's own cursor. Between pages nothing is locked, so `each` may call
 * us.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "record.h"
#include "recurrence.h"

enum { PAGE = 100 };

/* The parts of a task in a reply, and those of one task of a page. */
enum { GET_NOW, GET_DUE, GET_RUN, GET_RECORD, GET_EVERY, GET_PARTS };
enum { ITEM_KEY, ITEM_DUE, ITEM_RUN, ITEM_RECORD, ITEM_EVERY, ITEM_PARTS };

/* What is given to `each`, and where in the shards that is. */
struct listing {
	struct tw_redis *redis;
	const struct script *script;
	tw_redis_each_fn *each;
	void *context;
	bool ended; /* by `each` */

	unsigned shard;
	int64_t from_ms; /* tasks: the due time where it goes on */
	size_t seen;     /* of that time */
	char cursor[24]; /* dead letters; "0" at the beginning and at the end of a shard */
};

/* Gives the task with the record to `each`. */
static enum tw_status give(struct listing *listing, struct tw_redis_info *info, const char *data,
			   size_t size)
{
	struct record record;

	if (record_read(&record, data, size) == TW_NO_MEMORY)
		return TW_NO_MEMORY;
	record.task.key = info->task.key;
	record.task.key_size = info->task.key_size;
	record.task.at_ms = info->due_ms;
	record.task.every = info->task.every;
	record.task.missed = info->task.missed;
	record.task.cron = info->task.cron;
	record.task.zone = info->task.zone;
	info->task = record.task;
	listing->ended = !listing->each(listing->context, info);
	record_free(&record);
	return TW_OK;
}

/* "3:17", "3" or "" */
static void run_read(struct tw_redis_info *info, const char *run)
{
	const char *colon = strchr(run, ':');

	info->attempts = (unsigned)strtoul(run, NULL, 10);
	if (colon && info->due_ms > info->now_ms) {
		info->state = TW_REDIS_LEASED;
		info->token = strtoull(colon + 1, NULL, 10);
	} else if (*run && info->due_ms > info->now_ms) {
		info->state = TW_REDIS_WAITING;
	}
}

/* Gives a task: parts are due time, run, record and recurrence. */
static enum tw_status give_task(struct listing *listing, struct tw_redis_info *info,
				redisReply *const *parts)
{
	info->due_ms = score_read(parts[0]->str);
	info->reason = "";
	run_read(info, parts[1]->str);
	recurrence_read(parts[3]->str, &info->task);
	return give(listing, info, parts[2]->str, parts[2]->len);
}

enum tw_status tw_redis_get(struct tw_redis *redis, const void *key, size_t key_size,
			    tw_redis_each_fn *each, void *context)
{
	struct listing listing = {.each = each, .context = context};
	struct tw_redis_info info = {.task = {.key = key, .key_size = key_size}};
	struct call *call;
	enum tw_status status;
	redisReply *reply;

	if (!each)
		return TW_INVALID;
	status = call_enter(redis, &script_get, key, key_size, &call);
	if (status != TW_OK)
		return status;
	eval_argument(&call->eval, key, key_size);
	status = call_ask(redis, call);
	reply = call->eval.reply;
	info.shard = call->eval.shard;
	if (status == TW_OK && reply->elements > GET_PARTS) {
		status = error_set(&call->error, TW_REDIS_FAILED,
				   "the reply has several tasks for one key");
	} else if (status == TW_OK && !reply->elements) {
		status = error_set(&call->error, TW_NOT_FOUND, "no task has the key");
	} else if (status == TW_OK) {
		info.now_ms = reply->element[GET_NOW]->integer;
		status = give_task(&listing, &info, reply->element + GET_DUE);
	}
	return call_end(&redis->access->calls, call, status);
}

/* Runs the eval for the next page and takes its reply away. */
static enum tw_status page_fetch(const struct listing *listing, redisReply **reply)
{
	struct tw_redis *redis = listing->redis;
	struct call *call = call_begin(&redis->access->calls);
	struct eval *eval;
	enum tw_status status;

	if (!call)
		return TW_NO_MEMORY;
	eval = &call->eval;
	eval_begin(eval, listing->script, &redis->space, listing->shard);
	if (listing->script == &script_list) {
		if (listing->from_ms == INT64_MIN)
			eval_text(eval, "-inf");
		else
			eval_number(eval, listing->from_ms);
		eval_number(eval, (int64_t)listing->seen);
		eval_number(eval, PAGE);
	} else {
		eval_text(eval, listing->cursor);
	}
	status = call_ask(redis, call);
	*reply = eval->reply;
	eval->reply = NULL;
	return call_end(&redis->access->calls, call, status);
}

static struct tw_redis_info info_begin(const struct listing *listing, const redisReply *reply,
				       const redisReply *key)
{
	return (struct tw_redis_info){.task = {.key = key->str, .key_size = key->len},
				      .now_ms = reply->element[0]->integer,
				      .shard = listing->shard};
}

/* Goes on at the beginning of the next shard. */
static void shard_leave(struct listing *listing)
{
	listing->shard++;
	listing->from_ms = INT64_MIN;
	listing->seen = 0;
	strcpy(listing->cursor, "0");
}

static enum tw_status give_page(struct listing *listing, const redisReply *reply)
{
	size_t count = (reply->elements - 1) / ITEM_PARTS;
	enum tw_status status = TW_OK;

	for (size_t i = 0; i < count && !listing->ended && status == TW_OK; i++) {
		redisReply **item = reply->element + 1 + i * ITEM_PARTS;
		struct tw_redis_info info = info_begin(listing, reply, item[ITEM_KEY]);

		status = give_task(listing, &info, item + ITEM_DUE);
		/* A page that goes back would never end. */
		if (info.due_ms < listing->from_ms)
			return TW_REDIS_FAILED;
		listing->seen = info.due_ms == listing->from_ms ? listing->seen + 1 : 1;
		listing->from_ms = info.due_ms;
	}
	if (count < PAGE)
		shard_leave(listing);
	return status;
}

/* Gives a dead letter: "DIED:ATTEMPTS:SIZE:REASON" and the record. One that is not ours is passed
 * over. */
static enum tw_status give_letter(struct listing *listing, struct tw_redis_info *info,
				  const redisReply *letter)
{
	char reason[TW_REDIS_REASON_MAX + 1];
	size_t size = 0;
	int head = 0;

	/* hiredis ends every string with a NUL. */
	if (sscanf(letter->str, "%" SCNd64 ":%u:%zu:%n", &info->due_ms, &info->attempts, &size,
		   &head) != 3 ||
	    !head || size > TW_REDIS_REASON_MAX || (size_t)head + size > letter->len)
		return TW_OK;
	snprintf(reason, sizeof(reason), "%.*s", (int)size, letter->str + head);
	info->state = TW_REDIS_DEAD;
	info->reason = reason;
	return give(listing, info, letter->str + head + size, letter->len - (size_t)head - size);
}

static enum tw_status give_letters(struct listing *listing, const redisReply *reply)
{
	const redisReply *items = reply->element[2];
	enum tw_status status = TW_OK;

	/* It would never end. */
	if (!strcmp(reply->element[1]->str, listing->cursor) && strcmp(listing->cursor, "0"))
		return TW_REDIS_FAILED;
	snprintf(listing->cursor, sizeof(listing->cursor), "%.20s", reply->element[1]->str);
	for (size_t i = 0; i + 1 < items->elements && !listing->ended && status == TW_OK; i += 2) {
		struct tw_redis_info info = info_begin(listing, reply, items->element[i]);

		status = give_letter(listing, &info, items->element[i + 1]);
	}
	if (!strcmp(listing->cursor, "0"))
		shard_leave(listing);
	return status;
}

static enum tw_status list_all(struct tw_redis *redis, const struct script *script,
			       tw_redis_each_fn *each, void *context)
{
	struct listing listing = {redis,        script, each, context, .from_ms = INT64_MIN,
				  .cursor = "0"};
	enum tw_status failure = TW_OK;
	enum tw_status status = TW_OK;
	redisReply *reply;

	if (!redis || !each)
		return TW_INVALID;
	while (listing.shard < redis->space.shards && !listing.ended && status == TW_OK) {
		status = page_fetch(&listing, &reply);
		if (status == TW_REDIS_FAILED) {
			/* The other shards are fine. */
			shard_leave(&listing);
			failure = status;
			status = TW_OK;
			continue;
		}
		if (status != TW_OK)
			return status;
		status = script == &script_list ? give_page(&listing, reply)
						: give_letters(&listing, reply);
		freeReplyObject(reply);
		if (status == TW_REDIS_FAILED)
			calls_note(&redis->access->calls, status,
				   "the server repeated a part of the listing");
	}
	return status == TW_OK ? failure : status;
}

enum tw_status tw_redis_each(struct tw_redis *redis, tw_redis_each_fn *each, void *context)
{
	return list_all(redis, &script_list, each, context);
}

enum tw_status tw_redis_dead_each(struct tw_redis *redis, tw_redis_each_fn *each, void *context)
{
	return list_all(redis, &script_dead_list, each, context);
}

/* Writes all but the record: mode, key, when it died, "died:attempts:size of reason:reason". */
static void letter_write(struct eval *eval, const struct tw_redis_info *letter)
{
	static const char *const modes[] = {"any", "new", "replace"};
	const char *reason = letter->reason ? letter->reason : "";
	char head[64 + TW_REDIS_REASON_MAX];

	eval_text(eval, modes[letter->task.mode]);
	eval_argument(eval, letter->task.key, letter->task.key_size);
	eval_number(eval, letter->due_ms);
	snprintf(head, sizeof(head), "%" PRId64 ":%u:%zu:%.*s", letter->due_ms, letter->attempts,
		 strnlen(reason, TW_REDIS_REASON_MAX), TW_REDIS_REASON_MAX, reason);
	eval_text(eval, head);
}

static enum tw_status dead_prepare(struct call *call, const struct tw_redis_info *letter)
{
	struct tw_redis_task task = letter->task;
	enum tw_status status;

	task.at_ms = letter->due_ms;
	task.delay = 0;
	status = task_check(&task, &call->error);
	return status == TW_OK ? record_write(&call->record, &task, &call->error) : status;
}

static enum tw_status answer_read(struct call *call)
{
	int64_t answer = eval_integer(&call->eval, 0, 0);
	enum tw_status status = answer == -1   ? TW_EXISTS
				: answer == -2 ? TW_NOT_FOUND
					       : TW_REDIS_FAILED;

	if (answer >= 0)
		return TW_OK;
	return error_set(&call->error, status, "%s", tw_status_text(status));
}

/*
 * What a listing shows of a letter is all there is to it, so that the letter is the same again:
 * also when it died, which is the one time that the caller says and no script makes.
 */
enum tw_status tw_redis_dead_add(struct tw_redis *redis, const struct tw_redis_info *letter)
{
	struct call *call;
	enum tw_status status;

	if (!letter)
		return TW_INVALID;
	status =
		call_enter(redis, &script_dead_add, letter->task.key, letter->task.key_size, &call);
	if (status != TW_OK)
		return status;
	status = dead_prepare(call, letter);
	if (status == TW_OK) {
		letter_write(&call->eval, letter);
		eval_argument(&call->eval, call->record.data, call->record.size);
		status = call_ask(redis, call);
	}
	if (status == TW_OK)
		status = answer_read(call);
	return call_end(&redis->access->calls, call, status);
}
