/* SPDX-License-Identifier: MIT */
/*
 * groups.c has the calls about limits, of the namespace and of its groups, and the one that drains
 * a group. The namespace's own keys have the limits by which permits are given (scripts/permit.lua,
 * scripts/group_permit.lua). A shard has its pause and a copy of the groups' rules, so that its
 * claims know which groups need permits, their weights, and what is paused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reserved.h"
#include "client.h"
#include "record.h"

/* DRAINED is how many tasks a script drains at most. */
enum { RULE_SIZE = 64, CURSOR_SIZE = 24, PAGE = 1000, DRAINED = 1000 };

static void rule_write(char rule[RULE_SIZE], const struct tw_redis_limits *limits)
{
	snprintf(rule, RULE_SIZE, "%u %u %u %u %d", limits->weight, limits->running,
		 limits->per_second, limits->burst, limits->paused);
}

/* Reads what rule_write() has written. Returns false if it is no rule. */
static bool rule_read(struct tw_redis_limits *limits, const char *rule)
{
	unsigned *const fields[] = {&limits->weight, &limits->running, &limits->per_second,
				    &limits->burst};
	char *end = (char *)rule;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		*fields[i] = (unsigned)strtoul(end, &end, 10);
		if (*end != ' ')
			return false;
	}
	limits->paused = strtoul(end, &end, 10);
	return !*end;
}

static enum tw_status name_check(struct tw_redis *redis, const char *group)
{
	struct tw_redis_error error = {0};
	enum tw_status status = group_check(group, &error);

	if (status != TW_OK)
		calls_note(&redis->access->calls, status, error.text);
	return status;
}

/* Checks limits of the group, or of the namespace if it is NULL. */
static enum tw_status limits_check(struct tw_redis *redis, const char *group,
				   const struct tw_redis_limits *limits)
{
	enum tw_status status = name_check(redis, group);

	if (limits->weight > TW_REDIS_WEIGHT_MAX || !reserved_are_0(limits->reserved) ||
	    (!group && (limits->weight || limits->burst)))
		return TW_INVALID;
	if (status == TW_OK && (limits->running || limits->per_second) &&
	    redis->space.shards != 1) {
		status = TW_REDIS_UNFIT;
		calls_note(&redis->access->calls, status,
			   "limits need a namespace with one shard, and this one has more");
	}
	return status;
}

static enum tw_status group_set(struct tw_redis *redis, const char *group,
				const struct tw_redis_limits *limits)
{
	char rule[RULE_SIZE];
	const char *const arguments[] = {group, rule, NULL};
	enum tw_status status;

	rule_write(rule, limits);
	status = own_run(redis, &script_group_rule, arguments);
	return status == TW_OK
		       ? shards_run(redis, &script_group_rule, arguments, answers_check, NULL)
		       : status;
}

static enum tw_status namespace_set(struct tw_redis *redis, const struct tw_redis_limits *limits)
{
	char running[16];
	char per_second[16];
	char shards[16];
	const char *const own[] = {running, per_second, redis->space.channel, shards, NULL};
	const char *const pause[] = {limits->paused ? "1" : "0", NULL};
	enum tw_status status;

	snprintf(running, sizeof(running), "%u", limits->running);
	snprintf(per_second, sizeof(per_second), "%u", limits->per_second);
	snprintf(shards, sizeof(shards), "%u", redis->space.shards);
	status = own_run(redis, &script_set_limits, own);
	return status == TW_OK ? shards_run(redis, &script_pause, pause, answers_check, NULL)
			       : status;
}

enum tw_status tw_redis_set_limits(struct tw_redis *redis, const char *group,
				   const struct tw_redis_limits *limits)
{
	enum tw_status status = redis && limits ? limits_check(redis, group, limits) : TW_INVALID;

	if (status != TW_OK)
		return status;
	return group ? group_set(redis, group, limits) : namespace_set(redis, limits);
}

/* A visit passes names with rules to `each`. */
struct visit {
	struct tw_redis *redis;
	const char *name; /* the one that is asked for; "" means all */
	tw_redis_limits_fn *each;
	void *context;
	bool ended; /* `each` returned false */
};

static void rules_visit(struct visit *visit, const redisReply *items)
{
	for (size_t i = 0; i + 1 < items->elements && !visit->ended; i += 2) {
		struct tw_redis_limits limits = {0};
		const char *name = items->element[i]->str;

		/* A turn that was cut short has a field, too (scripts/shared/rules.lua). */
		if (group_check(name, NULL) == TW_OK &&
		    rule_read(&limits, items->element[i + 1]->str))
			visit->ended = !visit->each(visit->context, name, &limits);
	}
}

/* Asks for a page at the cursor, which then is that of the next. */
static enum tw_status page_visit(struct visit *visit, char cursor[CURSOR_SIZE])
{
	struct calls *calls = &visit->redis->access->calls;
	struct call *call = call_begin(calls);
	redisReply *reply = NULL;
	enum tw_status status;

	if (!call)
		return TW_NO_MEMORY;
	eval_begin(&call->eval, &script_group_rules, &visit->redis->space, SHARD_NONE);
	eval_text(&call->eval, cursor);
	eval_number(&call->eval, PAGE);
	eval_text(&call->eval, visit->name);
	status = call_ask(visit->redis, call);
	if (status == TW_OK) {
		reply = call->eval.reply;
		call->eval.reply = NULL;
	}
	status = call_end(calls, call, status);
	if (status == TW_OK) {
		snprintf(cursor, CURSOR_SIZE, "%.20s", reply->element[0]->str);
		rules_visit(visit, reply->element[1]);
		freeReplyObject(reply);
	}
	return status;
}

static enum tw_status namespace_get(struct tw_redis *redis, struct tw_redis_limits *limits)
{
	struct call *call = call_begin(&redis->access->calls);
	struct tw_redis_stats stats;
	enum tw_status status;

	if (!call)
		return TW_NO_MEMORY;
	eval_begin(&call->eval, &script_limits, &redis->space, SHARD_NONE);
	status = call_ask(redis, call);
	if (status == TW_OK) {
		limits->running = (unsigned)eval_integer(&call->eval, 0, 0);
		limits->per_second = (unsigned)eval_integer(&call->eval, 1, 0);
	}
	status = call_end(&redis->access->calls, call, status);
	if (status == TW_OK)
		status = tw_redis_get_stats(redis, &stats);
	limits->paused = status == TW_OK && stats.paused;
	return status;
}

static bool take_limits(void *context, const char *group, const struct tw_redis_limits *limits)
{
	(void)group;
	*(struct tw_redis_limits *)context = *limits;
	return false;
}

enum tw_status tw_redis_get_limits(struct tw_redis *redis, const char *group,
				   struct tw_redis_limits *limits)
{
	struct visit visit = {
		.redis = redis, .name = group, .each = take_limits, .context = limits};
	char cursor[CURSOR_SIZE] = "0";
	enum tw_status status;

	if (!redis || !limits)
		return TW_INVALID;
	*limits = (struct tw_redis_limits){0};
	if (!group)
		return namespace_get(redis, limits);
	status = name_check(redis, group);
	return status == TW_OK ? page_visit(&visit, cursor) : status;
}

enum tw_status tw_redis_each_limits(struct tw_redis *redis, tw_redis_limits_fn *each, void *context)
{
	struct visit visit = {.redis = redis, .name = "", .each = each, .context = context};
	enum tw_status status = redis && each ? TW_OK : TW_INVALID;
	struct tw_redis_limits own = {0};
	char cursor[CURSOR_SIZE] = "0";
	char last[CURSOR_SIZE];

	if (status == TW_OK)
		status = namespace_get(redis, &own);
	if (status != TW_OK || !each(context, NULL, &own))
		return status;
	do {
		memcpy(last, cursor, sizeof(last));
		status = page_visit(&visit, cursor);
		/* A cursor that stays would never end. */
	} while (status == TW_OK && !visit.ended && strcmp(cursor, "0") != 0 &&
		 strcmp(cursor, last) != 0);
	return status;
}

/* What a pass over the shards has drained, with those before. */
struct drained {
	uint64_t count;
	bool more; /* a shard may have more */
};

static enum tw_status drained_read(void *result, const struct eval *evals, unsigned shards)
{
	struct drained *drained = result;

	drained->more = false;
	for (unsigned shard = 0; shard < shards; shard++) {
		drained->more |= eval_integer(&evals[shard], 0, 0) == DRAINED;
		drained->count += (uint64_t)eval_integer(&evals[shard], 1, 0);
	}
	return TW_OK;
}

enum tw_status tw_redis_drop_group(struct tw_redis *redis, const char *group, uint64_t *removed)
{
	const char *const arguments[] = {group, NULL};
	struct drained drained = {.more = true};
	enum tw_status status = redis && group ? name_check(redis, group) : TW_INVALID;

	while (status == TW_OK && drained.more)
		status = shards_run(redis, &script_group_drain, arguments, drained_read, &drained);
	if (removed)
		*removed = drained.count;
	return status;
}
