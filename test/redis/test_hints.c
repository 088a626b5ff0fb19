/* SPDX-License-Identifier: MIT */
/*
 * Hints announce tasks that are due earlier than workers expect, and nothing else. Where they are
 * not allowed everything works, a little later.
 */
#include "support/fixture.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "redis/client/client.h"
#include "redis/worker/hints.h"
#include "support/false_server.h"
#include "support/runs.h"

static struct mailbox mailbox;
static struct tw_redis *listened;
static struct hints hints;
static bool hints_come;
static size_t hint_count;
static struct hint last_hint;

/* Takes what has been heard. Returns whether hints come. */
static bool hear(void)
{
	struct heard heard;

	if (!hints_take(&hints, &heard))
		return hints_come;
	hints_come = heard.connected;
	hint_count += heard.count;
	if (heard.count)
		last_hint = heard.hints[heard.count - 1];
	return hints_come;
}

/* Takes the hints that come within that time. Returns false if none does. */
static bool hint_comes(tw_duration within, unsigned *shard, tw_duration *wait)
{
	tw_duration end = wall_clock() + within;

	while (hear() && !hint_count) {
		struct pollfd descriptor = {.fd = mailbox.descriptor, .events = POLLIN};

		if (wall_clock() >= end)
			return false;
		poll(&descriptor, 1, 10);
	}
	*shard = last_hint.shard;
	*wait = last_hint.wait;
	hint_count = 0;
	return true;
}

/* Checks that a hint comes: the key's shard has a task that is due after that wait. */
static void assert_hinted(struct tw_redis *redis, const char *key, tw_duration expected)
{
	unsigned shard = 99;
	tw_duration wait = 1;

	assert_true(hint_comes(5 * TW_SECOND, &shard, &wait));
	assert_int_equal(shard, shard_of(redis, key));
	assert_in_range(wait, expected, expected ? expected + 2 * TW_MILLISECOND : 0);
}

/* Connects as a worker does, and subscribes. */
static void hints_open(struct tw_redis *redis)
{
	listened = redis;
	hints = (struct hints){.spaces = &listened, .count = 1, .mailbox = &mailbox};
	hints_come = false;
	hint_count = 0;
	redis->access->settings.stop = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(mailbox_init(&mailbox), TW_OK);
	assert_true(hints_begin(&hints));
	WAIT_UNTIL(hear());
}

static void hints_close(void)
{
	eventfd_write(listened->access->settings.stop, 1);
	hints_end(&hints);
	close(listened->access->settings.stop);
	mailbox_destroy(&mailbox);
}

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

STORED(fixture, earlier_task_is_hinted)
{
	hints_open(fixture->redis);
	add_task(fixture->redis, "a", 5 * TW_SECOND);
	assert_hinted(fixture->redis, "a", 5 * TW_SECOND);
	assert_int_equal(move_task(fixture->redis, "a", TW_SECOND), TW_OK);
	assert_hinted(fixture->redis, "a", TW_SECOND);
	add_task(fixture->redis, "a", 0);
	assert_hinted(fixture->redis, "a", 0);
	hints_close();
}

/* Finds a key of the same shard as "a". */
static void key_beside_a(struct tw_redis *redis, char key[KEY_SIZE])
{
	int number = 0;

	do
		number_key(key, number++);
	while (shard_of(redis, key) != shard_of(redis, "a"));
}

/* One script call adds both, with one hint. */
STORED(fixture, earliest_of_many_is_hinted)
{
	char key[KEY_SIZE];
	struct tw_redis_task tasks[] = {{.key = "a", .key_size = 1, .delay = 2 * TW_SECOND},
					{.key = key, .delay = 5 * TW_SECOND}};

	key_beside_a(fixture->redis, key);
	tasks[1].key_size = strlen(key);
	hints_open(fixture->redis);
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, 2, NULL));
	assert_hinted(fixture->redis, "a", 2 * TW_SECOND);
	hints_close();
}

STORED(fixture, released_task_is_hinted)
{
	struct tw_redis_batch *batch = claim_new(fixture->redis, "a", TW_MINUTE);

	hints_open(fixture->redis);
	assert_int_equal(finish_job(fixture->redis, batch, TW_REDIS_SNOOZE), TW_OK);
	assert_hinted(fixture->redis, "a", 0);
	hints_close();
}

STORED(fixture, later_and_far_tasks_are_not_hinted)
{
	unsigned shard;
	tw_duration wait;

	add_task(fixture->redis, "first", 5 * TW_SECOND);
	hints_open(fixture->redis);
	for (int i = 0; i < 100; i++) {
		char key[16];

		snprintf(key, sizeof(key), "key %d", i);
		if (shard_of(fixture->redis, key) == shard_of(fixture->redis, "first"))
			add_task(fixture->redis, key, 6 * TW_SECOND);
		else
			add_task(fixture->redis, key, TW_MINUTE);
	}
	assert_false(hint_comes(200 * TW_MILLISECOND, &shard, &wait));
	hints_close();
}

/* Other programs published these, or no Redis sends them. The last one is a hint. */
TEST(fixture, invalid_hints_are_ignored)
{
	static const char *const messages[] = {
		":1",
		"*0",
		"*3\r\n$7\r\nmessage\r\n:1\r\n$3\r\n3 7",
		"*3\r\n$7\r\nmessage\r\n$15\r\ntw/default/hint\r\n:1",
		"*3\r\n$7\r\nmessage\r\n$13\r\ntw/other/hint\r\n$3\r\n3 7",
		"*3\r\n$7\r\nmessage\r\n$15\r\ntw/default/hint\r\n$1\r\n3",
		"*3\r\n$7\r\nmessage\r\n$15\r\ntw/default/hint\r\n$4\r\n3 -7",
		"*3\r\n$7\r\nmessage\r\n$15\r\ntw/default/hint\r\n$12\r\n3 3600000001",
		"*3\r\n$7\r\nmessage\r\n$15\r\ntw/default/hint\r\n$12\r\n3 3600000000",
	};
	char subscribed[1024] = "*3\r\n$9\r\nsubscribe\r\n$15\r\ntw/default/hint\r\n:1";
	struct false_server server;
	struct tw_redis *redis;
	unsigned shard = 99;
	tw_duration wait = 0;

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		strcat(strcat(subscribed, "\r\n"), messages[i]);
	false_server_start(&server);
	redis = client_open(&(struct tw_redis_options){.url = server.url, .shards = 4});
	false_server_set(&server, "SUBSCRIBE", subscribed, 1);
	hints_open(redis);
	assert_true(hint_comes(5 * TW_SECOND, &shard, &wait));
	assert_int_equal(shard, 3);
	assert_int_equal(wait, TW_HOUR);
	assert_false(hint_comes(20 * TW_MILLISECOND, &shard, &wait));
	assert_true(hints_come);
	hints_close();
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
