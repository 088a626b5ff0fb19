/* SPDX-License-Identifier: MIT */
/*
 * These tests are about recurring tasks. Whatever ends an occurrence sets the next one; times don't
 * drift; missed times are run as asked for; none is lost or runs twice.
 */
#include "support/fixture.h"

#include "redis/client/recurrence.h"
#include "redis/wire/space.h"
#include "support/runs.h"
#include "support/scripts.h"

enum { PERIOD_MS = 100 };

static struct tw_redis_task recurring(const char *key, int64_t at_ms, enum tw_redis_missed missed)
{
	return (struct tw_redis_task){.key = key,
				      .key_size = strlen(key),
				      .at_ms = at_ms,
				      .every = PERIOD_MS * TW_MILLISECOND,
				      .missed = missed};
}

/* Adds a task with that period. Returns its first due time. */
static int64_t add_recurring(struct fixture *fixture, const char *key, enum tw_redis_missed missed)
{
	struct tw_redis_task task = recurring(key, 0, missed);
	int64_t due_ms;

	due_ms = add_one(fixture->redis, &task);
	return due_ms;
}

static enum tw_status ack(struct fixture *fixture, const struct tw_redis_batch *batch)
{
	return finish_job(fixture->redis, batch, TW_REDIS_DONE);
}

STORED(fixture, occurrences_follow_each_other_without_a_drift)
{
	int64_t first = add_recurring(fixture, "a", TW_REDIS_MISSED_ALL);
	uint64_t token = 0;

	for (int i = 0; i < 8; i++) {
		struct tw_redis_batch *batch = await_claim(fixture->redis, "a", TW_MINUTE);
		const struct tw_redis_job *job = only_job(batch);

		assert_int_equal(job->due_ms, first + i * PERIOD_MS);
		assert_int_equal(job->attempt, 1);
		assert_true(job->token > token);
		token = job->token;
		assert_int_equal(ack(fixture, batch), TW_OK);
		/* A second acknowledgement ends nothing. */
		assert_int_equal(ack(fixture, batch), TW_REDIS_STALE);
		assert_int_equal(stats_of(fixture->redis).tasks, 1);
	}
	assert_int_equal(find_task(fixture->redis, "a").due_ms, first + 8 * PERIOD_MS);
	assert_int_equal(stats_of(fixture->redis).recurring, 1);
}

/* Returns the task after a run that took over ten periods, and a time before its end. */
static struct found after_missed(struct fixture *fixture, enum tw_redis_missed missed,
				 int64_t *first, int64_t *before)
{
	struct tw_redis_batch *batch;

	*first = add_recurring(fixture, "a", missed);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	wait_for(10 * PERIOD_MS * TW_MILLISECOND + 50 * TW_MILLISECOND);
	*before = redis_server_now(&fixture->server);
	assert_int_equal(ack(fixture, batch), TW_OK);
	return find_task(fixture->redis, "a");
}

STORED(fixture, missed_times_are_made_up_for_by_one_run)
{
	struct tw_redis_batch *batch;
	int64_t before;
	int64_t first;
	struct found found = after_missed(fixture, TW_REDIS_MISSED_ONE, &first, &before);

	/* This is the last missed time. */
	assert_true(found.due_ms >= first + 10 * PERIOD_MS);
	assert_true(found.due_ms <= found.now_ms);
	assert_int_equal((found.due_ms - first) % PERIOD_MS, 0);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(only_job(batch)->due_ms, found.due_ms);
}

STORED(fixture, missed_times_are_skipped)
{
	int64_t before;
	int64_t first;
	struct found found = after_missed(fixture, TW_REDIS_MISSED_SKIP, &first, &before);

	/* The next time was in the future when it was set. */
	assert_true(found.due_ms > before);
	assert_int_equal((found.due_ms - first) % PERIOD_MS, 0);
}

STORED(fixture, missed_times_are_all_made_up_for)
{
	int64_t before;
	int64_t first;
	struct found found = after_missed(fixture, TW_REDIS_MISSED_ALL, &first, &before);

	assert_int_equal(found.due_ms, first + PERIOD_MS);
}

/* A program adds its tasks again at each start. */
STORED(fixture, same_beginning_in_the_past_means_the_same_times)
{
	struct tw_redis_task task = recurring("a", 0, TW_REDIS_MISSED_ONE);
	int64_t now_ms = stats_of(fixture->redis).now_ms;
	int64_t due_ms[2];

	task.every = TW_HOUR;
	task.at_ms = now_ms - 10 * TW_HOUR / TW_MILLISECOND - 1000;
	for (int i = 0; i < 2; i++) {
		due_ms[i] = add_one(fixture->redis, &task);
		assert_int_equal(due_ms[i], task.at_ms + 11 * TW_HOUR / TW_MILLISECOND);
		assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms[i]);
	}
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
	task.mode = TW_REDIS_NEW;
	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_EXISTS);
	task.key = "b";
	task.mode = TW_REDIS_REPLACE;
	assert_int_equal(tw_redis_add(fixture->redis, &task, 1, NULL), TW_NOT_FOUND);
	assert_int_equal(stats_of(fixture->redis).recurring, 1);
}

STORED(fixture, same_period_again_keeps_the_occurrence)
{
	struct tw_redis_task task = recurring("a", 0, TW_REDIS_MISSED_SKIP);
	int64_t hour_ms = TW_HOUR / TW_MILLISECOND;
	struct tw_redis_batch *batch;
	int64_t first_ms;
	int64_t due_ms;

	/* This is what `twr add --every 1h` adds. */
	task.every = task.delay = TW_HOUR;
	first_ms = add_one(fixture->redis, &task);
	task.body = "new";
	task.body_size = 3;
	for (int way = 0; way < 3; way++) {
		/* The task has no time, a delay of one period, or the beginning of its series. */
		task.delay = way == 1 ? TW_HOUR : 0;
		task.at_ms = way == 2 ? first_ms - 10 * hour_ms : 0;
		due_ms = add_one(fixture->redis, &task);
		assert_int_equal(due_ms, first_ms);
		assert_int_equal(find_task(fixture->redis, "a").due_ms, first_ms);
		assert_string_equal(find_task(fixture->redis, "a").body, "new");
		assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
		due_ms = add_one(fixture->redis, &task);
		batch = await_claim(fixture->redis, "a", TW_MINUTE);
		due_ms = add_one(fixture->redis, &task);
		assert_int_equal(due_ms, first_ms);
		assert_int_equal(fail_job(fixture->redis, batch, 0, "busy"), TW_OK);
		due_ms = add_one(fixture->redis, &task);
		batch = await_claim(fixture->redis, "a", TW_MINUTE);
		assert_int_equal(only_job(batch)->attempt, 2);
		assert_int_equal(ack(fixture, batch), TW_OK);
		first_ms += hour_ms;
		assert_int_equal(find_task(fixture->redis, "a").due_ms, first_ms);
	}
}

STORED(fixture, another_rhythm_begins_again)
{
	int64_t hour_ms = TW_HOUR / TW_MILLISECOND;
	struct tw_redis_task first = recurring("a", 0, TW_REDIS_MISSED_ONE);
	struct tw_redis_task others[6];
	struct tw_redis_batch *batch;
	int64_t first_ms;
	int64_t due_ms;

	first.every = first.delay = TW_HOUR;
	for (int i = 0; i < 6; i++) {
		(void)tw_redis_cancel(fixture->redis, "a", 1, TW_REDIS_WHOLE);
		first_ms = add_one(fixture->redis, &first);
		for (int k = 0; k < 6; k++)
			others[k] = first;
		others[0].every = others[0].delay = 2 * TW_HOUR;
		others[1].delay = TW_MINUTE;
		others[2].at_ms = first_ms - 10 * hour_ms + 1;
		others[3].at_ms = first_ms + hour_ms;
		others[4].missed = TW_REDIS_MISSED_ALL;
		others[5].every = 0;
		others[5].cron = "0 0 1 1 *";
		assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
		batch = await_claim(fixture->redis, "a", TW_MINUTE);
		due_ms = add_one(fixture->redis, &others[i]);
		assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms);
		assert_int_equal(ack(fixture, batch), TW_REDIS_STALE);
	}
}

STORED(fixture, cancelled_occurrence_is_followed_by_the_next)
{
	struct tw_redis_task task = recurring("a", 0, TW_REDIS_MISSED_ONE);
	int64_t due_ms;

	task.every = TW_HOUR;
	task.delay = TW_MINUTE;
	due_ms = add_one(fixture->redis, &task);
	assert_int_equal(cancel_task(fixture->redis, "a"), TW_OK);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms + TW_HOUR / TW_MILLISECOND);
	assert_int_equal(tw_redis_cancel(fixture->redis, "a", 1, TW_REDIS_WHOLE), TW_OK);
	assert_int_equal(tw_redis_cancel(fixture->redis, "a", 1, TW_REDIS_WHOLE), TW_NOT_FOUND);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	assert_int_equal(stats_of(fixture->redis).recurring, 0);
}

/* A move is for this occurrence only. */
STORED(fixture, moved_occurrence_moves_no_other)
{
	struct tw_redis_task task = recurring("a", 0, TW_REDIS_MISSED_ONE);
	struct tw_redis_batch *batch;
	int64_t due_ms;

	task.every = TW_HOUR;
	task.delay = TW_MINUTE;
	due_ms = add_one(fixture->redis, &task);
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_OK);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(ack(fixture, batch), TW_OK);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms + TW_HOUR / TW_MILLISECOND);
}

STORED(fixture, ended_while_it_runs_it_is_the_last)
{
	struct tw_redis_batch *batch;

	add_recurring(fixture, "a", TW_REDIS_MISSED_ALL);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(tw_redis_cancel(fixture->redis, "a", 1, TW_REDIS_WHOLE), TW_RUNNING);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
	assert_int_equal(ack(fixture, batch), TW_OK);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

/* Finds the letter of the occurrence of "a" that was due then. Writes its key. */
static struct found occurrence_letter(struct fixture *fixture, int64_t due_ms, char key[KEY_SIZE])
{
	snprintf(key, KEY_SIZE, "a#due=%lld", (long long)due_ms);
	return find_dead(fixture->redis, key);
}

STORED(fixture, dead_occurrence_is_followed_by_the_next)
{
	int64_t first = add_recurring(fixture, "a", TW_REDIS_MISSED_ALL);
	struct tw_redis_batch *batch = await_claim(fixture->redis, "a", TW_MINUTE);
	struct found found;
	char key[KEY_SIZE];

	assert_int_equal(fail_job(fixture->redis, batch, TW_FOREVER, "hopeless"), TW_OK);
	assert_string_equal(occurrence_letter(fixture, first, key).reason, "hopeless");
	found = find_task(fixture->redis, "a");
	assert_int_equal(found.due_ms, first + PERIOD_MS);
	assert_int_equal(found.attempts, 0);
}

/* Each letter becomes a task of its own while the recurring task goes on. */
STORED(fixture, dead_occurrences_can_be_retried)
{
	enum { COUNT = 3 };
	int64_t first = add_recurring(fixture, "a", TW_REDIS_MISSED_ALL);
	struct tw_redis_batch *batch;
	struct found found;
	char key[KEY_SIZE];

	for (int i = 0; i < COUNT; i++) {
		batch = await_claim(fixture->redis, "a", TW_MINUTE);
		assert_int_equal(fail_job(fixture->redis, batch, TW_FOREVER, "hopeless"), TW_OK);
	}
	assert_int_equal(move_task(fixture->redis, "a", TW_HOUR), TW_OK);
	assert_int_equal(stats_of(fixture->redis).dead, COUNT);
	assert_int_equal(tw_redis_retry(fixture->redis, "a", 1), TW_NOT_FOUND);
	for (int i = 0; i < COUNT; i++) {
		found = occurrence_letter(fixture, first + i * PERIOD_MS, key);
		assert_int_equal(found.status, TW_OK);
		assert_int_equal(shard_of(fixture->redis, key), shard_of(fixture->redis, "a"));
		assert_ok(fixture->redis, tw_redis_retry(fixture->redis, key, strlen(key)));
		batch = await_claim(fixture->redis, key, TW_MINUTE);
		assert_int_equal(only_job(batch)->key_size, strlen(key));
		assert_memory_equal(only_job(batch)->key, key, strlen(key));
		assert_int_equal(ack(fixture, batch), TW_OK);
		assert_int_equal(find_task(fixture->redis, key).status, TW_NOT_FOUND);
	}
	assert_int_equal(stats_of(fixture->redis).dead, 0);
	assert_int_equal(stats_of(fixture->redis).recurring, 1);
	assert_int_equal(find_task(fixture->redis, "a").status, TW_OK);
}

/* The key has no room for a due time in the letter's key. */
STORED(fixture, letter_of_a_long_key_has_that_key)
{
	char key[TW_REDIS_KEY_MAX + 1];
	struct tw_redis_task task = {.key = key, .every = TW_HOUR};
	struct tw_redis_batch *batch;

	memset(key, 'k', TW_REDIS_KEY_MAX);
	for (task.key_size = 1000; task.key_size <= TW_REDIS_KEY_MAX; task.key_size += 24) {
		key[task.key_size] = '\0';
		add_one(fixture->redis, &task);
		batch = await_claim(fixture->redis, key, TW_MINUTE);
		assert_int_equal(fail_job(fixture->redis, batch, TW_FOREVER, "hopeless"), TW_OK);
		assert_int_equal(find_dead(fixture->redis, key).status,
				 task.key_size == 1000 ? TW_NOT_FOUND : TW_OK);
		key[task.key_size] = 'k';
	}
	assert_int_equal(stats_of(fixture->redis).dead, 2);
}

STORED(fixture, failed_occurrence_keeps_its_time)
{
	int64_t first = add_recurring(fixture, "a", TW_REDIS_MISSED_ALL);
	struct tw_redis_batch *batch = await_claim(fixture->redis, "a", TW_MINUTE);

	assert_int_equal(fail_job(fixture->redis, batch, 250 * TW_MILLISECOND, ""), TW_OK);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(only_job(batch)->attempt, 2);
	assert_int_equal(ack(fixture, batch), TW_OK);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, first + PERIOD_MS);
}

/* Its worker died in its last attempt. */
STORED(fixture, buried_occurrence_is_followed_by_the_next)
{
	struct tw_redis_task task = recurring("a", 0, TW_REDIS_MISSED_ONE);
	int64_t first;
	char key[KEY_SIZE];

	task.every = TW_HOUR;
	task.max_attempts = 1;
	first = add_one(fixture->redis, &task);
	await_claim(fixture->redis, "a", 10 * TW_MILLISECOND);
	wait_for(30 * TW_MILLISECOND);
	assert_nothing_due(fixture->redis, "a");
	assert_int_equal(occurrence_letter(fixture, first, key).status, TW_OK);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, first + TW_HOUR / TW_MILLISECOND);
}

STORED(fixture, overtaken_run_sets_nothing)
{
	struct tw_redis_task task = recurring("a", 0, TW_REDIS_MISSED_ALL);
	struct tw_redis_batch *late;
	struct tw_redis_batch *now;
	int64_t first;

	task.every = TW_HOUR;
	first = add_one(fixture->redis, &task);
	late = await_claim(fixture->redis, "a", 10 * TW_MILLISECOND);
	wait_for(30 * TW_MILLISECOND);
	now = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(ack(fixture, late), TW_REDIS_STALE);
	assert_int_equal(find_task(fixture->redis, "a").state, TW_REDIS_LEASED);
	assert_int_equal(ack(fixture, now), TW_OK);
	assert_int_equal(ack(fixture, late), TW_REDIS_STALE);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, first + TW_HOUR / TW_MILLISECOND);
}

STORED(fixture, plain_task_takes_the_place_of_a_recurring_one)
{
	struct tw_redis_batch *batch;

	add_recurring(fixture, "a", TW_REDIS_MISSED_ALL);
	add_task(fixture->redis, "a", 0);
	assert_int_equal(stats_of(fixture->redis).recurring, 0);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(ack(fixture, batch), TW_OK);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

/* The order is that of the array, also for one key. */
STORED(fixture, many_are_added_with_others)
{
	const struct tw_redis_task once = {.key = "a", .key_size = 1, .delay = TW_HOUR};
	struct tw_redis_task tasks[5] = {once, recurring("a", 0, TW_REDIS_MISSED_ONE), once,
					 recurring("b", 0, TW_REDIS_MISSED_ONE), once};
	struct tw_redis_added each[5];

	tasks[4].key = "b";
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, 4, each));
	for (int i = 0; i < 4; i++)
		assert_int_equal(each[i].status, TW_OK);
	assert_int_equal(stats_of(fixture->redis).tasks, 2);
	assert_int_equal(stats_of(fixture->redis).recurring, 1);
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, 5, NULL));
	assert_int_equal(stats_of(fixture->redis).recurring, 0);
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks + 1, 1, NULL));
	assert_int_equal(stats_of(fixture->redis).recurring, 1);
}

static bool task_copy(void *context, const struct tw_redis_info *info)
{
	*(struct tw_redis_task *)context = info->task;
	return false;
}

STORED(fixture, listings_show_how_it_recurs)
{
	struct tw_redis_task found;

	for (enum tw_redis_missed missed = 0; missed <= TW_REDIS_MISSED_ALL; missed++) {
		add_recurring(fixture, "a", missed);
		assert_ok(fixture->redis, tw_redis_get(fixture->redis, "a", 1, task_copy, &found));
		assert_int_equal(found.every, PERIOD_MS * TW_MILLISECOND);
		assert_int_equal(found.missed, missed);
		assert_ok(fixture->redis,
			  tw_redis_each(fixture->redis, TW_REDIS_TASKS, task_copy, &found));
		assert_int_equal(found.every, PERIOD_MS * TW_MILLISECOND);
		assert_int_equal(found.missed, missed);
	}
	add_task(fixture->redis, "a", TW_HOUR);
	assert_ok(fixture->redis, tw_redis_get(fixture->redis, "a", 1, task_copy, &found));
	assert_int_equal(found.every, 0);
}

/* Redis reports when the next one is due: no worker waits for its next look. */
STORED(fixture, worker_runs_each_occurrence_once_and_never_early)
{
	enum { RUNS = 10 };
	struct tw_redis_worker_options options = {.poll = 10 * TW_SECOND};
	struct tw_redis_worker *worker;
	struct runs runs;
	int64_t first;

	runs_init(&runs, 1000);
	runs_attach(&runs, &options);
	worker = worker_start(&fixture->options, &options);
	first = add_recurring(fixture, "a", TW_REDIS_MISSED_ALL);
	WAIT_UNTIL(ends_count(&runs) >= RUNS);
	assert_int_equal(tw_redis_worker_stop(worker, TW_FOREVER), TW_OK);
	worker_destroy(worker);
	for (int i = 0; i < RUNS; i++) {
		struct run_seen run = run_of(&runs, "a", (size_t)i);

		assert_int_equal(run.due_ms, first + i * PERIOD_MS);
		assert_int_equal(run.attempt, 1);
		assert_true(run.lateness >= 0);
	}
	assert_true(run_of(&runs, "a", RUNS - 1).began - run_of(&runs, "a", 0).began <
		    9 * TW_SECOND);
	runs_free(&runs);
}

static bool occurrence_each(void *context, const struct tw_redis_info *info)
{
	*(int64_t *)context = info->task.at_ms;
	return false;
}

static int64_t occurrence_of(struct fixture *fixture, const char *key)
{
	int64_t at_ms = 0;

	assert_ok(fixture->redis,
		  tw_redis_get(fixture->redis, key, strlen(key), occurrence_each, &at_ms));
	return at_ms;
}

/* Makes a worker claim the task that long after it was due. Returns how many times that has
 * skipped. */
static uint64_t claim_too_late(struct fixture *fixture, struct tw_redis_info *info, tw_duration ago)
{
	struct tw_redis_worker_stats stats = {0};
	struct tw_redis_worker *worker;

	info->due_ms = redis_server_now(&fixture->server) - ago / TW_MILLISECOND;
	assert_ok(fixture->redis, tw_redis_restore(fixture->redis, info, 1, NULL));
	assert_int_equal(tw_redis_worker_start(&worker, &fixture->options, NULL, NULL), TW_OK);
	for (int i = 0; i < 3000 && !stats.skipped; i++) {
		wait_for(10 * TW_MILLISECOND);
		assert_int_equal(tw_redis_worker_get_stats(worker, NULL, &stats), TW_OK);
	}
	worker_destroy(worker);
	assert_int_equal(stats_of(fixture->redis).dead, 0);
	return stats.skipped;
}

/* The next time follows `missed` among the times that are not too old. */
STORED(fixture, occurrences_that_would_begin_too_late_are_skipped)
{
	static const int after[] = {10, 11, 9}; /* periods */
	static const uint64_t counts[] = {1, 1, 9};
	int64_t hour_ms = TW_HOUR / TW_MILLISECOND;
	struct tw_redis_info once = {.task = {.key = "b", .key_size = 1, .grace = TW_SECOND}};

	for (int missed = 0; missed < 3; missed++) {
		struct tw_redis_info info = {
			.task = recurring("a", 0, (enum tw_redis_missed)missed)};

		info.task.every = TW_HOUR;
		info.task.grace = 2 * TW_HOUR;
		assert_int_equal(claim_too_late(fixture, &info, 21 * TW_HOUR / 2), counts[missed]);
		assert_int_equal(occurrence_of(fixture, "a"),
				 info.due_ms + after[missed] * hour_ms);
		(void)tw_redis_cancel(fixture->redis, "a", 1, TW_REDIS_WHOLE);
	}
	assert_int_equal(claim_too_late(fixture, &once, 2 * TW_SECOND), 1);
	assert_int_equal(find_task(fixture->redis, "b").status, TW_NOT_FOUND);
}

static enum tw_status restore_as(struct fixture *fixture, enum tw_redis_mode mode, const char *key)
{
	struct tw_redis_info info = {
		.task = {.key = key, .key_size = 1, .mode = mode}, .due_ms = 1234, .attempts = 2};
	enum tw_status status;
	struct tw_redis_added each;

	assert_int_equal(tw_redis_restore(fixture->redis, NULL, 1, NULL), TW_INVALID);
	status = tw_redis_restore(fixture->redis, &info, 1, &each);
	assert_int_equal(status, each.status);
	return status;
}

STORED(fixture, restored_task_replaces_all_of_another_as_its_mode_says)
{
	int64_t due_ms;

	assert_int_equal(restore_as(fixture, TW_REDIS_REPLACE, "a"), TW_NOT_FOUND);
	assert_int_equal(find_task(fixture->redis, "a").status, TW_NOT_FOUND);
	due_ms = add_recurring(fixture, "a", TW_REDIS_MISSED_ONE);
	assert_int_equal(restore_as(fixture, TW_REDIS_NEW, "a"), TW_EXISTS);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms);
	assert_int_equal(find_task(fixture->redis, "a").attempts, 0);
	await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(restore_as(fixture, TW_REDIS_REPLACE, "a"), TW_OK);
	assert_int_equal(stats_of(fixture->redis).recurring, 0);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, 1234);
	assert_int_equal(find_task(fixture->redis, "a").attempts, 2);
	assert_int_equal(find_task(fixture->redis, "a").token, 0);
	assert_int_equal(restore_as(fixture, TW_REDIS_NEW, "b"), TW_OK);
	assert_int_equal(restore_as(fixture, TW_REDIS_ANY, "b"), TW_OK);
}

/* A letter that names an occurrence is in its task's shard; any other letter stays in its key's. */
TEST(fixture, occurrences_are_in_the_shard_of_their_task)
{
	static const char *const others[] = {"#due=1",   "a#due=", "a#dux=1",
					     "a#due=1x", "due=1",  "1"};
	struct space space;

	space_init(&space, "name", TW_REDIS_SHARDS_MAX);
	assert_int_equal(space_shard(&space, "a#due=1", 7), crc16("a", 1) % TW_REDIS_SHARDS_MAX);
	assert_int_equal(space_shard(&space, "a#due=1064319972740", 19),
			 crc16("a", 1) % TW_REDIS_SHARDS_MAX);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(space_shard(&space, others[i], strlen(others[i])),
				 crc16(others[i], strlen(others[i])) % TW_REDIS_SHARDS_MAX);
}

TEST(fixture, next_time_is_the_first_of_the_series_that_counts)
{
	static const struct {
		const char *entry;
		int64_t now_ms, oldest_ms, next_ms;
	} cases[] = {
		{"1000 0 one 100", 900, 0, 1100},
		{"1000 0 one 100", 1099, 0, 1100},
		{"1000 0 one 100", 1100, 0, 1100},
		{"1000 0 one 100", 1350, 0, 1300},
		{"1000 0 skip 100", 1350, 0, 1400},
		{"1000 0 all 100", 1350, 0, 1100},
		{"1000 0 all 100", 1350, 1250, 1300},
		{"1000 0 one 100", 1350, 1200, 1300},
		/* The clock was ahead. */
		{"9000 8900 one 100", 3900, 0, 9100},
		{"9000 8900 one 100", 3899, 0, 3900},
		{"9000 8900 all 100", 1350, 0, 1400},
		{"9000 0 all 100", 1350, 0, 9100},
		{"1000 0 one cron UTC * * * * *", 30000, 0, 60000},
		{"1000 0 one cron UTC * * * * *", 190000, 0, 180000},
		{"1000 0 skip cron UTC * * * * *", 190000, 0, 240000},
		{"1000 0 all cron UTC * * * * *", 190000, 0, 60000},
		{"900000 800000 one cron UTC * * * * *", 190000, 0, 240000},
		{"253339228800000 0 one cron UTC 0 0 1 1 *", INT64_C(253402300799000), 0,
		 INT64_C(253370764800000)},
		{"1000 0 one cron UTC 0 0 30 2 *", 190000, 0, INT64_MAX},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char entry[100];
		struct recurrence how;
		int64_t next_ms;

		snprintf(entry, sizeof(entry), "%s", cases[i].entry);
		assert_true(recurrence_read(&how, entry));
		assert_int_equal(
			recurrence_next(&how, cases[i].now_ms, cases[i].oldest_ms, &next_ms),
			TW_OK);
		if (next_ms != cases[i].next_ms)
			fail_msg("%s at %lld: %lld", cases[i].entry, (long long)cases[i].now_ms,
				 (long long)next_ms);
	}
}

/* ---- A server's clock that was ahead: the scripts read the test's clock ---- */

/* A shard with one recurring task, "k". */
struct shard {
	redisContext *context;
	int64_t now_ms;
	char run[32];
	struct recurrence how; /* how the task recurs that was claimed last */
	char entry[100];
};

static void clock_set(struct shard *shard, int64_t now_ms)
{
	shard->now_ms = now_ms;
	script_clock_set(shard->context, now_ms * 1000);
}

/* Returns whether a claim takes the task. */
static bool shard_claim(struct shard *shard)
{
	static const char *const words[10] = {"10", "60000", "1000000", "",  "0",
					      "0",  "1",     "0",       "0", "0"};
	redisReply *reply = script_call(shard->context, &script_claim, 10, words);
	bool any = reply->element[4]->elements;

	if (any) {
		snprintf(shard->run, sizeof(shard->run), "1:%lld", reply->element[2]->integer);
		snprintf(shard->entry, sizeof(shard->entry), "%s",
			 reply->element[6]->element[0]->str);
		assert_true(recurrence_read(&shard->how, shard->entry));
	}
	freeReplyObject(reply);
	return any;
}

/* Ends the run, as a worker does whose idea of the server's time is this. */
static void shard_finish(struct shard *shard, int64_t now_ms)
{
	char next[24];
	char computed[24];
	const char *words[5] = {"n", "k", shard->run, next, computed};
	redisReply *reply;
	int64_t next_ms;

	assert_int_equal(recurrence_next(&shard->how, now_ms, 0, &next_ms), TW_OK);
	snprintf(next, sizeof(next), "%lld", (long long)next_ms);
	snprintf(computed, sizeof(computed), "%lld", (long long)now_ms);
	reply = script_call(shard->context, &script_finish, 5, words);
	assert_string_equal(reply->str, "o");
	freeReplyObject(reply);
}

static int64_t shard_due(struct shard *shard)
{
	redisReply *reply = redisCommand(shard->context, "ZSCORE {t/0}due k");
	int64_t due_ms = strtoll(reply->str, NULL, 10);

	freeReplyObject(reply);
	return due_ms;
}

/* Adds the task by a clock that is ahead, and has it run once. With `ends_after` that run ends when
 * the clock is right again. Checks that the task is due by the right clock then. */
static void check_step(struct shard *shard, const char *rhythm, int64_t ahead_ms, bool ends_after)
{
	static const int64_t right_ms = INT64_C(1800000000000);
	const char *words[7] = {"ae", "k", "0", "0", "9 0\n", rhythm, "0"};
	bool is_step = ahead_ms > 5000 + 300000;

	freeReplyObject(redisCommand(shard->context, "FLUSHDB"));
	clock_set(shard, right_ms + ahead_ms);
	freeReplyObject(script_call(shard->context, &script_add, 7, words));
	assert_true(shard_claim(shard));
	assert_false(recurrence_is_ahead(&shard->how, shard->now_ms));
	if (!ends_after)
		shard_finish(shard, shard->now_ms);
	clock_set(shard, right_ms + 10);
	if (ends_after)
		shard_finish(shard, right_ms + ahead_ms + 10);
	assert_int_equal(shard_claim(shard), is_step);
	if (is_step) {
		assert_true(recurrence_is_ahead(&shard->how, shard->now_ms));
		shard_finish(shard, shard->now_ms);
	}
	assert_in_range(shard_due(shard), shard->now_ms + 1, shard->now_ms + 310000);
	/* It goes on, and nothing is looked at twice. */
	clock_set(shard, shard_due(shard));
	assert_true(shard_claim(shard));
	assert_false(recurrence_is_ahead(&shard->how, shard->now_ms));
	shard_finish(shard, shard->now_ms);
	assert_false(shard_claim(shard));
}

TEST(fixture, task_goes_on_by_the_right_clock_after_a_clock_that_was_ahead)
{
	static const char *const rhythms[] = {"one 300000", "skip 300000", "all 300000",
					      "one cron UTC */5 * * * *",
					      "all cron Europe/Berlin */5 * * * *"};
	static const int64_t steps[] = {1000, INT64_C(59) * 60000, INT64_C(2) * 3600000,
					INT64_C(24) * 3600000, INT64_C(9) * 365 * 24 * 3600000};
	struct fixture *fixture = *state;
	struct shard shard = {.context = redisConnect("127.0.0.1", fixture->server.port)};

	for (size_t i = 0; i < sizeof(rhythms) / sizeof(rhythms[0]); i++)
		for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++)
			for (int ends_after = 0; ends_after < 2; ends_after++)
				check_step(&shard, rhythms[i], steps[k], ends_after);
	redisFree(shard.context);
}

FIXTURE_FILE
