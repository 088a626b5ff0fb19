/* SPDX-License-Identifier: MIT */
/*
 * groups.c has the calls about limits, of the namespace and of its groups, and the one that drains
 * a group. Each shard has all rules, by which its claims count (scripts/shared/limits.lua), so the
 * first one is asked for them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "client.h"
#include "record.h"

/* DRAINED is how many tasks a script drains at most. RULES_PLACE is the place of the hash of rules
 * among a script's keys. */
enum { RULE_SIZE = 80, DRAINED = 1000, RULES_PLACE = 6 };

/* Writes "" for no limits at all. */
static void rule_write(char rule[RULE_SIZE], const struct tw_redis_limits *limits)
{
	int64_t per_ms = limits->per ? delay_to_ms(limits->per) : TW_SECOND / TW_MILLISECOND;

	*rule = '\0';
	if (limits->weight || limits->running || limits->rate || limits->paused)
		snprintf(rule, RULE_SIZE, "%u %u %u %" PRId64 " %d", limits->weight,
			 limits->running, limits->rate, limits->rate ? per_ms : 0, limits->paused);
}

/* Reads what rule_write() has written. Returns false if it is no rule. */
static bool rule_read(struct tw_redis_limits *limits, const char *rule)
{
	int64_t per_ms;
	int paused;
	int end = 0;

	*limits = (struct tw_redis_limits){0};
	if (sscanf(rule, "%u %u %u %" SCNd64 " %d%n", &limits->weight, &limits->running,
		   &limits->rate, &per_ms, &paused, &end) != 5 ||
	    rule[end] || per_ms < 0 || per_ms > TW_REDIS_DELAY_MAX / TW_MILLISECOND)
		return false;
	limits->per = per_ms * TW_MILLISECOND;
	limits->paused = paused;
	return true;
}

static enum tw_status name_check(struct tw_redis *redis, const char *group)
{
	struct tw_redis_error error = {0};
	enum tw_status status = group_check(group, &error);

	if (status != TW_OK)
		access_note(redis->access, status, error.text);
	return status;
}

/* Checks limits of the group, or of the namespace if it is NULL. */
static enum tw_status limits_check(struct tw_redis *redis, const char *group,
				   const struct tw_redis_limits *limits)
{
	enum tw_status status = name_check(redis, group);
	const char *fault = limits->weight > TW_REDIS_WEIGHT_MAX ? "the weight is over 1000"
			    : limits->weight && !group           ? "only groups have a weight"
			    : limits->per < 0 || limits->per > TW_REDIS_DELAY_MAX
				    ? "the time of the rate is negative or over 100 years"
			    : !reserved_are_0(limits->reserved)
				    ? "a reserved field of the limits is not 0"
				    : NULL;

	if (fault)
		return redis_refuse(redis, fault);
	if (status == TW_OK && (limits->running || limits->rate) && redis->space.shards != 1) {
		status = TW_REDIS_UNFIT;
		access_note(redis->access, status,
			    "limits need a namespace with one shard, and this one has more: move "
			    "its tasks to another by `twr list --json` and `twr load`");
	}
	return status;
}

enum tw_status tw_redis_set_limits(struct tw_redis *redis, const char *group,
				   const struct tw_redis_limits *limits)
{
	char rule[RULE_SIZE];
	const char *const arguments[] = {group ? group : "", rule, NULL};
	enum tw_status status = redis && limits ? limits_check(redis, group, limits) : TW_INVALID;

	if (status != TW_OK)
		return status;
	rule_write(rule, limits);
	return shards_run(redis, &script_limit, arguments, answers_check, NULL);
}

static enum tw_status limits_read(void *result, struct call *call)
{
	return rule_read(result, call->eval.reply->str) ? TW_OK : TW_REDIS_FAILED;
}

enum tw_status tw_redis_get_limits(struct tw_redis *redis, const char *group,
				   struct tw_redis_limits *limits)
{
	enum tw_status status = redis && limits ? name_check(redis, group) : TW_INVALID;

	if (status != TW_OK)
		return status;
	*limits = (struct tw_redis_limits){0};
	return redis_ask(redis, &script_rule, 0, limits_read, limits, "s", group ? group : "");
}

/* Passes the groups' rules of a page to `each`. Returns whether it wants more. */
static bool rules_visit(const redisReply *items, tw_redis_limits_fn *each, void *context)
{
	bool goes_on = true;

	for (size_t i = 0; i + 1 < items->elements && goes_on; i += 2) {
		struct tw_redis_limits limits;
		const char *name = items->element[i]->str;

		if (group_check(name, NULL) == TW_OK &&
		    rule_read(&limits, items->element[i + 1]->str))
			goes_on = each(context, name, &limits);
	}
	return goes_on;
}

enum tw_status tw_redis_each_limits(struct tw_redis *redis, tw_redis_limits_fn *each, void *context)
{
	struct scan scan = {.place = RULES_PLACE};
	struct tw_redis_limits own;
	enum tw_status status = each ? tw_redis_get_limits(redis, NULL, &own) : TW_INVALID;
	bool goes_on = status == TW_OK && each(context, NULL, &own);

	while (goes_on) {
		redisReply *reply;

		status = scan_page(redis, 0, &scan, &reply);
		if (status != TW_OK)
			return status;
		goes_on = rules_visit(reply->element[2], each, context) && !scan_is_over(&scan);
		freeReplyObject(reply);
	}
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
		drained->count += (uint64_t)eval_integer(&evals[shard], 0, 0);
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
