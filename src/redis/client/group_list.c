/* SPDX-License-Identifier: MIT */
/*
 * group_list.c lists the largest groups. The shards first find groups (scripts/group_find.lua), and
 * estimate their sizes by the places that they look at. The largest of these are then counted
 * (scripts/group_count.lua).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "record.h"

enum {
	/* The places, turns and leases that are looked at to find groups: in all shards together,
	 * and in each at least. */
	LOOKS = 512,
	LOOKS_LEAST = 16
};

struct groups {
	struct tw_redis_group_stats *rows; /* NULL until the shards have replied */
	size_t room;
	size_t count;
};

static int compare_names(const void *a, const void *b)
{
	const struct tw_redis_group_stats *left = a;
	const struct tw_redis_group_stats *right = b;

	return strcmp(left->name, right->name);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct tw_redis_group_stats *left = a;
	const struct tw_redis_group_stats *right = b;

	if (left->waiting != right->waiting)
		return left->waiting < right->waiting ? 1 : -1;
	if (left->running != right->running)
		return left->running < right->running ? 1 : -1;
	return compare_names(a, b);
}

/* Appends what a shard has found. Returns the new number of rows. */
static size_t rows_add(struct tw_redis_group_stats *rows, size_t count, const redisReply *reply)
{
	for (size_t i = 0; reply && i + 2 < reply->elements; i += 3) {
		struct tw_redis_group_stats *row = &rows[count++];

		row->waiting = (uint64_t)reply->element[i + 1]->integer;
		row->running = (uint64_t)reply->element[i + 2]->integer;
		snprintf(row->name, sizeof(row->name), "%s", reply->element[i]->str);
	}
	return count;
}

/* Adds up the rows of each group. Returns the number of groups. */
static size_t rows_merge(struct tw_redis_group_stats *rows, size_t count)
{
	size_t groups = 0;

	qsort(rows, count, sizeof(*rows), compare_names);
	for (size_t i = 0; i < count; i++) {
		if (!groups || compare_names(&rows[groups - 1], &rows[i]) != 0) {
			rows[groups++] = rows[i];
			continue;
		}
		rows[groups - 1].waiting += rows[i].waiting;
		rows[groups - 1].running += rows[i].running;
	}
	return groups;
}

/* Reads the groups that the shards have found, the largest of these. */
static enum tw_status groups_read(void *result, const struct eval *evals, unsigned shards)
{
	struct groups *groups = result;
	struct tw_redis_group_stats *rows;
	size_t count = 0;

	for (unsigned shard = 0; shard < shards; shard++)
		count += evals[shard].reply ? evals[shard].reply->elements / 3 : 0;
	rows = calloc(count + 1, sizeof(*rows));
	if (!rows)
		return TW_NO_MEMORY;
	count = 0;
	for (unsigned shard = 0; shard < shards; shard++)
		count = rows_add(rows, count, evals[shard].reply);
	count = rows_merge(rows, count);
	qsort(rows, count, sizeof(*rows), compare_sizes);
	groups->rows = rows;
	groups->count = count < groups->room ? count : groups->room;
	return TW_OK;
}

/* Adds what a shard says of each group: how many tasks wait, and since when. */
static void waiting_add(struct groups *groups, const redisReply *reply)
{
	for (size_t i = 0; i < groups->count; i++) {
		struct tw_redis_group_stats *row = &groups->rows[i];
		int64_t oldest_ms = reply->element[2 * i + 1]->integer;

		row->waiting += (uint64_t)reply->element[2 * i]->integer;
		if (oldest_ms && (!row->oldest_ms || oldest_ms < row->oldest_ms))
			row->oldest_ms = oldest_ms;
	}
}

static enum tw_status waiting_read(void *result, const struct eval *evals, unsigned shards)
{
	struct groups *groups = result;

	for (size_t i = 0; i < groups->count; i++)
		groups->rows[i].waiting = 0;
	for (unsigned shard = 0; shard < shards; shard++) {
		const redisReply *reply = evals[shard].reply;

		if (reply && reply->elements != 2 * groups->count)
			return TW_REDIS_FAILED;
		if (reply)
			waiting_add(groups, reply);
	}
	return TW_OK;
}

/* Asks for the exact numbers of the groups that were found. Groups that are gone are left out. */
static enum tw_status groups_count(struct tw_redis *redis, struct groups *groups)
{
	char *names = malloc(groups->count * sizeof(groups->rows->name) + 1);
	size_t found = groups->count;
	enum tw_status status;
	char *end = names;

	if (!names)
		return TW_NO_MEMORY;
	for (size_t i = 0; i < found; i++) {
		end = stpcpy(end, groups->rows[i].name);
		*end++ = '\n';
	}
	*end = '\0';
	status = shards_run(redis, &script_group_count, (const char *const[]){names, NULL},
			    waiting_read, groups);
	free(names);
	qsort(groups->rows, found, sizeof(*groups->rows), compare_sizes);
	while (groups->count && !groups->rows[groups->count - 1].waiting &&
	       !groups->rows[groups->count - 1].running)
		groups->count--;
	return status;
}

enum tw_status tw_redis_get_groups(struct tw_redis *redis, struct tw_redis_group_stats *rows,
				   size_t room, size_t *count)
{
	struct groups groups = {NULL, room < TW_REDIS_GROUPS_MAX ? room : TW_REDIS_GROUPS_MAX, 0};
	enum tw_status status;
	unsigned looks;
	char text[16];

	if (!redis || !count || (!rows && room))
		return TW_INVALID;
	looks = LOOKS / redis->space.shards;
	snprintf(text, sizeof(text), "%u", looks > LOOKS_LEAST ? looks : LOOKS_LEAST);
	status = shards_run(redis, &script_group_find, (const char *const[]){text, NULL},
			    groups_read, &groups);
	if ((status == TW_OK || status == TW_REDIS_FAILED) && groups.count) {
		enum tw_status counted = groups_count(redis, &groups);

		status = counted == TW_OK ? status : counted;
	}
	*count = status == TW_OK || status == TW_REDIS_FAILED ? groups.count : 0;
	for (size_t i = 0; i < *count; i++)
		rows[i] = groups.rows[i];
	free(groups.rows);
	return status;
}
