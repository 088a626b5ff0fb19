/* SPDX-License-Identifier: MIT */
/*
 * This tests the list of groups: it is exact for few groups, and finds the large ones of many at a
 * bounded cost. Large namespaces are written into Redis directly, as the scripts would have written
 * them.
 */
#include "support/fixture.h"

enum { ROOM = TW_REDIS_GROUPS_MAX, SHARDS = 64 };

static size_t list(struct tw_redis *redis, struct tw_redis_group_stats groups[ROOM])
{
	size_t count = 0;

	assert_ok(redis, tw_redis_get_groups(redis, groups, ROOM, &count));
	return count;
}

static void assert_group(const struct tw_redis_group_stats *group, const char *name,
			 uint64_t waiting, uint64_t running, int64_t oldest_ms)
{
	assert_string_equal(group->name, name);
	assert_int_equal(group->waiting, waiting);
	assert_int_equal(group->running, running);
	assert_int_equal(group->oldest_ms, oldest_ms);
}

STORED(fixture, numbers_of_few_groups_are_exact)
{
	struct tw_redis_group_stats groups[ROOM];
	int64_t flood;
	int64_t medium;
	int64_t small;
	int64_t same[2];

	assert_int_equal(list(fixture->redis, groups), 0);
	add_to_group(fixture->redis, NULL, 50, TW_HOUR, TW_SECOND);
	assert_int_equal(list(fixture->redis, groups), 0);
	flood = add_to_group(fixture->redis, "flood", 300, TW_HOUR, TW_SECOND);
	medium = add_to_group(fixture->redis, "c/d", 40, TW_MINUTE, TW_SECOND);
	same[0] = add_to_group(fixture->redis, "a", 7, 2 * TW_HOUR, TW_SECOND);
	same[1] = add_to_group(fixture->redis, "b", 7, TW_HOUR, TW_SECOND);
	small = add_to_group(fixture->redis, "c", 6, TW_HOUR, TW_SECOND);
	add_to_group(fixture->redis, "gone", 1, TW_HOUR, TW_SECOND);
	assert_ok(fixture->redis, cancel_task(fixture->redis, "gone-0"));
	assert_int_equal(list(fixture->redis, groups), 5);
	assert_group(&groups[0], "flood", 300, 0, flood);
	assert_group(&groups[1], "c/d", 40, 0, medium);
	assert_group(&groups[2], "a", 7, 0, same[0]);
	assert_group(&groups[3], "b", 7, 0, same[1]);
	assert_group(&groups[4], "c", 6, 0, small);
}

STORED(one_shard, small_groups_are_found_beside_a_flood)
{
	static const char *const names[] = {"a", "t", "t/a", "z"};
	enum { SMALL = sizeof(names) / sizeof(names[0]) };
	struct tw_redis_group_stats groups[ROOM];
	int64_t first[SMALL];

	/* Few of the sampled places belong to other groups. */
	add_to_group(fixture->redis, "flood", 5000, TW_HOUR, TW_SECOND);
	for (int i = 0; i < SMALL; i++)
		first[i] = add_to_group(fixture->redis, names[i], 1, 2 * TW_HOUR, TW_SECOND);
	assert_int_equal(list(fixture->redis, groups), 1 + SMALL);
	assert_int_equal(groups[0].waiting, 5000);
	for (int i = 0; i < SMALL; i++)
		assert_group(&groups[1 + i], names[i], 1, 0, first[i]);
}

/* Claims up to `limit` tasks of each shard. */
static void claim_all(struct tw_redis *redis, size_t limit)
{
	for (unsigned i = 0; i < tw_redis_shard_count(redis); i++) {
		struct tw_redis_batch *batch;

		assert_ok(redis, tw_redis_claim(redis, i, limit, TW_HOUR, &batch, NULL));
		claim_end(batch);
	}
}

STORED(fixture, tasks_on_lease_are_running)
{
	struct tw_redis_group_stats groups[ROOM];
	int64_t waits;

	add_to_group(fixture->redis, "a", 1, 0, TW_SECOND);
	claim_all(fixture->redis, 100);
	add_to_group(fixture->redis, "b", 1, 0, TW_SECOND);
	add_to_group(fixture->redis, NULL, 1, 0, TW_SECOND);
	claim_all(fixture->redis, 100);
	waits = add_to_group(fixture->redis, "wait", 2, TW_HOUR, TW_SECOND);
	add_to_group(fixture->redis, NULL, 20, TW_MINUTE, TW_SECOND);
	assert_int_equal(list(fixture->redis, groups), 3);
	assert_group(&groups[0], "wait", 2, 0, waits);
	assert_group(&groups[1], "a", 0, 1, 0);
	assert_group(&groups[2], "b", 0, 1, 0);
	redis_server_set_due(&fixture->server, fixture->redis, fixture->name_space, "a-0", -1);
	assert_int_equal(list(fixture->redis, groups), 2);
	assert_group(&groups[1], "b", 0, 1, 0);
}

STORED(fixture, rows_end_with_the_room)
{
	struct tw_redis_group_stats groups[ROOM + 1] = {0};
	size_t count = 7;

	for (int i = 0; i < ROOM + 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "g%03d", i);
		add_to_group(fixture->redis, name, i == 5 ? 3 : 1, TW_HOUR, TW_SECOND);
	}
	assert_ok(fixture->redis, tw_redis_get_groups(fixture->redis, NULL, 0, &count));
	assert_int_equal(count, 0);
	assert_ok(fixture->redis, tw_redis_get_groups(fixture->redis, groups, 2, &count));
	assert_int_equal(count, 2);
	assert_string_equal(groups[0].name, "g005");
	assert_string_equal(groups[2].name, "");
	assert_ok(fixture->redis, tw_redis_get_groups(fixture->redis, groups, ROOM + 1, &count));
	assert_int_equal(count, ROOM);
	assert_string_equal(groups[ROOM].name, "");
}

STORED(fixture, bad_arguments_are_refused)
{
	struct tw_redis_group_stats group;
	size_t count;

	assert_int_equal(tw_redis_get_groups(fixture->redis, NULL, 1, &count), TW_INVALID);
	assert_int_equal(tw_redis_get_groups(fixture->redis, &group, 1, NULL), TW_INVALID);
}

/* ---- Many groups ---- */

/* Runs a script of the test with the tag of shard 0 and two numbers. */
static void write_by(struct fixture *fixture, const char *script, int first, int second)
{
	redis_server_number(&fixture->server, "EVAL %s 1 {tw/%s/0} %d %d", script,
			    fixture->name_space, first, second);
}

/* Writes groups "000001" and so on with a task each, and then more tasks of one of them. */
static const char many_groups[] =
	"local tag, groups, more = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])\n"
	"local function put(name, number)\n"
	"	local place = name .. '\\0' .. string.format('%015d', number) .. number\n"
	"	redis.call('ZADD', tag .. 'queue', 0, place)\n"
	"	redis.call('ZADD', tag .. 'due', string.format('%.0f', 4e15 + number), number)\n"
	"	redis.call('ZADD', tag .. 'turns', number * 1000, name)\n"
	"end\n"
	"for i = 1, groups do put(string.format('%06d', i), i) end\n"
	"for i = 1, more do put('050000', groups + i) end\n"
	"return 1";

/* Returns how many commands the server has run since the last call. */
static int64_t commands_run(struct fixture *fixture)
{
	redisReply *reply = redis_server_ask(&fixture->server, "INFO commandstats");
	int64_t calls = 0;

	for (const char *at = reply->str; (at = strstr(at, ":calls=")); at++)
		calls += atoll(at + strlen(":calls="));
	freeReplyObject(reply);
	redis_server_number(&fixture->server, "CONFIG RESETSTAT");
	return calls;
}

STORED(one_shard, large_group_among_100000_is_found_at_a_bounded_cost)
{
	enum { LOOKS = 256, GROUPS = 100000, MORE = 2 * GROUPS / (LOOKS - 4) };
	struct tw_redis_group_stats groups[ROOM];

	/* Two of the sampled places belong to the group, wherever they are. */
	write_by(fixture, many_groups, GROUPS, MORE);
	commands_run(fixture);
	assert_int_equal(list(fixture->redis, groups), ROOM);
	/* Each look reads a place and has a turn, and each of these groups takes two commands. */
	assert_in_range(commands_run(fixture), LOOKS, 5 * LOOKS + 30);
	assert_group(&groups[0], "050000", MORE + 1, 0, 50000);
	assert_int_equal(groups[1].waiting, 1);
}

/* Writes groups "001" and so on with a task each, but groups 500 and 532 with 20. */
static const char two_larger_groups[] =
	"local tag = string.match(KEYS[1], '^(.*/)') .. ARGV[1] .. '}'\n"
	"redis.call('ZADD', tag .. 'turns', 0, '')\n"
	"for i = 1, 1000 do\n"
	"	for k = 1, (i == 500 or i == 532) and 20 or 1 do\n"
	"		redis.call('ZADD', tag .. 'queue', 0,\n"
	"			string.format('%03d', i) .. '\\0' .. string.format('%015d', k))\n"
	"	end\n"
	"end\n"
	"return 1";

/* Opens a namespace of 64 shards, each written by the script. A shard looks at 16 places. */
static void open_shards(struct fixture *fixture, const char *script)
{
	fixture->options.shards = SHARDS;
	fixture->options.name_space = "shards";
	client_close(fixture->redis);
	assert_int_equal(tw_redis_open(&fixture->redis, &fixture->options, NULL), TW_OK);
	snprintf(fixture->name_space, sizeof(fixture->name_space), "shards");
	for (int i = 0; i < SHARDS; i++)
		write_by(fixture, script, i, 0);
}

/* The groups have a fiftieth of the tasks of each shard, at the same place in each. */
STORED(fixture, shards_look_at_different_places)
{
	struct tw_redis_group_stats groups[ROOM];

	open_shards(fixture, two_larger_groups);
	assert_int_equal(list(fixture->redis, groups), ROOM);
	assert_group(&groups[0], "500", 20 * SHARDS, 0, 1);
	assert_group(&groups[1], "532", 20 * SHARDS, 0, 1);
}

/* Writes groups "01" to "13" with 12 tasks each, and 15 with 9 whose turns are earlier. */
static const char early_smaller_groups[] =
	"local tag = string.match(KEYS[1], '^(.*/)') .. ARGV[1] .. '}'\n"
	"for i = 1, 28 do\n"
	"	redis.call('ZADD', tag .. 'turns', i > 13 and 1 or 2, string.format('%02d', i))\n"
	"	for k = 1, i > 13 and 9 or 12 do\n"
	"		redis.call('ZADD', tag .. 'queue', 0,\n"
	"			string.format('%02d', i) .. '\\0' .. string.format('%015d', k))\n"
	"	end\n"
	"end\n"
	"return 1";

/* All shards find the smaller groups, and only some of them each larger one. */
STORED(fixture, largest_groups_are_chosen_by_the_counts_of_all_shards)
{
	struct tw_redis_group_stats groups[10];
	size_t count;

	open_shards(fixture, early_smaller_groups);
	assert_ok(fixture->redis, tw_redis_get_groups(fixture->redis, groups, 10, &count));
	assert_int_equal(count, 10);
	assert_int_equal(groups[9].waiting, 12 * SHARDS);
}

/* Writes tasks on lease, three of "a" to each of "b". */
static const char many_leases[] =
	"local tag, count = KEYS[1], tonumber(ARGV[1])\n"
	"local now = redis.call('TIME')[1] * 1000\n"
	"redis.call('ZADD', tag .. 'turns', 0, '')\n"
	"for i = 1, count do\n"
	"	local batch = {{tostring(i)}, {}, {i % 4 == 0 and 'b' or 'a'}}\n"
	"	local lease_end = now + 600000 + i * 7919 % 1000\n"
	"	redis.call('ZADD', tag .. 'leases', string.format('%.0f', lease_end), i)\n"
	"	redis.call('HSET', tag .. 'state', 's' .. i, '1',\n"
	"		'k' .. i, 'w 1\\n' .. cmsgpack.pack(batch))\n"
	"end\n"
	"return 1";

STORED(one_shard, number_of_many_tasks_on_lease_is_scaled_up)
{
	struct tw_redis_group_stats groups[ROOM];

	write_by(fixture, many_leases, 4000, 0);
	assert_int_equal(list(fixture->redis, groups), 2);
	assert_string_equal(groups[0].name, "a");
	assert_in_range(groups[0].running, 2700, 3300);
	assert_in_range(groups[0].running + groups[1].running, 3999, 4001);
}

FIXTURE_FILE
