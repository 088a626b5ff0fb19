/* SPDX-License-Identifier: MIT */
/*
 * Claims where something is not as it should be: a shard is not held up by what something else has written
 * into it, or taken out of it; what a server has lost is not given twice.
 */
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

/* As after a crash of its machine, or a failover: the last that it did is gone. */
static void token_is_not_given_twice_where_redis_has_lost_the_last(void **state)
{
	struct fixture *fixture = *state;
	unsigned shard = tw_redis_shard(fixture->redis, "a", 1);
	const char *name_space = fixture->name_space;
	struct tw_redis_batch *first, *second;
	enum tw_status each = TW_INVALID;

	add_task(fixture->redis, "a", 0);
	first = await_claim(fixture->redis, "a", TW_MINUTE);
	freeReplyObject(
		redis_server_ask(&fixture->server, "DEL {tw/%s/%u}token", name_space, shard));
	freeReplyObject(
		redis_server_ask(&fixture->server, "HDEL {tw/%s/%u}run a", name_space, shard));
	redis_server_set_due(&fixture->server, fixture->redis, name_space, "a", -1);
	second = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(only_job(second)->attempt, 1);
	assert_true(only_job(second)->token > only_job(first)->token);
	assert_ok(fixture->redis, tw_redis_ack(fixture->redis, only_job(first), 1, &each));
	assert_int_equal(each, TW_REDIS_STALE);
	assert_ok(fixture->redis, tw_redis_ack(fixture->redis, only_job(second), 1, &each));
	assert_int_equal(each, TW_OK);
	tw_redis_batch_free(first);
	tw_redis_batch_free(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(record_that_cannot_be_read_is_claimed_and_can_be_failed),
		FIXTURE_TEST(task_without_a_record_is_taken_out),
		FIXTURE_TEST(task_that_loses_its_record_on_lease_can_be_failed),
		FIXTURE_TEST(token_is_not_given_twice_where_redis_has_lost_the_last),
	};

	return FIXTURE_RUN(tests);
}
