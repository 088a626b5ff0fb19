/* SPDX-License-Identifier: MIT */
/* These tests check which lines twr load takes and refuses, and that it is the inverse of the
 * lists. */
#include "support/fixture.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <jansson.h>

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

static void file_write(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static FILE *file_open(void)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	return file;
}

static json_t *task_json(const char *key)
{
	json_t *object;

	assert_int_equal(TWR("get", key, "--json"), 0);
	object = json_loads(twr_text(), JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(object);
	return object;
}

STORED(opened, recurring_tasks_come_back_as_such)
{
	int64_t due_ms;

	assert_int_equal(TWR("add", "a", "--every", "1h", "--missed", "skip", "--handler"), 0);
	due_ms = find_task(fixture->redis, "a").due_ms;
	assert_int_equal(TWR("list", "--json"), 0);
	file_write(twr_text());
	assert_int_equal(TWR("cancel", "a", "--all"), 0);
	assert_int_equal(TWR("load", path), 0);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms);
	assert_int_equal(stats_of(fixture->redis).recurring, 1);
	assert_int_equal(TWR("get", "a"), 0);
	assert_true(twr_said("missed        skip\n"));
	assert_int_equal(TWR("add", "a", "--cron", "30 4 1 * *", "--zone", "Asia/Tokyo", "--missed",
			     "all", "--handler"),
			 0);
	due_ms = find_task(fixture->redis, "a").due_ms;
	assert_int_equal(TWR("list", "--json"), 0);
	file_write(twr_text());
	assert_int_equal(TWR("cancel", "a", "--all"), 0);
	assert_int_equal(TWR("load", path), 0);
	assert_int_equal(find_task(fixture->redis, "a").due_ms, due_ms);
	assert_int_equal(TWR("get", "a"), 0);
	assert_true(twr_said("cron          30 4 1 * *\nzone          Asia/Tokyo\n"));
	file_write("{\"key\":\"b\",\"every_ms\":0}\n{\"key\":\"b\",\"missed\":\"some\"}\n"
		   "{\"key\":\"b\",\"cron\":1}\n{\"key\":\"b\",\"cron\":\"@daily\",\"zone\":[]}\n"
		   "{\"key\":\"b\",\"cron\":\"@daily\",\"zone\":\"No/Where\"}\n");
	assert_int_not_equal(TWR("load", path), 0);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
}

STORED(opened, lines_become_tasks)
{
	struct found found;
	json_t *object;

	/* It begins with a byte order mark. */
	file_write("\xef\xbb\xbf{\"key\":\"a\",\"in\":\"1h\",\"callback\":\"http://shop.example/\","
		   "\"method\":\"PUT\",\"headers\":[\"X-Shop: 7\"],\"body\":\"[1]\","
		   "\"max_attempts\":3}\r\n"
		   "\n"
		   "  {\"key_base64\": \"Yg==\", \"due\": \"2070-01-01T00:00:00.5Z\", "
		   "\"body_base64\": \"/+8=\"}\n"
		   "{\"key\":\"c\",\"due_ms\":3155760000123,"
		   "\"due\":\"1971-01-01T00:00:00Z\"}\n"
		   "{\"key\":\"e\",\"in\":\"1h\",\"latest\":\"90s\"}\n"
		   "{\"key\":\"d\"}");
	assert_int_equal(TWR("load", path), 0);
	assert_string_equal(twr_text(), "5 added, 0 refused\n");
	found = find_task(fixture->redis, "e");
	assert_in_range(found.due_ms - found.now_ms, 1, 90 * 1000 + 1);
	found = find_task(fixture->redis, "a");
	/* Times are rounded up to a millisecond, and now is rounded down, maybe to the same one. */
	assert_in_range(found.due_ms - found.now_ms, 3500 * 1000, 3600 * 1000 + 1);
	assert_int_equal(found.max_attempts, 3);
	assert_string_equal(found.body, "[1]");
	found = find_task(fixture->redis, "b");
	assert_int_equal(found.due_ms, INT64_C(3155760000500));
	assert_int_equal(found.body_size, 2);
	assert_memory_equal(found.body, "\xff\xef", 2);
	assert_int_equal(find_task(fixture->redis, "c").due_ms, INT64_C(3155760000123));
	assert_true(find_task(fixture->redis, "d").due_ms <= redis_server_now(&fixture->server));
	object = task_json("a");
	assert_string_equal(json_string_value(json_object_get(object, "method")), "PUT");
	assert_string_equal(json_string_value(json_object_get(object, "callback")),
			    "http://shop.example/");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(object, "headers"), 0)),
		"X-Shop: 7");
	json_decref(object);
}

STORED(opened, lines_come_from_standard_input)
{
	file_write("{\"key\":\"a\",\"in\":\"1h\"}\n");
	assert_non_null(freopen(path, "r", stdin));
	assert_int_equal(TWR("load", "-", "--json"), 0);
	assert_string_equal(twr_text(), "{\"added\":1,\"refused\":0}\n");
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
}

/* These are bad lines and the errors that they cause; the library's own errors are last. */
static const char *const bad_lines[][2] = {
	{"nonsense", "the line is not JSON"},
	{"{\"key\":\"a\",\"\\u001b[0m\":1}", "there is no field \"%1B[0m\""},
	{"{\"key\":\"a\",\"latest\":\"1s\",\"every_ms\":1000}",
	 "latest is out of range, or the task recurs"},
	{"{\"key\":\"a\",\"max_attempts\":0}", "\"max_attempts\" is not"},
	{"{\"key\":\"a\",\"max_attempts\":1000001}", "\"max_attempts\" is not"},
	{"{\"key\":\"a\",\"callback\":\"http://a/\",\"method\":\"put\"}", "\"method\" is not"},
	{"{\"key\":\"a\",\"callback\":\"http://a/\\u0000\"}", "\"callback\" is not"},
	{"{\"key\":\"a\",\"callback\":\"http://a/\",\"headers\":\"X: y\"}", "\"headers\" is not"},
	{"{\"key\":\"a\",\"callback\":\"http://a/\",\"headers\":[1]}", "\"headers\" is not"},
	{"{\"key\":\"a\",\"state\":\"undead\"}", "\"state\" is not"},
	{"{\"key\":\"a\",\"state\":\"dead\"}", "the time of its death"},
	{"{\"key\":\"a\",\"state\":\"pending\",\"due_ms\":1,\"every_ms\":1,"
	 "\"occurrence_ms\":-1}",
	 "\"occurrence_ms\" is not"},
	{"{\"key\":\"a\",\"state\":\"pending\",\"due_ms\":1,\"cron\":\"@never\"}",
	 "the cron expression"},
	{"{\"key\":\"a\",\"state\":\"dead\",\"due_ms\":1,\"attempts\":-1}", "\"attempts\" is not"},
	{"{\"key\":\"a\",\"state\":\"dead\",\"due_ms\":1,\"callback\":\"ftp://a/\"}",
	 "the callback's URL must begin with http:// or https://"},
	{"{\"key\":\"a\",\"callback\":\"ftp://a/\"}",
	 "the callback's URL must begin with http:// or https://"},
	{"{\"key\":\"a\",\"callback\":\"http:///\"}", "the URL has no host"},
	{"{\"key\":\"a\",\"headers\":[\"X: y\"]}", "there are headers but no callback"},
	{"{\"key\":\"a\",\"every_ms\":1000,\"cron\":\"@daily\"}",
	 "a cron expression excludes a period, or missed is out of range"},
	{"{\"group\":\"g\",\"running\":-1}", "\"running\" is not a number"},
	{"{\"group\":\"g\",\"paused\":1}", "\"paused\" is not true or false"},
	{"{\"group\":\"g\",\"body\":\"\"}", "there is no field \"body\""},
	{"{\"group\":\"g\",\"weight\":1001}", "invalid argument"},
	{"{\"group\":\"\",\"weight\":2}", "invalid argument"},
	{"{\"key\":\"a\",\"paused\":true}", "there is no field \"paused\""},
	{"{\"key\":\"a\",\"zone\":\"UTC\"}", "a time zone requires a cron expression"},
	{"{\"key\":\"a\",\"callback\":\"http://a/\",\"headers\":[\"Tw-Key: y\"]}",
	 "the header Tw-Key is set by the worker"},
};
enum { BAD_LINES = sizeof(bad_lines) / sizeof(bad_lines[0]) };

STORED(opened, bad_lines_are_reported_by_number_and_the_others_are_added)
{
	FILE *file = file_open();
	char expected[160];

	for (int i = 0; i < BAD_LINES; i++)
		fprintf(file, "%s\n{\"key\":\"good-%d\",\"in\":\"1h\"}\n", bad_lines[i][0], i);
	fclose(file);
	assert_int_equal(TWR("load", path), 65);
	for (int i = 0; i < BAD_LINES; i++) {
		const char *line;

		snprintf(expected, sizeof(expected), "twr: line %d: ", 2 * i + 1);
		line = strstr(twr_text(), expected);
		assert_non_null(line);
		if (!memmem(line, strcspn(line, "\n"), bad_lines[i][1], strlen(bad_lines[i][1])))
			fail_msg("%s: %.*s", bad_lines[i][0], (int)strcspn(line, "\n"), line);
	}
	snprintf(expected, sizeof(expected), "%d added, %d refused\n", BAD_LINES, BAD_LINES);
	assert_true(twr_said(expected));
	assert_int_equal(stats_of(fixture->redis).tasks, BAD_LINES);
	assert_int_equal(find_task(fixture->redis, "a").status, TW_NOT_FOUND);
}

STORED(opened, line_that_is_too_long_is_refused_and_the_next_goes_in)
{
	FILE *file = file_open();
	struct tw_redis_stats stats;

	/* The first body is the longest that is allowed, in its longest JSON form; the other is one
	 * byte longer. */
	fputs("{\"key\":\"most\",\"in\":\"1h\",\"body\":\"", file);
	for (size_t i = 0; i < TW_REDIS_BODY_MAX; i++)
		fputs("\\u0000", file);
	fputs("\"}\n{\"key\":\"more\",\"in\":\"1h\",\"body\":\"", file);
	for (size_t i = 0; i <= TW_REDIS_BODY_MAX; i++)
		fputs("\\u0000", file);
	fputs("\"}\n{\"key\":\"long\",\"body\":\"", file);
	for (int i = 0; i < 3 * 1024 * 1024; i++)
		putc('x', file);
	fputs("\"}\n{\"key\":\"next\",\"in\":\"1h\"}\n", file);
	fclose(file);
	assert_int_equal(TWR("load", path), 65);
	assert_true(twr_said("twr: line 2: ") && twr_said("the body is larger than 262144 bytes"));
	assert_true(twr_said("twr: line 3: the line is longer than 2097152 bytes"));
	assert_true(twr_said("2 added, 2 refused"));
	assert_int_equal(find_task(fixture->redis, "most").body_size, TW_REDIS_BODY_MAX);
	assert_int_equal(find_task(fixture->redis, "next").status, TW_OK);
	stats = stats_of(fixture->redis);
	assert_int_equal(stats.tasks, 2);
}

TEST(opened, line_of_a_nul_is_not_blank)
{
	static const char lines[] = "\0\n \t\r\n{\"key\":\"a\",\"in\":\"1h\"}\n";
	FILE *file = file_open();

	assert_int_equal(fwrite(lines, 1, sizeof(lines) - 1, file), sizeof(lines) - 1);
	fclose(file);
	assert_int_equal(TWR("load", path), 65);
	assert_true(twr_said("twr: line 1: the line is not JSON") &&
		    twr_said("1 added, 1 refused"));
}

STORED(opened, many_lines_share_a_few_calls)
{
	enum { COUNT = 2000 };
	FILE *file = file_open();
	int64_t before = redis_server_calls(&fixture->server, "evalsha");

	for (int i = 0; i < COUNT; i++)
		fprintf(file, "{\"key\":\"task-%d\",\"in\":\"1h\"}\n", i);
	fclose(file);
	assert_int_equal(TWR("load", path), 0);
	assert_true(twr_said("2000 added, 0 refused"));
	assert_int_equal(stats_of(fixture->redis).tasks, COUNT);
	/* There are a call for each of the 4 shards and 256 lines, one for an unknown script, and
	 * the look at the server. */
	assert_in_range(redis_server_calls(&fixture->server, "evalsha") - before, 1, 40);
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

STORED(opened, modes_are_for_all_lines)
{
	add_task(fixture->redis, "there", TW_HOUR);
	file_write("{\"key\":\"there\",\"in\":\"2h\",\"body\":\"x\"}\n"
		   "{\"key\":\"new\",\"in\":\"2h\"}\n"
		   "{\"key\":\"new\",\"state\":\"dead\",\"due_ms\":5}\n");
	assert_int_equal(TWR("load", path, "--new"), 1);
	assert_true(twr_said("twr: line 1: the key is already in use\n"));
	assert_true(twr_said("2 added, 1 refused"));
	assert_int_equal(find_task(fixture->redis, "there").body_size, 0);
	assert_int_equal(find_dead(fixture->redis, "new").due_ms, 5);
	assert_ok(fixture->redis, tw_redis_drop(fixture->redis, "new", 3));
	assert_int_equal(cancel_task(fixture->redis, "new"), TW_OK);
	assert_int_equal(TWR("load", path, "--replace"), 1);
	assert_true(twr_said("twr: line 2: there is no such task\n"));
	assert_true(twr_said("twr: line 3: there is no such task\n"));
	assert_true(twr_said("1 added, 2 refused"));
	assert_int_equal(find_task(fixture->redis, "there").body_size, 1);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
}

TEST(opened, wrong_usage_of_files_is_reported)
{
	file_write("{\"key\":\"a\"}\n");
	assert_int_equal(TWR("load"), 2);
	assert_true(twr_said("no file is given"));
	assert_int_equal(TWR("load", path, "a"), 2);
	assert_int_equal(TWR("load", path, "--in", "1h"), 2);
	assert_int_equal(TWR("load", "/no/such/file"), 65);
	assert_true(twr_said("/no/such/file: ") && twr_said(strerror(ENOENT)));
	/* A folder can be opened, but not read. */
	assert_int_equal(TWR("load", "/"), 65);
	assert_true(twr_said("/ can't be read: ") && twr_said(strerror(EISDIR)) &&
		    twr_said("0 added, 0 refused"));
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

/* Adds tasks and dead letters that have every field. */
static void add_everything(struct fixture *fixture)
{
	static const char *const headers[] = {"X-Shop: s\xc3\xbc\xc3\x9f", "Empty:"};
	static const struct tw_redis_task tasks[] = {
		{.key = "plain", .key_size = 5, .at_ms = INT64_C(3155760000123)},
		{.key = "a\0b\xff", .key_size = 4, .at_ms = INT64_C(3155760000124)},
		{.key = "n\0ul", .key_size = 4, .at_ms = INT64_C(253402300799999)},
		{.key = "\xc3\xbc \"\\%",
		 .key_size = 6,
		 .body = "\0\x80",
		 .body_size = 2,
		 .at_ms = INT64_C(3155760000125)},
		{.key = "text",
		 .key_size = 4,
		 .body = "a\0\n\xc3\xbc",
		 .body_size = 5,
		 .max_attempts = 1000000,
		 .at_ms = INT64_C(3155760000126)},
		{.key = "call",
		 .key_size = 4,
		 .url = "http://shop.example:81/a?b=\xc3\xbc#c",
		 .method = TW_REDIS_PATCH,
		 .headers = headers,
		 .header_count = 2,
		 .body = "{}",
		 .body_size = 2,
		 .at_ms = INT64_C(3155760000127)},
		{.key = "head",
		 .key_size = 4,
		 .url = "https://[::1]/",
		 .method = TW_REDIS_HEAD,
		 .at_ms = INT64_C(3155760000128)},
	};
	const char *const reason = "odd\x80 reason";

	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
		struct tw_redis_info letter = {.task = tasks[i],
					       .state = TW_REDIS_DEAD,
					       .due_ms = 1000 + (int64_t)i,
					       .attempts = (unsigned)i,
					       .reason = i ? reason + i % 4 : ""};

		add_one(fixture->redis, &tasks[i]);
		assert_ok(fixture->redis, tw_redis_restore(fixture->redis, &letter, 1, NULL));
	}
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

STORED(opened, lists_are_a_backup)
{
	json_t *before;
	json_t *after;

	add_everything(fixture);
	before = lists_json();
	assert_int_equal(json_array_size(before), 14);
	assert_int_equal(TWR("list", "--json"), 0);
	said_write("w");
	assert_int_equal(TWR("list", "--dead", "--json"), 0);
	said_write("a");
	twr_environment.name_space = "the-copy";
	assert_int_equal(TWR("load", "--shards=4", path), 0);
	assert_true(twr_said("14 added, 0 refused"));
	after = lists_json();
	assert_same_lines(before, after);
	json_decref(before);
	json_decref(after);
	assert_int_equal(TWR("drop", "--all"), 0);
}

/* Returns the output of limits, in which groups have no order. */
static json_t *limits_json(void)
{
	assert_int_equal(TWR("limits", "--json"), 0);
	return lines_read();
}

TEST(opened, limits_come_back_in_a_copy)
{
	json_t *before;
	json_t *after;

	twr_environment.name_space = "limits";
	assert_int_equal(TWR("limits", "--running=7", "--rate=8/1s", "--pause"), 0);
	assert_int_equal(TWR("limits", "broken", "--pause"), 0);
	assert_int_equal(TWR("limits", "one", "--running=1", "--weight=2", "--rate=300/1h"), 0);
	before = limits_json();
	assert_int_equal(json_array_size(before), 3);
	said_write("w");
	twr_environment.name_space = "limits-copy";
	assert_int_equal(TWR("load", path), 0);
	assert_true(twr_said("3 added, 0 refused"));
	after = limits_json();
	assert_same_lines(before, after);
	json_decref(before);
	json_decref(after);
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
	redis_server_number(&fixture->server, "ZADD {tw/%s/%u}due %lld %s", fixture->name_space,
			    shard_of(fixture->redis, key), (long long)score, key);
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

static const struct winsize screen = {.ws_row = 24, .ws_col = 80};

TEST(opened, progress_is_shown_only_at_a_terminal)
{
	file_write("{\"key\":\"a\",\"in\":\"1h\"}\nnonsense\n{\"key\":\"b\",\"in\":\"1h\"}\n");
	twr_environment.terminal = &screen;
	assert_int_equal(TWR("load", path), 65);
	assert_true(twr_said("twr: line 3, 2 added, 1 refused"));
	assert_true(twr_said("twr: line 2: the line is not JSON"));
	assert_true(twr_said("\033[K2 added, 1 refused\r\n"));
	twr_environment.terminal = NULL;
	assert_int_equal(TWR("load", path), 65);
	assert_false(twr_said("line 3") || twr_said("\033"));
}

/* Returns how often it has printed its progress. */
static int progress_count(const char *text)
{
	int count = 0;

	for (const char *at = text; (at = strstr(at, " added, 0 refused\r\033")); at++)
		count++;
	return count;
}

/* The lines come in batches, as they are asked for, until the progress was printed a few times. */
STORED(opened, progress_is_printed_ten_times_a_second_at_most)
{
	enum { REPORTED = 4, BATCH = 256, BATCHES_MAX = 20000 };
	struct program program;
	int64_t start;
	FILE *file;

	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	twr_environment.terminal = &screen;
	start = wall_clock();
	program_start(&program, &twr_environment, ARGUMENTS("load", path));
	file = fopen(path, "w");
	assert_non_null(file);
	for (int batches = 0;
	     progress_count(program_text(&program)) < REPORTED && batches < BATCHES_MAX;
	     batches++) {
		for (int i = 0; i < BATCH; i++)
			fputs("{\"key\":\"a\",\"in\":\"1h\"}\n", file);
		fflush(file);
	}
	fclose(file);
	assert_int_equal(program_wait(&program), 0);
	assert_in_range(progress_count(program_text(&program)), REPORTED,
			1 + (wall_clock() - start) / (100 * TW_MILLISECOND));
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
	unlink(path);
	program_end(&program);
}

FIXTURE_FILE
