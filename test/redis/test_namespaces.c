/* SPDX-License-Identifier: MIT */
/* Several namespaces use the same connections, and share nothing else. */
#include "support/fixture.h"

#include "support/runs.h"

enum { SHARDS = 4, THREADS = 8, EACH = 100 };

static struct tw_redis *open_beside(struct tw_redis *redis, const char *name, unsigned shards)
{
	struct tw_redis *beside = NULL;
	struct tw_redis_error error;
	enum tw_status status = tw_redis_open_beside(redis, name, shards, &beside, &error);

	if (status != TW_OK)
		fail_msg("%s: %s", tw_status_name(status), error.text);
	assert_non_null(beside);
	return client_keep(beside);
}

/* Opens "NAME.2", which no other test uses, beside the test's namespace. */
static struct tw_redis *open_second(const struct fixture *fixture)
{
	char name[48];

	snprintf(name, sizeof(name), "%s.2", fixture->name_space);
	return open_beside(fixture->redis, name, SHARDS);
}

STORED(fixture, namespaces_share_the_connection_and_no_task)
{
	struct tw_redis *second = open_second(fixture);

	add_task(fixture->redis, "a", TW_HOUR);
	assert_int_equal(find_task(second, "a").status, TW_NOT_FOUND);
	assert_int_equal(try_add(second, "a", TW_HOUR, TW_REDIS_NEW), TW_OK);
	assert_int_equal(cancel_task(fixture->redis, "a"), TW_OK);
	assert_int_equal(find_task(second, "a").status, TW_OK);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	assert_int_equal(stats_of(second).tasks, 1);
	assert_int_equal(redis_server_says(&fixture->server, "CLIENT LIST", "name=timingwheel"), 1);
}

static int64_t count_all_keys(struct fixture *fixture, const char *name_space)
{
	int64_t count = 0;

	for (int own = 0; own < 2; own++) {
		redisReply *reply = redis_server_ask(
			&fixture->server, own ? "KEYS {tw/%s}*" : "KEYS {tw/%s/*", name_space);

		count += (int64_t)reply->elements;
		freeReplyObject(reply);
	}
	return count;
}

/* An empty namespace keeps keys until it is deleted; others stay unchanged. */
STORED(fixture, unused_namespace_is_deleted)
{
	struct tw_redis *second = open_second(fixture);
	struct tw_redis_batch *batch = claim_new(fixture->redis, "a", TW_MINUTE);

	add_task(second, "a", TW_HOUR);
	assert_int_equal(tw_redis_drop_namespace(fixture->redis, false), TW_EXISTS);
	assert_int_equal(fail_job(fixture->redis, batch, TW_FOREVER, ""), TW_OK);
	assert_int_equal(tw_redis_drop_namespace(fixture->redis, false), TW_EXISTS);
	assert_ok(fixture->redis, tw_redis_drop(fixture->redis, "a", 1));
	assert_ok(fixture->redis,
		  tw_redis_set_limits(fixture->redis, "g", &(struct tw_redis_limits){.weight = 2}));
	set_paused(fixture->redis, true);
	assert_true(count_all_keys(fixture, fixture->name_space) >= SHARDS);
	assert_ok(fixture->redis, tw_redis_drop_namespace(fixture->redis, false));
	assert_int_equal(count_all_keys(fixture, fixture->name_space), 0);
	assert_int_equal(find_task(second, "a").status, TW_OK);
}

STORED(fixture, namespace_in_use_is_deleted_by_force)
{
	struct tw_redis_worker *worker;
	struct tw_redis_error error;
	size_t count = 0;

	open_second(fixture);
	assert_int_equal(tw_redis_worker_start(&worker, &fixture->options, NULL, NULL), TW_OK);
	for (int i = 0; i < 3000 && !count; i++) {
		assert_ok(fixture->redis, tw_redis_get_workers(fixture->redis, NULL, 0, &count));
		wait_for(10 * TW_MILLISECOND);
	}
	assert_int_equal(tw_redis_drop_namespace(fixture->redis, false), TW_RUNNING);
	tw_redis_last_error(fixture->redis, &error);
	assert_non_null(strstr(error.text, "a worker"));
	worker_destroy(worker);
	add_task(fixture->redis, "a", TW_HOUR);
	assert_ok(fixture->redis, tw_redis_drop_namespace(fixture->redis, true));
	assert_int_equal(count_all_keys(fixture, fixture->name_space), 0);
	/* Its handle can still add tasks. */
	add_task(fixture->redis, "a", TW_HOUR);
}

STORED(fixture, handles_are_closed_in_any_order)
{
	struct tw_redis *second = open_second(fixture);
	struct tw_redis *third = open_beside(second, fixture->name_space, SHARDS);

	add_task(fixture->redis, "a", TW_HOUR);
	client_close(fixture->redis);
	fixture->redis = NULL;
	add_task(second, "b", TW_HOUR);
	assert_int_equal(find_task(third, "a").status, TW_OK);
	client_close(second);
	assert_int_equal(cancel_task(third, "a"), TW_OK);
	assert_int_equal(redis_server_says(&fixture->server, "CLIENT LIST", "name=timingwheel"), 1);
}

STORED(fixture, another_number_of_shards_is_refused)
{
	struct tw_redis_options options = fixture->options;
	struct tw_redis *second = open_second(fixture);
	struct tw_redis *other = second;
	struct tw_redis_error error;
	char name[48];

	assert_int_equal(
		tw_redis_open_beside(second, fixture->name_space, SHARDS + 1, &other, &error),
		TW_REDIS_UNFIT);
	assert_null(other);
	assert_int_equal(error.status, TW_REDIS_UNFIT);
	assert_non_null(strstr(error.text, "4 shards, expected 5"));
	/* A refusal leaves the other namespaces unchanged. */
	add_task(second, "a", TW_HOUR);
	/* The first opening fixed the number, also for clients with their own connections. */
	snprintf(name, sizeof(name), "%s.2", fixture->name_space);
	options.name_space = name;
	options.shards = SHARDS + 1;
	assert_int_equal(tw_redis_open(&other, &options, NULL), TW_REDIS_UNFIT);
}

STORED(fixture, bad_namespaces_are_invalid)
{
	char name[TW_REDIS_NAMESPACE_MAX + 2];
	struct tw_redis *beside = fixture->redis;
	struct tw_redis_error error;

	assert_int_equal(tw_redis_open_beside(fixture->redis, "", 1, &beside, &error), TW_INVALID);
	assert_null(beside);
	assert_string_not_equal(error.text, "");
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(tw_redis_open_beside(fixture->redis, name, 1, &beside, NULL), TW_INVALID);
	assert_int_equal(tw_redis_open_beside(NULL, "a", 1, &beside, NULL), TW_INVALID);
	assert_int_equal(tw_redis_open_beside(fixture->redis, "a", 1, NULL, &error), TW_INVALID);
	/* The longest name is accepted. */
	name[sizeof(name) - 2] = '\0';
	client_close(open_beside(fixture->redis, name, 1));
}

struct adder {
	struct tw_redis *redis;
	pthread_t thread;
	int number;
	int failed;
};

/* Opens a handle, adds, and closes it, while other threads do the same. */
static void *add_and_close(void *argument)
{
	struct adder *adder = argument;
	struct tw_redis *own = NULL;
	char name[24];
	char key[KEY_SIZE];

	snprintf(name, sizeof(name), "adder-%d", adder->number);
	for (int i = 0; i < EACH; i++) {
		if (tw_redis_open_beside(adder->redis, name, SHARDS, &own, NULL) != TW_OK) {
			adder->failed++;
			continue;
		}
		number_key(key, i);
		adder->failed += try_add(own, key, TW_HOUR, TW_REDIS_NEW) != TW_OK;
		adder->failed += tw_redis_shard_count(own) != SHARDS;
		client_close(own);
	}
	return NULL;
}

STORED(fixture, handles_come_and_go_in_many_threads)
{
	struct adder adders[THREADS];

	for (int i = 0; i < THREADS; i++) {
		adders[i] = (struct adder){.redis = fixture->redis, .number = i};
		pthread_create(&adders[i].thread, NULL, add_and_close, &adders[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		char name[24];
		struct tw_redis *own;

		pthread_join(adders[i].thread, NULL);
		assert_int_equal(adders[i].failed, 0);
		snprintf(name, sizeof(name), "adder-%d", i);
		own = open_beside(fixture->redis, name, SHARDS);
		assert_int_equal(stats_of(own).tasks, EACH);
		client_close(own);
	}
	assert_int_equal(redis_server_says(&fixture->server, "CLIENT LIST", "name=timingwheel"), 1);
}

FIXTURE_FILE
