/* SPDX-License-Identifier: MIT */
/* A cluster has three nodes with shards on each. Slots move and a node restarts during a run, and
 * no task is lost. */
#include "support/fixture.h"

#include "support/cluster.h"
#include "support/runs.h"

#include "redis/wire/space.h"

/* A run adds tasks while something disturbs it, within these limits. */
enum { SHARDS = 12, LEAST = 400, MOST = 6000 };

static struct cluster cluster;
static struct runs runs;
static struct tw_redis_options options;
static struct tw_redis *redis;
static char name_space[32];

static int start_cluster(void **state)
{
	cluster_start(&cluster);
	/* A node that has no processor for two seconds has not failed. */
	for (int i = 0; i < CLUSTER_NODES; i++)
		redis_server_number(&cluster.nodes[i], "CONFIG SET cluster-node-timeout 3000");
	return 0;
}

static int stop_cluster(void **state)
{
	cluster_stop(&cluster);
	return 0;
}

static int open_all(void **state)
{
	static int number;

	snprintf(name_space, sizeof(name_space), "cluster-%d", ++number);
	options = (struct tw_redis_options){.url = cluster.nodes[number % CLUSTER_NODES].url,
					    .name_space = name_space,
					    .shards = SHARDS,
					    .patience = 20 * TW_SECOND};
	redis = client_open(&options);
	runs_init(&runs, 4 * MOST);
	return 0;
}

static int close_all(void **state)
{
	runs_free(&runs);
	client_close(redis);
	return 0;
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

static unsigned slot_of(unsigned shard)
{
	struct space space;

	space_init(&space, name_space, SHARDS);
	return space_slot(&space, shard);
}

static struct tw_redis_worker *start(void)
{
	struct tw_redis_worker_options worker_options = {.lease = 5 * TW_SECOND};

	runs_attach(&runs, &worker_options);
	return worker_start(&options, &worker_options);
}

static _Atomic int added;
static _Atomic bool is_over; /* the disturbance has ended */

static int added_so_far(void)
{
	/* relaxed: a count. */
	return atomic_load_explicit(&added, memory_order_relaxed);
}

/* Adds tasks one by one until the disturbance ends. A task whose reply was lost is added again.
 * Returns NULL, or the error of a failed call. */
static void *add_all(void *argument)
{
	char key[KEY_SIZE];

	/* relaxed, both: a count, and a flag that orders nothing. */
	for (int i = 0;
	     i < LEAST || (i < MOST && !atomic_load_explicit(&is_over, memory_order_relaxed));
	     i++) {
		enum tw_status status;

		number_key(key, i);
		do
			status = try_add(redis, key, i % 300 * TW_MILLISECOND, TW_REDIS_ANY);
		while (status == TW_REDIS_OUTCOME_UNKNOWN);
		if (status != TW_OK)
			return VALUE(status);
		wait_for(TW_MILLISECOND);
		atomic_fetch_add_explicit(&added, 1, memory_order_relaxed);
	}
	return NULL;
}

static void assert_all_ran(size_t most_runs)
{
	assert_in_range(added_so_far(), LEAST, MOST);
	WAIT_UNTIL(stats_of(redis).tasks == 0);
	assert_each_ran(&runs, added_so_far(), most_runs);
	assert_int_equal(stats_of(redis).dead, 0);
}

/* Runs `disturb` while tasks are added and run. All tasks must have run afterwards. */
static void run_disturbed(void (*disturb)(void), size_t most_runs)
{
	struct tw_redis_worker *worker = start();
	pthread_t thread;
	void *failure;

	/* relaxed: the thread does not run yet. */
	atomic_store_explicit(&added, 0, memory_order_relaxed);
	atomic_store_explicit(&is_over, false, memory_order_relaxed);
	assert_int_equal(pthread_create(&thread, NULL, add_all, NULL), 0);
	disturb();
	/* relaxed: orders nothing. */
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	pthread_join(thread, &failure);
	assert_null(failure);
	assert_all_ran(most_runs);
	worker_stop(worker);
}

static void nothing(void)
{
}

TEST(opened, tasks_of_all_nodes_run_once)
{
	bool used[CLUSTER_NODES] = {false};

	for (unsigned i = 0; i < SHARDS; i++)
		used[cluster_owner(&cluster, slot_of(i))] = true;
	for (int i = 0; i < CLUSTER_NODES; i++)
		assert_true(used[i]);
	run_disturbed(nothing, 1);
}

static bool count_one(void *context, const struct tw_redis_info *info)
{
	++*(int *)context;
	return true;
}

/* There is one connection to each node, and one to any node for hints. */
TEST(opened, worker_of_two_namespaces_needs_no_more_connections)
{
	enum { EACH = 150 };
	const struct tw_redis_source sources[] = {{.name_space = name_space},
						  {.name_space = "beside"}};
	struct tw_redis_worker_options worker_options = {.sources = sources, .source_count = 2};
	struct tw_redis_options named = options;
	struct tw_redis_worker *worker;
	struct tw_redis *beside;
	int clients = 0;

	assert_ok(redis, tw_redis_open_beside(redis, "beside", SHARDS, &beside, NULL));
	add_tasks(redis, EACH, 0, 0);
	add_tasks(beside, EACH, 0, 0);
	runs_attach(&runs, &worker_options);
	named.client_name = "namespaces";
	worker = worker_start(&named, &worker_options);
	WAIT_UNTIL(ends_count(&runs) == 2 * EACH);
	assert_int_equal(ends_count_of(&runs, NULL, TW_REDIS_END_DONE), 2 * EACH);
	for (int i = 0; i < EACH; i++) {
		char key[KEY_SIZE];

		number_key(key, i);
		assert_int_equal(runs_count_of(&runs, key), 2);
	}
	for (int i = 0; i < CLUSTER_NODES; i++)
		clients += redis_server_says(&cluster.nodes[i], "CLIENT LIST", "name=namespaces");
	assert_int_equal(clients, CLUSTER_NODES + 1);
	/* It hears of tasks of both namespaces, on any node. */
	add_task(beside, "sooner", 50 * TW_MILLISECOND);
	WAIT_UNTIL(ends_count(&runs) == 2 * EACH + 1);
	worker_stop(worker);
	assert_int_equal(stats_of(redis).tasks, 0);
	assert_int_equal(stats_of(beside).tasks, 0);
	client_close(beside);
}

TEST(opened, new_namespace_has_16_shards)
{
	struct tw_redis *others[2];

	(void)state;
	options.shards = 0;
	others[0] = client_open(&options);
	assert_int_equal(tw_redis_shard_count(others[0]), SHARDS);
	options.name_space = "new";
	others[1] = client_open(&options);
	assert_int_equal(tw_redis_shard_count(others[1]), 16);
	for (int i = 0; i < 2; i++)
		client_close(others[i]);
}

TEST(opened, calls_reach_every_node)
{
	static struct tw_redis_task tasks[200];
	static char keys[200][KEY_SIZE];
	struct tw_redis_group_stats groups[3];
	struct tw_redis_batch *batch;
	size_t count = 0;
	int listed = 0;

	for (int i = 0; i < 200; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){.key = keys[i],
						  .key_size = strlen(keys[i]),
						  .delay = TW_HOUR,
						  .group = i % 4 == 3 ? "small" : "large"};
	}
	assert_ok(redis, tw_redis_add(redis, tasks, 200, NULL));
	assert_int_equal(stats_of(redis).tasks, 200);
	assert_ok(redis, tw_redis_each(redis, TW_REDIS_TASKS, count_one, &listed));
	assert_int_equal(listed, 200);
	assert_ok(redis, tw_redis_get_groups(redis, groups, 3, &count));
	assert_int_equal(count, 2);
	assert_string_equal(groups[0].name, "large");
	assert_int_equal(groups[0].waiting, 150);
	assert_int_equal(groups[1].waiting, 50);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(find_task(redis, keys[i]).status, TW_OK);
		if (i % 2)
			assert_int_equal(cancel_task(redis, keys[i]), TW_OK);
		else
			assert_int_equal(move_task(redis, keys[i], 0), TW_OK);
	}
	for (unsigned i = 0; i < SHARDS; i++) {
		assert_ok(redis, tw_redis_claim(redis, i, 200, TW_MINUTE, &batch, NULL));
		assert_ok(redis, tw_redis_finish(redis, batch->jobs, batch->count, TW_REDIS_DONE,
						 NULL, NULL));
		claim_end(batch);
	}
	assert_int_equal(stats_of(redis).tasks, 0);
}

/* Each shard's slot moves to the next node, slowly, while its tasks are added and run. */
static void move_all_slots(void)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		unsigned slot = slot_of(i);

		cluster_move_slot(&cluster, slot,
				  (cluster_owner(&cluster, slot) + 1) % CLUSTER_NODES, 30);
	}
}

TEST(opened, slots_moved_in_mid_run_lose_nothing)
{
	run_disturbed(move_all_slots, 1);
}

static void assert_one_group(uint64_t waiting, uint64_t running)
{
	struct tw_redis_group_stats group;
	size_t count = 0;

	assert_ok(redis, tw_redis_get_groups(redis, &group, 1, &count));
	assert_int_equal(count, 1);
	assert_int_equal(group.waiting, waiting);
	assert_int_equal(group.running, running);
}

TEST(opened, empty_slot_on_its_way_takes_tasks_at_once)
{
	unsigned slot = slot_of(shard_of(redis, "a"));
	int source = cluster_owner(&cluster, slot);
	int target = (source + 1) % CLUSTER_NODES;
	const struct tw_redis_task grouped = {.key = "a", .key_size = 1, .group = "g"};
	struct tw_redis_batch *batch;
	tw_duration before;

	if (redis_server_figure(&cluster.nodes[0], "INFO server", "redis_version:") < 7)
		TEST_SKIP("this needs Redis 7");
	cluster_begin_move(&cluster, slot, source, target);
	before = wall_clock();
	/* The first task is replaced and run; another does so in a group. */
	add_task(redis, "a", 0);
	assert_int_equal(try_add(redis, "a", 0, TW_REDIS_REPLACE), TW_OK);
	batch = await_claim(redis, "a", TW_MINUTE);
	assert_int_equal(finish_job(redis, batch, TW_REDIS_SNOOZE), TW_OK);
	assert_int_equal(find_task(redis, "a").status, TW_OK);
	add_one(redis, &grouped);
	assert_one_group(1, 0);
	batch = await_claim(redis, "a", TW_MINUTE);
	assert_one_group(0, 1);
	add_task(redis, "a", TW_HOUR);
	assert_true(wall_clock() - before < 5 * TW_SECOND);
	cluster_end_move(&cluster, slot, source, target);
	cluster_wait_until_well(&cluster);
	assert_int_equal(find_task(redis, "a").status, TW_OK);
}

/* One key of a slot is still at the old node, so a change at the new one would be incomplete. */
TEST(opened, slot_half_on_its_way_is_waited_for)
{
	unsigned slot = slot_of(shard_of(redis, "a"));
	int source = cluster_owner(&cluster, slot);
	int target = (source + 1) % CLUSTER_NODES;
	struct tw_redis_error error;

	if (redis_server_figure(&cluster.nodes[0], "INFO server", "redis_version:") < 7)
		TEST_SKIP("this needs Redis 7");
	add_task(redis, "a", TW_HOUR);
	cluster_begin_move(&cluster, slot, source, target);
	set_patience(redis, 100 * TW_MILLISECOND);
	assert_int_equal(try_add(redis, "a", 0, TW_REDIS_ANY), TW_REDIS_UNREACHABLE);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "TRYAGAIN"));
	set_patience(redis, 0);
	/* The slot moves back. */
	redis_server_number(&cluster.nodes[source], "CLUSTER SETSLOT %u STABLE", slot);
	redis_server_number(&cluster.nodes[target], "CLUSTER SETSLOT %u STABLE", slot);
	assert_int_equal(cancel_task(redis, "a"), TW_OK);
}

/* The keys that all scripts name are at the new node, and only those of groups are not. */
TEST(opened, slot_whose_keys_of_groups_are_on_their_way_is_waited_for)
{
	static const char *const first[] = {"due", "body", "state"};
	const struct tw_redis_task task = {.key = "a", .key_size = 1, .group = "g"};
	unsigned shard = shard_of(redis, "a");
	unsigned slot = slot_of(shard);
	int source = cluster_owner(&cluster, slot);
	int target = (source + 1) % CLUSTER_NODES;
	struct tw_redis_batch *batch = NULL;

	if (redis_server_figure(&cluster.nodes[0], "INFO server", "redis_version:") < 7)
		TEST_SKIP("this needs Redis 7");
	add_one(redis, &task);
	cluster_begin_move(&cluster, slot, source, target);
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		redis_server_number(&cluster.nodes[source],
				    "MIGRATE 127.0.0.1 %d {tw/%s/%u}%s 0 5000",
				    cluster.nodes[target].port, name_space, shard, first[i]);
	set_patience(redis, 100 * TW_MILLISECOND);
	assert_int_equal(tw_redis_claim(redis, shard, 1, TW_MINUTE, &batch, NULL),
			 TW_REDIS_UNREACHABLE);
	set_patience(redis, 0);
	cluster_move_slot(&cluster, slot, target, 0);
	cluster_wait_until_well(&cluster);
	batch = await_claim(redis, "a", TW_MINUTE);
	assert_string_equal(only_job(batch)->group, "g");
	claim_end(batch);
}

/* The other keys of the namespace are not there yet. */
TEST(opened, layout_of_a_slot_on_its_way_is_read_where_it_is)
{
	unsigned slot = slot_of(SHARD_NONE);
	int source = cluster_owner(&cluster, slot);
	int target = (source + 1) % CLUSTER_NODES;

	cluster_begin_move(&cluster, slot, source, target);
	client_close(client_open(&options));
	assert_int_equal(
		redis_server_number(&cluster.nodes[target], "CLUSTER COUNTKEYSINSLOT %u", slot), 0);
	cluster_move_slot(&cluster, slot, target, 0);
	cluster_wait_until_well(&cluster);
	client_close(client_open(&options));
}

static void announce_hosts(const char *how)
{
	for (int i = 0; i < CLUSTER_NODES; i++)
		redis_server_number(&cluster.nodes[i],
				    "CONFIG SET cluster-preferred-endpoint-type %s", how);
}

/* The first node is reached by a unix socket and gives ports without hosts, which are on this
 * machine. */
TEST(opened, nodes_without_hosts_are_found_from_a_unix_socket)
{
	unsigned slot = slot_of(shard_of(redis, "a"));
	int owner = cluster_owner(&cluster, slot);
	struct tw_redis *local;
	char path[320];
	char url[400];

	if (redis_server_figure(&cluster.nodes[0], "INFO server", "redis_version:") < 7)
		TEST_SKIP("this needs Redis 7");
	announce_hosts("unknown-endpoint");
	redis_server_path(&cluster.nodes[0], "redis.sock", path, sizeof(path));
	snprintf(url, sizeof(url), "redis+unix://%s?client_name=local", path);
	options.url = url;
	local = client_open(&options);
	assert_ok(local, tw_redis_get_stats(local, &(struct tw_redis_stats){0}));
	/* The node behind the socket is not also reached by its port. */
	assert_int_equal(redis_server_says(&cluster.nodes[0], "CLIENT LIST", "name=local "), 1);
	/* A redirect without a host works too. */
	cluster_move_slot(&cluster, slot, (owner + 1) % CLUSTER_NODES, 0);
	add_task(local, "a", TW_HOUR);
	assert_int_equal(cancel_task(redis, "a"), TW_OK);
	client_close(local);
	announce_hosts("ip");
}

/* Finds a key whose shard is on that node. */
static void key_at(int node, char key[KEY_SIZE])
{
	for (int i = 0;; i++) {
		number_key(key, i);
		if (cluster_owner(&cluster, slot_of(shard_of(redis, key))) == node)
			return;
	}
}

static void demand_full_coverage(const char *demand)
{
	for (int i = 0; i < CLUSTER_NODES; i++)
		redis_server_number(&cluster.nodes[i],
				    "CONFIG SET cluster-require-full-coverage %s", demand);
}

/* A call that waits for a silent node takes this long, which is longer than any test silences
 * one. */
#define SILENCE_MAX (60 * TW_SECOND)

static struct tw_redis *open_patient_client(int node)
{
	options.url = cluster.nodes[node].url;
	options.connect_timeout = options.reply_timeout = options.patience = SILENCE_MAX;
	return client_open(&options);
}

struct silent_call {
	struct tw_redis *redis;
	char key[KEY_SIZE];
	enum tw_status status;
};

static void *cancel_silent(void *argument)
{
	struct silent_call *call = argument;

	call->status = cancel_task(call->redis, call->key);
	return NULL;
}

struct other_call {
	struct tw_redis *redis;
	const char *key;
	int64_t took;
};

static void *cancel_other(void *argument)
{
	struct other_call *call = argument;
	int64_t before = wall_clock();

	if (cancel_task(call->redis, call->key) != TW_NOT_FOUND)
		return VALUE(1);
	call->took = wall_clock() - before;
	return NULL;
}

/* Two calls run at a time. The first that ends hands the connection to the other, and not to the
 * call that waits for the silent node. */
static void assert_others_are_quick(struct tw_redis *client, char keys[][KEY_SIZE])
{
	enum { ROUNDS = 100, OTHERS = CLUSTER_NODES - 1 };

	for (int round = 0; round < ROUNDS; round++) {
		struct other_call calls[OTHERS];
		pthread_t threads[OTHERS];
		void *failure;

		for (int i = 0; i < OTHERS; i++) {
			calls[i] = (struct other_call){.redis = client, .key = keys[i]};
			pthread_create(&threads[i], NULL, cancel_other, &calls[i]);
		}
		for (int i = 0; i < OTHERS; i++) {
			pthread_join(threads[i], &failure);
			assert_null(failure);
			assert_true(calls[i].took < SILENCE_MAX / 2);
		}
	}
}

/* Two calls wait for the silent node. Others are not delayed, even if their slot has moved. */
static void calls_beside_silence(struct tw_redis *client, int node)
{
	enum { CALLS = 20 };
	struct silent_call silent[2] = {{.redis = client}, {.redis = client}};
	pthread_t threads[2];
	char others[CLUSTER_NODES - 1][KEY_SIZE];
	int source = (node + 1) % CLUSTER_NODES;
	int target = (node + 2) % CLUSTER_NODES;
	int64_t longest = 0;
	unsigned slot;

	for (int i = 0; i < CLUSTER_NODES - 1; i++)
		key_at((node + 1 + i) % CLUSTER_NODES, others[i]);
	slot = slot_of(shard_of(client, others[0]));
	key_at(node, silent[0].key);
	key_at(node, silent[1].key);
	assert_int_equal(kill(cluster.nodes[node].pid, SIGSTOP), 0);
	for (int i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, cancel_silent, &silent[i]);
		wait_for(50 * TW_MILLISECOND);
		assert_others_are_quick(client, others);
	}
	for (int i = 0; i < CALLS; i++) {
		const char *key = others[i % (CLUSTER_NODES - 1)];
		int64_t before;

		if (i == CALLS / 2) {
			cluster_begin_move(&cluster, slot, source, target);
			cluster_end_move(&cluster, slot, source, target);
		}
		before = wall_clock();
		assert_int_equal(cancel_task(client, key), TW_NOT_FOUND);
		longest = wall_clock() - before > longest ? wall_clock() - before : longest;
	}
	assert_int_equal(kill(cluster.nodes[node].pid, SIGCONT), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(silent[i].status, TW_NOT_FOUND);
	}
	assert_true(longest < SILENCE_MAX / 2);
}

/* The silent node is the first that would be asked for the map. */
TEST(opened, silent_node_holds_up_no_call_for_another)
{
	struct tw_redis *client = open_patient_client(0);

	demand_full_coverage("no");
	assert_ok(client, tw_redis_get_stats(client, &(struct tw_redis_stats){0}));
	calls_beside_silence(client, 0);
	demand_full_coverage("yes");
	cluster_wait_until_well(&cluster);
}

/* The system accepts connections for the silent node. */
TEST(opened, connecting_a_silent_node_holds_up_no_call_for_another)
{
	/* Opening asks the layout's node only, so the others are not connected yet. */
	int known = cluster_owner(&cluster, slot_of(SHARD_NONE));
	struct tw_redis *fresh = open_patient_client(known);

	demand_full_coverage("no");
	calls_beside_silence(fresh, (known + 1) % CLUSTER_NODES);
	demand_full_coverage("yes");
	cluster_wait_until_well(&cluster);
}

/* The map is to be read again, and the node would have to be connected for that. */
TEST(opened, node_that_was_silent_is_not_asked_for_the_map)
{
	char silent[KEY_SIZE];
	char other[KEY_SIZE];
	struct tw_redis *hasty;
	int64_t before;

	key_at(0, silent);
	key_at(1, other);
	options.url = cluster.nodes[0].url;
	options.reply_timeout = 2 * TW_SECOND;
	options.patience = -1;
	hasty = client_open(&options);
	demand_full_coverage("no");
	assert_ok(hasty, tw_redis_get_stats(hasty, &(struct tw_redis_stats){0}));
	assert_int_equal(kill(cluster.nodes[0].pid, SIGSTOP), 0);
	assert_int_equal(cancel_task(hasty, silent), TW_REDIS_OUTCOME_UNKNOWN);
	before = wall_clock();
	assert_int_equal(cancel_task(hasty, other), TW_NOT_FOUND);
	assert_true(wall_clock() - before < options.reply_timeout);
	assert_int_equal(kill(cluster.nodes[0].pid, SIGCONT), 0);
	demand_full_coverage("yes");
	cluster_wait_until_well(&cluster);
}

/* A task of a healthy node runs, and its lease is extended, while a claim waits for a silent
 * node. */
TEST(opened, silent_node_holds_up_no_task_of_another)
{
	struct tw_redis_worker_options worker_options = {.lease = 3 * TW_SECOND};
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker *worker;
	struct tw_redis_error last;
	char silent[KEY_SIZE];
	char other[KEY_SIZE];
	int64_t before;

	key_at(0, silent);
	key_at(1, other);
	options.reply_timeout = SILENCE_MAX;
	options.url = cluster.nodes[0].url;
	demand_full_coverage("no");
	runs_attach(&runs, &worker_options);
	worker = worker_start(&options, &worker_options);
	runs.gate_is_shut = true;
	add_task(redis, other, 0);
	WAIT_UNTIL(runs_running(&runs) == 1);
	add_task(redis, silent, 300 * TW_MILLISECOND);
	assert_int_equal(kill(cluster.nodes[0].pid, SIGSTOP), 0);
	before = wall_clock();
	/* The run is longer than its lease, which is extended each third of it. */
	WAIT_UNTIL(tw_redis_worker_get_stats(worker, NULL, &stats) == TW_OK && stats.extended >= 4);
	runs_open_gate(&runs);
	WAIT_UNTIL(ends_count(&runs) == 1);
	/* Hints may come from the silent node alone. Then a poll finds the task within 10 s. */
	add_task(redis, other, 0);
	WAIT_UNTIL(ends_count(&runs) == 2);
	assert_int_equal(runs_count_of(&runs, other), 2);
	assert_int_equal(ends_count_of(&runs, NULL, TW_REDIS_END_DONE), 2);
	assert_true(wall_clock() - before < SILENCE_MAX / 2);
	assert_int_equal(runs_errors(&runs, &last), 0);
	/* The worker waits for the silent node no longer than the grace and two seconds. */
	before = wall_clock();
	assert_int_equal(tw_redis_worker_stop(worker, TW_SECOND), TW_OK);
	assert_true(wall_clock() - before < SILENCE_MAX / 2);
	worker_destroy(worker);
	assert_int_equal(kill(cluster.nodes[0].pid, SIGCONT), 0);
	demand_full_coverage("yes");
	cluster_wait_until_well(&cluster);
}

/* The worker knows one node, and its first claims connect the others. */
TEST(opened, connecting_a_silent_node_holds_up_no_task_of_another)
{
	int known = cluster_owner(&cluster, slot_of(SHARD_NONE));
	int node = (known + 1) % CLUSTER_NODES;
	struct tw_redis_worker *worker;
	struct tw_redis_error last;
	char silent[KEY_SIZE];
	char other[KEY_SIZE];

	key_at(node, silent);
	key_at((node + 1) % CLUSTER_NODES, other);
	add_task(redis, silent, 0);
	options.url = cluster.nodes[known].url;
	options.reply_timeout = SILENCE_MAX;
	demand_full_coverage("no");
	assert_int_equal(kill(cluster.nodes[node].pid, SIGSTOP), 0);
	worker = start();
	for (int i = 0; i < 20; i++) {
		add_task(redis, other, 0);
		WAIT_UNTIL(ends_count(&runs) == 1 + (size_t)i);
	}
	assert_int_equal(runs_count_of(&runs, other), 20);
	assert_int_equal(kill(cluster.nodes[node].pid, SIGCONT), 0);
	WAIT_UNTIL(runs_count_of(&runs, silent) == 1);
	assert_int_equal(runs_errors(&runs, &last), 0);
	worker_stop(worker);
	demand_full_coverage("yes");
	cluster_wait_until_well(&cluster);
}

/* The other nodes' replies do not count: there is one loss, and one return. */
TEST(opened, missing_node_is_reported_once)
{
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker *worker;
	struct tw_redis_error last;
	char away[KEY_SIZE];
	char other[KEY_SIZE];

	key_at(1, away);
	key_at(2, other);
	options.url = cluster.nodes[0].url;
	demand_full_coverage("no");
	worker = start();
	add_task(redis, away, 0);
	WAIT_UNTIL(ends_count(&runs) == 1);
	redis_server_end(&cluster.nodes[1], SIGKILL);
	WAIT_UNTIL(runs_lost(&runs) == 1);
	for (int i = 0; i < 50; i++) {
		add_task(redis, other, 20 * TW_MILLISECOND);
		WAIT_UNTIL(ends_count(&runs) == 2 + (size_t)i);
	}
	assert_int_equal(runs_lost(&runs), 1);
	assert_int_equal(runs_found(&runs), 0);
	assert_in_range(runs_errors(&runs, &last), 1, 4);
	assert_int_equal(tw_redis_worker_get_stats(worker, NULL, &stats), TW_OK);
	assert_int_equal(stats.error.status, TW_REDIS_UNREACHABLE);
	redis_server_restart(&cluster.nodes[1]);
	WAIT_UNTIL(runs_found(&runs) == 1);
	assert_int_equal(tw_redis_worker_get_stats(worker, NULL, &stats), TW_OK);
	assert_int_equal(stats.error.status, TW_OK);
	assert_string_equal(stats.error.text, "");
	worker_stop(worker);
	demand_full_coverage("yes");
	cluster_wait_until_well(&cluster);
}

static void restart_a_node(void)
{
	WAIT_UNTIL(added_so_far() > LEAST / 4);
	redis_server_end(&cluster.nodes[1], SIGKILL);
	/* Then the whole cluster is down. */
	cluster_wait_until_down(&cluster, 0);
	wait_for(300 * TW_MILLISECOND);
	redis_server_restart(&cluster.nodes[1]);
	cluster_wait_until_well(&cluster);
}

TEST(opened, node_restarted_in_mid_run_loses_nothing)
{
	run_disturbed(restart_a_node, 3);
}

TEST_FILE(start_cluster, stop_cluster)
