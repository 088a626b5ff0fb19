/* SPDX-License-Identifier: MIT */
#include "support/calls.h"

#include <assert.h>
#include <stdbool.h>

enum { LISTED_MAX = 500 };

static bool list_some(void *context, const struct tw_redis_info *info)
{
	size_t *count = context;

	/* Every field can be read. */
	assert(info->task.key);
	assert(info->reason);
	return ++*count < LISTED_MAX;
}

/* In a namespace of four shards. */
static const struct tw_redis_job job = {
	.key = "a", .key_size = 1, .attempt = 1, .max_attempts = 3, .token = 7, .shard = 3};
static const struct tw_redis_task task = {.key = "a", .key_size = 1, .delay = TW_SECOND};

static enum tw_status call_add_many(struct tw_redis *redis)
{
	const struct tw_redis_task tasks[] = {task, task, task};
	struct tw_redis_added each[3];

	return tw_redis_add(redis, tasks, 3, each);
}

static const struct tw_redis_task at_noon = {.key = "a", .key_size = 1, .cron = "0 12 * * *"};

/* Redis is asked for its time first. */
static enum tw_status call_add_cron(struct tw_redis *redis)
{
	return tw_redis_add(redis, &at_noon, 1, NULL);
}

/* The server refuses the first task, whatever the script's reply. */
static enum tw_status call_add_many_cron(struct tw_redis *redis)
{
	struct tw_redis_task tasks[] = {at_noon, task, at_noon};
	struct tw_redis_added each[3] = {[2].status = TW_INVALID};
	enum tw_status status;

	tasks[0].key_size = 0;
	status = tw_redis_add(redis, tasks, 3, each);
	return status == TW_INVALID ? each[2].status : status;
}

static enum tw_status call_dead_add(struct tw_redis *redis)
{
	const struct tw_redis_info letter = {
		.task = {.key = "a", .key_size = 1}, .state = TW_REDIS_DEAD, .due_ms = 1};

	return tw_redis_restore(redis, &letter, 1, NULL);
}

/* The server refuses the second task, whatever the script's reply. */
static enum tw_status call_restore(struct tw_redis *redis)
{
	struct tw_redis_info infos[] = {
		{.task = {.key = "a", .key_size = 1, .every = TW_HOUR}, .due_ms = 1},
		{.due_ms = 1},
	};
	struct tw_redis_added each[2] = {{.status = TW_INVALID}};
	enum tw_status status = tw_redis_restore(redis, infos, 2, each);

	return status == TW_INVALID ? each[0].status : status;
}

static enum tw_status call_claim(struct tw_redis *redis)
{
	struct tw_redis_batch *batch = NULL;
	tw_duration next;
	enum tw_status status = tw_redis_claim(redis, 0, 10, TW_SECOND, &batch, &next);

	for (size_t i = 0; batch && i < batch->count; i++)
		assert(batch->jobs[i].key);
	tw_redis_batch_free(batch);
	return status;
}

static enum tw_status finish(struct tw_redis *redis, enum tw_redis_outcome outcome)
{
	enum tw_status each = TW_OK;
	enum tw_status status = tw_redis_finish(redis, &job, 1, outcome, NULL, &each);

	return status == TW_OK ? each : status;
}

static enum tw_status call_extend(struct tw_redis *redis)
{
	enum tw_status each = TW_OK;
	enum tw_status status = tw_redis_extend(redis, &job, 1, TW_SECOND, &each);

	return status == TW_OK ? each : status;
}

static bool take_rule(void *context, const char *group, const struct tw_redis_limits *limits)
{
	assert(limits);
	return true;
}

/* Defines a function of one call. */
#define CALL(name, ...)                                           \
	static enum tw_status call_##name(struct tw_redis *redis) \
	{                                                         \
		return __VA_ARGS__;                               \
	}

CALL(add, tw_redis_add(redis, &task, 1, NULL))
CALL(cancel, tw_redis_cancel(redis, "a", 1, TW_REDIS_OCCURRENCE))
CALL(move, tw_redis_move(redis, "a", 1, 0, TW_SECOND, &(int64_t){0}))
CALL(get, tw_redis_get(redis, "a", 1, list_some, &(size_t){0}))
CALL(each, tw_redis_each(redis, TW_REDIS_TASKS, list_some, &(size_t){0}))
CALL(dead_each, tw_redis_each(redis, TW_REDIS_LETTERS, list_some, &(size_t){0}))
CALL(stats, tw_redis_get_stats(redis, &(struct tw_redis_stats){0}))
CALL(dead_retry, tw_redis_retry(redis, "a", 1))
CALL(dead_drop, tw_redis_drop(redis, "a", 1))
CALL(set_limits, tw_redis_set_limits(redis, NULL, &(struct tw_redis_limits){.paused = true}))
CALL(limits, tw_redis_get_limits(redis, NULL, &(struct tw_redis_limits){0}))
CALL(delete, tw_redis_drop_namespace(redis, true))
CALL(ack, finish(redis, TW_REDIS_DONE))
CALL(fail, finish(redis, TW_REDIS_RETRY))
CALL(release, finish(redis, TW_REDIS_SNOOZE))
CALL(workers, tw_redis_get_workers(redis, (struct tw_redis_worker_info[4]){0}, 4, &(size_t){0}))
CALL(set_group_limits, tw_redis_set_limits(redis, "g", &(struct tw_redis_limits){.weight = 2}))
CALL(group_limits, tw_redis_get_limits(redis, "g", &(struct tw_redis_limits){0}))
CALL(each_limits, tw_redis_each_limits(redis, take_rule, NULL))
CALL(drain_group, tw_redis_drop_group(redis, "g", NULL))
CALL(groups, tw_redis_get_groups(redis, (struct tw_redis_group_stats[4]){0}, 4, &(size_t){0}))

static const char zero[] = ":0\r\n";
static const char counts[] = "*9\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:-1\r\n:1\r\n:1\r\n:1\r\n";
static const char done[] = "$1\r\no\r\n";

static const char rule[] = "$9\r\n0 2 3 4 1\r\n";

const struct redis_call redis_calls[] = {
	{"add", call_add, "*1\r\n:1\r\n"},
	{"add_many", call_add_many, "*3\r\n:1\r\n:1\r\n:1\r\n"},
	{"add_cron", call_add_cron, NULL},
	{"add_many_cron", call_add_many_cron, NULL},
	{"cancel", call_cancel, zero},
	{"move", call_move, "*1\r\n:0\r\n"},
	{"get", call_get,
	 "*7\r\n:1\r\n:0\r\n$1\r\na\r\n$1\r\n1\r\n$0\r\n\r\n$6\r\n1 9 0\n\r\n$0\r\n\r\n"},
	{"each", call_each, "*2\r\n:1\r\n:1\r\n"},
	{"dead_each", call_dead_each, "*4\r\n:1\r\n$1\r\n0\r\n*0\r\n:0\r\n"},
	{"stats", call_stats, counts},
	{"dead_retry", call_dead_retry, "*1\r\n:0\r\n"},
	{"dead_drop", call_dead_drop, zero},
	{"set_limits", call_set_limits, zero},
	{"limits", call_limits, rule},
	{"delete", call_delete, zero},
	{"dead_add", call_dead_add, "*1\r\n:0\r\n"},
	{"restore", call_restore, "*1\r\n:1\r\n"},
	{"claim", call_claim, "*6\r\n$1\r\n1\r\n:-1\r\n:0\r\n*0\r\n*0\r\n*0\r\n"},
	{"ack", call_ack, done},
	{"extend", call_extend, done},
	{"fail", call_fail, done},
	{"release", call_release, done},
	{"workers", call_workers, "*0\r\n"},
	{"set_group_limits", call_set_group_limits, zero},
	{"group_limits", call_group_limits, rule},
	{"each_limits", call_each_limits, NULL},
	{"drain_group", call_drain_group, ":1\r\n"},
	{"groups", call_groups, "*0\r\n"},
};
const size_t redis_call_count = sizeof(redis_calls) / sizeof(redis_calls[0]);
