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
#define PAGE_TEXT "100"

/* These are the parts of a task in a page. */
enum { ITEM_KEY, ITEM_DUE, ITEM_RUN, ITEM_RECORD, ITEM_EVERY, ITEM_PARTS };
/* A page of tasks begins with these parts. */
enum { PAGE_NOW, PAGE_MORE, PAGE_ITEMS };

/* The hash of dead letters has this place among a script's keys. */
enum { LETTERS_PLACE = 5 };

/* A listing is the function `each`, and the place in the shards. */
struct listing {
	struct tw_redis *redis;
	tw_redis_each_fn *each;
	void *context;
	bool ended; /* `each` returned false */

	unsigned shard;
	int64_t from_ms; /* the due time where it goes on with tasks */
	size_t seen;     /* the tasks of that time that it has seen */
	struct scan scan;
};

static enum tw_status repeated(struct tw_redis *redis)
{
	access_note(redis->access, TW_REDIS_FAILED, "the server repeated a part of the listing");
	return TW_REDIS_FAILED;
}

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

static struct tw_redis_info info_begin(const struct listing *listing, const redisReply *reply,
				       const redisReply *key)
{
	return (struct tw_redis_info){.task = {.key = key->str, .key_size = key->len},
				      .now_ms = reply->element[0]->integer,
				      .shard = listing->shard};
}

/* Gives the task of the reply with these parts. */
static enum tw_status give_task(struct listing *listing, const redisReply *reply,
				redisReply *const *parts)
{
	struct tw_redis_info info = info_begin(listing, reply, parts[ITEM_KEY]);

	info.due_ms = strtoll(parts[ITEM_DUE]->str, NULL, 10);
	info.reason = "";
	run_read(&info, parts[ITEM_RUN]->str);
	recurrence_show(&info, parts[ITEM_EVERY]->str);
	return give(listing, &info, parts[ITEM_RECORD]->str, parts[ITEM_RECORD]->len);
}

/* Gives the task of the reply, if there is one. */
static enum tw_status get_read(void *result, struct call *call)
{
	const redisReply *reply = call->eval.reply;

	if (reply->elements == PAGE_ITEMS)
		return error_set(&call->error, TW_NOT_FOUND, "no task has the key");
	return give_task(result, reply, reply->element + PAGE_ITEMS);
}

enum tw_status tw_redis_get(struct tw_redis *redis, const void *key, size_t key_size,
			    tw_redis_each_fn *each, void *context)
{
	struct listing listing = {
		.each = each, .context = context, .shard = key_shard(redis, key, key_size)};

	return each ? redis_ask(redis, &script_list, listing.shard, get_read, &listing, "sssk", "0",
				"0", "1", key, key_size)
		    : TW_INVALID;
}

/* Goes on at the beginning of the next shard. */
static void shard_leave(struct listing *listing)
{
	listing->shard++;
	listing->from_ms = 0;
	listing->seen = 0;
}

static enum tw_status give_page(struct listing *listing, const redisReply *reply)
{
	size_t count = (reply->elements - PAGE_ITEMS) / ITEM_PARTS;
	enum tw_status status = TW_OK;

	for (size_t i = 0; i < count && !listing->ended && status == TW_OK; i++) {
		redisReply **item = reply->element + PAGE_ITEMS + i * ITEM_PARTS;
		int64_t score = strtoll(item[ITEM_DUE]->str, NULL, 10);

		status = give_task(listing, reply, item);
		/* A page that goes back would never end. */
		if (score < listing->from_ms)
			return repeated(listing->redis);
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

enum tw_status scan_page(struct tw_redis *redis, unsigned shard, struct scan *scan,
			 redisReply **reply)
{
	const char *cursor = *scan->cursor ? scan->cursor : "0";
	enum tw_status status =
		redis_ask(redis, &script_scan, shard, reply_take, reply, "isi",
			  (int64_t)scan->place, cursor, scan->entries ? scan->entries : 10);
	int64_t looked;

	if (status != TW_OK)
		return status;
	/* A cursor that stays would never end. */
	if (strcmp(cursor, "0") != 0 && !strcmp((*reply)->element[1]->str, cursor)) {
		freeReplyObject(*reply);
		return repeated(redis);
	}
	snprintf(scan->cursor, sizeof(scan->cursor), "%.20s", (*reply)->element[1]->str);
	looked = (*reply)->element[3]->integer;
	scan->entries = looked < PAGE / 2 ? 2 * looked : PAGE;
	return TW_OK;
}

bool scan_is_over(const struct scan *scan)
{
	return !strcmp(scan->cursor, "0");
}

static enum tw_status give_letters(struct listing *listing, const redisReply *reply)
{
	const redisReply *items = reply->element[2];
	enum tw_status status = TW_OK;

	for (size_t i = 0; i + 1 < items->elements && !listing->ended && status == TW_OK; i += 2) {
		struct tw_redis_info info = info_begin(listing, reply, items->element[i]);

		status = give_letter(listing, &info, items->element[i + 1]);
	}
	if (scan_is_over(&listing->scan))
		shard_leave(listing);
	return status;
}

enum tw_status tw_redis_each(struct tw_redis *redis, enum tw_redis_kind kind,
			     tw_redis_each_fn *each, void *context)
{
	struct listing listing = {
		.redis = redis, .each = each, .context = context, .scan.place = LETTERS_PLACE};
	enum tw_status status = TW_OK;
	redisReply *reply;

	if (!redis || !each || kind > TW_REDIS_LETTERS)
		return TW_INVALID;
	while (listing.shard < redis->space.shards && !listing.ended && status == TW_OK) {
		if (kind == TW_REDIS_TASKS)
			status =
				redis_ask(redis, &script_list, listing.shard, reply_take, &reply,
					  "iis", listing.from_ms, (int64_t)listing.seen, PAGE_TEXT);
		else
			status = scan_page(redis, listing.shard, &listing.scan, &reply);
		if (status != TW_OK)
			return status;
		status = kind == TW_REDIS_TASKS ? give_page(&listing, reply)
						: give_letters(&listing, reply);
		freeReplyObject(reply);
	}
	return status;
}
