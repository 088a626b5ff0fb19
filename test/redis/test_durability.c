/* SPDX-License-Identifier: MIT */
/*
 * A call waits for durability where that is asked for: for the server's disk, or a replica.
 * Requests that a server can't fulfil are refused. The servers are false ones, and real ones with a
 * replica that can be frozen: redis-server, or what REDIS_SERVER in the environment names. Only a
 * server that has WAITAOF can wait for its disk without appendfsync always.
 */
#include "support/fixture.h"

#include <limits.h>
#include <sys/resource.h>

#include "redis/client/client.h"
#include "support/cluster.h"
#include "support/false_server.h"
#include "support/runs.h"
#include "support/sentinels.h"

enum { REPLY_SIZE = 400, URL_SIZE = 300, HOLD_MS = 600000 };

/* ---- What a server can give ---- */

static struct false_server server;

static size_t answer_zero(void *context, const redisReply *request, char *reply, size_t room)
{
	return (size_t)snprintf(reply, room, ":0\r\n");
}

static int open_false(void **state)
{
	*state = NULL;
	false_server_start(&server, answer_zero, NULL);
	return 0;
}

static int close_false(void **state)
{
	false_server_stop(&server);
	return 0;
}

static const struct test_kind kind_opened = {.open = open_false, .close = close_false};

/* Sets what the false server reports as its version, its file and its replicas. */
static void be_version(const char *version, int append_only, int replicas)
{
	char info[REPLY_SIZE - 32];
	char reply[REPLY_SIZE];

	snprintf(info, sizeof(info),
		 "%s\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n"
		 "aof_enabled:%d\r\nconnected_slaves:%d\r\n",
		 version, append_only, replicas);
	snprintf(reply, sizeof(reply), "$%zu\r\n%s", strlen(info), info);
	false_server_refuse(&server, "INFO", reply, INT_MAX);
}

static void be(int append_only, int replicas)
{
	be_version("redis_version:7.2.0", append_only, replicas);
}

static void have_config(const char *fsync, const char *pauses)
{
	char reply[REPLY_SIZE];

	snprintf(reply, sizeof(reply),
		 "*4\r\n$11\r\nappendfsync\r\n$%zu\r\n%s\r\n$25\r\nno-appendfsync-on-rewrite\r\n"
		 "$%zu\r\n%s",
		 strlen(fsync), fsync, strlen(pauses), pauses);
	false_server_refuse(&server, "CONFIG", reply, INT_MAX);
}

#define KNOWN "*2\r\n:0\r\n:0"
#define UNKNOWN "-ERR unknown command 'WAITAOF', with args beginning with:"
#define NO_RIGHT "-NOPERM this user has no permissions to run the command"

TEST(opened, server_that_cannot_give_it_is_refused)
{
	static const struct {
		enum tw_redis_durability durability;
		int append_only;
		int replicas;
		const char *fsync; /* NULL means that CONFIG is refused */
		const char *pauses;
		const char *waitaof;
		enum tw_status status;
		const char *words;
		const char *version; /* NULL means that it waits as it should */
	} cases[] = {
		{TW_REDIS_DURABLE_SERVER, 0, 0, "no", "no", UNKNOWN, TW_OK, "", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 0, "everysec", "no", KNOWN, TW_OK, "", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 0, "always", "yes", KNOWN, TW_OK, "", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 0, NULL, "", KNOWN, TW_OK, "", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 0, "always", "no", UNKNOWN, TW_OK, "", NULL},
		{TW_REDIS_DURABLE_REPLICA, 0, 1, "no", "no", UNKNOWN, TW_OK, "", NULL},
		{TW_REDIS_DURABLE_BOTH, 1, 1, "everysec", "no", KNOWN, TW_OK, "", NULL},
		{TW_REDIS_DURABLE_DISK, 0, 1, "always", "no", KNOWN, TW_REDIS_UNFIT,
		 "appendonly yes", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 1, "no", "no", KNOWN, TW_REDIS_UNFIT,
		 "everysec or always", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 1, "everysec", "no", UNKNOWN, TW_REDIS_UNFIT,
		 "appendfsync always", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 1, "always", "yes", UNKNOWN, TW_REDIS_UNFIT,
		 "no-appendfsync-on-rewrite no", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 1, NULL, "", UNKNOWN, TW_REDIS_UNFIT, "NOPERM", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 1, "always", "no", NO_RIGHT, TW_REDIS_REFUSED, "NOPERM",
		 NULL},
		{TW_REDIS_DURABLE_BOTH, 0, 1, "always", "no", KNOWN, TW_REDIS_UNFIT,
		 "appendonly yes", NULL},
		/* This error passes, as after a failover. */
		{TW_REDIS_DURABLE_REPLICA, 1, 0, "always", "no", KNOWN, TW_REDIS_UNREACHABLE,
		 "none is connected", NULL},
		{TW_REDIS_DURABLE_BOTH, 1, 0, "always", "no", KNOWN, TW_REDIS_UNREACHABLE,
		 "none is connected", NULL},
		{TW_REDIS_DURABLE_DISK, 1, 0, "everysec", "no", KNOWN, TW_REDIS_UNFIT,
		 "replies before the fsync", "redis_version:7.4.2"},
		{TW_REDIS_DURABLE_DISK, 1, 0, "always", "no", KNOWN, TW_OK, "",
		 "redis_version:7.4.2"},
		{TW_REDIS_DURABLE_DISK, 1, 0, "everysec", "no", KNOWN, TW_OK, "",
		 "redis_version:7.4.3"},
		{TW_REDIS_DURABLE_DISK, 1, 0, "everysec", "no", KNOWN, TW_OK, "",
		 "redis_version:7.4.10"},
		{TW_REDIS_DURABLE_DISK, 1, 0, "always", "yes", KNOWN, TW_REDIS_UNFIT,
		 "replies before the fsync",
		 "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1"},
		{TW_REDIS_DURABLE_DISK, 1, 0, "everysec", "no", KNOWN, TW_OK, "",
		 "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tw_redis_options options = {
			.url = server.url, .shards = 4, .durability = cases[i].durability};
		struct tw_redis_error error = {0};
		struct tw_redis *redis;

		be_version(cases[i].version ? cases[i].version : "redis_version:7.2.0",
			   cases[i].append_only, cases[i].replicas);
		if (cases[i].fsync)
			have_config(cases[i].fsync, cases[i].pauses);
		else
			false_server_refuse(&server, "CONFIG", NO_RIGHT, INT_MAX);
		false_server_refuse(&server, "WAITAOF", cases[i].waitaof, INT_MAX);
		assert_int_equal(tw_redis_open(&redis, &options, &error), cases[i].status);
		assert_non_null(strstr(error.text, cases[i].words));
		client_close(redis);
	}
}

TEST(opened, right_to_wait_for_a_replica_is_needed)
{
	const struct tw_redis_options options = {
		.url = server.url, .shards = 4, .durability = TW_REDIS_DURABLE_REPLICA};
	struct tw_redis *redis;

	be(1, 1);
	false_server_refuse(&server, "WAIT", NO_RIGHT, INT_MAX);
	assert_int_equal(tw_redis_open(&redis, &options, NULL), TW_REDIS_REFUSED);
}

TEST(opened, right_to_see_replicas_is_needed)
{
	const struct tw_redis_options options = {.url = server.url,
						 .shards = 4,
						 .allow_eviction = true,
						 .durability = TW_REDIS_DURABLE_REPLICA};
	struct tw_redis_error error;
	struct tw_redis *redis;

	false_server_refuse(&server, "INFO", NO_RIGHT, INT_MAX);
	assert_int_equal(tw_redis_open(&redis, &options, &error), TW_REDIS_UNFIT);
	assert_non_null(strstr(error.text, "NOPERM"));
}

TEST(opened, unknown_durability_is_invalid)
{
	static const int none[] = {-1, TW_REDIS_DURABLE_BOTH + 1};
	struct tw_redis *redis;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		const struct tw_redis_options options = {
			.url = server.url, .durability = (enum tw_redis_durability)none[i]};

		assert_int_equal(tw_redis_open(&redis, &options, NULL), TW_INVALID);
	}
}

/* ---- What the replies to waits mean ---- */

static struct tw_redis *open_both(void)
{
	be(1, 1);
	have_config("everysec", "no");
	false_server_refuse(&server, "WAITAOF", KNOWN, 1);
	false_server_refuse(&server, "WAIT", ":0", 1);
	return client_open(&(struct tw_redis_options){.url = server.url,
						      .shards = 4,
						      .patience = 5 * TW_SECOND,
						      .reply_timeout = 800 * TW_MILLISECOND,
						      .durability = TW_REDIS_DURABLE_BOTH});
}

TEST(opened, change_is_confirmed_by_both_waits_or_unknown)
{
	static const struct {
		const char *waitaof;
		const char *wait;
		enum tw_status status;
		const char *words;
	} cases[] = {
		{"*2\r\n:1\r\n:0", ":1", TW_OK, ""},
		{"*2\r\n:1\r\n:5", ":3", TW_OK, ""},
		{"*2\r\n:0\r\n:9", ":1", TW_REDIS_OUTCOME_UNKNOWN, "disk within 300 ms"},
		{"*2\r\n:1\r\n:9", ":0", TW_REDIS_OUTCOME_UNKNOWN, "replica within 300 ms"},
		{"*2\r\n:0\r\n:0", ":0", TW_REDIS_OUTCOME_UNKNOWN, "not confirmed"},
		{"-ERR WAITAOF cannot be used when", ":1", TW_REDIS_OUTCOME_UNKNOWN,
		 "disk: ERR WAITAOF cannot"},
		{"*2\r\n:1\r\n:0", "-UNBLOCKED force unblock", TW_REDIS_OUTCOME_UNKNOWN,
		 "replica: UNBLOCKED"},
		{"*0", ":1", TW_REDIS_OUTCOME_UNKNOWN, "disk"},
		{"+OK", ":1", TW_REDIS_OUTCOME_UNKNOWN, "disk"},
		{"*2\r\n:1\r\n:0", "$-1", TW_REDIS_OUTCOME_UNKNOWN, "replica"},
		/* The reply is lost, or the connection breaks. */
		{"", ":1", TW_REDIS_OUTCOME_UNKNOWN, "timed out"},
		{"*2\r\n:1\r\n:0", "", TW_REDIS_OUTCOME_UNKNOWN, "timed out"},
		{NULL, ":1", TW_REDIS_OUTCOME_UNKNOWN, "broke"},
		{"*2\r\n:1\r\n:0", NULL, TW_REDIS_OUTCOME_UNKNOWN, "broke"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tw_redis *redis = open_both();
		struct tw_redis_error error = {0};

		false_server_refuse(&server, "WAITAOF", cases[i].waitaof, INT_MAX);
		false_server_refuse(&server, "WAIT", cases[i].wait, INT_MAX);
		assert_int_equal(cancel_task(redis, "a"), cases[i].status);
		tw_redis_last_error(redis, &error);
		assert_non_null(strstr(error.text, cases[i].words));
		client_close(redis);
	}
}

TEST(opened, pause_whose_wait_is_lost_is_made_again)
{
	const struct tw_redis_limits paused = {.paused = true};
	struct tw_redis *redis = open_both();

	false_server_refuse(&server, "WAITAOF", NULL, 1);
	false_server_refuse(&server, "WAIT", ":1", INT_MAX);
	/* The next greeting is answered with +OK, and the wait is not. */
	set_patience(redis, 50 * TW_MILLISECOND);
	assert_int_equal(tw_redis_set_limits(redis, NULL, &paused), TW_REDIS_OUTCOME_UNKNOWN);
	false_server_refuse(&server, "WAITAOF", "*2\r\n:1\r\n:0", INT_MAX);
	assert_ok(redis, tw_redis_set_limits(redis, NULL, &paused));
	set_patience(redis, 0);
}

/* A wait over a connection that has changed nothing confirms nothing. */
TEST(opened, wait_behind_a_refused_mark_confirms_nothing)
{
	struct tw_redis *redis = open_both();
	struct tw_redis_error error = {0};

	false_server_refuse(&server, "WAITAOF", "*2\r\n:1\r\n:0", INT_MAX);
	false_server_refuse(&server, "WAIT", ":1", INT_MAX);
	assert_ok(redis, cancel_task(redis, "a"));
	/* From here on only the mark is sent as a text. */
	false_server_refuse(&server, "EVAL", "-MISCONF Errors writing to the AOF file", 1);
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_OUTCOME_UNKNOWN);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "not confirmed: MISCONF"));
	assert_ok(redis, cancel_task(redis, "a"));
}

static struct {
	bool claimed;
	int ends;
	char again; /* the letter that the second report of the run's end gets */
} lost;

/* Gives one task, and loses the first wait for the end of its run. */
static size_t answer_end_without_wait(void *context, const redisReply *request, char *reply,
				      size_t room)
{
	if (false_request_is(request, &script_claim)) {
		bool first = !lost.claimed;

		lost.claimed = true;
		return (size_t)snprintf(
			reply, room, "*7\r\n$1\r\n1\r\n:-1\r\n:7\r\n%s*0\r\n*0\r\n",
			first ? "*2\r\n$1\r\na\r\n$1\r\n1\r\n*1\r\n$7\r\n3 0\n\nxy\r\n"
			      : "*0\r\n*0\r\n");
	}
	if (!false_request_is(request, &script_finish))
		return answer_zero(context, request, reply, room);
	lost.ends++;
	false_server_refuse(&server, "WAIT", lost.ends == 1 ? NULL : ":1",
			    lost.ends == 1 ? 1 : INT_MAX);
	return (size_t)snprintf(reply, room, "$1\r\n%c\r\n", lost.ends == 1 ? 'o' : lost.again);
}

/* The server that answers the second report may be another one, which has lost the first. */
TEST(opened, end_whose_wait_is_lost_is_confirmed_or_not)
{
	static const struct {
		enum tw_redis_outcome outcome;
		char again;
		enum tw_redis_end end;
	} cases[] = {
		{TW_REDIS_DONE, 'o', TW_REDIS_END_DONE},
		{TW_REDIS_DONE, 'g', TW_REDIS_END_DONE},
		{TW_REDIS_DONE, 's', TW_REDIS_END_UNCONFIRMED},
		{TW_REDIS_KILL, 'g', TW_REDIS_END_DEAD},
		{TW_REDIS_KILL, 's', TW_REDIS_END_UNCONFIRMED},
		{TW_REDIS_RETRY, 's', TW_REDIS_END_RETRIED},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tw_redis_worker_options options = {0};
		struct tw_redis_worker *worker;
		struct runs runs;

		false_server_stop(&server);
		false_server_start(&server, answer_end_without_wait, NULL);
		memset(&lost, 0, sizeof(lost));
		lost.again = cases[i].again;
		be(1, 1);
		false_server_refuse(&server, "WAIT", ":1", INT_MAX);
		runs_init(&runs, 10);
		runs_attach(&runs, &options);
		runs.outcome = cases[i].outcome;
		worker = worker_start(
			&(struct tw_redis_options){.url = server.url,
						   .shards = 4,
						   .durability = TW_REDIS_DURABLE_REPLICA},
			&options);
		WAIT_UNTIL(ends_count(&runs) == 1);
		assert_int_equal(end_of(&runs, "a", 0).end, cases[i].end);
		worker_stop(worker);
		assert_int_equal(lost.ends, 2);
		runs_free(&runs);
	}
}

/* ---- Real servers ---- */

static struct redis_server master;
static struct redis_server replica;

static bool has_waitaof(struct redis_server *of)
{
	redisReply *reply = redis_server_ask(of, "COMMAND INFO WAITAOF");
	bool has = reply->element[0]->type == REDIS_REPLY_ARRAY && reply->element[0]->elements;

	freeReplyObject(reply);
	return has;
}

static int open_pair(void **state)
{
	*state = NULL;
	redis_server_start(
		&master, &(struct redis_server_options){.append_only = true, .fsync_always = true});
	redis_server_start(&replica, &(struct redis_server_options){.replica_of = master.port});
	WAIT_UNTIL(redis_server_says(&replica, "INFO replication", "master_link_status:up"));
	WAIT_UNTIL(redis_server_figure(&master, "INFO replication", "state=online,offset=") > 0);
	return 0;
}

static int close_pair(void **state)
{
	redis_server_stop(&replica);
	redis_server_stop(&master);
	return 0;
}

/* Waits end after 900 ms. */
static struct tw_redis *open_for(enum tw_redis_durability durability)
{
	return client_open(&(struct tw_redis_options){.url = master.url,
						      .shards = 4,
						      .reply_timeout = 1200 * TW_MILLISECOND,
						      .patience = 5 * TW_SECOND,
						      .durability = durability});
}

TEST(once, each_durability_is_given)
{
	for (enum tw_redis_durability i = 0; i <= TW_REDIS_DURABLE_BOTH; i++) {
		struct tw_redis *redis = open_for(i);
		int64_t waits = redis_server_calls(&master, "wait");
		int64_t waitaofs = redis_server_calls(&master, "waitaof");

		add_task(redis, "a", TW_HOUR);
		assert_ok(redis, cancel_task(redis, "a"));
		assert_int_equal(redis_server_calls(&master, "wait") - waits,
				 i & TW_REDIS_DURABLE_REPLICA ? 2 : 0);
		/* The greeting has one wait, and appendfsync always needs none. */
		assert_int_equal(redis_server_calls(&master, "waitaof") - waitaofs, 0);
		client_close(redis);
	}
	WAIT_UNTIL(redis_server_count_keys(&master, "default") == 0);
}

TEST(once, disk_that_is_written_each_second_is_waited_for)
{
	enum tw_status expected = has_waitaof(&master) ? TW_OK : TW_REDIS_UNFIT;
	const struct tw_redis_options options = {
		.url = master.url, .shards = 4, .durability = TW_REDIS_DURABLE_DISK};
	struct tw_redis *redis;

	redis_server_number(&master, "CONFIG SET appendfsync everysec");
	assert_int_equal(tw_redis_open(&redis, &options, NULL), expected);
	if (redis) {
		add_task(redis, "a", TW_HOUR);
		/* An open handle follows the server's present setting. */
		redis_server_number(&master, "CONFIG SET appendfsync always");
		assert_ok(redis, cancel_task(redis, "a"));
		client_close(redis);
	}
	redis_server_number(&master, "CONFIG SET appendfsync always");
}

TEST(once, what_changes_nothing_is_not_waited_for)
{
	struct tw_redis *redis = open_for(TW_REDIS_DURABLE_REPLICA);
	struct tw_redis_limits limits;
	struct tw_redis_batch *batch;
	enum tw_status each;
	int64_t waits;

	add_task(redis, "b", 0);
	waits = redis_server_calls(&master, "wait");
	kill(replica.pid, SIGSTOP);
	assert_int_equal(find_task(redis, "b").status, TW_OK);
	assert_int_equal(stats_of(redis).tasks, 1);
	assert_ok(redis, tw_redis_get_limits(redis, NULL, &limits));
	/* A lost lease gives the task to another run. */
	batch = claim_for(redis, "b", TW_MINUTE);
	assert_ok(redis, tw_redis_extend(redis, only_job(batch), 1, TW_MINUTE, &each));
	assert_int_equal(redis_server_calls(&master, "wait"), waits);
	kill(replica.pid, SIGCONT);
	assert_ok(redis, tw_redis_finish(redis, only_job(batch), 1, TW_REDIS_DONE, NULL, &each));
	assert_int_equal(redis_server_calls(&master, "wait"), waits + 1);
}

/* Returns how often this thread has slept. */
static long times_slept(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

TEST(once, frozen_replica_leaves_the_outcome_unknown_in_time)
{
	struct tw_redis *redis = open_for(TW_REDIS_DURABLE_REPLICA);
	struct tw_redis_error error;
	int64_t before;
	long slept;

	kill(replica.pid, SIGSTOP);
	before = wall_clock();
	slept = times_slept();
	assert_int_equal(try_add(redis, "a", TW_HOUR, TW_REDIS_ANY), TW_REDIS_OUTCOME_UNKNOWN);
	assert_in_range(wall_clock() - before, 850 * TW_MILLISECOND, 5 * TW_SECOND);
	assert_in_range(times_slept() - slept, 1, 10);
	tw_redis_last_error(redis, &error);
	assert_string_equal(error.text, "the change is made, but not confirmed on a replica "
					"within 900 ms");
	/* The connection stays open, and the change is made. */
	assert_int_equal(find_task(redis, "a").status, TW_OK);
	kill(replica.pid, SIGCONT);
	assert_ok(redis, try_add(redis, "a", TW_HOUR, TW_REDIS_ANY));
	assert_ok(redis, cancel_task(redis, "a"));
}

/* Another connection has made the change, so this call makes none. */
TEST(once, call_that_finds_its_change_made_waits_for_it)
{
	struct tw_redis *plain = open_for(TW_REDIS_DURABLE_SERVER);
	struct tw_redis *redis = open_for(TW_REDIS_DURABLE_REPLICA);

	add_task(plain, "a", TW_HOUR);
	kill(replica.pid, SIGSTOP);
	assert_ok(plain, cancel_task(plain, "a"));
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_OUTCOME_UNKNOWN);
	kill(replica.pid, SIGCONT);
	assert_int_equal(cancel_task(redis, "a"), TW_NOT_FOUND);
}

/* A handle's first change, which finds its change made, is confirmed by the mark alone. */
TEST(once, what_is_marked_at_full_memory_is_confirmed)
{
	struct tw_redis *plain = open_for(TW_REDIS_DURABLE_SERVER);
	struct tw_redis *redis = open_for(TW_REDIS_DURABLE_REPLICA);
	bool flags = redis_server_figure(&master, "INFO server", "redis_version:") >= 7;
	struct tw_redis_batch *batch;
	enum tw_status each;

	add_task(plain, "full", 0);
	batch = claim_for(plain, "full", TW_MINUTE);
	redis_server_number(&master, "CONFIG SET maxmemory 1");
	/* An acknowledgement removes, so it is allowed. */
	assert_ok(plain, tw_redis_finish(plain, only_job(batch), 1, TW_REDIS_DONE, NULL, &each));
	assert_int_equal(tw_redis_finish(redis, only_job(batch), 1, TW_REDIS_DONE, NULL, &each),
			 flags ? TW_OK : TW_REDIS_OUTCOME_UNKNOWN);
	kill(replica.pid, SIGSTOP);
	assert_int_equal(tw_redis_finish(redis, only_job(batch), 1, TW_REDIS_DONE, NULL, &each),
			 TW_REDIS_OUTCOME_UNKNOWN);
	kill(replica.pid, SIGCONT);
	redis_server_number(&master, "CONFIG SET maxmemory 0");
}

/* The server refuses all changes, and so the mark. */
TEST(once, nothing_is_confirmed_while_replicas_are_missing)
{
	struct tw_redis *redis = open_for(TW_REDIS_DURABLE_REPLICA);
	struct tw_redis_error error;

	assert_int_equal(cancel_task(redis, "none"), TW_NOT_FOUND);
	redis_server_number(&master, "CONFIG SET min-replicas-to-write 2");
	assert_int_equal(cancel_task(redis, "none"), TW_REDIS_OUTCOME_UNKNOWN);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "NOREPLICAS"));
	redis_server_number(&master, "CONFIG SET min-replicas-to-write 0");
	assert_int_equal(cancel_task(redis, "none"), TW_NOT_FOUND);
}

enum { THREADS = 16, CALLS = 50 };

static void *add_many_times(void *redis)
{
	char key[KEY_SIZE];

	for (int i = 0; i < CALLS; i++) {
		snprintf(key, sizeof(key), "%d-%d", i, (int)(intptr_t)pthread_self() & 0xffff);
		add_task(redis, key, TW_HOUR);
	}
	return NULL;
}

TEST(once, threads_share_waits)
{
	struct tw_redis *redis = open_for(TW_REDIS_DURABLE_REPLICA);
	int64_t waits = redis_server_calls(&master, "wait");
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many_times, redis), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	waits = redis_server_calls(&master, "wait") - waits;
	print_message("%d calls, %d waits\n", THREADS * CALLS, (int)waits);
	assert_in_range(waits, 1, THREADS * CALLS * 3 / 4);
}

TEST(once, worker_reports_what_a_replica_has)
{
	const struct tw_redis_options options = {.url = master.url,
						 .name_space = "worker",
						 .shards = 4,
						 .reply_timeout = 1200 * TW_MILLISECOND,
						 .durability = TW_REDIS_DURABLE_REPLICA};
	struct tw_redis_worker_options worker_options = {.lease = 10 * TW_SECOND};
	struct tw_redis *redis = client_open(&options);
	struct tw_redis_worker *worker;
	struct tw_redis_error notice;
	struct runs runs;

	runs_init(&runs, 10);
	runs_attach(&runs, &worker_options);
	worker = worker_start(&options, &worker_options);
	runs.gate_is_shut = true;
	add_task(redis, "a", 0);
	WAIT_UNTIL(runs_running(&runs) == 1);
	kill(replica.pid, SIGSTOP);
	runs_open_gate(&runs);
	WAIT_UNTIL(runs_notices(&runs, &notice) >= 1);
	assert_int_equal(notice.status, TW_REDIS_OUTCOME_UNKNOWN);
	assert_non_null(strstr(notice.text, "not confirmed on a replica"));
	assert_int_equal(find_task(redis, "a").status, TW_NOT_FOUND);
	assert_int_equal(ends_count(&runs), 0);
	kill(replica.pid, SIGCONT);
	WAIT_UNTIL(ends_count(&runs) == 1);
	assert_int_equal(ends_count_of(&runs, "a", TW_REDIS_END_DONE), 1);
	assert_int_equal(runs_count(&runs), 1);
	assert_int_equal(runs_notices(&runs, &notice), 1);
	worker_stop(worker);
	runs_free(&runs);
}

/* ---- A failover ---- */

TEST(once, failover_loses_nothing_that_a_replica_had)
{
	struct sentinels sentinels;
	struct tw_redis *redis;
	char url[URL_SIZE];
	char key[KEY_SIZE];

	sentinels_start(&sentinels, master.port);
	sentinels_set_patience(&sentinels, HOLD_MS);
	snprintf(url, sizeof(url), "%s?durability=replica", sentinels.url);
	redis = client_open(&(struct tw_redis_options){
		.url = url, .name_space = "failover", .patience = 30 * TW_SECOND});
	for (int i = 0; i < 50; i++) {
		number_key(key, i);
		add_task(redis, key, TW_HOUR);
	}
	sentinels_set_patience(&sentinels, 500);
	redis_server_end(&master, SIGKILL);
	sentinels_await_master(&sentinels, replica.port);
	for (int i = 0; i < 50; i++) {
		number_key(key, i);
		assert_true(redis_server_number(&replica, "HEXISTS {tw/failover/%u}body %s",
						shard_of(redis, key), key));
	}
	/* The new master has no replica yet, so the call waits. */
	set_patience(redis, 100 * TW_MILLISECOND);
	assert_int_equal(try_add(redis, "late", TW_HOUR, TW_REDIS_ANY), TW_REDIS_UNREACHABLE);
	set_patience(redis, 0);
	redis_server_add_setting(&master, "replicaof 127.0.0.1 %d", replica.port);
	redis_server_restart(&master);
	add_task(redis, "late", TW_HOUR);
	assert_true(redis_server_number(&master, "HEXISTS {tw/failover/%u}body late",
					shard_of(redis, "late")));
	client_close(redis);
	sentinels_stop(&sentinels);
}

/* ---- A cluster ---- */

static void replicas_join(struct cluster *cluster, struct redis_server replicas[CLUSTER_NODES])
{
	const struct redis_server_options options = {.append_only = true, .cluster = true};
	struct redis_server *all[2 * CLUSTER_NODES];

	for (int i = 0; i < CLUSTER_NODES; i++) {
		redis_server_start(&replicas[i], &options);
		all[i] = &cluster->nodes[i];
		all[CLUSTER_NODES + i] = &replicas[i];
		redis_server_number(&replicas[i], "CLUSTER MEET 127.0.0.1 %d %d",
				    cluster->nodes[0].port, cluster->nodes[0].bus_port);
	}
	for (int i = 0; i < CLUSTER_NODES; i++) {
		WAIT_UNTIL(
			redis_server_says(&replicas[i], "CLUSTER INFO", "cluster_known_nodes:6"));
		WAIT_UNTIL(redis_server_says(&replicas[i], "CLUSTER INFO", "cluster_state:ok"));
		redis_server_number(&replicas[i], "CLUSTER REPLICATE %s", cluster->ids[i]);
		WAIT_UNTIL(redis_server_says(&replicas[i], "INFO replication",
					     "master_link_status:up"));
		WAIT_UNTIL(redis_server_figure(&cluster->nodes[i], "INFO replication",
					       "state=online,offset=") > 0);
	}
	cluster_await_agreement(all, 2 * CLUSTER_NODES);
}

/* Finds a key whose shard is on the node, or is not. */
static void key_of(struct cluster *cluster, const struct tw_redis *redis, bool on_first,
		   char key[KEY_SIZE])
{
	for (int i = 0;; i++) {
		unsigned shard;

		number_key(key, i);
		shard = shard_of(redis, key);
		if (!cluster_owner(cluster, space_slot(&redis->space, shard)) == on_first)
			return;
	}
}

/* The shard has no keys, so the target has it and is asked. */
static void wait_in_a_slot_that_moves(struct cluster *cluster, struct tw_redis *redis)
{
	int64_t asked = redis_server_calls(&cluster->nodes[1], "asking");
	unsigned slot;
	int i = 0;
	char key[KEY_SIZE];

	do {
		number_key(key, ++i);
		slot = space_slot(&redis->space, shard_of(redis, key));
	} while (cluster_owner(cluster, slot) != 0 ||
		 redis_server_number(&cluster->nodes[0], "CLUSTER COUNTKEYSINSLOT %u", slot));
	cluster_begin_move(cluster, slot, 0, 1);
	assert_ok(redis, try_add(redis, key, TW_HOUR, TW_REDIS_ANY));
	/* Both the change and the mark sent ASKING. */
	assert_int_equal(redis_server_calls(&cluster->nodes[1], "asking") - asked, 2);
	cluster_end_move(cluster, slot, 0, 1);
}

/* The replica knows the map. A new connection checks it again when it is the master. */
static void begin_at_a_replica_without_a_file(struct cluster *cluster, struct redis_server *first,
					      const char *key)
{
	struct tw_redis_options options = {
		.url = first->url, .shards = 64, .durability = TW_REDIS_DURABLE_DISK};
	struct tw_redis *redis;

	for (int i = 0; i < CLUSTER_NODES; i++)
		redis_server_number(&cluster->nodes[i], "CONFIG SET appendfsync always");
	redis_server_number(first, "CONFIG SET appendonly no");
	redis = client_open(&options);
	assert_ok(redis, try_add(redis, key, TW_HOUR, TW_REDIS_ANY));
	redis_server_number(first, "CLUSTER FAILOVER");
	WAIT_UNTIL(redis_server_says(first, "INFO replication", "role:master"));
	WAIT_UNTIL(redis_server_says(&cluster->nodes[0], "INFO replication", "role:slave"));
	assert_int_equal(try_add(redis, key, TW_HOUR, TW_REDIS_ANY), TW_REDIS_UNFIT);
	client_close(redis);
}

TEST(once, each_node_of_a_cluster_waits_for_its_own_replica)
{
	struct redis_server replicas[CLUSTER_NODES];
	struct tw_redis_options options = {.shards = 64,
					   .reply_timeout = 2 * TW_SECOND,
					   .durability = TW_REDIS_DURABLE_REPLICA};
	struct cluster cluster;
	struct tw_redis *redis;
	char first[KEY_SIZE];
	char other[KEY_SIZE];

	cluster_start(&cluster);
	options.url = cluster.nodes[0].url;
	assert_int_equal(tw_redis_open(&redis, &options, NULL), TW_REDIS_UNREACHABLE);
	replicas_join(&cluster, replicas);
	redis = client_open(&options);
	key_of(&cluster, redis, true, first);
	key_of(&cluster, redis, false, other);
	add_task(redis, first, TW_HOUR);
	add_task(redis, other, TW_HOUR);
	kill(replicas[0].pid, SIGSTOP);
	assert_int_equal(try_add(redis, first, TW_HOUR, TW_REDIS_ANY), TW_REDIS_OUTCOME_UNKNOWN);
	assert_ok(redis, try_add(redis, other, TW_HOUR, TW_REDIS_ANY));
	kill(replicas[0].pid, SIGCONT);
	assert_ok(redis, try_add(redis, first, TW_HOUR, TW_REDIS_ANY));
	wait_in_a_slot_that_moves(&cluster, redis);
	begin_at_a_replica_without_a_file(&cluster, &replicas[0], first);
	client_close(redis);
	for (int i = 0; i < CLUSTER_NODES; i++)
		redis_server_stop(&replicas[i]);
	cluster_stop(&cluster);
}

TEST_FILE(open_pair, close_pair)
