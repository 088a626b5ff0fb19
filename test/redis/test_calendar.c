/* SPDX-License-Identifier: MIT */
/*
 * These tests are about tasks that recur by the calendar. None waits for a time of the calendar: a
 * task is moved to now, or its entry in Redis is rewritten as an outage of hours would have left
 * it.
 */
#include "support/fixture.h"

#include <timingwheel/cron.h>

#include "redis/client/client.h"
#include "support/runs.h"

#define ZONE "Europe/Berlin"
static const char hourly[] = "0 * * * *";
static const char weekdays[] = "0 3 * * 1-5";
static const int64_t hour_ms = 3600000;

static struct tw_redis_task by_calendar(const char *key, const char *cron)
{
	return (struct tw_redis_task){
		.key = key, .key_size = strlen(key), .cron = cron, .zone = ZONE};
}

static int64_t add(struct fixture *fixture, const struct tw_redis_task *task)
{
	int64_t due_ms = 0;

	due_ms = add_one(fixture->redis, task);
	return due_ms;
}

/* Returns the calendar's first time after that one. */
static int64_t time_after(const char *expression, int64_t ms)
{
	struct tw_cron *cron;
	int64_t next_s;

	assert_int_equal(tw_cron_create(&cron, expression, ZONE, NULL), TW_OK);
	assert_int_equal(tw_cron_next(cron, ms / 1000, &next_s), TW_OK);
	tw_cron_destroy(cron);
	return next_s * 1000;
}

static int64_t now(struct fixture *fixture)
{
	return redis_server_now(&fixture->server);
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

static enum tw_status ack(struct fixture *fixture, struct tw_redis_batch *batch)
{
	enum tw_status each;

	assert_ok(fixture->redis,
		  tw_redis_finish(fixture->redis, only_job(batch), 1, TW_REDIS_DONE, NULL, &each));
	claim_end(batch);
	return each;
}

/* Moves the task to now, claims it, and ends that run. */
static void run_once(struct fixture *fixture, const char *key)
{
	assert_int_equal(move_task(fixture->redis, key, 0), TW_OK);
	assert_int_equal(ack(fixture, await_claim(fixture->redis, key, TW_MINUTE)), TW_OK);
}

STORED(fixture, first_time_is_the_calendars)
{
	struct tw_redis_task task = by_calendar("a", weekdays);
	int64_t before = now(fixture);
	int64_t due_ms = add(fixture, &task);

	assert_in_range(due_ms, time_after(weekdays, before), time_after(weekdays, now(fixture)));
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms);
	/* The task must not be due before its own time. */
	task.at_ms = due_ms + 1;
	assert_int_equal(add(fixture, &task), time_after(weekdays, due_ms));
	task.at_ms = due_ms;
	assert_int_equal(add(fixture, &task), due_ms);
	task.at_ms = 1;
	assert_int_equal(add(fixture, &task), due_ms);
	task.at_ms = 0;
	task.delay = 30 * 24 * TW_HOUR;
	assert_true(add(fixture, &task) >= before + 30 * 24 * hour_ms);
	assert_int_equal(stats_of(fixture->redis).recurring, 1);
}

STORED(fixture, occurrences_follow_the_calendar)
{
	struct tw_redis_task task = by_calendar("a", weekdays);
	int64_t due_ms = add(fixture, &task);

	for (int i = 0; i < 10; i++) {
		run_once(fixture, "a");
		due_ms = time_after(weekdays, due_ms);
		assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms);
		assert_int_equal(find_task(fixture->redis, "a").attempts, 0);
	}
	/* These end in other ways. */
	assert_int_equal(cancel_task(fixture->redis, "a"), TW_OK);
	assert_nothing_due(fixture->redis, "a");
	due_ms = time_after(weekdays, due_ms);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms);
	run_once(fixture, "a");
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
	assert_int_equal(tw_redis_cancel(fixture->redis, "a", 1, TW_REDIS_WHOLE), TW_OK);
	assert_int_equal(stats_of(fixture->redis).recurring, 0);
}

/* A program adds its tasks again at each start. */
STORED(fixture, same_calendar_again_keeps_the_occurrence)
{
	struct tw_redis_task task = by_calendar("a", hourly);
	int64_t due_ms = add(fixture, &task);
	struct tw_redis_batch *batch;

	/* The occurrence is overdue, and then runs. */
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
	task.body = "new";
	task.body_size = 3;
	assert_int_equal(add(fixture, &task), due_ms);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_memory_equal(only_job(batch)->body, "new", 3);
	assert_int_equal(add(fixture, &task), due_ms);
	assert_int_equal(ack(fixture, batch), TW_OK);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, time_after(hourly, due_ms));
	/* A time in the past does not count: an overdue occurrence stays. */
	due_ms = time_after(hourly, due_ms);
	task.at_ms = 1;
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
	assert_int_equal(add(fixture, &task), due_ms);
	assert_true(find_task(fixture->redis, "a").due_ms <= now(fixture));
	task.at_ms = 0;
	task.mode = TW_REDIS_NEW;
	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_EXISTS);
	task.mode = TW_REDIS_REPLACE;
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	task.cron = weekdays;
	due_ms = add(fixture, &task);
	assert_int_equal(due_ms, time_after(weekdays, now(fixture)));
	assert_int_equal(ack(fixture, batch), TW_REDIS_STALE);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms);
	task.missed = TW_REDIS_MISSED_ALL;
	assert_int_equal(move_task(fixture->redis, "a", TW_HOUR), TW_OK);
	assert_int_equal(add(fixture, &task), due_ms);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms);
	task.key = "b";
	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_NOT_FOUND);
}

STORED(fixture, occurrence_of_the_calendar_that_would_begin_too_late_is_skipped)
{
	struct tw_redis_info info = {.task = by_calendar("a", hourly)};
	struct tw_redis_batch *batch;

	info.task.grace = 2 * TW_HOUR;
	info.due_ms = time_after(hourly, now(fixture)) - 11 * hour_ms;
	assert_ok(fixture->redis, tw_redis_restore(fixture->redis, &info, 1, NULL));
	assert_nothing_due(fixture->redis, "a");
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(only_job(batch)->due_ms, info.due_ms + 10 * hour_ms);
	assert_int_equal(ack(fixture, batch), TW_OK);
}

/* Its worker dies in its last attempt. */
STORED(fixture, spent_occurrence_of_the_calendar_is_followed_by_the_next)
{
	struct tw_redis_task task = by_calendar("a", hourly);
	char letter[40];
	int64_t at_ms;

	task.max_attempts = 1;
	at_ms = add(fixture, &task);
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
	await_claim(fixture->redis, "a", 10 * TW_MILLISECOND);
	wait_for(30 * TW_MILLISECOND);
	assert_nothing_due(fixture->redis, "a");
	snprintf(letter, sizeof(letter), "a#due=%lld", (long long)at_ms);
	assert_int_equal(find_dead(fixture->redis, letter).status, TW_OK);
	assert_int_equal(find_dead(fixture->redis, letter).attempts, 1);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, at_ms + hour_ms);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
}

/* The task was added again since, and goes on in another way. */
STORED(fixture, cancel_by_an_older_entry_changes_nothing)
{
	static const char now_there[] = "2000 0 one cron UTC * * * * *";
	struct tw_redis_task task = by_calendar("a", hourly);
	int64_t due_ms = add(fixture, &task);
	struct tw_redis *redis = fixture->redis;
	struct call *call;

	entry_set(fixture, "a", now_there);
	for (int same = 0; same < 2; same++) {
		assert_int_equal(call_enter(redis, &script_cancel, "a", 1, &call), TW_OK);
		eval_text(&call->eval, "a");
		eval_number(&call->eval, 0);
		eval_text(&call->eval, same ? now_there : "1000 0 one cron UTC * * * * *");
		eval_number(&call->eval, 5000);
		eval_number(&call->eval, 4000);
		eval_hint(&call->eval);
		assert_ok(redis, call_ask(redis, call));
		assert_int_equal(eval_integer(&call->eval, 0, 1), same ? 0 : -4);
		call_end(&redis->access->calls, call, TW_OK);
		assert_entry_begins(fixture, "a",
				    same ? "5000 4000 one cron UTC * * * * *" : now_there);
		assert_int_equal(find_task(fixture->redis, "a").due_ms, same ? 5000 : due_ms);
	}
}

STORED(fixture, calendar_without_a_further_time_ends)
{
	struct tw_redis_task task = by_calendar("a", hourly);

	for (int cancels = 0; cancels < 2; cancels++) {
		add(fixture, &task);
		entry_set(fixture, "a", "1 0 one cron UTC 0 0 30 2 *");
		assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
		if (cancels)
			assert_int_equal(cancel_task(fixture->redis, "a"), TW_OK);
		else
			assert_int_equal(ack(fixture, await_claim(fixture->redis, "a", TW_MINUTE)),
					 TW_OK);
		assert_int_equal(find_task(fixture->redis, "a").status, TW_NOT_FOUND);
		assert_int_equal(stats_of(fixture->redis).recurring, 0);
		assert_int_equal(redis_server_count_keys(&fixture->server, fixture->name_space), 0);
	}
}

static bool task_write(void *context, const struct tw_redis_info *info)
{
	char *text = context;

	snprintf(text, 100, "%s|%s|%d|%d", info->task.cron ? info->task.cron : "",
		 info->task.zone ? info->task.zone : "", (int)info->task.missed,
		 info->task.every != 0);
	return false;
}

STORED(fixture, listings_show_the_calendar)
{
	struct tw_redis_task task = by_calendar("a", "*/5  9 * * MON");
	char text[100];

	task.missed = TW_REDIS_MISSED_SKIP;
	for (int i = 0; i < 2; i++) {
		add(fixture, &task);
		assert_ok(fixture->redis, tw_redis_get(fixture->redis, "a", 1, task_write, text));
		assert_string_equal(text,
				    i ? "*/5  9 * * MON|UTC|1|0" : "*/5  9 * * MON|" ZONE "|1|0");
		assert_ok(fixture->redis,
			  tw_redis_each(fixture->redis, TW_REDIS_TASKS, task_write, text));
		assert_string_equal(text,
				    i ? "*/5  9 * * MON|UTC|1|0" : "*/5  9 * * MON|" ZONE "|1|0");
		task.zone = NULL;
	}
	add_task(fixture->redis, "a", TW_HOUR);
	assert_ok(fixture->redis, tw_redis_get(fixture->redis, "a", 1, task_write, text));
	assert_string_equal(text, "||0|0");
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
	add(fixture, &tasks[1]);
	assert_int_equal(tw_redis_add(other, tasks, 5, each), TW_REDIS_BAD_DATA);
	tw_redis_last_error(other, &error);
	client_close(other);
	assert_non_null(strstr(error.text, "the cron expression, at byte 0"));
	for (int i = 0; i < 5; i++)
		assert_int_equal(each[i].status, i == 3 ? TW_REDIS_BAD_DATA : TW_OK);
	/* The key's second task was added after its first. */
	assert_int_equal(find_task(fixture->redis, "c").due_ms, time_after(hourly, now(fixture)));
	assert_int_equal(stats_of(fixture->redis).recurring, 2);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, time_after(hourly, now(fixture)));
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

/* The task is five minutes late, and each minute is to run; then it waits for the next one. */
STORED(fixture, worker_runs_each_time_of_the_calendar_once)
{
	struct tw_redis_task task = by_calendar("a", "* * * * *");
	struct tw_redis_worker_options options = {.poll = 10 * TW_SECOND};
	struct tw_redis_worker *worker;
	struct runs runs;
	char entry[100];
	int64_t at_ms;
	size_t count;

	at_ms = add(fixture, &task) - 6 * 60000;
	snprintf(entry, sizeof(entry), "%lld 0 all cron %s * * * * *", (long long)at_ms, ZONE);
	entry_set(fixture, "a", entry);
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
	runs_init(&runs, 100);
	runs_attach(&runs, &options);
	worker = worker_start(&fixture->options, &options);
	WAIT_UNTIL(ends_count(&runs) >= 6);
	assert_int_equal(tw_redis_worker_stop(worker, TW_FOREVER), TW_OK);
	count = runs_count(&runs);
	worker_destroy(worker);
	/* Another minute may have begun meanwhile. */
	assert_in_range(count, 6, 7);
	for (size_t i = 1; i < count; i++) {
		assert_int_equal(run_of(&runs, "a", i).due_ms, at_ms + (int64_t)i * 60000);
		assert_int_equal(run_of(&runs, "a", i).attempt, 1);
	}
	runs_free(&runs);
}

STORED(fixture, zone_that_a_worker_does_not_know_is_counted)
{
	struct tw_redis_task task = by_calendar("a", hourly);
	struct tw_redis_worker_options options = {0};
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker *worker;
	struct runs runs;

	add(fixture, &task);
	entry_set(fixture, "a", "1 0 skip cron Nowhere/Land 0 * * * *");
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
	runs_init(&runs, 100);
	runs_attach(&runs, &options);
	worker = worker_start(&fixture->options, &options);
	WAIT_UNTIL(tw_redis_worker_get_stats(worker, NULL, &stats) == TW_OK && stats.put_off);
	worker_destroy(worker);
	assert_int_equal(runs_count(&runs), 0);
	assert_entry_begins(fixture, "a", "1 0 skip cron Nowhere/Land 0 * * * *");
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
	assert_int_equal(stats_of(fixture->redis).started, 0);
	runs_free(&runs);
}

FIXTURE_FILE
