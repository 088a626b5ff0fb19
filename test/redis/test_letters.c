/* SPDX-License-Identifier: MIT */
/* These tests restore dead letters, and remove them by their age or number. */
#include "support/steps.h"

#include "redis/client/jobs.h"
#include "support/runs.h"

/* Returns a letter for a handler, with a body. */
static struct tw_redis_info letter_of(const char *key, int64_t died_ms)
{
	return (struct tw_redis_info){.task = {.key = key,
					       .key_size = strlen(key),
					       .max_attempts = 5,
					       .body = "the body",
					       .body_size = 8},
				      .state = TW_REDIS_DEAD,
				      .due_ms = died_ms,
				      .attempts = 3,
				      .reason = "its reason"};
}

static enum tw_status add_letter(struct tw_redis *redis, const char *key, int64_t died_ms,
				 enum tw_redis_mode mode)
{
	struct tw_redis_info letter = letter_of(key, died_ms);

	letter.task.mode = mode;
	return tw_redis_restore(redis, &letter, 1, NULL);
}

static int64_t indexed(struct fixture *fixture, const char *key)
{
	return redis_server_number(&fixture->server, "ZCARD {tw/%s/%u}died", fixture->name_space,
				   shard_of(fixture->redis, key));
}

STEPS(letter_that_is_put_there_is_all_that_it_was,
      "restore a state dead due 5s tried 3 max 5 why no body it;"
      "letter a state due tried max why body = dead 5s 3 5 no it;"
      "revive a; get a state body = pending it; letter a = NOT_FOUND; claim = a#1;"
      "done a; keys = 0")
STEPS(letter_is_put_there_as_its_mode_says,
      "restore a state dead due 1s mode replace = NOT_FOUND; restore a state dead due 1s mode new;"
      "restore a state dead due 2s mode new = EXISTS; letter a due = 1s;"
      "restore a state dead due 3s mode replace; letter a due = 3s;"
      "restore a state dead due 4s; letter a due = 4s; stats dead = 1; drop a; keys = 0")

STORED(fixture, invalid_letter_is_refused)
{
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_info letter = letter_of("a", 1);
	char reason[TW_REDIS_REASON_MAX + 20];

	assert_int_equal(add_letter(redis, "", 1, TW_REDIS_ANY), TW_INVALID);
	assert_int_equal(add_letter(redis, "a", -1, TW_REDIS_ANY), TW_INVALID);
	assert_int_equal(add_letter(redis, "a", INT64_MAX, TW_REDIS_ANY), TW_INVALID);
	letter.task.url = "ftp://127.0.0.1/";
	assert_int_equal(tw_redis_restore(redis, &letter, 1, NULL), TW_REDIS_BAD_DATA);
	assert_int_equal(stats_of(redis).dead, 0);
	letter = letter_of("a", 0);
	memset(reason, 'r', sizeof(reason));
	reason[sizeof(reason) - 1] = '\0';
	letter.reason = reason;
	assert_ok(redis, tw_redis_restore(redis, &letter, 1, NULL));
	assert_int_equal(strlen(find_dead(redis, "a").reason), TW_REDIS_REASON_MAX);
	letter.reason = NULL;
	assert_ok(redis, tw_redis_restore(redis, &letter, 1, NULL));
	assert_string_equal(find_dead(redis, "a").reason, "");
	assert_string_equal(find_dead(redis, "a").body, "the body");
}

/* Writes a key of the shard, a different one for each number. */
static void key_of_shard(const struct tw_redis *redis, unsigned shard, int number,
			 char key[KEY_SIZE])
{
	for (int i = 0; i == 0 || shard_of(redis, key) != shard; i++)
		snprintf(key, KEY_SIZE, "letter-%d-%d", number, i);
}

/* Adds letters to the shard that died 1 to `count` milliseconds after 1970, the latest first. */
static void add_letters(struct fixture *fixture, unsigned shard, int count)
{
	char key[KEY_SIZE];

	for (int i = count; i > 0; i--) {
		key_of_shard(fixture->redis, shard, i, key);
		assert_ok(fixture->redis, add_letter(fixture->redis, key, i, TW_REDIS_ANY));
	}
}

/* Asserts that the shard's letters are those that died from `first` to `last`. */
static void assert_letters(struct fixture *fixture, unsigned shard, int first, int last)
{
	char key[KEY_SIZE];

	assert_int_equal(stats_of(fixture->redis).dead, last - first + 1);
	for (int i = first; i <= last; i++) {
		key_of_shard(fixture->redis, shard, i, key);
		assert_int_equal(find_dead(fixture->redis, key).due_ms, i);
	}
}

/* A limit of eight is two in each of the four shards. */
STORED(fixture, oldest_letters_go_if_there_are_too_many_in_a_shard)
{
	char key[KEY_SIZE];

	add_letters(fixture, 1, 5);
	add_letters(fixture, 2, 1);
	WORK(fixture, .dead_max_count = 8);
	WAIT_UNTIL(stats_of(fixture->redis).dead == 3);
	key_of_shard(fixture->redis, 2, 1, key);
	assert_ok(fixture->redis, tw_redis_drop(fixture->redis, key, strlen(key)));
	assert_letters(fixture, 1, 4, 5);
}

STORED(fixture, share_of_a_shard_is_rounded_up)
{
	add_letters(fixture, 3, 5);
	WORK(fixture, .dead_max_count = 9);
	WAIT_UNTIL(stats_of(fixture->redis).dead == 3);
	assert_letters(fixture, 3, 3, 5);
}

STORED(fixture, letters_that_are_too_old_go)
{
	enum { MINUTE_MS = 60 * 1000 };
	int64_t now = redis_server_now(&fixture->server);
	char key[KEY_SIZE];

	for (int i = 0; i < 12; i++) {
		number_key(key, i);
		/* They are half an hour old, an hour and a half, ... */
		assert_ok(fixture->redis,
			  add_letter(fixture->redis, key, now - (i * 60 + 30) * MINUTE_MS,
				     TW_REDIS_ANY));
	}
	WORK(fixture, .dead_max_age = 3 * TW_HOUR);
	WAIT_UNTIL(stats_of(fixture->redis).dead == 3);
	for (int i = 0; i < 3; i++) {
		number_key(key, i);
		assert_int_equal(find_dead(fixture->redis, key).status, TW_OK);
	}
}

STORED(fixture, letter_that_died_again_counts_from_then)
{
	char key[KEY_SIZE];

	add_letters(fixture, 1, 4);
	key_of_shard(fixture->redis, 1, 1, key);
	assert_ok(fixture->redis, add_letter(fixture->redis, key, 9, TW_REDIS_ANY));
	WORK(fixture, .dead_max_count = 8);
	WAIT_UNTIL(stats_of(fixture->redis).dead == 2);
	assert_int_equal(find_dead(fixture->redis, key).due_ms, 9);
	key_of_shard(fixture->redis, 1, 4, key);
	assert_int_equal(find_dead(fixture->redis, key).due_ms, 4);
	assert_int_equal(indexed(fixture, key), 2);
}

static bool count_letter(void *context, const struct tw_redis_info *info)
{
	++*(int *)context;
	return true;
}

STORED(fixture, invalid_letters_are_not_listed)
{
	static const char *const texts[] = {"",       "nonsense",  "1:2",       "1:2:3",
					    "1:2:9:", "1:2:9:abc", "1:2:4097:", "1:x:0:"};
	int count = 0;

	add_letters(fixture, 1, 2);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		redis_server_number(&fixture->server, "HSET {tw/%s/1}dead other-%d %s",
				    fixture->name_space, (int)i, texts[i]);
	assert_ok(fixture->redis,
		  tw_redis_each(fixture->redis, TW_REDIS_LETTERS, count_letter, &count));
	assert_int_equal(count, 2);
}

/* The server truncates replies at 3 MiB. */
STORED(fixture, listings_of_large_bodies_come_in_small_pages)
{
	enum { LARGE = 20 };
	static char body[TW_REDIS_BODY_MAX];
	struct tw_redis_info letter;
	char key[KEY_SIZE];
	int letters = 0;
	int tasks = 0;

	memset(body, 'x', sizeof(body));
	for (int i = 0; i < LARGE; i++) {
		key_of_shard(fixture->redis, 1, i, key);
		letter = letter_of(key, i);
		letter.task.body = body;
		letter.task.body_size = sizeof(body);
		assert_ok(fixture->redis, tw_redis_restore(fixture->redis, &letter, 1, NULL));
		letter.task.delay = TW_HOUR;
		letter.task.mode = TW_REDIS_ANY;
		add_one(fixture->redis, &letter.task);
	}
	add_letters(fixture, 2, 300);
	redis_server_number(&fixture->server, "CONFIG SET %s %s", "client-output-buffer-limit",
			    "normal 3mb 0 0");
	assert_ok(fixture->redis,
		  tw_redis_each(fixture->redis, TW_REDIS_LETTERS, count_letter, &letters));
	assert_ok(fixture->redis,
		  tw_redis_each(fixture->redis, TW_REDIS_TASKS, count_letter, &tasks));
	redis_server_number(&fixture->server, "CONFIG SET %s %s", "client-output-buffer-limit",
			    "normal 0 0 0");
	assert_int_equal(letters, LARGE + 300);
	assert_int_equal(tasks, LARGE);
}

STORED(fixture, worker_that_makes_letters_keeps_to_their_number)
{
	char key[KEY_SIZE];

	runs.outcome = TW_REDIS_KILL;
	WORK(fixture, .dead_max_count = 4);
	for (int i = 0; i < 10; i++) {
		key_of_shard(fixture->redis, 2, i, key);
		add_task(fixture->redis, key, 0);
		WAIT_UNTIL(ends_count() == (size_t)i + 1);
	}
	WAIT_UNTIL(stats_of(fixture->redis).dead == 1);
	assert_int_equal(find_dead(fixture->redis, key).status, TW_OK);
}

STORED(fixture, letters_of_workers_that_died_go_too)
{
	char key[KEY_SIZE];

	WORK(fixture, .dead_max_count = 4);
	for (int i = 0; i < 3; i++) {
		struct tw_redis_task task = {.key = key, .delay = TW_HOUR, .max_attempts = 1};

		key_of_shard(fixture->redis, 2, i, key);
		task.key_size = strlen(key);
		add_one(fixture->redis, &task);
		redis_server_number(&fixture->server, "HSET {tw/%s/2}run %s 1", fixture->name_space,
				    key);
		redis_server_set_due(&fixture->server, fixture->redis, fixture->name_space, key,
				     -1);
	}
	/* The worker looks at that shard at once. */
	key_of_shard(fixture->redis, 2, 3, key);
	add_task(fixture->redis, key, 0);
	WAIT_UNTIL(stats_of(fixture->redis).dead == 1);
}

STORED(fixture, letters_stay_if_nobody_ends_them)
{
	add_letters(fixture, 1, 5);
	WORK(fixture);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(ends_count() == 1);
	assert_letters(fixture, 1, 1, 5);
}

/* Claims from shard 0, where nothing is due. Returns whether the claim is to be made again. */
static bool claim_and_trim(const struct fixture *fixture, struct letters letters)
{
	redisReply *reply;
	bool again;

	assert_ok(fixture->redis,
		  redis_ask(fixture->redis, &script_claim, 0, reply_take, &reply, "ssssssii", "1",
			    "1000", "1", "", "0", "0", letters.age_ms, letters.count));
	again = reply->element[1]->integer >= 0;
	freeReplyObject(reply);
	return again;
}

STORED(fixture, letters_go_in_steps)
{
	int64_t left = 230;

	add_letters(fixture, 0, (int)left);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(claim_and_trim(fixture, (struct letters){.count = 5}), i < 2);
		left = i < 2 ? left - 100 : 5;
		assert_int_equal(stats_of(fixture->redis).dead, left);
	}
	assert_letters(fixture, 0, 226, 230);
	assert_false(claim_and_trim(fixture, (struct letters){.age_ms = 60000, .count = 5}));
	assert_int_equal(redis_server_count_keys(&fixture->server, fixture->name_space), 0);
}

STORED(fixture, limits_out_of_range_are_refused)
{
	struct tw_redis_worker_options options = {.dead_max_age = -1};
	struct tw_redis_worker *worker;

	assert_int_equal(tw_redis_worker_start(&worker, &fixture->options, &options, NULL),
			 TW_INVALID);
	options.dead_max_age = TW_REDIS_DELAY_MAX + 1;
	assert_int_equal(tw_redis_worker_start(&worker, &fixture->options, &options, NULL),
			 TW_INVALID);
}

CLOCKED_FILE
