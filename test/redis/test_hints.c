/* SPDX-License-Identifier: MIT */
/*
 * Workers hear hints of tasks that are due earlier than they expect, and where hints are not
 * allowed everything works, a little later. test_tasks.c says what is hinted.
 */
#include "support/fixture.h"

#include "support/false_server.h"
#include "support/runs.h"

/* The worker reports it once, and does not connect repeatedly. */
STORED(fixture, worker_without_the_right_to_subscribe_polls)
{
	struct tw_redis_options options = fixture->options;
	struct tw_redis_error last;
	redisReply *reply;

	redis_server_number(&fixture->server, "ACL SETUSER deaf on >pw ~* +@all resetchannels");
	redis_server_number(&fixture->server, "ACL LOG RESET");
	options.user = "deaf";
	options.password = "pw";
	WORK_AT(&options, .poll = 50 * TW_MILLISECOND);
	/* This is longer than the pause after a lost connection. */
	add_task(fixture->redis, "a", 2500 * TW_MILLISECOND);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(runs_notices(&last), 1);
	assert_int_equal(last.status, TW_REDIS_REFUSED);
	assert_non_null(strstr(last.text, "NOPERM"));
	assert_int_equal(runs_lost(), 0);
	reply = redis_server_ask(&fixture->server, "ACL LOG");
	assert_int_equal(reply->elements, 1);
	assert_int_equal(reply->element[0]->element[1]->integer, 1);
	freeReplyObject(reply);
}

/* Other programs published these, or no Redis sends them. The last one is a hint. */
TEST(fixture, only_valid_hints_of_served_namespaces_are_taken)
{
	static const struct tw_redis_source spaces[] = {{.name_space = "first", .shards = 4},
							{.name_space = "second", .shards = 4}};
#define SAYS "*3\r\n$7\r\nmessage\r\n"
#define SECOND SAYS "$14\r\ntw/second/hint\r\n"
	static const char subscribed[] =
		"*3\r\n$9\r\nsubscribe\r\n$13\r\ntw/first/hint\r\n:1\r\n"
		":1\r\n*0\r\n" SAYS ":1\r\n$3\r\n3 7\r\n" SECOND ":1\r\n" SAYS
		"$13\r\ntw/other/hint\r\n$3\r\n3 7\r\n" SECOND "$1\r\n3\r\n" SECOND
		"$4\r\n3 -7\r\n" SECOND "$12\r\n3 3600000001\r\n" SECOND "$12\r\n3 3600000000";
	struct tw_redis_options options = {0};
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker *worker;
	struct false_server server;

	false_server_start(&server);
	false_server_set(&server, "SUBSCRIBE", subscribed, 1);
	options.url = server.url;
	worker = WORK_AT(&options, .sources = spaces, .source_count = 2);
	WAIT_UNTIL(worker_stats(worker).hints > 0);
	wait_for(20 * TW_MILLISECOND);
	assert_int_equal(worker_stats(worker).hints, 1);
	assert_int_equal(tw_redis_worker_get_stats(worker, "second", &stats), TW_OK);
	assert_int_equal(stats.hints, 1);
	worker_stop(worker);
	false_server_stop(&server);
}

/* Reads the rights that the manual page lists, from the user's state to the commands. */
static void rights_read(char *rights, size_t room)
{
	FILE *page = fopen("src/man/timingwheel-redis.7", "r");
	bool inside = false;
	char line[256];

	assert_non_null(page);
	*rights = '\0';
	while (fgets(line, sizeof(line), page)) {
		const char *user = strstr(line, "ACL SETUSER app ");

		inside = user || (inside && line[0] != '.');
		if (!inside)
			continue;
		line[strcspn(line, "\n")] = '\0';
		assert_true(strlen(rights) + strlen(line) < room);
		strcat(rights, user ? strchr(user, '>') + strlen(">PASSWORD") : line);
	}
	fclose(page);
}

static bool give_one(void *context, const struct tw_redis_info *info)
{
	++*(int *)context;
	return true;
}

/* Runs every kind of call, and a worker, as a user with the rights that the manual page lists. */
STORED(one_shard, documented_rights_are_enough)
{
	struct tw_redis_limits limits = {.running = 10};
	struct tw_redis_options options = fixture->options;
	struct tw_redis_worker_options worker_options = {.poll = TW_SECOND, .dead_max_count = 10};
	struct tw_redis_worker_info info;
	struct tw_redis_worker *worker;
	struct tw_redis_batch *batch;
	struct tw_redis_error last;
	struct tw_redis *redis;
	char command[2048] = "ACL SETUSER app on >pw";
	redisReply *reply;
	size_t workers;
	int count = 0;

	rights_read(command + strlen(command), sizeof(command) - strlen(command));
	redis_server_number(&fixture->server, "ACL LOG RESET");
	redis_server_number(&fixture->server, command);
	options.user = "app";
	options.password = "pw";
	redis = client_open(&options);
	runs_attach(&worker_options);
	batch = claim_new(redis, "a", TW_MINUTE);
	assert_ok(redis, tw_redis_extend(redis, only_job(batch), 1, TW_MINUTE, NULL));
	assert_int_equal(finish_job(redis, batch, TW_REDIS_SNOOZE), TW_OK);
	batch = await_claim(redis, "a", TW_MINUTE);
	assert_int_equal(fail_job(redis, batch, TW_FOREVER, "no"), TW_OK);
	assert_ok(redis, tw_redis_each(redis, TW_REDIS_LETTERS, give_one, &count));
	assert_ok(redis, tw_redis_retry(redis, "a", 1));
	assert_int_equal(cancel_task(redis, "a"), TW_OK);
	add_tasks(redis, 5, TW_HOUR, TW_SECOND);
	assert_int_equal(move_task(redis, "task-0", 0), TW_OK);
	assert_int_equal(find_task(redis, "task-1").status, TW_OK);
	assert_ok(redis, tw_redis_each(redis, TW_REDIS_TASKS, give_one, &count));
	assert_int_equal(count, 6);
	set_paused(redis, true);
	set_paused(redis, false);
	assert_ok(redis, tw_redis_set_limits(redis, NULL, &limits));
	assert_ok(redis, tw_redis_get_limits(redis, NULL, &limits));
	assert_int_equal(stats_of(redis).tasks, 5);
	worker = worker_start(&options, &worker_options);
	WAIT_UNTIL(ends_count() == 1);
	/* The worker hears of it. */
	add_task(redis, "b", 0);
	WAIT_UNTIL(ends_count() == 2);
	assert_ok(redis, tw_redis_get_workers(redis, &info, 1, &workers));
	worker_stop(worker);
	assert_int_equal(runs_lost() + runs_notices(&last), 0);
	reply = redis_server_ask(&fixture->server, "ACL LOG");
	assert_int_equal(reply->elements, 0);
	freeReplyObject(reply);
}

STORED(fixture, user_without_the_right_to_publish_has_all_except_hints)
{
	struct tw_redis_options options = fixture->options;
	struct tw_redis *redis;

	redis_server_number(&fixture->server, "ACL SETUSER mute on >pw ~* +@all resetchannels");
	options.user = "mute";
	options.password = "pw";
	redis = client_open(&options);
	WORK_AT(&options, .poll = 50 * TW_MILLISECOND);
	add_task(redis, "a", 0);
	assert_int_equal(move_task(redis, "none", 0), TW_NOT_FOUND);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(runs_count(), 1);
	assert_int_equal(stats_of(redis).tasks, 0);
}

/* Returns how many scripts the server has run since the last call. */
static int64_t scripts_run(struct fixture *fixture)
{
	int64_t count = redis_server_calls(&fixture->server, "evalsha");

	redis_server_number(&fixture->server, "CONFIG RESETSTAT");
	return count;
}

STORED(fixture, idle_worker_claims_within_ten_seconds)
{
	const struct tw_redis_options redis_options = {.url = fixture->server.url,
						       .name_space = "many"};
	const struct tw_redis_task far = {
		.key = "far", .key_size = 3, .at_ms = INT64_C(253402300799000)};
	struct tw_redis *redis = client_open(&redis_options);
	struct tw_redis_worker *worker;
	int64_t scripts = 0;

	worker = WORK_AT(&redis_options);
	WAIT_UNTIL(redis_server_count_listeners(&fixture->server, "many"));
	/* The worker looks at each namespace in this time. */
	wait_for(500 * TW_MILLISECOND);
	add_task(redis, "a", TW_HOUR);
	/* This is later than any wait, so there is no reason to look. */
	add_one(redis, &far);
	scripts_run(fixture);
	/* This sends no hint, so the worker looks within ten seconds. */
	redis_server_set_due(&fixture->server, redis, "many", "a", -1500);
	WAIT_UNTIL(ends_count() == 1);
	/* It claims, and acknowledges after the run. Each script may have been unknown. */
	WAIT_UNTIL((scripts += scripts_run(fixture)) >= 2);
	assert_in_range(scripts, 2, 20);
	worker_stop(worker);
}

FIXTURE_FILE
