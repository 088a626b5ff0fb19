/* SPDX-License-Identifier: MIT */
/* A cluster has three nodes with shards on each, and slots move. The torture kills nodes and moves
 * slots in mid-run, and test_node_map.c has nodes that are silent or away. */
#include "support/fixture.h"

#include "support/cluster.h"
#include "support/runs.h"

#include "redis/wire/space.h"

enum { SHARDS = 12, RUNS = 1000 };

static struct cluster cluster;
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
	return 0;
}

static int close_all(void **state)
{
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
	runs_attach(&worker_options);
	named.client_name = "namespaces";
	worker = worker_start(&named, &worker_options);
	WAIT_UNTIL(ends_count() == 2 * EACH);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), 2 * EACH);
	for (int i = 0; i < EACH; i++) {
		char key[KEY_SIZE];

		number_key(key, i);
		assert_int_equal(runs_count_of(key), 2);
	}
	for (int i = 0; i < CLUSTER_NODES; i++) {
		clients += redis_server_says(&cluster.nodes[i], "CLIENT LIST", "name=namespaces");
		/* The handles of both namespaces share their connection to each node. */
		assert_int_equal(
			redis_server_says(&cluster.nodes[i], "CLIENT LIST", "name=timingwheel"), 1);
	}
	assert_int_equal(clients, CLUSTER_NODES + 1);
	/* It hears of tasks of both namespaces, on any node. */
	add_task(beside, "sooner", 50 * TW_MILLISECOND);
	WAIT_UNTIL(ends_count() == 2 * EACH + 1);
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

TEST_FILE(start_cluster, stop_cluster)
