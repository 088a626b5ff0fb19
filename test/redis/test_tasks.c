/* SPDX-License-Identifier: MIT */
/* These tests make the calls about tasks, and claim by hand. There is no worker. */
#include "support/steps.h"

#include "redis/client/client.h"

/* ---- Due times ---- */

STEPS(task_is_claimed_when_it_is_due_and_not_before,
      "add a in 1s = 1s; pass 999ms; claim = none; next = 1ms; pass 1ms; claim = a#1@1s;"
      "done a; claim = none; next = never; keys = 0")
STEPS(task_due_in_the_past_is_due_now, "add a at -525959h = 0; claim = a#1@0")
STEPS(due_time_is_rounded_up,
      "add a in 1h1ns = 1h1ms; get a due = 1h1ms; add a at 12s345ms = 12s345ms; pass 1us;"
      "add a in 5ms = 6ms; move a in 5ms = 6ms; pass 6ms; claim = a; retry a in 5ms;"
      "get a due = 12ms")
STEPS(longest_due_is_claimed_first_and_no_more_than_the_limit,
      "add a in 3s; add b in 2s; add c in 1s; pass 5s; claim most 2 = c#1@1s b#1@2s; next = 0")

/* ---- Modes ---- */

STEPS(second_add_as_new_exists_and_changes_nothing,
      "add a mode new in 1h body first = 1h; pass 1m; add a mode new in 1m body other = EXISTS;"
      "get a due body = 1h first; stats tasks = 1")
STEPS(replaced_task_runs_as_the_new_one_only,
      "add a in 1m body old; add a body new = 0; claim = a#1@0; get a body = new; done a;"
      "claim = none; keys = 0")
STEPS(replace_wants_a_task_to_replace,
      "add a mode replace = NOT_FOUND; stats tasks = 0; add a in 1h;"
      "add a mode replace in 1m = 1m")
STEPS(run_of_a_replaced_task_does_not_end_the_new_one,
      "add a; claim = a#1; add a; done a = STALE; claim = a#1; done a:1 = STALE; done a;"
      "stats tasks = 0")
STEPS(each_task_that_is_added_is_counted,
      "stats added = 0; add a in 1h; add b in 1h; add a in 2h; stats added = 3;"
      "add a mode new = EXISTS; add c mode replace = NOT_FOUND; cancel b; move a in 1m;"
      "stats added = 3; add every in 1h every 1h; cancel every; stats added = 4;"
      "add c in 1h , d in 1h , a mode new , d in 2h = 1h 1h EXISTS 2h; stats added = 7")

/* ---- Cancel and move ---- */

STEPS(cancelled_task_leaves_nothing_behind,
      "add a in 150s; cancel a; keys = 0; get a = NOT_FOUND; claim = none")
STEPS(cancel_and_move_of_an_unknown_task_report_it,
      "cancel nobody = NOT_FOUND; move nobody in 1s = NOT_FOUND; get nobody = NOT_FOUND;"
      "keys = 0")
STEPS(moved_task_is_due_sooner_or_later,
      "add sooner in 1h; move sooner = 0; claim = sooner#1@0; add later; move later in 1h = 1h;"
      "get later due = 1h; claim = none; move later at 500s = 8m20s; get later due = 8m20s")
STEPS(leased_task_is_neither_moved_nor_cancelled,
      "add a; claim = a; move a in 1s = RUNNING; cancel a = RUNNING;"
      "get a state token = leased some; done a")

/* ---- Leases ---- */

STEPS(task_whose_lease_has_ended_is_moved_and_its_old_run_is_stale,
      "add a; claim lease 1s = a; pass 1s; move a in 1h = 1h1s; done a = STALE;"
      "get a tried = 1; cancel a")
STEPS(ended_lease_gives_the_task_to_another_with_a_higher_token,
      "add a; claim lease 1s = a#1; pass 999ms; claim = none; next = 1ms; pass 1ms;"
      "claim = a#2; done a:1 = STALE; extend a:1 1h = STALE; retry a:1 = STALE;"
      "snooze a:1 = STALE; done a; done a = NOT_FOUND; done a:1 = NOT_FOUND")
STEPS(ended_lease_that_nobody_took_over_is_still_good,
      "add a; claim lease 1s = a; pass 2s; done a; keys = 0")
STEPS(extended_lease_ends_later_or_sooner,
      "add a; claim lease 1s = a; extend a 1h; pass 59m59s; claim = none; extend a 1s; pass 1s;"
      "claim = a#2")
STEPS(released_task_is_due_at_once_and_the_attempt_does_not_count,
      "add a; claim = a#1; snooze a; get a tried state = 0 pending; stats started = 0;"
      "claim = a#1; done a:1 = STALE; done a")

/* ---- Attempts and dead letters ---- */

STEPS(failed_task_waits_and_is_dead_after_its_attempts,
      "add a max 3 body it; claim = a#1; retry a in 1m why first;"
      "get a state tried due = waiting 1 1m; stats started = 1; move a = 0; claim = a#2;"
      "retry a why second; claim = a#3; retry a why 'always: broken'; get a = NOT_FOUND;"
      "letter a state tried why body = dead 3 always: broken it; stats dead tasks = 1 0;"
      "claim = none")
STEPS(task_that_fails_for_good_is_dead_at_once,
      "add a max 3; claim = a; kill a why no; letter a tried why = 1 no")
STEPS(dead_letter_is_retried_once_or_dropped,
      "add a max 1 body it; claim = a; retry a why no; revive a; revive a = NOT_FOUND;"
      "claim lease 1s = a#1; get a body = it; pass 1s; claim = none;"
      "letter a why = the lease of its last attempt expired; revive a; get a body tried = it 0;"
      "claim = a; kill a; drop a; drop a = NOT_FOUND; keys = 0")
STEPS(dead_letter_is_not_retried_over_a_new_task,
      "add a; claim = a; kill a why no; add a in 1h; revive a = EXISTS; letter a why = no;"
      "get a tried = 0")
STEPS(task_that_would_begin_too_late_is_skipped,
      "add a grace 1s999999us = 0; get a grace = 2s; pass 3s; claim = none; get a = NOT_FOUND;"
      "keys = 0; add a grace 1h; pass 59m; claim = a#1; retry a in 1h; pass 2h; claim = a#2")
STEPS(longest_grace_and_most_attempts_are_taken,
      "add a grace 876000h max 1000000; claim = a; get a grace max = 876000h 1000000")

/* ---- Hints ---- */

STEPS(earlier_task_is_hinted,
      "listen; add a in 5s; hints = 5s; move a in 1s; hints = 1s; add a; hints = 0;"
      "add b in 2s , c in 1s; hints = none")
STEPS(earliest_of_many_is_hinted, "listen; add a in 2s , b in 5s; hints = 2s")
STEPS(released_task_is_hinted, "add a; claim = a; listen; snooze a; hints = 0")
STEPS(later_and_far_tasks_are_not_hinted,
      "listen; add a in 12s1ms; hints = none; add b in 12s; hints = 12s; add c in 12s1ms;"
      "add d in 1m; hints = none")

/* ---- Others ---- */

STEPS(task_without_a_record_is_taken_out,
      "add a; redis HDEL {}body a; claim = none; stats tasks = 0")
STEPS(task_that_loses_its_record_on_lease_can_be_failed,
      "add a; claim = a; redis HDEL {}body a; kill a; stats tasks = 0")
STEPS(record_that_cannot_be_read_is_claimed_and_can_be_failed,
      "add a; redis HSET {}body a nothing; claim = a; kill a why unreadable; stats tasks = 0;"
      "letter a why = unreadable")
STEPS(token_rises_where_the_clock_is_set_back,
      "add a; claim = a#1; clock -1h; add a; claim = a#1; done a:1 = STALE; done a;"
      "redis HSET {}state token 4102444800000000; add a , b; claim most 1; claim = b; snooze a;"
      "claim = a; done a:3 = STALE; done a")
/* The last writes are gone, as after a crash of the machine or a failover. */
STEPS(token_is_not_given_twice_where_redis_has_lost_the_last,
      "add a; claim = a#1; redis DEL {}state; redis DEL {}leases; redis ZADD {}due 1 a; pass 1us;"
      "claim = a#1; done a:1 = STALE; done a")
STEPS(full_memory_stops_only_adds,
      "add a in 1h; add b in 1h; redis CONFIG SET maxmemory 1; add c = FAILED; stats tasks = 2;"
      "get a state = pending; list = a b; cancel a; redis CONFIG SET maxmemory 0; stats tasks = 1")

STEPS(stats_count_what_there_is,
      "stats tasks due started dead next = 0 0 0 0 none; add later in 1h; stats next = 1h;"
      "add running; claim = running; add due; stats tasks due started next = 3 1 1 0")
STEPS(scripts_that_redis_forgets_are_sent_again,
      "redis SCRIPT FLUSH; add a; redis SCRIPT FLUSH; claim = a; redis SCRIPT FLUSH; done a")

STORED(fixture, keys_and_bodies_are_any_bytes)
{
	static char key[TW_REDIS_KEY_MAX];
	static char body[TW_REDIS_BODY_MAX];
	struct tw_redis_task task = {
		.key = key, .key_size = sizeof(key), .body = body, .body_size = sizeof(body)};
	struct tw_redis_batch *batch = NULL;

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (char)(i * 7);
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (char)(i * 11 + i / 256);
	add_one(fixture->redis, &task);
	assert_ok(fixture->redis,
		  tw_redis_claim(fixture->redis,
				 space_shard(&fixture->redis->space, key, sizeof(key)), 10, TW_HOUR,
				 &batch, NULL));
	assert_int_equal(only_job(batch)->key_size, sizeof(key));
	assert_memory_equal(only_job(batch)->key, key, sizeof(key));
	assert_int_equal(only_job(batch)->body_size, sizeof(body));
	assert_memory_equal(only_job(batch)->body, body, sizeof(body));
	assert_null(only_job(batch)->url);
	assert_int_equal(finish_job(fixture->redis, batch, TW_REDIS_DONE), TW_OK);
	claim_end(batch);
}

static bool is_given_none(void *context, const struct tw_redis_info *info)
{
	fail();
	return false;
}

STORED(fixture, bad_arguments_are_invalid)
{
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_batch *batch = NULL;

	assert_int_equal(tw_redis_cancel(redis, "", 0, TW_REDIS_OCCURRENCE), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 4, 1, TW_HOUR, &batch, NULL), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, 0, TW_HOUR, &batch, NULL), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, TW_REDIS_BATCH_MAX + 1, TW_HOUR, &batch, NULL),
			 TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, 1, 9 * TW_MILLISECOND, &batch, NULL), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, 1, 25 * TW_HOUR, &batch, NULL), TW_INVALID);
	assert_int_equal(tw_redis_claim(redis, 0, 1, TW_HOUR, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_add(redis, NULL, 1, NULL), TW_INVALID);
	assert_int_equal(tw_redis_open(NULL, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_open_beside(redis, NULL, 4, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_get_stats(redis, NULL), TW_INVALID);
	assert_int_equal(tw_redis_get(redis, "a", 1, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_each(redis, TW_REDIS_TASKS, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_each(redis, TW_REDIS_LETTERS + 1, is_given_none, NULL),
			 TW_INVALID);
	assert_int_equal(tw_redis_cancel(redis, "a", 1, TW_REDIS_WHOLE + 1), TW_INVALID);
	assert_int_equal(tw_redis_move(redis, "a", 1, -1, 0, NULL), TW_INVALID);
	assert_int_equal(tw_redis_move(redis, "", 0, 1, 0, NULL), TW_INVALID);
	assert_int_equal(tw_redis_finish(redis, NULL, 1, TW_REDIS_DONE, NULL, NULL), TW_INVALID);
	assert_int_equal(tw_redis_worker_start(NULL, NULL, NULL, NULL), TW_INVALID);
	tw_redis_last_error(redis, NULL);
	tw_redis_last_error(NULL, NULL);
	assert_int_equal(tw_redis_shard_count(NULL), 0);
	tw_redis_close(NULL);
	tw_redis_batch_free(NULL);
}

STORED(fixture, many_are_added_and_each_has_its_status)
{
	enum { COUNT = 1500 };
	static struct tw_redis_task tasks[COUNT];
	static struct tw_redis_added each[COUNT];
	static char keys[COUNT][KEY_SIZE];

	add_task(fixture->redis, "task-700", TW_HOUR);
	for (int i = 0; i < COUNT; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){.key = keys[i],
						  .key_size = strlen(keys[i]),
						  .delay = TW_HOUR,
						  .mode = TW_REDIS_NEW};
	}
	tasks[900].url = "ftp://host/";
	tasks[901].key_size = 0;
	assert_int_equal(tw_redis_add(fixture->redis, tasks, COUNT, each), TW_EXISTS);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(each[i].status, i == 700   ? TW_EXISTS
						 : i == 900 ? TW_REDIS_BAD_DATA
						 : i == 901 ? TW_INVALID
							    : TW_OK);
	assert_int_equal(stats_of(fixture->redis).tasks, COUNT - 2);
	/* The two that were refused can't be replaced. */
	tasks[900].url = NULL;
	tasks[901].key_size = strlen(keys[901]);
	for (int i = 0; i < COUNT; i++)
		tasks[i].mode = TW_REDIS_REPLACE;
	assert_int_equal(tw_redis_add(fixture->redis, tasks, COUNT, each), TW_NOT_FOUND);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(each[i].status, i == 900 || i == 901 ? TW_NOT_FOUND : TW_OK);
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, 0, NULL));
}

STORED(fixture, first_of_many_that_is_not_added_is_the_answer)
{
	const struct tw_redis_task tasks[] = {
		{.key = "there", .key_size = 5, .mode = TW_REDIS_NEW},
		{.key = "bad", .key_size = 3, .url = "ftp://host/"},
		{.key = "none", .key_size = 4, .mode = TW_REDIS_REPLACE},
	};
	struct tw_redis_error error;

	add_task(fixture->redis, "there", TW_HOUR);
	assert_int_equal(tw_redis_add(fixture->redis, tasks, 3, NULL), TW_EXISTS);
	tw_redis_last_error(fixture->redis, &error);
	assert_int_equal(error.status, TW_EXISTS);
	assert_string_equal(error.text, tw_status_text(TW_EXISTS));
	assert_int_equal(tw_redis_add(fixture->redis, tasks + 1, 2, NULL), TW_REDIS_BAD_DATA);
	tw_redis_last_error(fixture->redis, &error);
	assert_string_equal(error.text, "the callback's URL must begin with http:// or https://");
	assert_int_equal(tw_redis_add(fixture->redis, tasks + 2, 1, NULL), TW_NOT_FOUND);
}

STORED(fixture, jobs_of_several_shards_are_acknowledged_together)
{
	struct tw_redis_job jobs[20];
	struct tw_redis_batch *batches[4] = {0};
	enum tw_status each[20];
	size_t count = 0;

	add_tasks(fixture->redis, 20, 0, 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_ok(fixture->redis,
			  tw_redis_claim(fixture->redis, i, 100, TW_HOUR, &batches[i], NULL));
		for (size_t k = 0; k < batches[i]->count; k++)
			jobs[count++] = batches[i]->jobs[k];
	}
	assert_int_equal(count, 20);
	jobs[5].token++;
	assert_ok(fixture->redis,
		  tw_redis_finish(fixture->redis, jobs, count, TW_REDIS_DONE, NULL, each));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(each[i], i == 5 ? TW_REDIS_STALE : TW_OK);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
	for (unsigned i = 0; i < 4; i++)
		claim_end(batches[i]);
}

struct listing {
	size_t count;
	size_t limit;
	int64_t last_due;
	unsigned last_shard;
	bool sorted;
	char seen[1000];
};

static bool list_one(void *context, const struct tw_redis_info *info)
{
	struct listing *listing = context;
	unsigned number = (unsigned)strtoul((const char *)info->task.key + 5, NULL, 10);

	if (listing->count && info->shard == listing->last_shard &&
	    info->due_ms < listing->last_due)
		listing->sorted = false;
	listing->last_due = info->due_ms;
	listing->last_shard = info->shard;
	if (number < sizeof(listing->seen))
		listing->seen[number]++;
	return ++listing->count != listing->limit;
}

STORED(fixture, every_task_is_listed_once_by_due_time)
{
	struct listing listing = {.sorted = true};
	char key[KEY_SIZE];

	for (int i = 0; i < 1000; i++) {
		number_key(key, i);
		/* Many are due in the same millisecond. */
		add_task(fixture->redis, key, TW_HOUR + i % 3 * TW_MINUTE);
	}
	assert_ok(fixture->redis,
		  tw_redis_each(fixture->redis, TW_REDIS_TASKS, list_one, &listing));
	assert_int_equal(listing.count, 1000);
	assert_true(listing.sorted);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(listing.seen[i], 1);
	listing = (struct listing){.limit = 7};
	assert_ok(fixture->redis,
		  tw_redis_each(fixture->redis, TW_REDIS_TASKS, list_one, &listing));
	assert_int_equal(listing.count, 7);
}

static bool cancel_one(void *context, const struct tw_redis_info *info)
{
	struct fixture *fixture = context;

	return tw_redis_cancel(fixture->redis, info->task.key, info->task.key_size,
			       TW_REDIS_OCCURRENCE) == TW_OK;
}

STORED(fixture, listing_may_call_the_same_redis)
{
	add_tasks(fixture->redis, 50, TW_HOUR, TW_MILLISECOND);
	assert_ok(fixture->redis,
		  tw_redis_each(fixture->redis, TW_REDIS_TASKS, cancel_one, fixture));
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(fixture, default_is_the_number_that_the_namespace_has_or_one)
{
	struct tw_redis_options options = fixture->options;
	struct tw_redis *others[3];
	char name[40];

	options.shards = 0;
	others[0] = client_open(&options);
	assert_int_equal(tw_redis_shard_count(others[0]), 4);
	add_task(others[0], "a", TW_HOUR);
	assert_int_equal(find_task(fixture->redis, "a").status, TW_OK);
	snprintf(name, sizeof(name), "%s-new", fixture->name_space);
	options.name_space = name;
	others[1] = client_open(&options);
	assert_int_equal(tw_redis_shard_count(others[1]), 1);
	assert_ok(others[1],
		  tw_redis_open_beside(others[1], fixture->name_space, 0, &others[2], NULL));
	assert_int_equal(tw_redis_shard_count(others[2]), 4);
	for (int i = 0; i < 3; i++)
		client_close(others[i]);
}

CLOCKED_FILE
