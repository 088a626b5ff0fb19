/* SPDX-License-Identifier: MIT */
/* Three nodes: shards lie on all, slots move and a node restarts in mid-run, nothing is lost. */
#include "support/fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/cluster.h"
#include "support/runs.h"
#include "support/wait.h"

#include "space.h"

/* Tasks of a run: as many as are added while something is disturbed, in these limits. */
enum { SHARDS = 12, LEAST = 400, MOST = 6000 };

static struct cluster cluster;
static struct runs runs;
static struct tw_redis_options options;
static struct tw_redis *redis;
static char name_space[32];

static int start_cluster(void **state)
{
	(void)state;
	cluster_start(&cluster);
	return 0;
}

static int stop_cluster(void **state)
{
	(void)state;
	cluster_stop(&cluster);
	return 0;
}

static int open_all(void **state)
{
	static int number;

	(void)state;
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
	(void)state;
	runs_free(&runs);
	tw_redis_close(redis);
	return 0;
}

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
static _Atomic bool is_over; /* what disturbs has done its part */

static int added_so_far(void)
{
	/* relaxed: a count. */
	return atomic_load_explicit(&added, memory_order_relaxed);
}

/* Adds tasks, one by one, as long as they are disturbed; a reply that was lost is made up for by
 * adding again. Answers NULL, or what a call failed with. */
static void *add_all(void *argument)
{
	char key[KEY_SIZE];

	(void)argument;
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

/* While tasks are added and run, `disturb` does its part; then all must have run. */
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

static void tasks_of_all_nodes_run_once(void **state)
{
	bool used[CLUSTER_NODES] = {false};

	(void)state;
	for (unsigned i = 0; i < SHARDS; i++)
		used[cluster_owner(&cluster, slot_of(i))] = true;
	for (int i = 0; i < CLUSTER_NODES; i++)
		assert_true(used[i]);
	run_disturbed(nothing, 1);
}

static bool count_one(void *context, const struct tw_redis_info *info)
{
	(void)info;
	++*(int *)context;
	return true;
}

static void calls_reach_every_node(void **state)
{
	static struct tw_redis_task tasks[200];
	static char keys[200][KEY_SIZE];
	struct tw_redis_batch *batch;
	int listed = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){
			.key = keys[i], .key_size = strlen(keys[i]), .delay = TW_HOUR};
	}
	assert_ok(redis, tw_redis_add_many(redis, tasks, 200, NULL));
	assert_int_equal(stats_of(redis).tasks, 200);
	assert_ok(redis, tw_redis_each(redis, count_one, &listed));
	assert_int_equal(listed, 200);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(find_task(redis, keys[i]).status, TW_OK);
		if (i % 2)
			assert_int_equal(cancel_task(redis, keys[i]), TW_OK);
		else
			assert_int_equal(move_task(redis, keys[i], 0), TW_OK);
	}
	for (unsigned i = 0; i < SHARDS; i++) {
		assert_ok(redis, tw_redis_claim(redis, i, 200, TW_MINUTE, &batch, NULL));
		assert_ok(redis, tw_redis_ack(redis, tw_redis_batch_jobs(batch),
					      tw_redis_batch_count(batch), NULL));
		tw_redis_batch_free(batch);
	}
	assert_int_equal(stats_of(redis).tasks, 0);
}

/* Every shard's slot goes to the next node, slowly, while its tasks are added and run. */
static void move_all_slots(void)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		unsigned slot = slot_of(i);

		cluster_move_slot(&cluster, slot,
				  (cluster_owner(&cluster, slot) + 1) % CLUSTER_NODES, 30);
	}
}

static void slots_moved_in_mid_run_lose_nothing(void **state)
{
	(void)state;
	run_disturbed(move_all_slots, 1);
}

static void restart_a_node(void)
{
	WAIT_UNTIL(added_so_far() > LEAST / 4);
	redis_server_end(&cluster.nodes[1], SIGKILL);
	/* All of the cluster is down then. */
	cluster_wait_until_down(&cluster, 0);
	wait_for(300 * TW_MILLISECOND);
	redis_server_restart(&cluster.nodes[1]);
	cluster_wait_until_well(&cluster);
}

static void node_restarted_in_mid_run_loses_nothing(void **state)
{
	(void)state;
	run_disturbed(restart_a_node, 3);
}

#define CLUSTER_TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_TEST(tasks_of_all_nodes_run_once),
		CLUSTER_TEST(calls_reach_every_node),
		CLUSTER_TEST(slots_moved_in_mid_run_lose_nothing),
		CLUSTER_TEST(node_restarted_in_mid_run_loses_nothing),
	};

	return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
