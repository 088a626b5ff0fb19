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
#include "support/runs.h"
#include "support/sentinels.h"
#include "support/talk.h"

enum { URL_SIZE = 300, HOLD_MS = 600000 };

/* ---- What a server can give ---- */

#define UNKNOWN "-ERR unknown command 'WAITAOF', with args beginning with:"
#define NO_RIGHT "-NOPERM this user has no permissions to run the command"
#define VALKEY "redis_version:7.2.4 server_name:valkey valkey_version:"

/* Makes the server one with that version, file and number of replicas. WAITAOF is known then. */
static void be(const char *version, int append_only, int replicas, const char *fsync,
	       const char *pauses)
{
	SAY("on INFO info %s maxmemory_policy:noeviction role:master aof_enabled:%d "
	    "connected_slaves:%d;"
	    "on CONFIG ['appendfsync' '%s' 'no-appendfsync-on-rewrite' '%s'];"
	    "on WAITAOF [0 0]",
	    version, append_only, replicas, fsync, pauses);
}

TEST(talk, server_that_cannot_give_it_is_refused)
{
	static const struct {
		const char *version;
		int append_only;
		int replicas;
		const char *fsync;
		const char *pauses;
		const char *then; /* other replies, and the opening */
	} cases[] = {
		{"7.2.0", 0, 0, "no", "no", "on WAITAOF " UNKNOWN "; open durability server"},
		{"7.2.0", 1, 0, "everysec", "no", "open durability disk"},
		{"7.2.0", 1, 0, "always", "yes", "open durability disk"},
		{"7.2.0", 1, 0, "", "", "on CONFIG " NO_RIGHT "; open durability disk"},
		{"7.2.0", 1, 0, "always", "no", "on WAITAOF " UNKNOWN "; open durability disk"},
		{"7.2.0", 0, 1, "no", "no", "on WAITAOF " UNKNOWN "; open durability replica"},
		{"7.2.0", 1, 1, "everysec", "no", "open durability both"},
		{"7.2.0", 0, 1, "always", "no",
		 "open durability {disk|both} = UNFIT appendonly yes"},
		/* This one says no until it has loaded its file. */
		{"7.2.0 loading:1", 0, 1, "always", "no",
		 "open durability disk = UNREACHABLE is loading its data"},
		{"7.2.0", 1, 1, "no", "no", "open durability disk = UNFIT everysec or always"},
		{"7.2.0", 1, 1, "everysec", "no",
		 "on WAITAOF " UNKNOWN "; open durability disk = UNFIT appendfsync always"},
		{"7.2.0", 1, 1, "always", "yes",
		 "on WAITAOF " UNKNOWN
		 "; open durability disk = UNFIT no-appendfsync-on-rewrite no"},
		{"7.2.0", 1, 1, "", "",
		 "on CONFIG " NO_RIGHT "; on WAITAOF " UNKNOWN
		 "; open durability disk = UNFIT NOPERM"},
		{"7.2.0", 1, 1, "always", "no",
		 "on WAITAOF " NO_RIGHT "; open durability disk = REFUSED NOPERM"},
		{"7.2.0", 1, 1, "always", "no",
		 "on WAIT " NO_RIGHT "; open durability replica = REFUSED NOPERM"},
		/* This error passes, as after a failover. */
		{"7.2.0", 1, 0, "always", "no",
		 "open durability {replica|both} = UNREACHABLE none has all data yet"},
		{"7.2.0 slave0:port=1,state=wait_bgsave", 1, 1, "always", "no",
		 "open durability {replica|both} = UNREACHABLE none has all data yet"},
		{"7.2.0 slave0:port=1,state=send_bulk slave1:port=2,state=online", 1, 2, "always",
		 "no", "open durability {replica|both}"},
		{"7.2.0 slave0:port=1", 1, 1, "always", "no", "open durability {replica|both}"},
		{"7.4.2", 1, 0, "everysec", "no",
		 "open durability disk = UNFIT replies before the fsync"},
		{"7.4.2", 1, 0, "always", "no", "open durability disk"},
		{"7.4.3", 1, 0, "everysec", "no", "open durability disk"},
		{"7.4.10", 1, 0, "everysec", "no", "open durability disk"},
		{VALKEY "8.0.1", 1, 0, "always", "yes",
		 "open durability disk = UNFIT replies before the fsync"},
		{VALKEY "8.1.1", 1, 0, "everysec", "no", "open durability disk"},
	};
	char version[80];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(version, sizeof(version), "%s%s",
			 *cases[i].version == '7' ? "redis_version:" : "", cases[i].version);
		be(version, cases[i].append_only, cases[i].replicas, cases[i].fsync,
		   cases[i].pauses);
		CONTINUE("%s", cases[i].then);
	}
}

TALK(right_to_see_replicas_is_needed,
     "on INFO " NO_RIGHT "; open evict yes durability replica = UNFIT NOPERM")

TEST(talk, unknown_durability_is_invalid)
{
	static const int none[] = {-1, TW_REDIS_DURABLE_BOTH + 1};
	struct tw_redis *redis;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		const struct tw_redis_options options = {.durability =
								 (enum tw_redis_durability)none[i]};

		assert_int_equal(tw_redis_open(&redis, &options, NULL), TW_INVALID);
	}
}

/* ---- What the replies to waits mean ---- */

#define INFO_BOTH                                                                   \
	"on INFO info redis_version:7.2.0 maxmemory_policy:noeviction role:master " \
	"aof_enabled:1 connected_slaves:1;"

/* The greeting's waits are for nothing, and later ones confirm. */
#define OPEN_BOTH                                                                           \
	INFO_BOTH                                                                           \
	"on CONFIG ['appendfsync' 'everysec' 'no-appendfsync-on-rewrite' 'no'];"            \
	"on WAITAOF [0 0]; on WAIT :0; open durability both reply 800ms; on WAITAOF [1 0];" \
	"on WAIT :1;"

TALK(change_is_confirmed_by_both_waits, OPEN_BOTH "on WAITAOF [1 {0|5}]; on WAIT :{1|3}; cancel a")

TALK(change_that_a_wait_does_not_confirm_is_unknown,
     OPEN_BOTH "once WAITAOF [0 9]; cancel a = OUTCOME_UNKNOWN disk within 300 ms;"
	       "once WAIT :0; cancel a = OUTCOME_UNKNOWN replica within 300 ms;"
	       "once WAITAOF [0 0]; once WAIT :0; cancel a = OUTCOME_UNKNOWN not confirmed;"
	       "once WAITAOF -ERR WAITAOF cannot be used when;"
	       "cancel a = OUTCOME_UNKNOWN disk: ERR WAITAOF cannot;"
	       "once WAIT -UNBLOCKED force unblock; cancel a = OUTCOME_UNKNOWN replica: UNBLOCKED;"
	       "once WAITAOF []; cancel a = OUTCOME_UNKNOWN disk;"
	       "once WAITAOF +OK; cancel a = OUTCOME_UNKNOWN disk;"
	       "once WAIT nil; cancel a = OUTCOME_UNKNOWN replica; cancel a")

TALK(change_whose_wait_is_lost_is_unknown,
     OPEN_BOTH "once {WAITAOF|WAIT} silence; cancel a = OUTCOME_UNKNOWN timed out; cancel a;"
	       "once {WAITAOF|WAIT} close; cancel a = OUTCOME_UNKNOWN broke")

/* The next greeting is answered with +OK, and the wait is not. */
TALK(pause_whose_wait_is_lost_is_made_again,
     OPEN_BOTH "on WAITAOF +OK; once WAITAOF close; patience 50ms; pause = OUTCOME_UNKNOWN;"
	       "on WAITAOF [1 0]; pause")

/* A wait over a connection that has changed nothing confirms nothing. From the second change on
 * only the mark is sent as a text. */
TALK(wait_behind_a_refused_mark_confirms_nothing,
     OPEN_BOTH "cancel a; once EVAL -MISCONF Errors writing to the AOF file;"
	       "cancel a = OUTCOME_UNKNOWN not confirmed: MISCONF; cancel a")

/* The wait for the first report is lost. The server that answers the second one may be another one,
 * which has lost the first. */
TEST(talk, end_whose_wait_is_lost_is_confirmed_or_not)
{
	static const char *const cases[][3] = {
		{"done", "o", "DONE"}, {"done", "g", "DONE"},        {"done", "s", "UNCONFIRMED"},
		{"kill", "g", "DEAD"}, {"kill", "s", "UNCONFIRMED"}, {"retry", "s", "RETRIED"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		SAY(INFO_BOTH "on WAIT :1; open durability replica reply 4s; on finish '%s';"
			      "once finish 'o'; once #3000 close; work run %s; give a;"
			      "await ends 1; end a = %s",
		    cases[i][1], cases[i][0], cases[i][2]);
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
	talk_open(state);
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
	return talk_close(state);
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

/* Waits end after 900 ms. */
#define REAL "open at %s reply 1200ms patience 5s durability %s;"

TEST(once, each_durability_is_given)
{
	static const char *const names[] = {"server", "disk", "replica", "both"};

	for (enum tw_redis_durability i = 0; i <= TW_REDIS_DURABLE_BOTH; i++) {
		int64_t waits;
		int64_t waitaofs;

		SAY(REAL, master.url, names[i]);
		waits = redis_server_calls(&master, "wait");
		waitaofs = redis_server_calls(&master, "waitaof");
		CONTINUE("add a; cancel a");
		assert_int_equal(redis_server_calls(&master, "wait") - waits,
				 i & TW_REDIS_DURABLE_REPLICA ? 2 : 0);
		/* The greeting has one wait, and appendfsync always needs none. */
		assert_int_equal(redis_server_calls(&master, "waitaof") - waitaofs, 0);
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

/* The connection stays open, and the change is made. */
TEST(once, frozen_replica_leaves_the_outcome_unknown_in_time)
{
	long slept;

	SAY(REAL, master.url, "replica");
	kill(replica.pid, SIGSTOP);
	slept = times_slept();
	CONTINUE("add a = OUTCOME_UNKNOWN the change is made, but not confirmed on a replica "
		 "within 900 ms; took 850ms-5s");
	assert_in_range(times_slept() - slept, 1, 10);
	assert_int_equal(find_task(talk_client(), "a").status, TW_OK);
	kill(replica.pid, SIGCONT);
	CONTINUE("add a; cancel a");
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
	SAY(REAL "cancel none = NOT_FOUND", master.url, "replica");
	redis_server_number(&master, "CONFIG SET min-replicas-to-write 2");
	CONTINUE("cancel none = OUTCOME_UNKNOWN NOREPLICAS");
	redis_server_number(&master, "CONFIG SET min-replicas-to-write 0");
	CONTINUE("cancel none = NOT_FOUND");
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
	struct tw_redis *redis = client_open(&options);
	struct tw_redis_worker *worker;
	struct tw_redis_error notice;

	worker = WORK_AT(&options, .lease = 10 * TW_SECOND);
	runs.gate_is_shut = true;
	add_task(redis, "a", 0);
	WAIT_UNTIL(runs_running() == 1);
	kill(replica.pid, SIGSTOP);
	runs_open_gate();
	WAIT_UNTIL(runs_notices(&notice) >= 1);
	assert_int_equal(notice.status, TW_REDIS_OUTCOME_UNKNOWN);
	assert_non_null(strstr(notice.text, "not confirmed on a replica"));
	assert_int_equal(find_task(redis, "a").status, TW_NOT_FOUND);
	assert_int_equal(ends_count(), 0);
	kill(replica.pid, SIGCONT);
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(ends_count_of("a", TW_REDIS_END_DONE), 1);
	assert_int_equal(runs_count(), 1);
	assert_int_equal(runs_notices(&notice), 1);
	worker_stop(worker);
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
