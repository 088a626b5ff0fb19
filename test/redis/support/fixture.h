/* SPDX-License-Identifier: MIT */
/* A fixture is one redis-server for all tests of a program, and a new namespace for each test. */
#ifndef REDIS_SUPPORT_FIXTURE_H
#define REDIS_SUPPORT_FIXTURE_H

#include "support/test.h"

#include <string.h>

#include <timingwheel/redis.h>

#include "support/redis_server.h"

struct fixture {
	struct redis_server server;
	char name_space[32];             /* differs in each test */
	struct tw_redis_options options; /* server and namespace */
	struct tw_redis *redis;
};

/* These are cmocka's group setup and teardown; *state is the fixture. */
int fixture_start_server(void **state);
int fixture_start_server_with(void **state, const struct redis_server_options *options);
int fixture_stop_server(void **state);
/* These are a test's setup and teardown: a new namespace with 4 shards, opened as `redis`. */
int fixture_open(void **state);
int fixture_close(void **state);
/* This opens a namespace with one shard, so that it may have limits, and a claim sees all tasks. */
int fixture_open_one_shard(void **state);

extern const struct test_kind kind_fixture;
extern const struct test_kind kind_one_shard;
/* STORED(kind, name) is a case that is given the fixture, which its kind opens. */
#define STORED(kind, name) TEST_GIVEN(kind, name, struct fixture *fixture, name(*state))
/* A file of such cases has this. */
#define FIXTURE_FILE TEST_FILE(fixture_start_server, fixture_stop_server)

/* Fails the test with the error message unless the status is TW_OK. */
void assert_ok(struct tw_redis *redis, enum tw_status status);

/* Opens another client, which is closed when the case has ended. */
struct tw_redis *client_open(const struct tw_redis_options *options);
/* Has a client closed when the case has ended. Returns it. */
struct tw_redis *client_keep(struct tw_redis *redis);
/* Closes a client in mid-case. */
void client_close(struct tw_redis *redis);

/* Sets the patience of the handle, and of those beside it. 0 means the default. */
void set_patience(struct tw_redis *redis, tw_duration patience);
/* Pauses the namespace, or ends the pause. */
void set_paused(struct tw_redis *redis, bool paused);

/* Writes "task-7". */
enum { KEY_SIZE = 24 };
void number_key(char key[KEY_SIZE], int number);

/* Adds the task. Returns its due time. */
int64_t add_one(struct tw_redis *redis, const struct tw_redis_task *task);
/* Adds a task for a handler. */
void add_task(struct tw_redis *redis, const char *key, tw_duration delay);
/* Adds "task-0" and so on, each due `apart` after the one before. */
void add_tasks(struct tw_redis *redis, int count, tw_duration delay, tw_duration apart);
/* Adds "GROUP-0" and so on to the group, which may be NULL. Returns the first due time. */
int64_t add_to_group(struct tw_redis *redis, const char *group, int count, tw_duration delay,
		     tw_duration apart);
/* Adds a task with a callback. */
void add_callback(struct tw_redis *redis, const char *key, const char *url, unsigned attempts);
enum tw_status try_add(struct tw_redis *redis, const char *key, tw_duration delay,
		       enum tw_redis_mode mode);
enum tw_status cancel_task(struct tw_redis *redis, const char *key);
enum tw_status move_task(struct tw_redis *redis, const char *key, tw_duration delay);

/* Claims once from the key's shard, with leases of that length. The batch is freed when the case
 * has ended. */
struct tw_redis_batch *claim_for(struct tw_redis *redis, const char *key, tw_duration lease);
/* Frees a batch in mid-case. */
void claim_end(struct tw_redis_batch *batch);
/* Claims until the key's task comes, alone. Fails the test after 10 s. */
struct tw_redis_batch *await_claim(struct tw_redis *redis, const char *key, tw_duration lease);
/* Adds a task for a handler, due now, and claims it. */
struct tw_redis_batch *claim_new(struct tw_redis *redis, const char *key, tw_duration lease);
/* Fails the test if a claim gives a task. */
void assert_nothing_due(struct tw_redis *redis, const char *key);
const struct tw_redis_job *only_job(const struct tw_redis_batch *batch);

/* Finishes the batch's only job with that outcome. Returns the job's status. */
enum tw_status finish_job(struct tw_redis *redis, const struct tw_redis_batch *batch,
			  enum tw_redis_outcome outcome);
/* Fails the batch's only job: it is due again after `retry_in`, or with TW_FOREVER a dead letter.
 * Returns the job's status. */
enum tw_status fail_job(struct tw_redis *redis, const struct tw_redis_batch *batch,
			tw_duration retry_in, const char *reason);

/* This is a copy of a task that outlives the call that read it. */
struct found {
	enum tw_status status;
	enum tw_redis_state state;
	int64_t due_ms;
	int64_t now_ms;
	unsigned attempts;
	unsigned max_attempts;
	uint64_t token;
	char reason[TW_REDIS_REASON_MAX + 1];
	char body[256];
	size_t body_size;
};
struct found find_task(struct tw_redis *redis, const char *key);
struct found find_dead(struct tw_redis *redis, const char *key);

struct tw_redis_stats stats_of(struct tw_redis *redis);

#endif
