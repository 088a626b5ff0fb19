/* SPDX-License-Identifier: MIT */
/*
 * The map of a cluster is wrong: invalid, too large, or missing, or the nodes that could send it
 * are down. These tests check what happens to calls. The cluster is a false server that reports to
 * be a node.
 */
#include "support/fixture.h"

#include "redis/client/client.h"
#include "support/false_server.h"
#include "support/sockets.h"

enum { FOR_EVER = 1000000, MAP_SIZE = 60000, SHARDS = 4 };

static struct false_server server;
static struct tw_redis_options options;
static char map[MAP_SIZE];
static size_t map_size;
static int elsewhere; /* a port that nobody listens on */
static atomic_size_t asked;
static false_answer_fn *answer;

static size_t answer_zero(void *context, const redisReply *request, char *reply, size_t room)
{
	/* relaxed: a count */
	atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
	for (size_t i = 3; i < request->elements; i++)
		if (!strcmp(request->element[i]->str, "break"))
			return FALSE_CLOSE;
	return (size_t)snprintf(reply, room, ":0\r\n");
}

static size_t answer_script(void *context, const redisReply *request, char *reply, size_t room)
{
	return answer(context, request, reply, room);
}

static int open_all(void **state)
{
	*state = NULL;
	answer = answer_zero;
	false_server_start(&server, answer_script, NULL);
	options = (struct tw_redis_options){.url = server.url, .shards = SHARDS};
	elsewhere = port_free();
	return 0;
}

static int close_all(void **state)
{
	false_server_stop(&server);
	return 0;
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

static void map_begin(int ranges)
{
	map_size = (size_t)sprintf(map, "*%d", ranges);
}

/* Adds a range in Redis's form: first slot, last slot, and the master's description. */
static void map_add_raw(int first, int last, const char *master)
{
	map_size += (size_t)snprintf(map + map_size, MAP_SIZE - map_size,
				     "\r\n*3\r\n:%d\r\n:%d\r\n%s", first, last, master);
}

static void map_add(int first, int last, int port)
{
	char master[64];

	snprintf(master, sizeof(master), "*2\r\n$9\r\n127.0.0.1\r\n:%d", port);
	map_add_raw(first, last, master);
}

/* Makes the server a node that sends this map the next `times` times. */
static void send_map(int times)
{
	false_server_be(&server, 7, true);
	false_server_refuse(&server, "CLUSTER", map, times);
}

static int slot_of(struct tw_redis *redis, const char *key)
{
	return (int)space_slot(&redis->space, space_shard(&redis->space, key, strlen(key)));
}

static int port_of(struct tw_redis *redis, unsigned slot)
{
	return node_map_of_slot(&redis->access->router.map, slot)->address.port;
}

TEST(opened, ranges_that_make_no_sense_are_passed_over)
{
	static const char *const masters[] = {"*0",
					      ":1",
					      "*1\r\n$9\r\n127.0.0.1",
					      "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1",
					      "*2\r\n$9\r\n127.0.0.1\r\n:0",
					      "*2\r\n$9\r\n127.0.0.1\r\n:-1",
					      "*2\r\n$9\r\n127.0.0.1\r\n:65536"};
	enum { MASTERS = sizeof(masters) / sizeof(masters[0]) };
	char host[HOST_SIZE + 32];
	struct tw_redis *redis;

	map_begin(MASTERS + 5);
	for (int i = 0; i < MASTERS; i++)
		map_add_raw(0, SLOTS - 1, masters[i]);
	map_size += (size_t)sprintf(map + map_size, "\r\n*2\r\n:0\r\n:16383");
	sprintf(host, "*2\r\n$%d\r\n%*s\r\n:1", HOST_SIZE, HOST_SIZE, "h");
	map_add_raw(0, SLOTS - 1, host);
	map_add(-1, 10, elsewhere);
	map_add(20, 10, elsewhere);
	/* The valid part is used. */
	map_add(16000, 99999, elsewhere);
	send_map(FOR_EVER);
	redis = client_open(&options);
	assert_int_equal(port_of(redis, 0), server.port);
	assert_int_equal(port_of(redis, 15999), server.port);
	assert_int_equal(port_of(redis, 16000), elsewhere);
	assert_int_equal(port_of(redis, SLOTS - 1), elsewhere);
}

/* A node that does not know its host leaves it out, and the address that was asked is used. */
TEST(opened, unknown_host_is_the_one_that_was_asked)
{
	static const char *const hosts[] = {"$1\r\n?", "$0\r\n", "$-1"};
	struct tw_redis *redis;
	char master[64];

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		map_begin(1);
		snprintf(master, sizeof(master), "*2\r\n%s\r\n:%d", hosts[i], elsewhere);
		map_add_raw(16000, 16000, master);
		send_map(FOR_EVER);
		redis = client_open(&options);
		assert_int_equal(port_of(redis, 16000), elsewhere);
		assert_string_equal(
			node_map_of_slot(&redis->access->router.map, 16000)->address.host,
			"127.0.0.1");
		client_close(redis);
	}
}

TEST(opened, map_of_more_slots_than_there_are_is_read_to_that_number)
{
	struct tw_redis *redis;

	map_begin(3);
	map_add(0, 99, elsewhere);
	map_add(0, SLOTS - 1, server.port);
	map_add(0, SLOTS - 1, elsewhere);
	send_map(FOR_EVER);
	redis = client_open(&options);
	assert_int_equal(port_of(redis, 0), server.port);
	assert_int_equal(port_of(redis, SLOTS - 1), server.port);
}

static size_t answer_moved(void *context, const redisReply *request, char *reply, size_t room)
{
	return (size_t)snprintf(reply, room, "-MOVED 7 127.0.0.1:%d\r\n", NODES_MAX + 1000);
}

/* The slots of further nodes keep their owners. */
TEST(opened, nodes_beyond_the_number_that_is_kept_are_not_asked)
{
	struct tw_redis_error error;
	struct tw_redis *redis;

	map_begin(NODES_MAX + 10);
	for (int i = 1; i <= NODES_MAX + 10; i++)
		map_add(0, 0, i);
	send_map(FOR_EVER);
	redis = client_open(&options);
	assert_int_equal(redis->access->router.map.count, NODES_MAX);
	assert_int_equal(port_of(redis, 0), NODES_MAX - 1);
	assert_true(slot_of(redis, "a") > 0);
	assert_ok(redis, cancel_task(redis, "a"));
	answer = answer_moved;
	assert_int_equal(cancel_task(redis, "a"), TW_REDIS_UNREACHABLE);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "MOVED"));
}

TEST(opened, missing_map_is_asked_for_again)
{
	static const char *const replies[] = {"*0", "+OK", "-ERR not now"};
	struct tw_redis *redis;

	/* A request that followed the map's request on a broken connection is sent again. */
	false_server_be(&server, 7, true);
	false_server_refuse(&server, "CLUSTER", NULL, 1);
	client_close(client_open(&options));
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		false_server_be(&server, 7, true);
		false_server_refuse(&server, "CLUSTER", replies[i], FOR_EVER);
		redis = client_open(&options);
		assert_true(redis->access->router.map.stale);
		assert_int_equal(port_of(redis, 16000), server.port);
		map_begin(1);
		map_add(16000, 16000, elsewhere);
		send_map(FOR_EVER);
		assert_ok(redis, cancel_task(redis, "a"));
		assert_int_equal(port_of(redis, 16000), elsewhere);
		client_close(redis);
	}
}

/* The server left while idle, so a new connection asks for the map. */
TEST(opened, restarted_server_sends_the_map)
{
	struct tw_redis *redis;
	int port = server.port;

	false_server_be(&server, 7, true);
	redis = client_open(&options);
	assert_true(redis->access->router.map.stale);
	false_server_stop(&server);
	false_server_start_at(&server, socket_listen(&port), answer_script, NULL);
	server.port = port;
	map_begin(1);
	map_add(16000, 16000, elsewhere);
	send_map(FOR_EVER);
	assert_ok(redis, cancel_task(redis, "a"));
	assert_int_equal(port_of(redis, 16000), elsewhere);
}

/* Opens with a map in which only the key's slot is elsewhere. */
static struct tw_redis *open_with_elsewhere(const char *key)
{
	struct tw_redis *redis;
	int slot;

	map_begin(1);
	map_add(0, SLOTS - 1, server.port);
	send_map(FOR_EVER);
	redis = client_open(&options);
	slot = slot_of(redis, key);
	client_close(redis);
	map_begin(3);
	map_add(0, slot - 1, server.port);
	map_add(slot, slot, elsewhere);
	map_add(slot + 1, SLOTS - 1, server.port);
	send_map(FOR_EVER);
	return client_open(&options);
}

/* Another node refuses, not the call's own: some other node may still send the map. */
TEST(opened, refusal_of_a_node_that_could_send_the_map_ends_no_call)
{
	struct tw_redis_error error;
	struct tw_redis *redis;

	options.password = "p";
	redis = open_with_elsewhere("b");
	assert_int_not_equal(slot_of(redis, "break"), slot_of(redis, "b"));
	/* This is long enough that its node is not tried again at once. */
	set_patience(redis, 400 * TW_MILLISECOND);
	assert_int_equal(cancel_task(redis, "b"), TW_REDIS_UNREACHABLE);
	set_patience(redis, -1);
	assert_int_equal(cancel_task(redis, "break"), TW_REDIS_OUTCOME_UNKNOWN);
	false_server_refuse(&server, "AUTH", "-WRONGPASS invalid username-password pair", FOR_EVER);
	assert_int_equal(cancel_task(redis, "b"), TW_REDIS_UNREACHABLE);
	tw_redis_last_error(redis, &error);
	assert_non_null(strstr(error.text, "WRONGPASS"));
	/* A change at that node is refused. */
	assert_int_equal(cancel_task(redis, "break"), TW_REDIS_REFUSED);
	set_patience(redis, 0);
}

/* The first of the four shards' commands of a pass is refused by a replica. The replies to the
 * others come after several passes have ended. */
static size_t answer_as_a_replica(void *context, const redisReply *request, char *reply,
				  size_t room)
{
	/* relaxed: a count */
	switch (atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed)) {
	case 0:
		return (size_t)snprintf(reply, room, "-READONLY a replica\r\n");
	case 1:
		wait_for(100 * TW_MILLISECOND);
		break;
	default:
		break;
	}
	return (size_t)snprintf(reply, room, ":0\r\n");
}

TEST(opened, replies_that_a_former_master_owes_are_waited_for)
{
	struct tw_redis *redis;

	/* There are two nodes, so passes end before all replies have come. */
	map_begin(2);
	map_add(0, 0, elsewhere);
	map_add(1, SLOTS - 1, server.port);
	send_map(FOR_EVER);
	redis = client_open(&options);
	answer = answer_as_a_replica;
	/* relaxed: no call runs */
	atomic_store_explicit(&asked, 0, memory_order_relaxed);
	assert_ok(redis, tw_redis_drop_namespace(redis, true));
	/* relaxed: all has been answered */
	assert_int_equal(atomic_load_explicit(&asked, memory_order_relaxed), SHARDS + 2);
}

TEST(opened, cluster_has_no_databases)
{
	struct tw_redis_error error;
	struct tw_redis *redis;
	char url[80];

	map_begin(1);
	map_add(0, SLOTS - 1, server.port);
	send_map(FOR_EVER);
	snprintf(url, sizeof(url), "%s/1", server.url);
	options.url = url;
	assert_int_equal(tw_redis_open(&redis, &options, &error), TW_INVALID);
	assert_non_null(strstr(error.text, "database"));
}
