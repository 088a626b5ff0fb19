/* SPDX-License-Identifier: MIT */
/* Dead letters that come from elsewhere, and those that end by their age or number. */
#include "support/fixture.h"

#include <stdio.h>

#include "support/runs.h"
#include "support/wait.h"

/* A letter for a handler, with a body. */
static struct tw_redis_info letter_of(const char *key, int64_t died_ms)
{
	return (struct tw_redis_info){.task = {.key = key,
					       .key_size = strlen(key),
					       .max_attempts = 5,
					       .body = "the body",
					       .body_size = 8},
				      .due_ms = died_ms,
				      .attempts = 3,
				      .reason = "its reason"};
}

static enum tw_status add_letter(struct tw_redis *redis, const char *key, int64_t died_ms,
				 enum tw_redis_mode mode)
{
	struct tw_redis_info letter = letter_of(key, died_ms);

	letter.task.mode = mode;
	return tw_redis_dead_add(redis, &letter);
}

static int64_t indexed(struct fixture *fixture, const char *key)
{
	return redis_server_number(&fixture->server, "ZCARD {tw/%s/%u}died", fixture->name_space,
				   tw_redis_shard(fixture->redis, key, strlen(key)));
}

static void letter_that_is_put_there_is_all_that_it_was(void **state)
{
	struct fixture *fixture = *state;
	struct found found;

	assert_ok(fixture->redis, add_letter(fixture->redis, "a", 1234567, TW_REDIS_ANY));
	found = find_dead(fixture->redis, "a");
	assert_int_equal(found.state, TW_REDIS_DEAD);
	assert_int_equal(found.due_ms, 1234567);
	assert_int_equal(found.attempts, 3);
	assert_int_equal(found.max_attempts, 5);
	assert_string_equal(found.reason, "its reason");
	assert_string_equal(found.body, "the body");
	assert_int_equal(indexed(fixture, "a"), 1);
	assert_ok(fixture->redis, tw_redis_dead_retry(fixture->redis, "a", 1));
	assert_string_equal(find_task(fixture->redis, "a").body, "the body");
	assert_int_equal(indexed(fixture, "a"), 0);
}

static void letter_is_put_there_as_its_mode_says(void **state)
{
	struct fixture *fixture = *state;
	struct tw_redis *redis = fixture->redis;

	assert_int_equal(add_letter(redis, "a", 1, TW_REDIS_REPLACE), TW_NOT_FOUND);
	assert_ok(redis, add_letter(redis, "a", 1, TW_REDIS_NEW));
	assert_int_equal(add_letter(redis, "a", 2, TW_REDIS_NEW), TW_EXISTS);
	assert_int_equal(find_dead(redis, "a").due_ms, 1);
	assert_ok(redis, add_letter(redis, "a", 3, TW_REDIS_REPLACE));
	assert_int_equal(find_dead(redis, "a").due_ms, 3);
	assert_ok(redis, add_letter(redis, "a", 4, TW_REDIS_ANY));
	assert_int_equal(find_dead(redis, "a").due_ms, 4);
	assert_int_equal(stats_of(redis).dead, 1);
	assert_ok(redis, tw_redis_dead_drop(redis, "a", 1));
	assert_int_equal(redis_server_count_keys(&fixture->server, fixture->name_space), 0);
}

static void letter_that_is_none_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_info letter = letter_of("a", 1);
	char reason[TW_REDIS_REASON_MAX + 20];

	assert_int_equal(tw_redis_dead_add(redis, NULL), TW_INVALID);
	assert_int_equal(tw_redis_dead_add(NULL, &letter), TW_INVALID);
	assert_int_equal(add_letter(redis, "", 1, TW_REDIS_ANY), TW_INVALID);
	assert_int_equal(add_letter(redis, "a", -1, TW_REDIS_ANY), TW_INVALID);
	assert_int_equal(add_letter(redis, "a", INT64_MAX, TW_REDIS_ANY), TW_INVALID);
	letter.task.url = "ftp://127.0.0.1/";
	assert_int_equal(tw_redis_dead_add(redis, &letter), TW_REDIS_BAD_DATA);
	assert_int_equal(stats_of(redis).dead, 0);
	letter = letter_of("a", 0);
	memset(reason, 'r', sizeof(reason));
	reason[sizeof(reason) - 1] = '\0';
	letter.reason = reason;
	assert_ok(redis, tw_redis_dead_add(redis, &letter));
	assert_int_equal(strlen(find_dead(redis, "a").reason), TW_REDIS_REASON_MAX);
	letter.reason = NULL;
	assert_ok(redis, tw_redis_dead_add(redis, &letter));
	assert_string_equal(find_dead(redis, "a").reason, "");
	assert_string_equal(find_dead(redis, "a").body, "the body");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(letter_that_is_put_there_is_all_that_it_was),
		FIXTURE_TEST(letter_is_put_there_as_its_mode_says),
		FIXTURE_TEST(letter_that_is_none_is_refused),
	};

	return FIXTURE_RUN(tests);
}
