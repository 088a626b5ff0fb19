/* SPDX-License-Identifier: MIT */
/* These tests are about limits of a namespace and of groups as workers obey them. test_turns.c
 * tests the scripts. Here the namespace is the group "". */
#include "support/fixture.h"

#include "support/runs.h"

enum { GROUPS_MOST = 8, LEASE_MS = 5000 };

/* A crowd is what the handlers of all workers do together. Its counts order nothing, so all
 * operations are relaxed. */
struct crowd {
	const char *groups[GROUPS_MOST]; /* constant */
	tw_duration takes;
	struct {
		_Atomic int running;
		_Atomic int most;
		_Atomic int done;
	} of[GROUPS_MOST];
};

static void count_in(struct crowd *crowd, int index)
{
	int running =
		atomic_fetch_add_explicit(&crowd->of[index].running, 1, memory_order_relaxed) + 1;
	int most = atomic_load_explicit(&crowd->of[index].most, memory_order_relaxed);

	while (running > most &&
	       !atomic_compare_exchange_weak_explicit(&crowd->of[index].most, &most, running,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

static void count_out(struct crowd *crowd, int index)
{
	atomic_fetch_sub_explicit(&crowd->of[index].running, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&crowd->of[index].done, 1, memory_order_relaxed);
}

static enum tw_redis_outcome join_crowd(void *context, const struct tw_redis_job *job,
					struct tw_redis_verdict *verdict)
{
	struct crowd *crowd = context;
	const char *group = job->group ? job->group : "";

	for (int i = 0; i < GROUPS_MOST && crowd->groups[i]; i++)
		if (!strcmp(group, crowd->groups[i]))
			count_in(crowd, i);
	wait_for(crowd->takes);
	for (int i = 0; i < GROUPS_MOST && crowd->groups[i]; i++)
		if (!strcmp(group, crowd->groups[i]))
			count_out(crowd, i);
	return TW_REDIS_DONE;
}

static int done(struct crowd *crowd, int index)
{
	return atomic_load_explicit(&crowd->of[index].done, memory_order_relaxed);
}

static struct tw_redis_worker *start(struct fixture *fixture, struct crowd *crowd)
{
	const struct tw_redis_worker_options options = {.context = crowd,
							.handler = join_crowd,
							.handlers = 8,
							.lease = LEASE_MS * TW_MILLISECOND};

	return worker_start(&fixture->options, &options);
}

static void set(struct fixture *fixture, const char *group, struct tw_redis_limits limits)
{
	assert_ok(fixture->redis,
		  tw_redis_set_limits(fixture->redis, *group ? group : NULL, &limits));
}

static struct tw_redis_limits get(struct fixture *fixture, const char *group)
{
	struct tw_redis_limits limits;

	assert_ok(fixture->redis,
		  tw_redis_get_limits(fixture->redis, *group ? group : NULL, &limits));
	return limits;
}

/* Returns how many runs hold places of limits. */
static long long places(struct fixture *fixture)
{
	return redis_server_number(&fixture->server, "HGET {tw/%s/0}busy %s", fixture->name_space,
				   "");
}

static const char *const limited[] = {"a", ""};
enum { LIMITED = sizeof(limited) / sizeof(limited[0]) };

STORED(one_shard, no_more_run_than_may)
{
	enum { COUNT = 60, MOST = 3 };

	for (size_t k = 0; k < LIMITED; k++) {
		struct crowd crowd = {.groups = {limited[k], "b"}, .takes = 5 * TW_MILLISECOND};
		struct tw_redis_worker *workers[2];

		set(fixture, limited[k], (struct tw_redis_limits){.running = MOST});
		for (int i = 0; i < 2; i++)
			workers[i] = start(fixture, &crowd);
		add_to_group(fixture->redis, *limited[k] ? limited[k] : NULL, COUNT, 0, 0);
		add_to_group(fixture->redis, "b", COUNT, 0, 0);
		WAIT_UNTIL(done(&crowd, 0) == COUNT && done(&crowd, 1) == COUNT);
		assert_in_range(crowd.of[0].most, 1, MOST);
		for (int i = 0; i < 2; i++)
			worker_stop(workers[i]);
		/* Ended tasks and workers leave nothing behind. */
		assert_int_equal(places(fixture), 0);
		assert_int_equal(stats_of(fixture->redis).tasks, 0);
	}
}

STORED(one_shard, paused_group_waits)
{
	struct crowd crowd = {.groups = {"a", "b"}};
	struct tw_redis_worker *worker;
	int64_t begin;

	set(fixture, "a", (struct tw_redis_limits){.weight = 2, .paused = true});
	add_to_group(fixture->redis, "a", 5, 0, 0);
	worker = start(fixture, &crowd);
	add_to_group(fixture->redis, "b", 20, 0, 0);
	WAIT_UNTIL(done(&crowd, 1) == 20);
	assert_int_equal(done(&crowd, 0), 0);
	begin = wall_clock();
	set(fixture, "a", (struct tw_redis_limits){.weight = 2});
	WAIT_UNTIL(done(&crowd, 0) == 5);
	/* The worker continues at once, and does not wait for its next look. */
	assert_true(wall_clock() - begin < 8 * TW_SECOND);
	worker_stop(worker);
}

STORED(one_shard, polling_worker_goes_on_when_a_place_is_free)
{
	enum { COUNT = 30 };
	struct crowd crowd = {.groups = {"a"}};
	struct tw_redis_worker *worker;
	int64_t begin;

	redis_server_number(&fixture->server, "ACL SETUSER quiet on >pw ~* +@all -subscribe");
	fixture->options.user = "quiet";
	fixture->options.password = "pw";
	set(fixture, "a", (struct tw_redis_limits){.running = 1});
	add_to_group(fixture->redis, "a", COUNT, 0, 0);
	begin = wall_clock();
	worker = start(fixture, &crowd);
	WAIT_UNTIL(done(&crowd, 0) == COUNT);
	/* It would poll once a second. */
	assert_true(wall_clock() - begin < COUNT / 2 * TW_SECOND);
	worker_stop(worker);
}

STORED(one_shard, drain_leaves_other_groups)
{
	const struct tw_redis_task recurring = {
		.key = "r", .key_size = 1, .delay = TW_HOUR, .every = TW_HOUR, .group = "t"};
	struct tw_redis_batch *batch;
	uint64_t removed;

	add_to_group(fixture->redis, "t", 2500, 0, 0);
	add_to_group(fixture->redis, "tt", 4, 0, 0);
	add_one(fixture->redis, &recurring);
	batch = claim_for(fixture->redis, "t-0", TW_MINUTE);
	assert_true(batch->count > 0);
	assert_ok(fixture->redis, tw_redis_drop_group(fixture->redis, "t", &removed));
	/* The tasks on lease and those of the other group stay. */
	assert_int_equal(stats_of(fixture->redis).tasks, 2505 - removed);
	assert_in_range(2505 - removed, 4, batch->count + 4);
	assert_int_equal(stats_of(fixture->redis).recurring, 0);
	assert_ok(fixture->redis, tw_redis_drop_group(fixture->redis, "t", &removed));
	assert_int_equal(removed, 0);
}

struct rules {
	char text[512];
	unsigned most; /* the number of rules that it takes, or 0 for all */
};

static bool take_rule(void *context, const char *group, const struct tw_redis_limits *limits)
{
	struct rules *rules = context;
	size_t used = strlen(rules->text);

	snprintf(rules->text + used, sizeof(rules->text) - used, "%s=%u,%u,%u/%lld,%d;",
		 group ? group : "", limits->weight, limits->running, limits->rate,
		 (long long)(limits->per / TW_MILLISECOND), limits->paused);
	return --rules->most != 0;
}

STORED(one_shard, rules_are_listed)
{
	static const char *const none[] = {"1 1 1 1 1", "1", "1 1 1 -1 1", "1 1 1 1 1 1",
					   "1 1 1 999999999999999 1"};
	struct tw_redis_limits limits = {.running = 9};
	struct rules rules = {0};

	assert_ok(fixture->redis, tw_redis_get_limits(fixture->redis, "a", &limits));
	assert_int_equal(limits.running, 0);
	assert_ok(fixture->redis, tw_redis_each_limits(fixture->redis, take_rule, &rules));
	assert_string_equal(rules.text, "=0,0,0/0,0;");
	set(fixture, "last",
	    (struct tw_redis_limits){
		    .weight = 1, .running = UINT32_MAX, .rate = 3, .per = TW_MINUTE + 1});
	set(fixture, "", (struct tw_redis_limits){.running = 7, .rate = 1, .paused = true});
	*rules.text = '\0';
	assert_ok(fixture->redis, tw_redis_each_limits(fixture->redis, take_rule, &rules));
	assert_string_equal(rules.text, "=0,7,1/1000,1;last=1,4294967295,3/60001,0;");
	rules = (struct rules){.most = 1};
	assert_ok(fixture->redis, tw_redis_each_limits(fixture->redis, take_rule, &rules));
	assert_string_equal(rules.text, "=0,7,1/1000,1;");
	set(fixture, "any", (struct tw_redis_limits){.weight = 2});
	rules = (struct rules){.most = 2};
	assert_ok(fixture->redis, tw_redis_each_limits(fixture->redis, take_rule, &rules));
	assert_int_equal(rules.most, 0);
	set(fixture, "any", (struct tw_redis_limits){0});
	rules = (struct rules){0};
	assert_ok(fixture->redis, tw_redis_get_limits(fixture->redis, "last", &limits));
	assert_int_equal(limits.running, UINT32_MAX);
	/* What other programs have written is no rule. */
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		redis_server_number(&fixture->server, "HSET {tw/%s/0}limits %s %s",
				    fixture->name_space, i ? "g" : "\n", none[i]);
		*rules.text = '\0';
		assert_ok(fixture->redis, tw_redis_each_limits(fixture->redis, take_rule, &rules));
		assert_string_equal(rules.text, "=0,7,1/1000,1;last=1,4294967295,3/60001,0;");
	}
	redis_server_number(&fixture->server, "HDEL {tw/%s/0}limits g \n", fixture->name_space);
	set(fixture, "last", (struct tw_redis_limits){.per = TW_SECOND});
	set(fixture, "", (struct tw_redis_limits){0});
	assert_int_equal(redis_server_number(&fixture->server, "EXISTS {tw/%s/0}limits",
					     fixture->name_space),
			 0);
}

/* Weights and pauses are no counts. */
STORED(fixture, limits_need_one_shard)
{
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_limits limits = {.running = 1};
	struct tw_redis_error error;

	assert_int_equal(tw_redis_set_limits(redis, "a", &limits), TW_REDIS_UNFIT);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "one shard"));
	assert_non_null(strstr(error.text, "twr load"));
	assert_ok(redis, tw_redis_get_limits(redis, "a", &limits));
	assert_int_equal(limits.running, 0);
	limits.rate = 1;
	assert_int_equal(tw_redis_set_limits(redis, "a", &limits), TW_REDIS_UNFIT);
	limits = (struct tw_redis_limits){.weight = 2, .paused = true};
	assert_ok(redis, tw_redis_set_limits(redis, "a", &limits));
	limits = (struct tw_redis_limits){.paused = true, .running = 1};
	assert_int_equal(tw_redis_set_limits(redis, NULL, &limits), TW_REDIS_UNFIT);
	limits = (struct tw_redis_limits){.paused = true, .rate = 1};
	assert_int_equal(tw_redis_set_limits(redis, NULL, &limits), TW_REDIS_UNFIT);
	assert_int_equal(stats_of(redis).paused, 0);
	limits.rate = 0;
	assert_ok(redis, tw_redis_set_limits(redis, NULL, &limits));
	assert_int_equal(stats_of(redis).paused, 4);
}

STORED(one_shard, bad_arguments_are_refused)
{
	struct tw_redis *redis = fixture->redis;
	static const struct {
		const char *group;
		struct tw_redis_limits limits;
		const char *fault;
	} wrong[] = {{"a", {.weight = TW_REDIS_WEIGHT_MAX + 1}, "weight is over 1000"},
		     {NULL, {.weight = 2}, "only groups have a weight"},
		     {"a", {.rate = 2, .per = -1}, "time of the rate"},
		     {"a", {.rate = 2, .per = TW_REDIS_DELAY_MAX + 1}, "time of the rate"},
		     {"a", {.reserved = {1}}, "reserved"}};
	struct tw_redis_limits limits = {.running = 1};
	char name[TW_REDIS_GROUP_MAX + 2];
	struct tw_redis_error error;

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(tw_redis_set_limits(NULL, "a", &limits), TW_INVALID);
	assert_int_equal(tw_redis_set_limits(redis, "a", NULL), TW_INVALID);
	assert_int_equal(tw_redis_set_limits(redis, "", &limits), TW_INVALID);
	assert_int_equal(tw_redis_set_limits(redis, name, &limits), TW_INVALID);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "group"));
	assert_int_equal(tw_redis_set_limits(redis, "a\n", &limits), TW_REDIS_BAD_DATA);
	assert_int_equal(tw_redis_get_limits(NULL, "a", &limits), TW_INVALID);
	assert_int_equal(tw_redis_get_limits(redis, "a", NULL), TW_INVALID);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(tw_redis_set_limits(redis, wrong[i].group, &wrong[i].limits),
				 TW_INVALID);
		tw_redis_last_error(redis, &error);
		assert_int_equal(error.status, TW_INVALID);
		assert_non_null(strstr(error.text, wrong[i].fault));
	}
	assert_int_equal(get(fixture, "a").rate, 0);
	assert_int_equal(tw_redis_each_limits(NULL, take_rule, NULL), TW_INVALID);
	assert_int_equal(tw_redis_each_limits(redis, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_drop_group(redis, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_drop_group(redis, "a\n", NULL), TW_REDIS_BAD_DATA);
}

FIXTURE_FILE
