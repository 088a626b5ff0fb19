/* SPDX-License-Identifier: MIT */
/*
 * group_list.c lists the largest groups. Each shard finds groups, and counts those that it has
 * found (scripts/groups.lua). Where there are several shards, all of them then count the groups
 * that are largest by that, because a shard may have tasks of a group that it has not found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "record.h"

enum {
	/* The places, turns and leases that are looked at to find groups: in all shards together,
	 * and in each at least. */
	LOOKS = 256,
	LOOKS_LEAST = 16
};

/* The rows begin as none, and become those of the largest groups, at most TW_REDIS_GROUPS_MAX. */
struct groups {
	struct tw_redis_group_stats *rows;
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
	for (size_t i = 0; reply && i + 3 < reply->elements; i += 4) {
		struct tw_redis_group_stats *row = &rows[count++];

		*row = (struct tw_redis_group_stats){
			.waiting = (uint64_t)reply->element[i + 1]->integer,
			.running = (uint64_t)reply->element[i + 2]->integer,
			.oldest_ms = reply->element[i + 3]->integer,
		};
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
		struct tw_redis_group_stats *sum = groups ? &rows[groups - 1] : NULL;

		if (!sum || compare_names(sum, &rows[i]) != 0) {
			rows[groups++] = rows[i];
			continue;
		}
		sum->waiting += rows[i].waiting;
		sum->running += rows[i].running;
		if (!sum->oldest_ms || (rows[i].oldest_ms && rows[i].oldest_ms < sum->oldest_ms))
			sum->oldest_ms = rows[i].oldest_ms;
	}
	return groups;
}

/* Adds what the shards have counted, and keeps the largest groups. */
static enum tw_status groups_read(void *result, const struct eval *evals, unsigned shards)
{
	struct groups *groups = result;
	struct tw_redis_group_stats *rows;
	size_t count = groups->count;

	for (unsigned shard = 0; shard < shards; shard++)
		count += evals[shard].reply ? evals[shard].reply->elements / 4 : 0;
	rows = realloc(groups->rows, (count + 1) * sizeof(*rows));
	if (!rows) {
		groups->count = 0;
		return TW_NO_MEMORY;
	}
	count = groups->count;
	for (unsigned shard = 0; shard < shards; shard++)
		count = rows_add(rows, count, evals[shard].reply);
	count = rows_merge(rows, count);
	qsort(rows, count, sizeof(*rows), compare_sizes);
	groups->rows = rows;
	groups->count = count < TW_REDIS_GROUPS_MAX ? count : TW_REDIS_GROUPS_MAX;
	return TW_OK;
}

/* Has all shards count the groups that were found. Groups that are gone are left out. */
static enum tw_status groups_count(struct tw_redis *redis, struct groups *groups)
{
	char *names = malloc(groups->count * sizeof(groups->rows->name) + 1);
	enum tw_status status;
	char *end = names;

	if (!names)
		return TW_NO_MEMORY;
	*end = '\0';
	for (size_t i = 0; i < groups->count; i++) {
		struct tw_redis_group_stats *row = &groups->rows[i];

		end = stpcpy(stpcpy(end, row->name), "\n");
		row->waiting = 0;
		row->oldest_ms = 0;
	}
	status = shards_run(redis, &script_groups, (const char *const[]){"0", names, NULL},
			    groups_read, groups);
	free(names);
	while (groups->count && !groups->rows[groups->count - 1].waiting &&
	       !groups->rows[groups->count - 1].running)
		groups->count--;
	return status;
}

enum tw_status tw_redis_get_groups(struct tw_redis *redis, struct tw_redis_group_stats *rows,
				   size_t room, size_t *count)
{
	struct groups groups = {NULL, 0};
	enum tw_status status;
	unsigned looks;
	char text[16];

	if (!redis || !count || (!rows && room))
		return TW_INVALID;
	looks = LOOKS / redis->space.shards;
	snprintf(text, sizeof(text), "%u", looks > LOOKS_LEAST ? looks : LOOKS_LEAST);
	status = shards_run(redis, &script_groups, (const char *const[]){text, "", NULL},
			    groups_read, &groups);
	if ((status == TW_OK || status == TW_REDIS_FAILED) && groups.count &&
	    redis->space.shards > 1) {
		enum tw_status counted = groups_count(redis, &groups);

		status = counted == TW_OK ? status : counted;
	}
	if (status != TW_OK && status != TW_REDIS_FAILED)
		groups.count = 0;
	*count = groups.count < room ? groups.count : room;
	for (size_t i = 0; i < *count; i++)
		rows[i] = groups.rows[i];
	free(groups.rows);
	return status;
}
