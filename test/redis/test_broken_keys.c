/* SPDX-License-Identifier: MIT */
/*
 * One key of a shard has a wrong type because another program has written it. The error names the
 * key, and the other shards work as before.
 */
#include "support/fixture.h"

#include <stdio.h>

#include "support/pages.h"
#include "support/program.h"
#include "support/runs.h"
#include "support/wait.h"

enum { TASKS = 40 };

static unsigned broken; /* the shard */
static int others;      /* tasks of the other shards */
static char name[64];   /* the key's name */

/* Adds tasks to all shards, and breaks one. */
static void break_a_shard(struct fixture *fixture, tw_duration delay, const char *what)
{
	add_tasks(fixture->redis, TASKS, delay, 0);
	broken = tw_redis_shard(fixture->redis, "task-0", 6);
	others = 0;
	for (int i = 0; i < TASKS; i++) {
		char key[KEY_SIZE];

		number_key(key, i);
		others += tw_redis_shard(fixture->redis, key, strlen(key)) != broken;
	}
	assert_in_range(others, 1, TASKS - 1);
	snprintf(name, sizeof(name), "{tw/%s/%u}%s", fixture->name_space, broken, what);
	freeReplyObject(redis_server_ask(&fixture->server, "SET %s broken", name));
}

static bool count_one(void *context, const struct tw_redis_info *info)
{
	assert_int_not_equal(info->shard, broken);
	++*(int *)context;
	return true;
}

static void assert_named(struct tw_redis *redis)
{
	struct tw_redis_error error;

	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "WRONGTYPE"));
	assert_non_null(strstr(error.text, name));
}

static void other_shards_are_counted_and_listed(void **state)
{
	struct fixture *fixture = *state;
	struct tw_redis_stats stats;
	int count = 0;

	break_a_shard(fixture, TW_HOUR, "due");
	assert_int_equal(tw_redis_get_stats(fixture->redis, &stats), TW_REDIS_FAILED);
	assert_int_equal(stats.missing, 1);
	assert_int_equal(stats.tasks, others);
	assert_named(fixture->redis);
	assert_int_equal(tw_redis_each(fixture->redis, count_one, &count), TW_REDIS_FAILED);
	assert_int_equal(count, others);
	assert_named(fixture->redis);
}

static void other_letters_are_listed(void **state)
{
	struct fixture *fixture = *state;
	int count = 0;

	break_a_shard(fixture, TW_HOUR, "dead");
	for (int i = 0; i < TASKS; i++) {
		struct tw_redis_info letter = {
			.state = TW_REDIS_DEAD, .due_ms = 1000, .attempts = 1, .reason = "no"};
		char key[KEY_SIZE];

		number_key(key, i);
		letter.task.key = key;
		letter.task.key_size = strlen(key);
		if (tw_redis_shard(fixture->redis, key, strlen(key)) != broken)
			assert_ok(fixture->redis,
				  tw_redis_restore(fixture->redis, &letter, 1, NULL));
	}
	assert_int_equal(tw_redis_dead_each(fixture->redis, count_one, &count), TW_REDIS_FAILED);
	assert_int_equal(count, others);
	assert_named(fixture->redis);
}

static void worker_runs_the_tasks_of_other_shards(void **state)
{
	struct fixture *fixture = *state;
	struct tw_redis_worker_options options = {.poll = 50 * TW_MILLISECOND};
	struct tw_redis_worker *worker;
	struct tw_redis_error last;
	struct runs runs;
	char shard[32];

	break_a_shard(fixture, 500 * TW_MILLISECOND, "due");
	runs_init(&runs, TASKS);
	runs_attach(&runs, &options);
	worker = worker_start(&fixture->options, &options);
	WAIT_UNTIL(ends_count(&runs) == (size_t)others);
	/* The worker claims from it repeatedly, and reports it once. */
	assert_int_equal(runs_notices(&runs, &last), 1);
	assert_int_equal(last.status, TW_REDIS_FAILED);
	snprintf(shard, sizeof(shard), "shard %u: ", broken);
	assert_non_null(strstr(last.text, shard));
	assert_int_equal(runs_lost(&runs), 0);
	/* A repaired key that breaks again is reported again. */
	redis_server_number(&fixture->server, "DEL %s", name);
	add_task(fixture->redis, "task-0", 0);
	WAIT_UNTIL(ends_count(&runs) == (size_t)others + 1);
	freeReplyObject(redis_server_ask(&fixture->server, "SET %s broken", name));
	WAIT_UNTIL(runs_notices(&runs, &last) == 2);
	worker_stop(worker);
	runs_free(&runs);
}

static void program_shows_the_other_shards(void **state)
{
	struct fixture *fixture = *state;
	const struct program_environment environment = {.url = fixture->server.url,
							.name_space = fixture->name_space};
	struct program program;
	struct page_reply reply;
	char line[48];
	int lines = 0;
	int port;

	break_a_shard(fixture, TW_HOUR, "due");
	assert_int_equal(program_run(&program, &environment, ARGUMENTS("stats", "--shards=4")), 69);
	snprintf(line, sizeof(line), "tasks    %d\n", others);
	assert_non_null(strstr(program_text(&program), line));
	assert_non_null(strstr(program_text(&program), "missing  1 shards\n"));
	assert_non_null(strstr(program_text(&program), name));
	program_end(&program);
	assert_int_equal(
		program_run(&program, &environment, ARGUMENTS("list", "--json", "--shards=4")), 69);
	for (const char *at = program_text(&program); (at = strstr(at, "\"key\"")); at++)
		lines++;
	assert_int_equal(lines, others);
	program_end(&program);
	port = pages_start(&program, &environment, ARGUMENTS("--listen=127.0.0.1:0"));
	reply = pages_await_metric(port, "twr_missing_shards", 1);
	assert_true(page_metric(&reply, "twr_redis_up") == 1);
	assert_true(page_metric(&reply, "twr_tasks{state=\"scheduled\"}") == others);
	free(reply.text);
	reply = pages_get(port, "/readyz");
	assert_int_equal(reply.status, 200);
	free(reply.text);
	program_end(&program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(other_shards_are_counted_and_listed),
		FIXTURE_TEST(other_letters_are_listed),
		FIXTURE_TEST(worker_runs_the_tasks_of_other_shards),
		FIXTURE_TEST(program_shows_the_other_shards),
	};

	return FIXTURE_RUN(tests);
}
