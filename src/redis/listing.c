/* SPDX-License-Identifier: MIT */
/*
 * The calls that look: one task, all tasks, dead letters, counts. A listing goes through the shards
 * one page at a time and remembers where it was: tasks by due time, and how many of that time it
 * has seen; dead letters by Redis's own cursor. Between pages nothing is locked, so `each` may call
 * us.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "record.h"

enum { PAGE = 100 };

/* The parts of a task in a reply, and those of one task of a page. */
enum { GET_NOW, GET_DUE, GET_RUN, GET_RECORD, GET_PARTS };
enum { ITEM_KEY, ITEM_DUE, ITEM_RUN, ITEM_RECORD, ITEM_PARTS };

static void info_fill(struct tw_redis_info *info, const struct record *record)
{
	info->task.max_attempts = record->max_attempts;
	info->task.body = record->body;
	info->task.body_size = record->body_size;
	info->task.url = record->url;
	info->task.method = record->method;
	info->task.headers = record->headers;
	info->task.header_count = record->header_count;
	info->task.at_ms = info->due_ms;
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

/* Gives a task to `each`: parts are due time, run and record. *more becomes what it answers. */
static enum tw_status give_task(struct tw_redis_info *info, redisReply *const *parts,
				tw_redis_each_fn *each, void *context, bool *more)
{
	struct record record;
	enum tw_status status = record_read(&record, parts[2]->str, parts[2]->len);

	if (status == TW_NO_MEMORY)
		return status;
	info->due_ms = strtoll(parts[0]->str, NULL, 10);
	info->reason = "";
	run_read(info, parts[1]->str);
	info_fill(info, &record);
	*more = each(context, info);
	record_free(&record);
	return TW_OK;
}

enum tw_status tw_redis_get(struct tw_redis *redis, const void *key, size_t key_size,
			    tw_redis_each_fn *each, void *context)
{
	struct tw_redis_info info = {.task = {.key = key, .key_size = key_size}};
	enum tw_status status;
	redisReply *reply;
	bool more;

	if (!each || !call_enter(redis, &script_get, key, key_size))
		return TW_INVALID;
	command_argument(&redis->command, key, key_size);
	status = call_run(redis);
	reply = redis->command.reply;
	info.shard = redis->command.shard;
	if (status == TW_OK && reply->elements < GET_PARTS) {
		status = error_set(&redis->router.error, TW_NOT_FOUND, "no such task");
	} else if (status == TW_OK) {
		info.now_ms = reply->element[GET_NOW]->integer;
		status = give_task(&info, reply->element + GET_DUE, each, context, &more);
	}
	call_leave(redis);
	return status;
}

/* Where a listing of a shard is. */
struct page {
	unsigned shard;
	int64_t from_ms; /* tasks: the due time where it goes on */
	size_t seen;     /* of that time */
	char cursor[24]; /* dead letters */
	bool last;
};

/* Runs the redis's command and takes its reply away. */
static enum tw_status page_fetch(struct tw_redis *redis, const struct script *script,
				 const struct page *page, redisReply **reply)
{
	struct command *command = &redis->command;
	enum tw_status status;

	pthread_mutex_lock(&redis->lock);
	command_begin(command, script, page->shard);
	if (script == &script_list) {
		command_number(command, page->from_ms);
		command_number(command, (int64_t)page->seen);
		command_number(command, PAGE);
	} else {
		command_text(command, page->cursor);
	}
	status = call_run(redis);
	*reply = command->reply;
	command->reply = NULL;
	call_leave(redis);
	return status;
}

static void page_advance(struct page *page, int64_t due_ms)
{
	page->seen = due_ms == page->from_ms ? page->seen + 1 : 1;
	page->from_ms = due_ms;
}

static enum tw_status give_page(struct page *page, const redisReply *reply, tw_redis_each_fn *each,
				void *context, bool *more)
{
	size_t count = reply->elements ? (reply->elements - 1) / ITEM_PARTS : 0;
	enum tw_status status = TW_OK;

	page->last = count < PAGE;
	for (size_t i = 0; i < count && *more && status == TW_OK; i++) {
		redisReply **item = reply->element + 1 + i * ITEM_PARTS;
		struct tw_redis_info info = {
			.task = {.key = item[ITEM_KEY]->str, .key_size = item[ITEM_KEY]->len},
			.now_ms = reply->element[0]->integer,
			.shard = page->shard};

		status = give_task(&info, item + ITEM_DUE, each, context, more);
		page_advance(page, info.due_ms);
	}
	return status;
}

/* A dead letter: "DIED:ATTEMPTS:SIZE:REASON" and the record. False: it isn't one of ours. */
static bool letter_read(struct tw_redis_info *info, const redisReply *letter, char *reason,
			struct record *record)
{
	long long died = 0;
	size_t size = 0;
	int head = 0;

	/* hiredis ends every string with a NUL. */
	if (sscanf(letter->str, "%lld:%u:%zu:%n", &died, &info->attempts, &size, &head) != 3 ||
	    !head || size > TW_REDIS_REASON_MAX || (size_t)head + size > letter->len)
		return false;
	memcpy(reason, letter->str + head, size);
	reason[size] = '\0';
	info->state = TW_REDIS_DEAD;
	info->reason = reason;
	info->due_ms = died;
	return record_read(record, letter->str + head + size, letter->len - (size_t)head - size) !=
	       TW_NO_MEMORY;
}

static enum tw_status give_letters(struct page *page, const redisReply *reply,
				   tw_redis_each_fn *each, void *context, bool *more)
{
	const redisReply *items = reply->elements >= 3 ? reply->element[2] : NULL;

	if (!items)
		return TW_REDIS_FAILED;
	snprintf(page->cursor, sizeof(page->cursor), "%.20s", reply->element[1]->str);
	page->last = !strcmp(page->cursor, "0");
	for (size_t i = 0; i + 1 < items->elements && *more; i += 2) {
		char reason[TW_REDIS_REASON_MAX + 1];
		struct record record;
		struct tw_redis_info info = {
			.task = {.key = items->element[i]->str, .key_size = items->element[i]->len},
			.now_ms = reply->element[0]->integer,
			.shard = page->shard};

		if (!letter_read(&info, items->element[i + 1], reason, &record))
			continue;
		info_fill(&info, &record);
		*more = each(context, &info);
		record_free(&record);
	}
	return TW_OK;
}

static enum tw_status list_shard(struct tw_redis *redis, const struct script *script,
				 struct page *page, tw_redis_each_fn *each, void *context,
				 bool *more)
{
	enum tw_status status = TW_OK;

	while (!page->last && *more && status == TW_OK) {
		redisReply *reply;

		status = page_fetch(redis, script, page, &reply);
		if (status != TW_OK)
			return status;
		status = script == &script_list ? give_page(page, reply, each, context, more)
						: give_letters(page, reply, each, context, more);
		freeReplyObject(reply);
	}
	return status;
}

static enum tw_status list_all(struct tw_redis *redis, const struct script *script,
			       tw_redis_each_fn *each, void *context)
{
	enum tw_status status = TW_OK;
	bool more = true;

	if (!redis || !each)
		return TW_INVALID;
	for (unsigned shard = 0; shard < redis->space.shards && more && status == TW_OK; shard++) {
		struct page page = {.shard = shard, .cursor = "0"};

		status = list_shard(redis, script, &page, each, context, &more);
	}
	return status;
}

enum tw_status tw_redis_each(struct tw_redis *redis, tw_redis_each_fn *each, void *context)
{
	return list_all(redis, &script_list, each, context);
}

enum tw_status tw_redis_dead_each(struct tw_redis *redis, tw_redis_each_fn *each, void *context)
{
	return list_all(redis, &script_dead_list, each, context);
}

enum { COUNT_NOW, COUNT_TASKS, COUNT_DUE, COUNT_STARTED, COUNT_DEAD, COUNT_NEXT, COUNT_PARTS };

static void stats_add(struct tw_redis_stats *stats, const redisReply *reply)
{
	int64_t next = reply->element[COUNT_NEXT]->integer;

	stats->now_ms = reply->element[COUNT_NOW]->integer;
	stats->tasks += (uint64_t)reply->element[COUNT_TASKS]->integer;
	stats->due += (uint64_t)reply->element[COUNT_DUE]->integer;
	stats->started += (uint64_t)reply->element[COUNT_STARTED]->integer;
	stats->dead += (uint64_t)reply->element[COUNT_DEAD]->integer;
	if (next >= 0 && (!stats->next_ms || next < stats->next_ms))
		stats->next_ms = next;
}

enum tw_status tw_redis_get_stats(struct tw_redis *redis, struct tw_redis_stats *stats)
{
	enum tw_status status = TW_OK;
	struct command *commands;
	unsigned shards;

	if (!redis || !stats)
		return TW_INVALID;
	memset(stats, 0, sizeof(*stats));
	shards = redis->space.shards;
	commands = calloc(shards, sizeof(*commands));
	if (!commands)
		return TW_NO_MEMORY;
	for (unsigned shard = 0; shard < shards; shard++)
		command_begin(&commands[shard], &script_count, shard);
	pthread_mutex_lock(&redis->lock);
	router_run(&redis->router, commands, shards);
	pthread_mutex_unlock(&redis->lock);
	for (unsigned shard = 0; shard < shards; shard++) {
		if (status == TW_OK)
			status = commands[shard].status;
		if (status == TW_OK && commands[shard].reply->elements < COUNT_PARTS)
			status = TW_REDIS_FAILED;
		if (status == TW_OK)
			stats_add(stats, commands[shard].reply);
		command_free(&commands[shard]);
	}
	free(commands);
	return status;
}
