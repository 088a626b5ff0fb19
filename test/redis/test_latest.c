/* SPDX-License-Identifier: MIT */
/*
 * This tests the latest due time of tasks that are added repeatedly: by the scripts, which read the
 * test's clock, and through the calls.
 */
#include "support/fixture.h"

#include "support/proxy.h"
#include "support/scripts.h"

/* ---- The scripts, by the test's clock ---- */

static const int64_t start_ms = INT64_C(1700000000000);

struct shard {
	redisContext *context;
	int64_t now_ms;
	const char *group; /* the tasks' group, or NULL */
	char token[24];    /* the token of the last claim that gave a task */
};

static void time_set(struct shard *shard, int64_t after_ms)
{
	shard->now_ms = start_ms + after_ms;
	script_clock_set(shard->context, shard->now_ms * 1000);
}

static struct shard shard_open(const struct fixture *fixture, const char *group)
{
	struct shard shard = {.context = redisConnect("127.0.0.1", fixture->server.port),
			      .group = group};

	assert_int_equal(shard.context->err, 0);
	freeReplyObject(redisCommand(shard.context, "FLUSHDB"));
	time_set(&shard, 0);
	return shard;
}

/* Adds the task "k", whose body is the time, with a delay of 1 s. Returns its due time in
 * milliseconds after the start. */
static int64_t add(struct shard *shard, int64_t latest_ms)
{
	char group[32] = "";
	char record[96];
	char latest_us[24];
	const char *mode = latest_ms ? "al" : shard->group ? "ag" : "ap";
	const char *words[6] = {mode, "k", "0", "1000000", record, latest_us};
	redisReply *reply;
	int64_t due;

	if (shard->group)
		snprintf(group, sizeof(group), "{\"group\":\"%s\"}", shard->group);
	snprintf(record, sizeof(record), "8 %zu%s\n%s%" PRId64, strlen(group),
		 latest_ms ? " 0" : "", group, shard->now_ms - start_ms);
	snprintf(latest_us, sizeof(latest_us), "%" PRId64, latest_ms * 1000);
	reply = script_call(shard->context, &script_add, latest_ms ? 6 : 5, words);
	due = reply->element[0]->integer - start_ms;
	freeReplyObject(reply);
	return due;
}

/* Claims with a lease of an hour. Returns the body of the task, or -1 if none is due. */
static int64_t claim(struct shard *shard)
{
	const char *words[10] = {"10", "3600000", "1000000", "",  "0",
				 "0",  "1000000", "0",       "0", "0"};
	redisReply *reply = script_call(shard->context, &script_claim, 10, words);
	int64_t body = -1;

	assert_true(reply->element[4]->elements <= 1);
	if (reply->element[4]->elements) {
		const char *record = reply->element[4]->element[0]->str;
		const char *json_end = strchr(record, '}');

		body = strtoll(json_end ? json_end + 1 : strchr(record, '\n') + 1, NULL, 10);
		snprintf(shard->token, sizeof(shard->token), "%lld", reply->element[2]->integer);
	}
	freeReplyObject(reply);
	return body;
}

/* Ends the first attempt, which is that of the last claim. The task is retried after that time, or
 * done if it is negative. Returns 'o', or 's' if another run has the task. */
static char run_end(struct shard *shard, int64_t retry_ms)
{
	char run[32];
	char wait[24];
	const char *words[4] = {retry_ms < 0 ? "d" : "w", "k", run, wait};
	redisReply *reply;
	char answer;

	snprintf(run, sizeof(run), "1:%s", shard->token);
	snprintf(wait, sizeof(wait), "%" PRId64, retry_ms);
	reply = script_call(shard->context, &script_finish, retry_ms < 0 ? 3 : 4, words);
	answer = reply->str[0];
	freeReplyObject(reply);
	return answer;
}

static int64_t move(struct shard *shard, int64_t at_ms)
{
	char at[24];
	const char *words[3] = {"k", at, "0"};
	redisReply *reply;
	int64_t due;

	snprintf(at, sizeof(at), "%" PRId64, start_ms + at_ms);
	reply = script_call(shard->context, &script_move, 3, words);
	due = reply->integer - start_ms;
	freeReplyObject(reply);
	return due;
}

static const char *const groups[] = {NULL, "g"};
enum { GROUPS = sizeof(groups) / sizeof(groups[0]) };

TEST(fixture, adds_without_a_pause_run_once_at_the_latest_time)
{
	for (int i = 0; i < GROUPS; i++) {
		struct shard shard = shard_open(*state, groups[i]);

		for (int64_t ms = 0; ms < 3000; ms += 100) {
			time_set(&shard, ms);
			assert_int_equal(claim(&shard), -1);
			assert_int_equal(add(&shard, 3000), ms < 2000 ? ms + 1000 : 3000);
		}
		time_set(&shard, 2999);
		assert_int_equal(claim(&shard), -1);
		time_set(&shard, 3000);
		/* It has the data of the last add. */
		assert_int_equal(claim(&shard), 2900);
		assert_int_equal(run_end(&shard, -1), 'o');
		for (int64_t ms = 3000; ms < 9000; ms += 100) {
			time_set(&shard, ms);
			assert_int_equal(claim(&shard), -1);
		}
		redisFree(shard.context);
	}
}

TEST(fixture, burst_runs_once_a_delay_after_its_last_add)
{
	for (int i = 0; i < GROUPS; i++) {
		struct shard shard = shard_open(*state, groups[i]);

		for (int64_t ms = 0; ms <= 1500; ms += 100) {
			time_set(&shard, ms);
			assert_int_equal(add(&shard, 3000), ms + 1000);
			assert_int_equal(claim(&shard), -1);
		}
		time_set(&shard, 2499);
		assert_int_equal(claim(&shard), -1);
		time_set(&shard, 2500);
		assert_int_equal(claim(&shard), 1500);
		assert_int_equal(run_end(&shard, -1), 'o');
		/* The next burst has a latest time of its own. */
		time_set(&shard, 10000);
		assert_int_equal(add(&shard, 3000), 11000);
		time_set(&shard, 10900);
		assert_int_equal(add(&shard, 3000), 11900);
		redisFree(shard.context);
	}
}

TEST(fixture, first_add_fixes_the_latest_time)
{
	struct shard shard = shard_open(*state, NULL);

	assert_int_equal(add(&shard, 500), 500);
	time_set(&shard, 100);
	assert_int_equal(add(&shard, 60000), 500);
	/* The time has passed, and nobody has claimed the task yet. */
	time_set(&shard, 700);
	assert_int_equal(add(&shard, 60000), 700);
	assert_int_equal(claim(&shard), 700);
	redisFree(shard.context);
}

TEST(fixture, task_that_has_begun_is_replaced_with_a_new_latest_time)
{
	for (int retried = 0; retried < 2; retried++) {
		struct shard shard = shard_open(*state, NULL);

		assert_int_equal(add(&shard, 500), 500);
		time_set(&shard, 500);
		assert_int_equal(claim(&shard), 0);
		if (retried)
			assert_int_equal(run_end(&shard, 60000), 'o');
		time_set(&shard, 600);
		assert_int_equal(add(&shard, 1500), 1600);
		time_set(&shard, 1500);
		assert_int_equal(add(&shard, 1500), 2100);
		assert_int_equal(run_end(&shard, -1), 's');
		time_set(&shard, 2100);
		assert_int_equal(claim(&shard), 1500);
		redisFree(shard.context);
	}
}

TEST(fixture, add_without_a_limit_removes_it)
{
	for (int i = 0; i < GROUPS; i++) {
		struct shard shard = shard_open(*state, groups[i]);

		assert_int_equal(add(&shard, 500), 500);
		time_set(&shard, 100);
		assert_int_equal(add(&shard, 0), 1100);
		time_set(&shard, 200);
		assert_int_equal(add(&shard, 700), 900);
		redisFree(shard.context);
	}
}

TEST(fixture, move_passes_the_latest_time_and_keeps_it)
{
	for (int i = 0; i < GROUPS; i++) {
		struct shard shard = shard_open(*state, groups[i]);

		assert_int_equal(add(&shard, 3000), 1000);
		assert_int_equal(move(&shard, 5000), 5000);
		time_set(&shard, 2500);
		assert_int_equal(claim(&shard), -1);
		assert_int_equal(add(&shard, 3000), 3000);
		time_set(&shard, 3000);
		assert_int_equal(claim(&shard), 2500);
		redisFree(shard.context);
	}
}

/* ---- The calls ---- */

static bool see(void *context, const struct tw_redis_info *info)
{
	*(struct tw_redis_info *)context = *info;
	return true;
}

/* Returns the key's task, whose pointers are no longer valid. */
static struct tw_redis_info get(struct tw_redis *redis, const char *key)
{
	struct tw_redis_info info;

	assert_ok(redis, tw_redis_get(redis, key, strlen(key), see, &info));
	return info;
}

static struct tw_redis_task task_of(const char *key, tw_duration delay, tw_duration latest)
{
	return (struct tw_redis_task){
		.key = key, .key_size = strlen(key), .delay = delay, .latest = latest};
}

STORED(fixture, latest_may_be_less_than_the_delay_or_the_longest)
{
	struct tw_redis_task task = task_of("a", TW_HOUR, TW_MINUTE);
	struct tw_redis_info info;
	int64_t due_ms;

	due_ms = add_one(fixture->redis, &task);
	info = get(fixture->redis, "a");
	assert_true(info.due_ms == due_ms && info.latest_due_ms == due_ms);
	assert_true(due_ms - info.now_ms <= 60001 && due_ms - info.now_ms > 30000);
	task = task_of("b", TW_HOUR, TW_REDIS_DELAY_MAX);
	due_ms = add_one(fixture->redis, &task);
	info = get(fixture->redis, "b");
	assert_true(info.latest_due_ms - due_ms == (TW_REDIS_DELAY_MAX - TW_HOUR) / TW_MILLISECOND);
	task = task_of("c", TW_HOUR, 0);
	due_ms = add_one(fixture->redis, &task);
	assert_int_equal(get(fixture->redis, "c").latest_due_ms, 0);
}

STORED(fixture, modes_apply_with_a_limit)
{
	struct tw_redis_task task = task_of("a", TW_HOUR, TW_MINUTE);

	task.mode = TW_REDIS_REPLACE;
	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_NOT_FOUND);
	task.mode = TW_REDIS_NEW;
	add_one(fixture->redis, &task);
	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_EXISTS);
	task.mode = TW_REDIS_REPLACE;
	add_one(fixture->redis, &task);
}

STORED(fixture, tasks_of_a_batch_have_their_limits)
{
	struct tw_redis_task tasks[] = {
		task_of("a", TW_HOUR, TW_MINUTE), task_of("plain", TW_HOUR, 0),
		task_of("grouped", TW_HOUR, 0),   task_of("b", TW_HOUR, TW_MINUTE),
		task_of("a", TW_SECOND, TW_HOUR), task_of("b", 0, 0),
	};
	enum { COUNT = sizeof(tasks) / sizeof(tasks[0]) };
	struct tw_redis_added each[COUNT];
	struct tw_redis_info info;

	tasks[2].group = tasks[3].group = "g";
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, COUNT, each));
	info = get(fixture->redis, "a");
	/* The due time is the second add's, and the limit is the first one's. */
	assert_true(info.due_ms - info.now_ms <= 1001);
	assert_true(info.latest_due_ms > info.due_ms);
	assert_true(info.latest_due_ms - info.now_ms <= 60001);
	assert_int_equal(get(fixture->redis, "plain").latest_due_ms, 0);
	assert_int_equal(get(fixture->redis, "grouped").latest_due_ms, 0);
	assert_int_equal(get(fixture->redis, "b").latest_due_ms, 0);
}

STORED(fixture, add_repeated_after_a_lost_reply_keeps_the_latest_time)
{
	struct tw_redis_task first = task_of("first", TW_HOUR, TW_MINUTE);
	struct tw_redis_task task = task_of("the-lost-one", TW_HOUR, TW_MINUTE);
	struct tw_redis_options options = fixture->options;
	struct tw_redis *redis;
	struct proxy proxy;
	int64_t latest_ms;
	int64_t due_ms;

	proxy_start(&proxy, fixture->server.port);
	options.url = proxy.url;
	redis = client_open(&options);
	/* The server knows the script: the first try adds the task. */
	add_one(redis, &first);
	proxy_lose_reply(&proxy, "the-lost-one");
	assert_int_equal(tw_redis_add(redis, &task, 1, NULL), TW_REDIS_OUTCOME_UNKNOWN);
	assert_int_equal(proxy_lost(&proxy), 1);
	latest_ms = get(redis, "the-lost-one").latest_due_ms;
	WAIT_UNTIL(redis_server_now(&fixture->server) > latest_ms - 60000 + 5);
	due_ms = add_one(redis, &task);
	assert_true(due_ms == latest_ms);
	assert_true(get(redis, "the-lost-one").latest_due_ms == latest_ms);
	proxy_stop(&proxy);
}

/* The latest due time is behind the grace in the record, which the claim reads. */
STORED(fixture, grace_applies_beside_a_limit)
{
	struct tw_redis_task task = task_of("a", 0, TW_MINUTE);
	struct tw_redis_batch *batch;

	task.grace = 2 * TW_SECOND;
	add_one(fixture->redis, &task);
	make_overdue(fixture, "a", 3 * TW_SECOND);
	assert_nothing_due(fixture->redis, "a");
	assert_int_equal(find_task(fixture->redis, "a").status, TW_NOT_FOUND);
	task.grace = 0;
	add_one(fixture->redis, &task);
	make_overdue(fixture, "a", TW_HOUR);
	batch = claim_for(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(only_job(batch)->attempt, 1);
}

STORED(fixture, restored_task_has_its_limit)
{
	struct tw_redis_task task = task_of("a", 0, 24 * TW_HOUR);
	struct tw_redis_info info;
	int64_t now_ms = redis_server_now(&fixture->server);
	int64_t due_ms;

	info = (struct tw_redis_info){.task = task_of("a", 0, 0),
				      .due_ms = now_ms + 1000,
				      .latest_due_ms = now_ms + 60000};
	assert_ok(fixture->redis, tw_redis_restore(fixture->redis, &info, 1, NULL));
	assert_true(get(fixture->redis, "a").latest_due_ms == now_ms + 60000);
	task.delay = TW_HOUR;
	due_ms = add_one(fixture->redis, &task);
	assert_true(due_ms == now_ms + 60000);
	info.latest_due_ms = -1;
	assert_int_equal(tw_redis_restore(fixture->redis, &info, 1, NULL), TW_INVALID);
	info.latest_due_ms = INT64_C(253402300800000);
	assert_int_equal(tw_redis_restore(fixture->redis, &info, 1, NULL), TW_INVALID);
}

FIXTURE_FILE
