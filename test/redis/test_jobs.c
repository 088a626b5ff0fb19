/* SPDX-License-Identifier: MIT */
/* A shard is not held up by what something else has written into it, or taken out of it. */
#include "support/fixture.h"

#include "jobs.h"

static void spoil(struct fixture *fixture, const char *key, const char *record)
{
	unsigned shard = tw_redis_shard(fixture->redis, key, strlen(key));

	freeReplyObject(redis_server_ask(&fixture->server, "HSET {tw/%s/%u}body %s %s",
					 fixture->name_space, shard, key, record));
}

static void record_that_cannot_be_read_is_claimed_and_can_be_failed(void **state)
{
	struct fixture *fixture = *state;
	struct tw_redis_batch *batch;
	enum tw_status each = TW_INVALID;

	add_task(fixture->redis, "a", 0);
	spoil(fixture, "a", "nothing");
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_true(batch->broken[0]);
	assert_int_equal(only_job(batch)->body_size, 0);
	assert_ok(fixture->redis, tw_redis_fail(fixture->redis, only_job(batch), 1, TW_FOREVER,
						"unreadable", &each));
	assert_int_equal(each, TW_OK);
	tw_redis_batch_free(batch);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	assert_string_equal(find_dead(fixture->redis, "a").reason, "unreadable");
}

static void task_without_a_record_is_taken_out(void **state)
{
	struct fixture *fixture = *state;
	unsigned shard = tw_redis_shard(fixture->redis, "a", 1);

	add_task(fixture->redis, "a", 0);
	freeReplyObject(redis_server_ask(&fixture->server, "HDEL {tw/%s/%u}body a",
					 fixture->name_space, shard));
	assert_nothing_due(fixture->redis, "a");
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

static void task_that_loses_its_record_on_lease_can_be_failed(void **state)
{
	struct fixture *fixture = *state;
	unsigned shard = tw_redis_shard(fixture->redis, "a", 1);
	struct tw_redis_batch *batch;
	enum tw_status each = TW_INVALID;

	add_task(fixture->redis, "a", 0);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	freeReplyObject(redis_server_ask(&fixture->server, "HDEL {tw/%s/%u}body a",
					 fixture->name_space, shard));
	assert_ok(fixture->redis,
		  tw_redis_fail(fixture->redis, only_job(batch), 1, TW_FOREVER, NULL, &each));
	assert_int_equal(each, TW_OK);
	tw_redis_batch_free(batch);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(record_that_cannot_be_read_is_claimed_and_can_be_failed),
		FIXTURE_TEST(task_without_a_record_is_taken_out),
		FIXTURE_TEST(task_that_loses_its_record_on_lease_can_be_failed),
	};

	return FIXTURE_RUN(tests);
}
