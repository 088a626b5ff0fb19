/* SPDX-License-Identifier: MIT */
/*
 * listing.c shows one task, all tasks or dead letters. A listing goes through the shards by pages
 * and remembers its place: for tasks a due time and how many of that time it has seen, for dead
 * letters Redis's own cursor. Nothing is locked between pages, so `each` may call us.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "record.h"
#include "recurrence.h"

enum { PAGE = 100 };
static const size_t page_bytes = (size_t)512 * 1024;

/* These are the parts of a task in a page. */
enum { ITEM_KEY, ITEM_DUE, ITEM_RUN, ITEM_RECORD, ITEM_EVERY, ITEM_PARTS };
/* A page of tasks begins with these parts. */
enum { PAGE_NOW, PAGE_MORE, PAGE_ITEMS };

/* The hash of dead letters has this place among a script's keys. */
enum { LETTERS_PLACE = 5 };

/* A listing is the function `each`, and the place in the shards. */
struct listing {
	struct tw_redis *redis;
	enum tw_redis_kind kind;
	tw_redis_each_fn *each;
	void *context;
	bool ended; /* `each` returned false */

	unsigned shard;
	int64_t from_ms; /* the due time where it goes on with tasks */
	size_t seen;     /* tasks of that time, or entries at the cursor */
	char cursor[24]; /* a hash's; "0" at the beginning and at the end of a shard */
	size_t entries;  /* the entries that fit in a page of a hash, by the last one */
};

/* Gives the task with the record to `each`. */
static enum tw_status give(struct listing *listing, struct tw_redis_info *info, char *data,
			   size_t size)
{
	struct record record;

	if (record_read(&record, data, size) == TW_NO_MEMORY)
		return TW_NO_MEMORY;
	record.task.key = info->task.key;
	record.task.key_size = info->task.key_size;
	record.task.at_ms = info->task.at_ms;
	record.task.every = info->task.every;
	record.task.missed = info->task.missed;
	record.task.cron = info->task.cron;
	record.task.zone = info->task.zone;
	info->task = record.task;
	info->latest_due_ms = record.latest_due_ms;
	listing->ended = !listing->each(listing->context, info);
	record_free(&record);
	return TW_OK;
}

/* Reads "3:17", "3" or "". */
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

/* Reads an entry of `every`. The task then points into it. */
static void recurrence_show(struct tw_redis_info *info, char *entry)
{
	struct recurrence how;

	info->task.at_ms = info->due_ms;
	if (!recurrence_read(&how, entry))
		return;
	info->task.at_ms = how.at_ms;
	info->task.missed = how.missed;
	info->task.every = how.period_ms * TW_MILLISECOND;
	info->task.cron = how.cron;
	info->task.zone = how.zone;
}

/* Gives a task. Its parts are due time, run, record and recurrence. */
static enum tw_status give_task(struct listing *listing, struct tw_redis_info *info,
				redisReply *const *parts)
{
	info->due_ms = strtoll(parts[0]->str, NULL, 10);
	info->reason = "";
	run_read(info, parts[1]->str);
	recurrence_show(info, parts[3]->str);
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
	status = call_enter(redis, &script_list, key, key_size, &call);
	if (status != TW_OK)
		return status;
	task_ask(&call->eval, key, key_size);
	status = call_ask(redis, call);
	reply = call->eval.reply;
	info.shard = call->eval.shard;
	if (status == TW_OK && reply->elements > PAGE_ITEMS + ITEM_PARTS) {
		status = error_set(&call->error, TW_REDIS_FAILED,
				   "the reply has several tasks for one key");
	} else if (status == TW_OK && reply->elements == PAGE_ITEMS) {
		status = error_set(&call->error, TW_NOT_FOUND, "no task has the key");
	} else if (status == TW_OK) {
		info.now_ms = reply->element[PAGE_NOW]->integer;
		status = give_task(&listing, &info, reply->element + PAGE_ITEMS + ITEM_DUE);
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
	eval_begin(eval, listing->kind == TW_REDIS_TASKS ? &script_list : &script_scan,
		   &redis->space, listing->shard);
	if (listing->kind == TW_REDIS_TASKS) {
		if (listing->from_ms == INT64_MIN)
			eval_text(eval, "-inf");
		else
			eval_number(eval, listing->from_ms);
		eval_number(eval, (int64_t)listing->seen);
		eval_number(eval, PAGE);
	} else {
		eval_number(eval, LETTERS_PLACE);
		eval_text(eval, listing->cursor);
		eval_number(eval, (int64_t)listing->entries);
		eval_number(eval, (int64_t)listing->seen);
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
	size_t count = (reply->elements - PAGE_ITEMS) / ITEM_PARTS;
	enum tw_status status = TW_OK;

	for (size_t i = 0; i < count && !listing->ended && status == TW_OK; i++) {
		redisReply **item = reply->element + PAGE_ITEMS + i * ITEM_PARTS;
		struct tw_redis_info info = info_begin(listing, reply, item[ITEM_KEY]);

		int64_t score = strtoll(item[ITEM_DUE]->str, NULL, 10);

		status = give_task(listing, &info, item + ITEM_DUE);
		/* A page that goes back would never end. */
		if (score < listing->from_ms)
			return TW_REDIS_FAILED;
		listing->seen = score == listing->from_ms ? listing->seen + 1 : 1;
		listing->from_ms = score;
	}
	if (!count || !reply->element[PAGE_MORE]->integer)
		shard_leave(listing);
	return status;
}

/* Gives a dead letter, which is "DIED:ATTEMPTS:SIZE:REASON" and the record. A broken letter is
 * passed over. */
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
	info->task.at_ms = info->due_ms;
	info->reason = reason;
	return give(listing, info, letter->str + head + size, letter->len - (size_t)head - size);
}

/* Sets the number of entries of the next page: as many of the size of these as fit. */
static void page_resize(struct listing *listing, const redisReply *items)
{
	size_t bytes = 1;

	for (size_t i = 1; i < items->elements; i += 2)
		bytes += items->element[i]->len;
	listing->entries = page_bytes * (items->elements / 2) / bytes;
	if (!listing->entries || listing->seen)
		listing->entries = 1;
	if (listing->entries > PAGE || !items->elements)
		listing->entries = PAGE;
}

static enum tw_status give_letters(struct listing *listing, const redisReply *reply)
{
	const redisReply *items = reply->element[2];
	size_t seen = (size_t)reply->element[3]->integer;
	enum tw_status status = TW_OK;

	/* A cursor that stays would never end. */
	if (!strcmp(reply->element[1]->str, listing->cursor) && seen <= listing->seen &&
	    (strcmp(listing->cursor, "0") || seen))
		return TW_REDIS_FAILED;
	snprintf(listing->cursor, sizeof(listing->cursor), "%.20s", reply->element[1]->str);
	listing->seen = seen;
	for (size_t i = 0; i + 1 < items->elements && !listing->ended && status == TW_OK; i += 2) {
		struct tw_redis_info info = info_begin(listing, reply, items->element[i]);

		status = give_letter(listing, &info, items->element[i + 1]);
	}
	page_resize(listing, items);
	if (!strcmp(listing->cursor, "0") && !seen)
		shard_leave(listing);
	return status;
}

enum tw_status tw_redis_each(struct tw_redis *redis, enum tw_redis_kind kind,
			     tw_redis_each_fn *each, void *context)
{
	struct listing listing = {.redis = redis,
				  .kind = kind,
				  .each = each,
				  .context = context,
				  .from_ms = INT64_MIN,
				  .cursor = "0",
				  .entries = 10};
	enum tw_status status = TW_OK;
	redisReply *reply;

	if (!redis || !each || kind > TW_REDIS_LETTERS)
		return TW_INVALID;
	while (listing.shard < redis->space.shards && !listing.ended && status == TW_OK) {
		status = page_fetch(&listing, &reply);
		if (status != TW_OK)
			return status;
		status = kind == TW_REDIS_TASKS ? give_page(&listing, reply)
						: give_letters(&listing, reply);
		freeReplyObject(reply);
		if (status == TW_REDIS_FAILED)
			calls_note(&redis->access->calls, status,
				   "the server repeated a part of the listing");
	}
	return status;
}
