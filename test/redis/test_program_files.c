/* SPDX-License-Identifier: MIT */
/* These tests are about files that twr writes and reads while tasks run, or replies are lost.
 * test_load.t has the lines themselves. */
#include "support/fixture.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <jansson.h>

#include "support/false_server.h"
#include "support/program.h"
#include "support/proxy.h"

static char path[320]; /* the file that the test writes */

static int open_all(void **state)
{
	int result = fixture_open(state);
	struct fixture *fixture = *state;

	snprintf(path, sizeof(path), "%s/lines", fixture->server.folder);
	return result;
}

static const struct test_kind kind_opened = {.open = open_all, .close = fixture_close};

static FILE *file_open(void)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	return file;
}

/* The file has 100 MB of tasks, or a tenth where memory is not measured. This runs first, for it is
 * the largest child that is measured. */
STORED(opened, memory_is_bounded_whatever_the_file_has)
{
	enum { COUNT = TEST_HAS_SANITIZER ? 50 : 500, BODY = 200 * 1024 };
	FILE *file = file_open();
	struct rusage usage;

	for (int i = 0; i < COUNT; i++) {
		fprintf(file, "{\"key\":\"task-%d\",\"in\":\"1h\",\"body\":\"", i % 7);
		for (int k = 0; k < BODY / 16; k++)
			fputs("0123456789abcdef", file);
		fputs("\"}\n", file);
	}
	fclose(file);
	assert_int_equal(TWR("load", path), 0);
	assert_int_equal(stats_of(fixture->redis).tasks, 7);
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	if (!TEST_HAS_SANITIZER)
		assert_in_range(usage.ru_maxrss, 1, 48 * 1024);
}

STORED(opened, lost_reply_ends_it_and_reports_the_line)
{
	struct proxy proxy;
	FILE *file = file_open();

	/* The line is in the second batch of three. */
	for (int i = 0; i < 600; i++)
		fprintf(file, "{\"key\":\"%s-%d\",\"in\":\"1h\"}\n",
			i == 300 ? "the-lost-one" : "task", i);
	fclose(file);
	proxy_start(&proxy, fixture->server.port);
	twr_environment.url = proxy.url;
	/* The server knows the script by then. */
	add_task(fixture->redis, "first", TW_HOUR);
	proxy_lose_reply(&proxy, "the-lost-one");
	assert_int_equal(TWR("load", path), 75);
	assert_true(twr_said("twr: line 257 and all later lines must be added again\n"));
	assert_true(twr_said("256 added, 0 refused"));
	/* The rest has not been sent. */
	assert_int_equal(find_task(fixture->redis, "task-599").status, TW_NOT_FOUND);
	assert_int_equal(TWR("load", path), 0);
	assert_int_equal(stats_of(fixture->redis).tasks, 601);
	proxy_stop(&proxy);
}

/* Returns the lines of the output as an array, without fields that depend on the moment. The caller
 * frees it. */
static json_t *lines_read(void)
{
	json_t *lines = json_array();

	for (const char *at = twr_text(); *at; at = strchr(at, '\n') + 1) {
		json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL);

		assert_non_null(line);
		json_object_del(line, "now_ms");
		json_array_append_new(lines, line);
	}
	return lines;
}

/* Returns the lines of both lists. */
static json_t *lists_json(void)
{
	json_t *lines;
	json_t *letters;

	assert_int_equal(TWR("list", "--json"), 0);
	lines = lines_read();
	assert_int_equal(TWR("list", "--dead", "--json"), 0);
	letters = lines_read();
	json_array_extend(lines, letters);
	json_decref(letters);
	return lines;
}

/* Writes the output of `twr` to the end of the file. */
static void said_write(const char *mode)
{
	FILE *file = fopen(path, mode);

	assert_non_null(file);
	fputs(twr_text(), file);
	fclose(file);
}

/* Dead letters have no order. */
static void assert_same_lines(const json_t *before, const json_t *after)
{
	size_t count = json_array_size(before);

	assert_int_equal(json_array_size(after), count);
	for (size_t i = 0; i < count; i++) {
		const json_t *line = json_array_get(before, i);
		size_t met = 0;

		for (size_t k = 0; k < count; k++)
			met += (size_t)json_equal(line, json_array_get(after, k));
		if (met != 1)
			fail_msg("%s is not in\n%s", json_dumps(line, 0), json_dumps(after, 0));
	}
}

/* Returns whether the key's task has a group. */
static bool is_of_group(const char *key)
{
	const char *condition = strchr(key, '-');

	return condition && (condition[1] - '0') % 2;
}

/* Sets the task's time in the set of due tasks, as an outage would have left it. */
static void score_set(struct fixture *fixture, const char *key, int64_t score)
{
	/* The score of a group's waiting task is 4e15 higher. */
	if (find_task(fixture->redis, key).state != TW_REDIS_LEASED && is_of_group(key))
		score += INT64_C(4000000000000000);
	redis_server_set_score(&fixture->server, fixture->redis, fixture->name_space, key, score);
}

enum kind { ONCE, BY_PERIOD, BY_CALENDAR, KINDS };
enum condition { SCHEDULED, DUE, OVERDUE, LEASED, WAITING, TRIED_AND_DUE, MOVED, CONDITIONS };

/* Adds a task of that kind in that condition. No other task of its shard is due before. */
static void add_in_condition(struct fixture *fixture, enum kind kind, enum condition condition)
{
	char key[16];
	struct tw_redis_task task = {
		.key = key,
		.key_size = (size_t)snprintf(key, sizeof(key), "%d-%d", kind, condition),
		.max_attempts = 5,
		.group = condition % 2 ? "tenant/user" : NULL,
		.grace = kind == ONCE ? 0 : 3 * TW_HOUR,
		.latest = kind == ONCE && condition % 3 ? 5 * TW_HOUR : 0,
		.every = kind == BY_PERIOD ? TW_HOUR : 0,
		.cron = kind == BY_CALENDAR ? "30 4 1 * *" : NULL,
		.zone = kind == BY_CALENDAR ? "Asia/Tokyo" : NULL,
		.missed = (enum tw_redis_missed)(condition % 3),
		.delay = TW_HOUR,
		.body = "[1]",
		.body_size = 3};
	struct tw_redis_batch *batch;

	add_one(fixture->redis, &task);
	if (condition == MOVED)
		assert_int_equal(move_task(fixture->redis, key, 2 * TW_HOUR), TW_OK);
	if (condition == LEASED || condition == WAITING || condition == TRIED_AND_DUE) {
		assert_int_equal(move_task(fixture->redis, key, 0), TW_OK);
		batch = await_claim(fixture->redis, key, TW_HOUR);
		if (condition != LEASED)
			assert_int_equal(fail_job(fixture->redis, batch, TW_HOUR, "busy"), TW_OK);
	}
}

static void add_in_all_conditions(struct fixture *fixture)
{
	int64_t now_ms = redis_server_now(&fixture->server);
	char key[16];

	for (enum kind kind = 0; kind < KINDS; kind++)
		for (enum condition condition = 0; condition < CONDITIONS; condition++)
			add_in_condition(fixture, kind, condition);
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (enum condition condition = 0; condition < CONDITIONS; condition++) {
			snprintf(key, sizeof(key), "%d-%d", kind, condition);
			if (condition == DUE || condition == TRIED_AND_DUE)
				score_set(fixture, key, now_ms);
			if (condition == OVERDUE)
				score_set(fixture, key, now_ms - 7200123);
		}
}

/* A restored task has no lease: it waits for the end of the lease. */
static void leases_forget(json_t *lines)
{
	size_t leased = 0;
	size_t i;
	json_t *line;

	json_array_foreach(lines, i, line)
	{
		leased += !json_object_del(line, "token");
		if (!strcmp(json_string_value(json_object_get(line, "state")), "leased"))
			json_object_set_new(line, "state", json_string("waiting"));
	}
	assert_int_equal(leased, KINDS);
}

STORED(opened, tasks_in_every_condition_come_back_as_they_were)
{
	struct tw_redis_stats stats;
	json_t *before;
	json_t *after;

	add_in_all_conditions(fixture);
	assert_int_equal(TWR("limits", "--pause"), 0);
	before = lists_json();
	assert_int_equal(json_array_size(before), KINDS * CONDITIONS);
	leases_forget(before);
	assert_int_equal(TWR("list", "--json"), 0);
	said_write("w");
	for (int again = 0; again < 2; again++) {
		/* The tasks are restored into another namespace, and into their own. */
		twr_environment.name_space = again ? fixture->name_space : "second-copy";
		assert_int_equal(TWR("load", "--shards=4", path), 0);
		assert_true(twr_said("21 added, 0 refused"));
		after = lists_json();
		assert_same_lines(before, after);
		json_decref(after);
	}
	json_decref(before);
	stats = stats_of(fixture->redis);
	assert_int_equal(stats.recurring, 2 * CONDITIONS);
	assert_int_equal(stats.started, 3 * KINDS);
	assert_int_equal(stats.added, 2 * KINDS * CONDITIONS);
}

/* The period continues from the occurrence, and not from the retry or the lease. */
STORED(opened, restored_rhythm_goes_on)
{
	struct tw_redis_task task = {.key = "a", .key_size = 1, .every = TW_HOUR};
	int64_t hour_ms = TW_HOUR / TW_MILLISECOND;
	struct tw_redis_batch *batch;
	int64_t first_ms;

	first_ms = add_one(fixture->redis, &task);
	await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(TWR("list", "--json"), 0);
	said_write("w");
	assert_int_equal(TWR("load", path), 0);
	score_set(fixture, "a", first_ms);
	batch = await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(only_job(batch)->attempt, 2);
	assert_int_equal(finish_job(fixture->redis, batch, TW_REDIS_DONE), TW_OK);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, first_ms + hour_ms);
	assert_int_equal(find_task(fixture->redis, "a").attempts, 0);
}

/* An occurrence by the calendar has ended, and no worker has written the next one. */
STORED(opened, occurrence_that_has_ended_does_not_come_back)
{
	struct tw_redis_task task = {.key = "a", .key_size = 1, .cron = "30 4 1 * *"};
	struct found copied;
	int64_t first_ms;
	struct found found;

	first_ms = add_one(fixture->redis, &task);
	assert_int_equal(cancel_task(fixture->redis, "a"), TW_OK);
	found = find_task(fixture->redis, "a");
	assert_int_equal(found.state, TW_REDIS_PENDING);
	assert_in_range(found.due_ms, first_ms + INT64_C(27) * 86400000,
			first_ms + INT64_C(32) * 86400000);
	assert_int_equal(TWR("list", "--json"), 0);
	said_write("w");
	assert_int_equal(TWR("load", path), 0);
	copied = find_task(fixture->redis, "a");
	assert_int_equal(copied.due_ms, found.due_ms);
	assert_nothing_due(fixture->redis, "a");
}

/* Each shard lists a dead letter, which is gone when it is to be dropped. */
TEST(opened, dead_letter_that_is_gone_meanwhile_is_no_failure)
{
	struct false_server server;

	false_server_start(&server);
	false_server_set(&server, "scan", "[1 '0' ['k' '1:1:0:1 8 0\n\n'] 9]", FALSE_ALWAYS);
	false_server_set(&server, "dead_drop", ":-2", FALSE_ALWAYS);
	twr_environment.url = server.url;
	assert_int_equal(TWR("drop", "--all"), 0);
	assert_string_equal(twr_text(), "0\n");
	assert_int_equal(TWR("list", "--dead"), 0);
	assert_true(twr_said("dead     1/8  k\n"));
	false_server_stop(&server);
}

FIXTURE_FILE
