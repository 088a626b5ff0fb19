/* SPDX-License-Identifier: MIT */
/*
 * These tests are about tasks that recur by the calendar. The cases begin on Tuesday, 2030-01-01,
 * at 0:00 UTC, which is 1:00 in Berlin.
 */
#include "support/steps.h"

#include "redis/client/client.h"
#include "support/runs.h"

#define ZONE "Europe/Berlin"
#define WEEKDAYS " cron '0 3 * * 1-5' zone " ZONE
#define HOURLY " cron '0 * * * *' zone " ZONE

STEPS(first_time_is_the_calendars,
      "add a" WEEKDAYS " = 2h; get a due = 2h; add a" WEEKDAYS " at 2h1ms = 26h;"
      "add a" WEEKDAYS " at 2h = 2h; add a" WEEKDAYS " at -525959h = 2h;"
      "add a" WEEKDAYS " in 720h = 722h; stats recurring = 1")
STEPS(occurrences_follow_the_calendar,
      "add a" WEEKDAYS " = 2h; pass 2h; claim = a#1@2h; done a; get a due tried = 26h 0;"
      "pass 24h; claim = a#1@26h; done a; pass 24h; claim = a#1@50h; done a; get a due = 74h;"
      "pass 24h; claim = a#1@74h; done a; get a due = 146h; cancel a; claim = none;"
      "get a due = 170h; move a; claim = a; done a; get a due = 194h; stats tasks = 1;"
      "cancel a whole; keys = 0")

/* A program adds its tasks again at each start. */
STEPS(same_calendar_again_keeps_the_occurrence,
      "pass 1s; add a" HOURLY " = 1h; move a = 1s; add a body new" HOURLY " = 1h; claim = a;"
      "get a body = new; add a" HOURLY " = 1h; done a; get a due = 2h;"
      "move a = 1s; add a at -525959h" HOURLY " = 2h; get a due = 1s; add a mode new" HOURLY
      " = EXISTS;"
      "claim = a; add a mode replace" WEEKDAYS " = 2h; done a = STALE; get a due = 2h;"
      "move a in 1h = 1h1s; add a missed all" WEEKDAYS " = 2h; get a due = 2h;"
      "add b mode replace" WEEKDAYS " = NOT_FOUND")
STEPS(occurrence_of_the_calendar_that_would_begin_too_late_is_skipped,
      "pass 1s; restore a grace 2h due -10h at -10h" HOURLY "; claim = none; claim = a#1@0; done a;"
      "get a due = 1h")
STEPS(spent_occurrence_of_the_calendar_is_followed_by_the_next,
      "pass 1s; add a max 1" HOURLY " = 1h; move a; claim lease 1s = a; pass 1s; claim = none;"
      "letter a#due=1893459600000 tried = 1; get a due = 2h; stats tasks = 1")

#define WITHOUT_A_FURTHER_TIME "redis HSET {}every a '1 0 one cron UTC 0 0 30 2 *'; move a;"
STEPS(calendar_without_a_further_time_ends,
      "add a" HOURLY ";" WITHOUT_A_FURTHER_TIME "claim = a; done a; get a = NOT_FOUND; keys = 0;"
      "add a" HOURLY ";" WITHOUT_A_FURTHER_TIME "cancel a; get a = NOT_FOUND; keys = 0")
STEPS(listings_show_the_calendar,
      "add a cron '*/5  9 * * MON' zone " ZONE " missed skip;"
      "get a cron zone missed every = */5  9 * * MON " ZONE " skip 0;"
      "add a cron '*/5  9 * * MON' missed skip; get a cron zone missed = */5  9 * * MON UTC skip;"
      "add a in 1h; get a missed every = one 0")

static const char hourly[] = "0 * * * *";

static struct tw_redis_task by_calendar(const char *key, const char *cron)
{
	return (struct tw_redis_task){
		.key = key, .key_size = strlen(key), .cron = cron, .zone = ZONE};
}

/* Rewrites the task's schedule entry in Redis. */
static void entry_set(struct fixture *fixture, const char *key, const char *entry)
{
	redis_server_number(&fixture->server, "HSET {tw/%s/%u}every %s %s", fixture->name_space,
			    shard_of(fixture->redis, key), key, entry);
}

static void assert_entry_begins(struct fixture *fixture, const char *key, const char *begins)
{
	redisReply *reply =
		redis_server_ask(&fixture->server, "HGET {tw/%s/%u}every %s", fixture->name_space,
				 shard_of(fixture->redis, key), key);

	assert_int_equal(reply->type, REDIS_REPLY_STRING);
	reply->str[strlen(begins) < reply->len ? strlen(begins) : reply->len] = '\0';
	assert_string_equal(reply->str, begins);
	freeReplyObject(reply);
}

/* The task was added again since, and goes on in another way. */
STORED(fixture, cancel_by_an_older_entry_changes_nothing)
{
	static const char now_there[] = "2000 0 one cron UTC * * * * *";
	struct tw_redis_task task = by_calendar("a", hourly);
	int64_t due_ms = add_one(fixture->redis, &task);
	struct tw_redis *redis = fixture->redis;
	redisReply *reply;

	entry_set(fixture, "a", now_there);
	for (int same = 0; same < 2; same++) {
		assert_ok(redis, redis_ask(redis, &script_cancel, key_shard(redis, "a", 1),
					   reply_take, &reply, "sssss", "a", "0",
					   same ? now_there : "1000 0 one cron UTC * * * * *",
					   "5000", "4000"));
		assert_int_equal(reply->integer, same ? 0 : -4);
		freeReplyObject(reply);
		assert_entry_begins(fixture, "a",
				    same ? "5000 4000 one cron UTC * * * * *" : now_there);
		assert_int_equal(find_task(fixture->redis, "a").due_ms, same ? 5000 : due_ms);
	}
}

STORED(fixture, calendars_are_added_with_others)
{
	const struct tw_redis_task once = {.key = "c", .key_size = 1, .delay = TW_HOUR};
	const struct tw_redis_task tasks[] = {once, by_calendar("a", hourly), once,
					      by_calendar("b", "nonsense"),
					      by_calendar("c", hourly)};
	struct tw_redis_added each[5];
	struct tw_redis_error error;
	struct tw_redis *other = client_open(&fixture->options);

	/* The server knows one of the two scripts, and the other client has not asked for either
	 * yet. */
	redis_server_number(&fixture->server, "SCRIPT FLUSH");
	add_one(fixture->redis, &tasks[1]);
	assert_int_equal(tw_redis_add(other, tasks, 5, each), TW_REDIS_BAD_DATA);
	tw_redis_last_error(other, &error);
	client_close(other);
	assert_non_null(strstr(error.text, "the cron expression, at byte 0"));
	for (int i = 0; i < 5; i++)
		assert_int_equal(each[i].status, i == 3 ? TW_REDIS_BAD_DATA : TW_OK);
	/* The key's second task was added after its first. */
	assert_int_equal(find_task(fixture->redis, "c").due_ms, each[1].due_ms);
	assert_int_equal(stats_of(fixture->redis).recurring, 2);
}

STORED(fixture, bad_calendars_are_refused)
{
	static const char *const bad[] = {"", "* * * *", "61 * * * *", "0 0 30 2 *", "@sometimes"};
	struct tw_redis_task task = by_calendar("a", hourly);
	char long_one[TW_REDIS_CRON_MAX + 20];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		task.cron = bad[i];
		assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_REDIS_BAD_DATA);
	}
	snprintf(long_one, sizeof(long_one), "%*s0 * * * *", TW_REDIS_CRON_MAX, "");
	task.cron = long_one;
	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_REDIS_BAD_DATA);
	task = by_calendar("a", hourly);
	task.zone = "Nowhere/Land";
	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_REDIS_BAD_DATA);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

/* The task is six minutes late, and each minute is to run; then it waits for the next one. */
STORED(fixture, worker_runs_each_time_of_the_calendar_once)
{
	struct tw_redis_task task = by_calendar("a", "* * * * *");
	struct tw_redis_worker *worker;
	char entry[100];
	int64_t at_ms;
	size_t count;

	at_ms = add_one(fixture->redis, &task) - 6 * 60000;
	snprintf(entry, sizeof(entry), "%lld 0 all cron %s * * * * *", (long long)at_ms, ZONE);
	entry_set(fixture, "a", entry);
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
	worker = WORK(fixture, .poll = 10 * TW_SECOND);
	WAIT_UNTIL(ends_count() >= 7);
	assert_int_equal(tw_redis_worker_stop(worker, TW_FOREVER), TW_OK);
	count = runs_count();
	worker_destroy(worker);
	assert_int_equal(count, 7);
	for (size_t i = 1; i < count; i++) {
		assert_int_equal(run_of("a", i).due_ms, at_ms + (int64_t)i * 60000);
		assert_int_equal(run_of("a", i).attempt, 1);
	}
}

STORED(fixture, zone_that_a_worker_does_not_know_is_counted)
{
	struct tw_redis_task task = by_calendar("a", hourly);
	struct tw_redis_worker *worker;

	add_one(fixture->redis, &task);
	entry_set(fixture, "a", "1 0 skip cron Nowhere/Land 0 * * * *");
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
	worker = WORK(fixture);
	WAIT_UNTIL(worker_stats(worker).put_off);
	worker_destroy(worker);
	assert_int_equal(runs_count(), 0);
	assert_entry_begins(fixture, "a", "1 0 skip cron Nowhere/Land 0 * * * *");
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
	assert_int_equal(stats_of(fixture->redis).started, 0);
}

CLOCKED_FILE
