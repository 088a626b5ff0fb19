/* SPDX-License-Identifier: MIT */
/*
 * groups.c has the calls about limits of groups, and the one that drains a group. The namespace's
 * own keys have the rules by which permits are given (scripts/group_permit.lua). Each shard has a
 * copy, so that its claims know which groups need permits, their weights, and what is paused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reserved.h"
#include "client.h"
#include "record.h"

/* DRAINED is how many tasks a script drains at most. */
enum { RULE_SIZE = 64, PAGE = 1000, DRAINED = 1000 };

static void rule_write(char rule[RULE_SIZE], const struct tw_redis_group_limits *limits)
{
	snprintf(rule, RULE_SIZE, "%u %u %u %u %d", limits->weight, limits->running,
		 limits->per_second, limits->burst, limits->paused);
}

/* Reads what rule_write() has written. Returns false if it is no rule. */
static bool rule_read(struct tw_redis_group_limits *limits, const char *rule)
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
	enum tw_status status = redis && group ? group_check(group, &error) : TW_INVALID;

	if (redis && status != TW_OK)
		calls_note(&redis->access->calls, status, error.text);
	return status;
}

/* Sets the rule among the namespace's own keys. */
static enum tw_status own_rule_set(struct tw_redis *redis, const char *const *arguments)
{
	struct call *call = call_begin(&redis->access->calls);

	if (!call)
		return TW_NO_MEMORY;
	eval_begin(&call->eval, &script_group_rule, &redis->space, SHARD_NONE);
	for (; *arguments; arguments++)
		eval_text(&call->eval, *arguments);
	return call_end(&redis->access->calls, call, call_ask(redis, call));
}

enum tw_status tw_redis_set_group_limits(struct tw_redis *redis, const char *group,
					 const struct tw_redis_group_limits *limits)
{
	char rule[RULE_SIZE];
	const char *const arguments[] = {group, rule, NULL};
	enum tw_status status = limits ? name_check(redis, group) : TW_INVALID;

	if (status == TW_OK &&
	    (limits->weight > TW_REDIS_WEIGHT_MAX || !reserved_are_0(limits->reserved)))
		status = TW_INVALID;
	if (status == TW_OK)
		status = limits_check(redis, limits->running, limits->per_second);
	if (status != TW_OK)
		return status;
	rule_write(rule, limits);
	status = own_rule_set(redis, arguments);
	return status == TW_OK
		       ? shards_run(redis, &script_group_rule, arguments, answers_check, NULL)
		       : status;
}

/* A visit passes names with rules to `each`. */
struct visit {
	struct tw_redis *redis;
	const char *name; /* the one that is asked for; "" means all */
	tw_redis_group_limits_fn *each;
	void *context;
	bool ended; /* `each` returned false */
};

static void rules_visit(struct visit *visit, const redisReply *items)
{
	for (size_t i = 0; i + 1 < items->elements && !visit->ended; i += 2) {
		struct tw_redis_group_limits limits = {0};
		const char *name = items->element[i]->str;

		/* A turn that was cut short has a field, too (scripts/shared/rules.lua). */
		if (group_check(name, NULL) == TW_OK &&
		    rule_read(&limits, items->element[i + 1]->str))
			visit->ended = !visit->each(visit->context, name, &limits);
	}
}

/* Asks for a page at the cursor, which then is that of the next. */
static enum tw_status page_visit(struct visit *visit, char cursor[24])
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
		snprintf(cursor, 24, "%.20s", reply->element[0]->str);
		rules_visit(visit, reply->element[1]);
		freeReplyObject(reply);
	}
	return status;
}

enum tw_status tw_redis_each_group_limits(struct tw_redis *redis, tw_redis_group_limits_fn *each,
					  void *context)
{
	struct visit visit = {.redis = redis, .name = "", .each = each, .context = context};
	enum tw_status status = redis && each ? TW_OK : TW_INVALID;
	char cursor[24] = "0";
	char last[24];

	if (status != TW_OK)
		return status;
	do {
		memcpy(last, cursor, sizeof(last));
		status = page_visit(&visit, cursor);
		/* A cursor that stays would never end. */
	} while (status == TW_OK && !visit.ended && strcmp(cursor, "0") != 0 &&
		 strcmp(cursor, last) != 0);
	return status;
}

/* What tw_redis_get_group_limits() looks for. */
struct wanted {
	const char *name;
	struct tw_redis_group_limits limits; /* all 0 if none are found */
	bool found;
};

static bool take_wanted(void *context, const char *group,
			const struct tw_redis_group_limits *limits)
{
	struct wanted *wanted = context;

	if (!strcmp(group, wanted->name)) {
		wanted->limits = *limits;
		wanted->found = true;
	}
	return !wanted->found;
}

enum tw_status tw_redis_get_group_limits(struct tw_redis *redis, const char *group,
					 struct tw_redis_group_limits *limits)
{
	struct wanted wanted = {.name = group};
	struct visit visit = {
		.redis = redis, .name = group, .each = take_wanted, .context = &wanted};
	char cursor[24] = "0";
	enum tw_status status = limits ? name_check(redis, group) : TW_INVALID;

	if (status == TW_OK)
		status = page_visit(&visit, cursor);
	if (limits)
		*limits = wanted.limits;
	return status == TW_OK && !wanted.found ? TW_NOT_FOUND : status;
}

/* Drains the shard's part of the group. */
static enum tw_status shard_drain(struct tw_redis *redis, unsigned shard, const char *group,
				  uint64_t *removed)
{
	enum tw_status status = TW_OK;
	int64_t count = DRAINED;

	while (status == TW_OK && count == DRAINED) {
		struct call *call = call_begin(&redis->access->calls);

		if (!call)
			return TW_NO_MEMORY;
		eval_begin(&call->eval, &script_group_drain, &redis->space, shard);
		eval_text(&call->eval, group);
		status = call_ask(redis, call);
		count = eval_integer(&call->eval, 0, 0);
		*removed += (uint64_t)eval_integer(&call->eval, 1, 0);
		status = call_end(&redis->access->calls, call, status);
	}
	return status;
}

enum tw_status tw_redis_drop_group(struct tw_redis *redis, const char *group, uint64_t *removed)
{
	enum tw_status status = name_check(redis, group);
	uint64_t count = 0;

	for (unsigned shard = 0; status == TW_OK && shard < redis->space.shards; shard++)
		status = shard_drain(redis, shard, group, &count);
	if (removed)
		*removed = count;
	return status;
}
