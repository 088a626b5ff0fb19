/* SPDX-License-Identifier: MIT */
#include "support/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "redis/client/client.h"
#include "support/ends.h"
#include "support/wait.h"

static struct fixture fixture;

const struct test_kind kind_fixture = {fixture_open, fixture_close, NULL};
const struct test_kind kind_one_shard = {fixture_open_one_shard, fixture_close, NULL};

int fixture_start_server_with(void **state, const struct redis_server_options *options)
{
	*state = &fixture;
	redis_server_start(&fixture.server, options);
	return 0;
}

int fixture_start_server(void **state)
{
	return fixture_start_server_with(state, NULL);
}

int fixture_stop_server(void **state)
{
	redis_server_stop(&fixture.server);
	return 0;
}

static struct tw_redis *open_or_fail(const struct tw_redis_options *options)
{
	struct tw_redis_error error = {0};
	struct tw_redis *redis = NULL;

	if (tw_redis_open(&redis, options, &error) != TW_OK)
		fail_msg("%s: %s", tw_status_name(error.status), error.text);
	return redis;
}

static int namespace_open(void **state, unsigned shards)
{
	static unsigned number;

	*state = &fixture;
	snprintf(fixture.name_space, sizeof(fixture.name_space), "test-%u", ++number);
	fixture.options = (struct tw_redis_options){
		.url = fixture.server.url, .name_space = fixture.name_space, .shards = shards};
	fixture.redis = open_or_fail(&fixture.options);
	return 0;
}

int fixture_open(void **state)
{
	return namespace_open(state, 4);
}

int fixture_open_one_shard(void **state)
{
	return namespace_open(state, 1);
}

int fixture_close(void **state)
{
	client_close(fixture.redis);
	return 0;
}

void assert_ok(struct tw_redis *redis, enum tw_status status)
{
	struct tw_redis_error error = {0};

	if (status == TW_OK)
		return;
	tw_redis_last_error(redis, &error);
	fail_msg("%s: %s", tw_status_name(status), error.text);
}

static void client_end(void *redis)
{
	tw_redis_close(redis);
}

struct tw_redis *client_keep(struct tw_redis *redis)
{
	at_end(client_end, redis);
	return redis;
}

struct tw_redis *client_open(const struct tw_redis_options *options)
{
	return client_keep(open_or_fail(options));
}

void client_close(struct tw_redis *redis)
{
	at_end_not(redis);
	tw_redis_close(redis);
}

void set_patience(struct tw_redis *redis, tw_duration patience)
{
	redis->access->settings.patience = patience ? patience : 5 * TW_SECOND;
}

void set_paused(struct tw_redis *redis, bool paused)
{
	struct tw_redis_limits limits;

	assert_ok(redis, tw_redis_get_limits(redis, NULL, &limits));
	limits.paused = paused;
	assert_ok(redis, tw_redis_set_limits(redis, NULL, &limits));
}

void number_key(char key[KEY_SIZE], int number)
{
	snprintf(key, KEY_SIZE, "task-%d", number);
}

enum tw_status try_add(struct tw_redis *redis, const char *key, tw_duration delay,
		       enum tw_redis_mode mode)
{
	const struct tw_redis_task task = {
		.key = key, .key_size = strlen(key), .delay = delay, .mode = mode};

	return tw_redis_add(redis, &task, 1, NULL);
}

int64_t add_one(struct tw_redis *redis, const struct tw_redis_task *task)
{
	struct tw_redis_added added;

	assert_ok(redis, tw_redis_add(redis, task, 1, &added));
	return added.due_ms;
}

void add_task(struct tw_redis *redis, const char *key, tw_duration delay)
{
	assert_ok(redis, try_add(redis, key, delay, TW_REDIS_ANY));
}

void add_tasks(struct tw_redis *redis, int count, tw_duration delay, tw_duration apart)
{
	char key[KEY_SIZE];

	for (int i = 0; i < count; i++) {
		number_key(key, i);
		add_task(redis, key, delay + i * apart);
	}
}

int64_t add_to_group(struct tw_redis *redis, const char *group, int count, tw_duration delay,
		     tw_duration apart)
{
	int64_t first_ms = 0;

	for (int i = 0; i < count; i++) {
		char key[64];
		struct tw_redis_task task = {
			.key = key, .delay = delay + i * apart, .group = group};
		int64_t due_ms;

		snprintf(key, sizeof(key), "%s-%d", group ? group : "", i);
		task.key_size = strlen(key);
		due_ms = add_one(redis, &task);
		first_ms = i ? first_ms : due_ms;
	}
	return first_ms;
}

void add_callback(struct tw_redis *redis, const char *key, const char *url, unsigned attempts)
{
	const struct tw_redis_task task = {
		.key = key, .key_size = strlen(key), .url = url, .max_attempts = attempts};

	add_one(redis, &task);
}

enum tw_status cancel_task(struct tw_redis *redis, const char *key)
{
	return tw_redis_cancel(redis, key, strlen(key), TW_REDIS_OCCURRENCE);
}

enum tw_status move_task(struct tw_redis *redis, const char *key, tw_duration delay)
{
	return tw_redis_move(redis, key, strlen(key), 0, delay, NULL);
}

static void batch_end(void *batch)
{
	tw_redis_batch_free(batch);
}

void claim_end(struct tw_redis_batch *batch)
{
	at_end_not(batch);
	tw_redis_batch_free(batch);
}

struct tw_redis_batch *claim_for(struct tw_redis *redis, const char *key, tw_duration lease)
{
	struct tw_redis_batch *batch = NULL;

	assert_ok(redis, tw_redis_claim(redis, shard_of(redis, key), 100, lease, &batch, NULL));
	at_end(batch_end, batch);
	return batch;
}

struct tw_redis_batch *await_claim(struct tw_redis *redis, const char *key, tw_duration lease)
{
	struct tw_redis_batch *batch = claim_for(redis, key, lease);

	for (int i = 0; i < 2000 && !batch->count; i++) {
		wait_for(5 * TW_MILLISECOND);
		batch = claim_for(redis, key, lease);
	}
	assert_memory_equal(only_job(batch)->key, key, strlen(key));
	return batch;
}

struct tw_redis_batch *claim_new(struct tw_redis *redis, const char *key, tw_duration lease)
{
	add_task(redis, key, 0);
	return await_claim(redis, key, lease);
}

void assert_nothing_due(struct tw_redis *redis, const char *key)
{
	struct tw_redis_batch *batch = claim_for(redis, key, TW_SECOND);

	assert_int_equal(batch->count, 0);
}

const struct tw_redis_job *only_job(const struct tw_redis_batch *batch)
{
	assert_int_equal(batch->count, 1);
	return batch->jobs;
}

static enum tw_status finish_with(struct tw_redis *redis, const struct tw_redis_batch *batch,
				  enum tw_redis_outcome outcome,
				  const struct tw_redis_verdict *verdict)
{
	enum tw_status each = TW_INVALID;

	assert_ok(redis, tw_redis_finish(redis, only_job(batch), 1, outcome, verdict, &each));
	return each;
}

enum tw_status finish_job(struct tw_redis *redis, const struct tw_redis_batch *batch,
			  enum tw_redis_outcome outcome)
{
	return finish_with(redis, batch, outcome, NULL);
}

enum tw_status fail_job(struct tw_redis *redis, const struct tw_redis_batch *batch,
			tw_duration retry_in, const char *reason)
{
	bool kill = retry_in == TW_FOREVER;
	struct tw_redis_verdict verdict = {.retry_in = kill ? 0 : retry_in};

	snprintf(verdict.reason, sizeof(verdict.reason), "%s", reason ? reason : "");
	return finish_with(redis, batch, kill ? TW_REDIS_KILL : TW_REDIS_RETRY, &verdict);
}

struct search {
	const char *key;
	bool met;
	struct found found;
};

static bool search_each(void *context, const struct tw_redis_info *info)
{
	struct search *search = context;
	struct found *found = &search->found;

	if (info->task.key_size != strlen(search->key) ||
	    memcmp(info->task.key, search->key, info->task.key_size))
		return true;
	search->met = true;
	found->state = info->state;
	found->due_ms = info->due_ms;
	found->now_ms = info->now_ms;
	found->attempts = info->attempts;
	found->max_attempts = info->task.max_attempts;
	found->token = info->token;
	found->body_size = info->task.body_size;
	snprintf(found->reason, sizeof(found->reason), "%s", info->reason);
	snprintf(found->body, sizeof(found->body), "%.*s", (int)info->task.body_size,
		 info->task.body_size ? (const char *)info->task.body : "");
	return false;
}

struct found find_task(struct tw_redis *redis, const char *key)
{
	struct search search = {.key = key};

	search.found.status = tw_redis_get(redis, key, strlen(key), search_each, &search);
	assert_int_equal(search.met, search.found.status == TW_OK);
	return search.found;
}

struct found find_dead(struct tw_redis *redis, const char *key)
{
	struct search search = {.key = key};

	assert_ok(redis, tw_redis_each(redis, TW_REDIS_LETTERS, search_each, &search));
	search.found.status = search.met ? TW_OK : TW_NOT_FOUND;
	return search.found;
}

struct tw_redis_stats stats_of(struct tw_redis *redis)
{
	struct tw_redis_stats stats = {0};

	assert_ok(redis, tw_redis_get_stats(redis, &stats));
	return stats;
}
