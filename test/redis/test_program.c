/* SPDX-License-Identifier: MIT */
/* These tests run the program twr and check its output, its exit codes, and workers that are
 * stopped or killed. */
#include "support/fixture.h"

#include <sys/resource.h>

#include <jansson.h>

#include "support/false_server.h"
#include "support/http_server.h"
#include "support/program.h"
#include "support/sockets.h"

static struct http_server http;
static char callback[64];

/* Waits for the time in /slow/MS, and in /slow-first/MS on the first attempt. */
static void answer_by_path(void *context, const struct http_request *request,
			   struct http_answer *answer)
{
	if (!strncmp(request->path, "/slow/", 6))
		answer->delay_ms = atoi(request->path + 6);
	else if (!strncmp(request->path, "/slow-first/", 12))
		answer->delay_ms = request->attempt == 1 ? atoi(request->path + 12) : 0;
	else if (atoi(request->path + 1))
		answer->status = atoi(request->path + 1);
}

static int open_all(void **state)
{
	int result = fixture_open_one_shard(state);

	http_server_start(&http, answer_by_path, NULL);
	snprintf(callback, sizeof(callback), "http://127.0.0.1:%d/200", http.port);
	return result;
}

static int close_all(void **state)
{
	http_server_stop(&http);
	return fixture_close(state);
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

/* Returns the output, which is one JSON object. The caller frees it. */
static json_t *said_json(void)
{
	json_t *object = json_loads(twr_text(), JSON_DISABLE_EOF_CHECK, NULL);

	assert_non_null(object);
	return object;
}

static void assert_member(const char *name, const char *value)
{
	json_t *object = said_json();

	assert_string_equal(json_string_value(json_object_get(object, name)), value);
	json_decref(object);
}

static int64_t said_number(const char *name)
{
	json_t *object = said_json();
	int64_t number = json_integer_value(json_object_get(object, name));

	json_decref(object);
	return number;
}

STORED(opened, task_is_added_shown_moved_and_cancelled)
{
	assert_int_equal(TWR("add", "--key", "order:7", "--in", "1h", "--callback",
			     "http://shop.example/expire", "--data", "{\"a\":1}", "--header",
			     "X-Shop: 7", "--max-attempts", "3"),
			 0);
	assert_true(twr_said("order:7 is due "));
	assert_int_equal(find_task(fixture->redis, "order:7").max_attempts, 3);
	assert_int_equal(TWR("get", "order:7", "--json"), 0);
	assert_member("key", "order:7");
	assert_member("state", "pending");
	assert_member("callback", "http://shop.example/expire");
	assert_member("method", "POST");
	assert_member("body", "{\"a\":1}");
	assert_int_equal(said_number("max_attempts"), 3);
	assert_int_equal(
		TWR("move", "--key=order:7", "--at", "2070-01-01T00:00:00.5+01:00", "--json"), 0);
	assert_int_equal(said_number("due_ms"), INT64_C(3155756400500));
	assert_member("due", "2069-12-31T23:00:00.500Z");
	assert_int_equal(TWR("get", "order:7"), 0);
	assert_true(twr_said("2069-12-31T23:00:00.500Z") && twr_said("X-Shop: 7") &&
		    twr_said("{\"a\":1}"));
	assert_int_equal(TWR("move", "order:7", "--at", "3155756400.5", "--json"), 0);
	assert_int_equal(said_number("due_ms"), INT64_C(3155756400500));
	assert_int_equal(TWR("cancel", "order:7"), 0);
	assert_int_equal(find_task(fixture->redis, "order:7").status, TW_NOT_FOUND);
}

TEST(opened, fraction_of_a_time_is_rounded_up)
{
	assert_int_equal(
		TWR("add", "a", "--handler", "--at", "2070-01-01T00:00:00.0009Z", "--json"), 0);
	assert_int_equal(said_number("due_ms"), INT64_C(3155760000001));
	assert_int_equal(TWR("move", "a", "--at", "2070-01-01T00:00:59.9999Z", "--json"), 0);
	assert_int_equal(said_number("due_ms"), INT64_C(3155760060000));
	assert_int_equal(TWR("move", "a", "--at", "3155760000.0001", "--json"), 0);
	assert_int_equal(said_number("due_ms"), INT64_C(3155760000001));
}

TEST(opened, task_that_no_twr_can_run_is_warned_of)
{
	assert_int_equal(TWR("add", "a", "--in", "1h"), 0);
	assert_true(twr_said("no --callback"));
	assert_int_equal(TWR("add", "a", "--in", "1h", "--handler"), 0);
	assert_false(twr_said("no --callback"));
	assert_int_equal(TWR("add", "a", "--in", "1h", "--callback", callback, "--method", "PUT"),
			 0);
	assert_false(twr_said("no --callback"));
	assert_int_equal(TWR("get", "a", "--json"), 0);
	assert_member("method", "PUT");
}

TEST(opened, no_text_of_a_task_is_obeyed_by_a_terminal)
{
	assert_int_equal(TWR("add", "a\033[1m", "--in", "1h", "--handler", "--data",
			     "\tone\n\033[2Jtwo\x7f\r \xc3\xbc"),
			 0);
	assert_int_equal(TWR("get", "a\033[1m"), 0);
	assert_true(twr_said("key           a%1B[1m\n"));
	assert_true(twr_said("body          \tone\n%1B[2Jtwo%7F%0D \xc3\xbc\n"));
}

TEST(opened, lists_and_stats_show_what_there_is)
{
	assert_int_equal(TWR("add", "a b", "--in", "1h"), 0);
	assert_int_equal(TWR("add", "c", "--in", "30m"), 0);
	assert_int_equal(TWR("list"), 0);
	assert_true(twr_said("a%20b\n") && twr_said("c\n") && twr_said("pending  0/8"));
	assert_int_equal(TWR("list", "--json"), 0);
	assert_member("state", "pending");
	assert_int_equal(TWR("stats", "--json"), 0);
	assert_int_equal(said_number("tasks"), 2);
	assert_int_equal(said_number("due"), 0);
	assert_int_equal(TWR("stats"), 0);
	assert_true(twr_said("tasks 2\n") && twr_said("\nscheduled 2\n") &&
		    twr_said("\npaused no\n"));
	assert_int_equal(TWR("workers"), 0);
	assert_string_equal(twr_text(), "");
	assert_int_equal(TWR("ping"), 0);
	assert_int_equal(TWR("ping", "--json"), 0);
}

TEST(opened, recurring_tasks_recur)
{
	assert_int_equal(TWR("add", "a", "--every", "1h", "--missed", "some"), 2);
	assert_int_equal(TWR("add", "a", "--every", "1h", "--cron", "@daily", "--handler"), 2);
	assert_int_equal(TWR("add", "a", "--every", "1h", "--zone", "UTC", "--handler"), 2);
	assert_int_equal(TWR("add", "a", "--cron", "nonsense", "--handler"), 65);
	assert_int_equal(TWR("add", "a", "--every", "1h", "--missed", "skip", "--handler"), 0);
	assert_int_equal(TWR("get", "a", "--json"), 0);
	assert_int_equal(said_number("every_ms"), 3600000);
	assert_member("missed", "skip");
	assert_int_equal(TWR("get", "a"), 0);
	assert_true(twr_said("missed        skip\n"));
	assert_int_equal(TWR("stats", "--json"), 0);
	assert_int_equal(said_number("recurring"), 1);
	assert_int_equal(TWR("cancel", "a"), 0);
	assert_int_equal(TWR("get", "a"), 0);
	assert_int_equal(TWR("add", "a", "--cron", "0 3 * * 1-5", "--zone", "Europe/Berlin", "--at",
			     "2100-01-01T00:00:00Z", "--handler"),
			 0);
	assert_true(twr_said("2100-01-01T02:00:00"));
	assert_int_equal(TWR("get", "a", "--json"), 0);
	assert_member("cron", "0 3 * * 1-5");
	assert_member("zone", "Europe/Berlin");
	assert_member("missed", "one");
	assert_int_equal(TWR("get", "a"), 0);
	assert_true(twr_said("cron          0 3 * * 1-5\nzone          Europe/Berlin\n"));
	assert_int_equal(TWR("cancel", "a", "--all"), 0);
	assert_int_equal(TWR("get", "a"), 1);
	assert_int_equal(TWR("cancel", "a", "--all"), 1);
}

TEST(opened, limits_are_set_and_shown)
{
	assert_int_equal(TWR("limits", "--running", "7", "--json"), 0);
	/* Limits that are not given stay. */
	assert_int_equal(TWR("limits", "--rate", "100/1s", "--pause"), 0);
	assert_int_equal(TWR("limits", "--json"), 0);
	assert_member("group", "");
	assert_int_equal(said_number("running"), 7);
	assert_member("rate", "100/1s");
	assert_true(twr_said("\"paused\":true"));
	assert_int_equal(TWR("stats"), 0);
	assert_true(twr_said("paused yes\n"));
	assert_int_equal(TWR("limits", "--running", "0", "--resume"), 0);
	assert_int_equal(TWR("limits"), 0);
	assert_true(twr_said("    weight   running      rate    paused  group\n"
			     "         0         0    100/1s        no  \n"));
	assert_int_equal(TWR("limits", "--running", "-1"), 2);
	assert_int_equal(TWR("limits", "--weight", "2"), 2);
	assert_int_equal(TWR("limits", "--pause", "--resume"), 2);
	assert_int_equal(TWR("add", "a", "--running", "1"), 2);
}

TEST(opened, limits_of_groups_are_set_and_shown)
{
	assert_int_equal(TWR("limits", "other", "--running", "3", "--rate", "15/1m"), 0);
	assert_int_equal(TWR("limits", "acme", "--running", "1", "--weight", "2"), 0);
	assert_int_equal(TWR("limits", "acme", "--rate", "5/1500ms", "--pause"), 0);
	assert_int_equal(TWR("limits", "acme", "--json"), 0);
	assert_member("group", "acme");
	assert_int_equal(said_number("running"), 1);
	assert_int_equal(said_number("weight"), 2);
	assert_member("rate", "5/1500ms");
	assert_true(twr_said("\"paused\":true"));
	assert_int_equal(TWR("limits"), 0);
	assert_true(twr_said("         0         3     15/1m        no  other\n"));
	assert_true(twr_said("         2         1  5/1500ms       yes  acme\n"));
	assert_int_equal(TWR("limits", "acme", "--resume", "--running", "0"), 0);
	assert_int_equal(TWR("limits", "acme"), 0);
	assert_true(twr_said("         2         0  5/1500ms        no  acme\n"));
	assert_int_equal(TWR("limits", "a", "--running", "no"), 2);
	assert_int_equal(TWR("limits", "a", "--weight", "1001"), 2);
	assert_int_equal(TWR("limits", "a", "--rate", "0"), 0);
	assert_int_equal(TWR("limits", "a", "--rate", ""), 2);
	assert_int_equal(TWR("limits", "a", "--rate", "5"), 2);
	assert_int_equal(TWR("limits", "a", "--rate", "0/1s"), 2);
	assert_int_equal(TWR("limits", "a", "--rate", "5/0s"), 2);
	assert_int_equal(TWR("limits", "a", "--rate", "99999999999999999999/1s"), 2);
	assert_int_equal(TWR("limits", "a", "b"), 2);
	assert_int_equal(TWR("limits", "a\001b", "--pause"), 65);
}

TEST(opened, group_is_dropped)
{
	assert_int_equal(TWR("add", "a", "--in", "1h", "--group", "acme", "--handler"), 0);
	assert_int_equal(TWR("add", "b", "--in", "1h", "--group", "other", "--handler"), 0);
	assert_int_equal(TWR("drop", "--group", "acme"), 0);
	assert_string_equal(twr_text(), "1\n");
	assert_int_equal(TWR("get", "a"), 1);
	assert_int_equal(TWR("get", "b"), 0);
	assert_int_equal(TWR("drop", "--group", "acme", "--json"), 0);
	assert_int_equal(said_number("count"), 0);
}

STORED(opened, unknown_existing_and_leased_tasks_are_1)
{
	assert_int_equal(TWR("cancel", "nobody"), 1);
	assert_int_equal(TWR("get", "nobody"), 1);
	assert_int_equal(TWR("move", "nobody", "--in", "1s"), 1);
	assert_int_equal(TWR("add", "nobody", "--replace"), 1);
	assert_int_equal(TWR("retry", "nobody"), 1);
	assert_true(twr_said("the letter of an occurrence has the key KEY#due=TIME"));
	assert_int_equal(TWR("drop", "nobody"), 1);
	assert_int_equal(TWR("add", "a", "--new"), 0);
	assert_int_equal(TWR("add", "a", "--new"), 1);
	assert_int_equal(TWR("add", "a", "--replace"), 0);
	assert_int_equal(TWR("add", "a"), 0);
	await_claim(fixture->redis, "a", TW_MINUTE);
	assert_int_equal(TWR("cancel", "a"), 1);
	assert_int_equal(TWR("move", "a", "--in", "1s"), 1);
	assert_int_equal(TWR("get", "a"), 0);
	assert_true(twr_said("state         leased\n") && twr_said("\ntoken         "));
}

TEST(opened, latest_time_of_a_task_is_shown)
{
	assert_int_equal(TWR("add", "a", "--in", "1h", "--latest", "2h", "--handler"), 0);
	assert_int_equal(TWR("get", "a"), 0);
	assert_true(twr_said("\nlatest_due_ms "));
	assert_int_equal(TWR("get", "a", "--json"), 0);
	assert_int_equal(said_number("latest_due_ms") - said_number("due_ms"), 3600 * 1000);
}

STORED(opened, namespace_is_deleted_if_it_is_unused_or_by_force)
{
	assert_int_equal(TWR("add", "a", "--in", "1h", "--handler"), 0);
	assert_int_equal(TWR("drop", "--everything"), 2);
	assert_true(twr_said("--everything requires --namespace"));
	assert_int_equal(TWR("drop", "--everything", "--namespace", fixture->name_space), 1);
	assert_true(twr_said("twr: the namespace has tasks or dead letters (--force)\n"));
	assert_int_equal(TWR("drop", "--everything", "--namespace", "another-one"), 0);
	assert_int_equal(TWR("drop", "--all", "--force"), 2);
	assert_int_equal(TWR("get", "a"), 0);
	assert_int_equal(TWR("drop", "--everything", "--namespace", fixture->name_space, "--force"),
			 0);
	assert_int_equal(TWR("get", "a"), 1);
}

STORED(opened, dead_letter_whose_key_a_task_has_stays)
{
	struct tw_redis_info letter = {
		.task = {.key_size = 1}, .state = TW_REDIS_DEAD, .due_ms = 1, .reason = "so"};

	for (int i = 0; i < 3; i++) {
		letter.task.key = &"abc"[i];
		assert_ok(fixture->redis, tw_redis_restore(fixture->redis, &letter, 1, NULL));
	}
	add_task(fixture->redis, "b", TW_HOUR);
	assert_int_equal(TWR("retry", "--all"), 1);
	assert_true(twr_said("twr: b: the key is already in use\n") && twr_said("2\n"));
	assert_int_equal(TWR("retry", "--all", "--json"), 1);
	assert_true(twr_said("{\"count\":0,\"left\":1}"));
	assert_int_equal(stats_of(fixture->redis).tasks, 3);
	assert_int_equal(find_dead(fixture->redis, "b").status, TW_OK);
}

/* Lists a dead letter of the shard, which is gone when it is to be dropped. */
static size_t answer_too_late(void *context, const redisReply *request, char *reply, size_t room)
{
	const char *cursor = request->element[request->elements - 3]->str;

	return (size_t)snprintf(reply, room, "%s",
				strcmp(cursor, "0") ? ":-2\r\n"
						    : "*4\r\n:1\r\n$1\r\n0\r\n"
						      "*2\r\n$1\r\nk\r\n$10\r\n1:1:0:8 0\n\r\n"
						      ":0\r\n");
}

TEST(opened, dead_letter_that_is_gone_meanwhile_is_no_failure)
{
	struct false_server server;

	false_server_start(&server, answer_too_late, NULL);
	twr_environment.url = server.url;
	assert_int_equal(TWR("drop", "--all"), 0);
	assert_string_equal(twr_text(), "0\n");
	assert_int_equal(TWR("list", "--dead"), 0);
	assert_true(twr_said("dead     1/8  k\n"));
	false_server_stop(&server);
}

STORED(opened, data_comes_from_a_file_or_standard_input)
{
	char path[320];
	char argument[330];
	FILE *file;

	snprintf(path, sizeof(path), "%s/data", fixture->server.folder);
	snprintf(argument, sizeof(argument), "@%s", path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("[1, 2]\n", file);
	fclose(file);
	assert_int_equal(TWR("add", "a", "--in=1h", "--callback", callback, "--data", argument), 0);
	assert_string_equal(find_task(fixture->redis, "a").body, "[1, 2]\n");
	assert_int_equal(TWR("add", "b", "--data", "@/no/such/file"), 65);
	/* A folder can be opened, but not read. */
	assert_int_equal(TWR("add", "b", "--data", "@/"), 65);
	assert_true(twr_said("the data can't be read: ") && twr_said(strerror(EISDIR)));
	assert_int_equal(TWR("add", "d", "--in=1h", "--callback", callback, "--data", ""), 0);
	assert_int_equal(find_task(fixture->redis, "d").body_size, 0);
	file = freopen(path, "r", stdin);
	assert_non_null(file);
	assert_int_equal(TWR("add", "c", "--in=1h", "--callback", callback, "--data", "@-"), 0);
	assert_string_equal(find_task(fixture->redis, "c").body, "[1, 2]\n");
	assert_int_equal(find_task(fixture->redis, "b").status, TW_NOT_FOUND);
}

TEST(opened, wrong_usage_is_2)
{
	assert_int_equal(TWR("fly"), 2);
	assert_int_equal(TWR("--json"), 2);
	assert_int_equal(TWR("add"), 2);
	assert_int_equal(TWR("add", "--key", ""), 2);
	assert_int_equal(TWR("add", "a", "b"), 2);
	assert_int_equal(TWR("get", ""), 2);
	assert_int_equal(TWR("get", "--key", "a", "b"), 2);
	assert_int_equal(TWR("ping", "a"), 2);
	assert_int_equal(TWR("add", "a", "--in", "1w"), 2);
	assert_int_equal(TWR("add", "a", "--in", "-5"), 2);
	assert_int_equal(TWR("add", "a", "--at", "2031-05-01T12:00:00"), 2);
	assert_int_equal(TWR("add", "a", "--at", "2031-04-31T12:00:00Z"), 2);
	assert_int_equal(TWR("add", "a", "--at", "99999999999"), 2);
	assert_int_equal(TWR("add", "a", "--method", "put"), 2);
	assert_int_equal(TWR("add", "a", "--max-attempts", "0"), 2);
	assert_int_equal(TWR("add", "a", "--lease", "1s"), 2);
	assert_int_equal(TWR("add", "a", "--latest", "0"), 2);
	assert_int_equal(TWR("add", "a", "--latest", "40000d"), 2);
	assert_int_equal(TWR("move", "a"), 2);
	assert_int_equal(TWR("drop"), 2);
	assert_int_equal(TWR("drop", "--all", "a"), 2);
	assert_int_equal(TWR("worker", "--concurrency", "5000"), 2);
	assert_int_equal(TWR("ping", "--nonsense"), 2);
	assert_int_equal(TWR("ping", "--url", "http://127.0.0.1/"), 2);
	assert_int_equal(TWR("ping", "--namespace", "a b"), 2);
	assert_int_equal(TWR("--help"), 0);
	assert_true(twr_said("TWR_PASSWORD"));
	assert_int_equal(TWR("--version"), 0);
}

TEST(opened, wrong_usage_says_which_option_and_what_it_takes)
{
	assert_int_equal(TWR("add", "--key"), 2);
	assert_true(twr_said("--key requires a value"));
	assert_int_equal(TWR("ping", "--json=yes"), 2);
	assert_true(twr_said("--json takes no value"));
	assert_int_equal(TWR("add", "a", "--in", "soon"), 2);
	assert_true(twr_said("--in requires a valid TIME: delay from now: 90, 250ms"));
	assert_int_equal(TWR("worker", "--batch", "5000"), 2);
	assert_true(twr_said("--batch requires a valid N: ") && twr_said("up to 1000"));
	assert_int_equal(TWR("worker", "--lease", "2d"), 2);
	assert_true(twr_said("--lease requires a valid TIME: ") && twr_said("100ms to 1d"));
	assert_int_equal(TWR("worker", "--timeout", "2d"), 2);
	assert_true(twr_said("--timeout requires a valid TIME: ") && twr_said("1ms to 1d"));
}

STORED(opened, bad_data_is_65)
{
	char path[320];
	char long_key[TW_REDIS_KEY_MAX + 2];
	char argument[330];
	FILE *file;

	memset(long_key, 'k', sizeof(long_key));
	long_key[sizeof(long_key) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/data", fixture->server.folder);
	snprintf(argument, sizeof(argument), "@%s", path);
	file = fopen(path, "w");
	assert_non_null(file);
	for (size_t i = 0; i <= TW_REDIS_BODY_MAX; i++)
		putc('1', file);
	fclose(file);
	assert_int_equal(TWR("add", "a", "--callback", callback, "--header", "Tw-Token: 1"), 65);
	assert_int_equal(TWR("add", "a", "--callback", callback, "--data", argument), 65);
	assert_int_equal(TWR("add", "a", "--callback", callback, "--data", "not JSON"), 65);
	assert_int_equal(TWR("add", "a", "--callback", callback, "--method=HEAD", "--data", "1"),
			 65);
	assert_int_equal(TWR("add", "a", "--header", "X: y"), 65);
	assert_int_equal(TWR("add", long_key), 65);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
	assert_int_equal(TWR("add", "a", "--callback", callback, "--data", "not JSON", "--header",
			     "Content-Type: text/plain"),
			 0);
}

/* Runs twr with the option `count` times after the other arguments. */
static int twr_with_many(const char *const *arguments, const char *option, size_t count)
{
	const char **words = calloc(count + 8, sizeof(*words));
	size_t size = 0;
	int exit_code;

	assert_non_null(words);
	for (; *arguments; arguments++)
		words[size++] = *arguments;
	while (count--)
		words[size++] = option;
	exit_code = twr_run(words);
	free(words);
	return exit_code;
}
#define TWR_WITH_MANY(option, count, ...) twr_with_many(ARGUMENTS(__VA_ARGS__), option, count)

STORED(opened, more_than_there_may_be_is_refused)
{
	for (size_t count = 0; count < 3; count++) {
		assert_int_equal(TWR_WITH_MANY("--header=A: b", TW_REDIS_HEADER_COUNT_MAX + count,
					       "add", "a", "--in=1h", "--callback", callback),
				 count ? 65 : 0);
		assert_int_equal(TWR_WITH_MANY("--allow=a.example",
					       TW_REDIS_TARGETS_MAX + 1 + count, "worker"),
				 2);
		assert_true(twr_said("at most 1024 patterns"));
	}
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
}

TEST(opened, redis_that_is_not_there_is_69)
{
	char url[64];

	snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port_free());
	twr_environment.url = url;
	assert_int_equal(TWR("ping"), 69);
	assert_int_equal(TWR("add", "a"), 69);
	assert_int_equal(TWR("worker"), 69);
}

TEST(opened, redis_that_may_drop_tasks_is_69_unless_that_is_wanted)
{
	const struct redis_server_options dropping_options = {.policy = "allkeys-lfu"};
	struct redis_server dropping;

	redis_server_start(&dropping, &dropping_options);
	twr_environment = (struct program_environment){.url = dropping.url};
	assert_int_equal(TWR("worker"), 69);
	assert_true(twr_said("maxmemory-policy"));
	assert_int_equal(TWR("add", "a"), 69);
	assert_int_equal(TWR("add", "a", "--allow-eviction"), 0);
	redis_server_stop(&dropping);
}

TEST(opened, renamed_commands_and_options_name_the_new_one)
{
	static const char *const old[][3] = {
		{"pause", NULL, "twr: pause is now limits --pause "},
		{"every", "a", "twr: every is now add --every, add --cron "},
		{"dead", "list", "twr: dead list is now list --dead "},
		{"group", "drain", "twr: group drain is now drop --group GROUP "},
		{"add", "--file=-", "twr: --file is now the command load "},
		{"list", "--limit", "twr: --limit is now list | head -n N "}};

	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
		assert_int_equal(TWR(old[i][0], old[i][1]), 2);
		assert_true(twr_said(old[i][2]));
	}
}

/* The list is larger than a pipe. The exit status is that of other tools: the signal's. */
STORED(opened, reader_that_goes_away_ends_a_list_silently)
{
	const char *build = getenv("BUILD");
	char command[512];
	char text[64];
	FILE *said_by_shell;

	add_tasks(fixture->redis, 2000, TW_HOUR, 0);
	snprintf(command, sizeof(command),
		 "exec 3>&1; { %s/twr list --json --url=%s --namespace=%s 2>&3; "
		 "echo $? >&3; } | head -n 1 >/dev/null",
		 build ? build : "build", fixture->server.url, fixture->name_space);
	said_by_shell = popen(command, "r");
	assert_non_null(said_by_shell);
	assert_non_null(fgets(text, sizeof(text), said_by_shell));
	assert_int_equal(atoi(text), 128 + SIGPIPE);
	assert_null(fgets(text, sizeof(text), said_by_shell));
	pclose(said_by_shell);
}

STORED(opened, stats_are_a_line_each_time)
{
	struct program stats;

	program_start(&stats, &twr_environment, ARGUMENTS("stats", "--every=20ms"));
	assert_true(program_wait_text(&stats, "tasks 0  scheduled 0  "));
	add_task(fixture->redis, "a", TW_HOUR);
	assert_true(program_wait_text(&stats, "\ntasks 1  scheduled 1  started 0  dead 0  "));
	program_end(&stats);
	program_start(&stats, &twr_environment, ARGUMENTS("stats", "--every=20ms", "--json"));
	assert_true(program_wait_text(&stats, "}\n{\"tasks\":1,"));
	program_end(&stats);
}

TEST(opened, end_of_redis_is_reported_and_outlived_by_stats)
{
	struct redis_server server;
	struct program stats;

	redis_server_start(&server, NULL);
	twr_environment.url = server.url;
	program_start(&stats, &twr_environment, ARGUMENTS("stats", "--every=20ms", "--patience=0"));
	assert_true(program_wait_text(&stats, "tasks 0  "));
	redis_server_end(&server, SIGKILL);
	assert_true(program_wait_text(&stats, "twr: "));
	redis_server_restart(&server);
	assert_int_equal(TWR("add", "a", "--in=1h", "--handler"), 0);
	assert_true(program_wait_text(&stats, "tasks 1  "));
	program_end(&stats);
	redis_server_stop(&server);
}

STORED(opened, output_that_cannot_be_written_is_71)
{
	char path[320];
	FILE *file;

	twr_environment.standard_output = "/dev/full";
	assert_int_equal(TWR("ping"), 71);
	assert_string_equal(twr_text(), "twr: standard output can't be written\n");
	/* The lines before it are reported. */
	redis_server_path(&fixture->server, "lines", path, sizeof(path));
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("nonsense\n", file);
	fclose(file);
	assert_int_equal(TWR("load", path), 65);
	/* This exceeds the output buffer. */
	add_tasks(fixture->redis, 200, TW_HOUR, 0);
	assert_int_equal(TWR("list", "--json"), 71);
}

TEST(opened, wrong_password_is_77_and_no_password_is_shown)
{
	const struct redis_server_options guarded_options = {.password = "the-secret"};
	struct redis_server guarded;
	char url[96];

	redis_server_start(&guarded, &guarded_options);
	twr_environment = (struct program_environment){.url = guarded.url};
	assert_int_equal(TWR("ping"), 77);
	twr_environment.password = "not-the-secret";
	assert_int_equal(TWR("ping"), 77);
	assert_false(twr_said("the-secret"));
	assert_int_equal(TWR("worker"), 77);
	assert_false(twr_said("the-secret"));
	twr_environment.password = "the-secret";
	assert_int_equal(TWR("ping"), 0);
	snprintf(url, sizeof(url), "redis://:the-secret@127.0.0.1:%d", guarded.port);
	twr_environment = (struct program_environment){.url = url};
	assert_int_equal(TWR("ping"), 0);
	twr_environment = (struct program_environment){.password = "not-the-secret"};
	assert_int_equal(TWR("ping", "--url", url), 0);
	twr_environment.url = "";
	assert_int_equal(TWR("ping", "--url", url), 0);
	snprintf(url, sizeof(url), "redis://:the-wrong-secret@127.0.0.1:%d", guarded.port);
	assert_int_equal(TWR("ping", "--url", url), 77);
	assert_false(twr_said("wrong-secret"));
	assert_int_equal(TWR("ping", "--url", "redis://:the-wrong-secret@127.0.0.1:nowhere"), 2);
	assert_false(twr_said("wrong-secret"));
	redis_server_stop(&guarded);
}

/* Checks everything that others may read about the process. */
static void assert_process_hides(pid_t pid, const char *secret)
{
	static const char *const files[] = {"cmdline", "environ", "comm"};
	static char text[65536];

	for (size_t i = 0; i < 3; i++) {
		char path[64];
		FILE *file;
		size_t size;

		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		file = fopen(path, "r");
		assert_non_null(file);
		size = fread(text, 1, sizeof(text), file);
		fclose(file);
		assert_true(i == 2 || size > 0);
		assert_null(memmem(text, size, secret, strlen(secret)));
	}
}

TEST(opened, process_list_shows_no_password)
{
	const struct redis_server_options guarded_options = {.password = "the-secret"};
	struct redis_server guarded;
	struct program worker;
	char url[96];
	char argument[128];

	redis_server_start(&guarded, &guarded_options);
	snprintf(url, sizeof(url), "redis://:the-secret@127.0.0.1:%d", guarded.port);
	snprintf(argument, sizeof(argument), "--url=%s", url);
	for (int i = 0; i < 4; i++) {
		twr_environment =
			(struct program_environment){.url = i == 0 ? url : guarded.url,
						     .password = i == 1 ? "the-secret" : NULL};
		program_start(&worker, &twr_environment,
			      i == 2   ? ARGUMENTS("worker", "--url", url)
			      : i == 3 ? ARGUMENTS("worker", argument)
				       : ARGUMENTS("worker"));
		assert_true(program_wait_text(&worker, "the worker runs"));
		assert_process_hides(worker.pid, "the-secret");
		assert_int_equal(kill(worker.pid, SIGTERM), 0);
		assert_int_equal(program_wait(&worker), 0);
		program_end(&worker);
		assert_false(twr_said("the-secret"));
	}
	redis_server_stop(&guarded);
}

static void worker_start(struct program *worker, const char *const *options)
{
	const char *words[32] = {"worker", "--verbose"};
	size_t count = 2;

	for (; *options && count < 31; options++)
		words[count++] = *options;
	program_start(worker, &twr_environment, words);
	assert_true(program_wait_text(worker, "the worker runs"));
}

static int worker_end(struct program *worker)
{
	int exit_code;

	kill(worker->pid, SIGTERM);
	exit_code = program_wait(worker);
	return exit_code;
}

STORED(opened, worker_runs_and_prints_what_was_scheduled)
{
	struct program worker;
	char url[64];

	worker_start(&worker, ARGUMENTS("--retry-first=10ms", "--count-every=50ms"));
	assert_int_equal(TWR("add", "good", "--in", "100ms", "--callback", callback), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/404", http.port);
	assert_int_equal(TWR("add", "bad", "--callback", url), 0);
	assert_true(program_wait_text(&worker, "done     good  attempt 1/8"));
	assert_true(program_wait_text(&worker, "dead     bad  attempt 1/8"));
	assert_true(program_wait_text(&worker, "HTTP 404"));
	assert_true(program_wait_text(&worker, "done 1, retried 0, dead 1"));
	assert_int_equal(http_server_count_of(&http, "good"), 1);
	assert_int_equal(TWR("list", "--dead"), 0);
	assert_true(twr_said("bad  HTTP 404"));
	assert_int_equal(TWR("list", "--dead", "--json"), 0);
	assert_member("reason", "HTTP 404");
	assert_int_equal(TWR("retry", "bad"), 0);
	WAIT_UNTIL(http_server_count_of(&http, "bad") == 2 &&
		   find_dead(fixture->redis, "bad").status == TW_OK);
	assert_int_equal(TWR("drop", "--all"), 0);
	assert_string_equal(twr_text(), "1\n");
	assert_int_equal(stats_of(fixture->redis).dead, 0);
	assert_int_equal(worker_end(&worker), 0);
	program_end(&worker);
}

TEST(opened, worker_goes_on_where_it_was_stopped)
{
	struct program worker;
	int status;

	worker_start(&worker, ARGUMENTS("--count-every=1h"));
	kill(worker.pid, SIGSTOP);
	assert_int_equal(waitpid(worker.pid, &status, WUNTRACED), worker.pid);
	assert_true(WIFSTOPPED(status));
	kill(worker.pid, SIGCONT);
	assert_int_equal(TWR("add", "good", "--callback", callback), 0);
	assert_true(program_wait_text(&worker, "done     good  attempt 1/8"));
	assert_int_equal(worker_end(&worker), 0);
	/* The worker was not notified that its hour is over. */
	assert_null(strstr(strstr(program_text(&worker), "done 1, ") + 1, "done 1, "));
	program_end(&worker);
}

TEST(opened, lines_of_the_worker_are_json_if_asked_for)
{
	struct program worker;
	json_t *line;

	worker_start(&worker, ARGUMENTS("--json"));
	assert_int_equal(TWR("add", "a", "--callback", callback), 0);
	assert_true(program_wait_text(&worker, "}\n"));
	line = json_loads(strchr(program_text(&worker), '{'), JSON_DISABLE_EOF_CHECK, NULL);
	assert_string_equal(json_string_value(json_object_get(line, "end")), "done");
	assert_string_equal(json_string_value(json_object_get(line, "key")), "a");
	assert_int_equal(json_integer_value(json_object_get(line, "http_status")), 200);
	json_decref(line);
	assert_int_equal(worker_end(&worker), 0);
	program_end(&worker);
}

TEST(opened, retried_run_is_printed_with_its_time)
{
	struct program worker;
	char url[64];
	json_t *line;

	/* Nothing listens there, so no answer has a status. */
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port_free());
	worker_start(&worker, ARGUMENTS("--retry-first=10ms"));
	assert_int_equal(TWR("add", "a", "--max-attempts=2", "--callback", url), 0);
	assert_true(program_wait_text(&worker, "retry    a  attempt 1/2  "));
	assert_true(program_wait_text(&worker, "  retry in "));
	assert_true(program_wait_text(&worker, "dead     a  attempt 2/2  "));
	assert_int_equal(worker_end(&worker), 0);
	program_end(&worker);
	worker_start(&worker, ARGUMENTS("--retry-first=10ms", "--json"));
	assert_int_equal(TWR("add", "b", "--max-attempts=2", "--callback", url), 0);
	assert_true(program_wait_text(&worker, "}\n"));
	line = json_loads(strchr(program_text(&worker), '{'), JSON_DISABLE_EOF_CHECK, NULL);
	assert_string_equal(json_string_value(json_object_get(line, "end")), "retry");
	assert_true(json_number_value(json_object_get(line, "retry_in_ms")) > 0);
	assert_non_null(json_string_value(json_object_get(line, "reason")));
	assert_null(json_object_get(line, "http_status"));
	json_decref(line);
	assert_int_equal(worker_end(&worker), 0);
	program_end(&worker);
}

STORED(opened, sigterm_in_mid_task_lets_it_finish)
{
	struct program worker;
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/slow/800", http.port);
	worker_start(&worker, ARGUMENTS("--grace=20s"));
	assert_int_equal(TWR("add", "slow", "--callback", url), 0);
	WAIT_UNTIL(http_server_count(&http) == 1);
	kill(worker.pid, SIGTERM);
	assert_true(program_wait_text(&worker, "finishing"));
	assert_int_equal(TWR("add", "later", "--callback", callback), 0);
	assert_int_equal(program_wait(&worker), 0);
	assert_non_null(strstr(program_text(&worker), "done     slow"));
	assert_int_equal(find_task(fixture->redis, "slow").status, TW_NOT_FOUND);
	assert_int_equal(find_task(fixture->redis, "later").attempts, 0);
	assert_int_equal(http_server_count(&http), 1);
	program_end(&worker);
}

/* Runs in a process of its own, for a lowered hard limit can't be raised. Returns the exit code. */
static int run_with_few_descriptors(void)
{
	const struct rlimit few = {20, 40};
	struct program worker;
	int fine;

	if (setrlimit(RLIMIT_NOFILE, &few))
		return 2;
	program_start(&worker, &twr_environment, ARGUMENTS("worker"));
	fine = program_wait_text(&worker, "the worker runs") &&
	       strstr(program_text(&worker),
		      "40 file descriptors are enough for 12 callbacks at a time, not 64");
	program_end(&worker);
	return !fine;
}

TEST(opened, worker_with_few_descriptors_runs_fewer_callbacks)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		_exit(run_with_few_descriptors());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A terminal that closes ends a worker as SIGTERM does, unless nohup makes it ignore that. */
TEST(opened, sighup_ends_a_worker_that_does_not_ignore_it)
{
	struct program worker;

	for (int ignored = 0; ignored < 2; ignored++) {
		signal(SIGHUP, ignored ? SIG_IGN : SIG_DFL);
		worker_start(&worker, ARGUMENTS("--count-every=20ms"));
		signal(SIGHUP, SIG_DFL);
		kill(worker.pid, SIGHUP);
		if (ignored) {
			/* It runs on after the signal. */
			assert_true(program_wait_text(&worker, "running 0\n"));
			assert_null(strstr(program_text(&worker), "finishing"));
			kill(worker.pid, SIGTERM);
		}
		assert_int_equal(program_wait(&worker), 0);
		assert_non_null(strstr(program_text(&worker), "the worker has stopped"));
		program_end(&worker);
	}
}

STORED(opened, task_longer_than_the_grace_is_given_back)
{
	struct program worker;
	char url[64];
	int64_t before;

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/slow/20000", http.port);
	worker_start(&worker, ARGUMENTS("--grace", "300ms"));
	assert_int_equal(TWR("add", "slow", "--callback", url), 0);
	WAIT_UNTIL(http_server_count(&http) == 1);
	before = wall_clock();
	assert_int_equal(worker_end(&worker), 0);
	assert_in_range(wall_clock() - before, 300 * TW_MILLISECOND, 10 * TW_SECOND);
	assert_non_null(strstr(program_text(&worker), "released slow"));
	assert_int_equal(find_task(fixture->redis, "slow").state, TW_REDIS_PENDING);
	program_end(&worker);
}

/* A killed worker reports nothing; its lease ends, and another runs the task with a higher
 * token. */
STORED(opened, task_of_a_killed_worker_runs_again_within_its_lease_and_a_second)
{
	struct program first;
	struct program second;
	struct http_request one;
	struct http_request two;
	int64_t killed;
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/slow-first/9000", http.port);
	worker_start(&first, ARGUMENTS("--lease=1500ms"));
	assert_int_equal(TWR("add", "a", "--callback", url), 0);
	WAIT_UNTIL(http_server_count(&http) == 1);
	worker_start(&second, ARGUMENTS("--lease=1500ms"));
	killed = wall_clock();
	assert_int_equal(kill(first.pid, SIGKILL), 0);
	WAIT_UNTIL(http_server_count(&http) == 2);
	assert_true(http_server_request(&http, "a", 0, &one));
	assert_true(http_server_request(&http, "a", 1, &two));
	/* It does not wait for the next look, after ten seconds. */
	assert_true(two.at - killed < 6 * TW_SECOND);
	assert_true(two.token > one.token);
	assert_int_equal(two.attempt, 2);
	WAIT_UNTIL(find_task(fixture->redis, "a").status == TW_NOT_FOUND);
	assert_int_equal(http_server_count(&http), 2);
	assert_int_equal(worker_end(&second), 0);
	program_end(&first);
	program_end(&second);
}

TEST(opened, worker_outlives_a_restart_of_redis)
{
	struct redis_server own;
	const struct redis_server_options options = {.append_only = true};
	struct program worker;

	redis_server_start(&own, &options);
	twr_environment.url = own.url;
	worker_start(&worker, ARGUMENTS("--lease=1s"));
	redis_server_end(&own, SIGTERM);
	assert_true(program_wait_text(&worker, "Redis is unavailable"));
	redis_server_restart(&own);
	assert_int_equal(TWR("add", "a", "--callback", callback), 0);
	assert_true(program_wait_text(&worker, "done     a"));
	assert_non_null(strstr(program_text(&worker), "Redis is available again"));
	assert_int_equal(worker_end(&worker), 0);
	program_end(&worker);
	redis_server_stop(&own);
}

FIXTURE_FILE
