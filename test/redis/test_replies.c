/* SPDX-License-Identifier: MIT */
/*
 * No Redis would send these replies. Each call ends with a clear error, and none crashes, hangs or
 * reports success. Every call gets hand-picked replies first, then random ones.
 */
#include "support/fixture.h"

#include "redis/wire/script.h"
#include "redis/wire/shape.h"
#include "support/calls.h"
#include "support/false_server.h"
#include "support/runs.h"

enum { REPLY_SIZE = 40000 };

static struct false_server server;
static struct tw_redis *redis;

static void set_reply(const char *reply)
{
	false_server_set(&server, "script", reply, FALSE_ALWAYS);
}

static struct tw_redis *open_with(tw_duration reply_timeout)
{
	return client_open(&(struct tw_redis_options){
		.url = server.url, .shards = 4, .patience = -1, .reply_timeout = reply_timeout});
}

static int open_all(void **state)
{
	*state = NULL;
	false_server_start(&server);
	redis = open_with(0);
	return 0;
}

static int close_all(void **state)
{
	client_close(redis);
	false_server_stop(&server);
	return 0;
}

/* No script would send these: the last ones are unknown to the protocol, or incomplete. */
static const char *const wrong[] = {
	"$-1\r\n",
	"*-1\r\n",
	"+OK\r\n",
	"$0\r\n\r\n",
	"$2\r\noo\r\n",
	":-4\r\n",
	"*1\r\n$-1\r\n",
	"*1\r\n*0\r\n",
	"*1\r\n-ERR inside\r\n",
	"*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n$-1\r\n",
	"*10\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
	"-\r\n",
	"-ERR x\r\n",
	"?\r\n",
	"*2147483647\r\n",
	"$-7\r\n",
	"$99999999999\r\n",
	"$5\r\nabc",
	":12a\r\n",
	"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
};

TEST(once, every_call_reports_a_wrong_reply)
{
	/* Some of these replies have no end. */
	struct tw_redis *hasty = open_with(300 * TW_MILLISECOND);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		set_reply(wrong[i]);
		for (size_t k = 0; k < redis_call_count; k++) {
			struct tw_redis_error error = {0};
			enum tw_status status = redis_calls[k].call(hasty);

			tw_redis_last_error(hasty, &error);
			if (status == TW_OK || status == TW_NOT_FOUND || status == TW_EXISTS ||
			    status == TW_RUNNING || !*error.text)
				fail_msg("%s of %s: %s: %s", redis_calls[k].name, wrong[i],
					 tw_status_name(status), error.text);
		}
	}
}

TEST(once, every_call_takes_a_reply_of_its_script)
{
	for (size_t k = 0; k < redis_call_count; k++) {
		const struct redis_call *call = &redis_calls[k];

		if (!call->fine)
			continue;
		set_reply(call->fine);
		assert_ok(redis, call->call(redis));
	}
}

TEST(once, every_call_refuses_no_handle)
{
	for (size_t k = 0; k < redis_call_count; k++)
		assert_int_equal(redis_calls[k].call(NULL), TW_INVALID);
}

TEST(once, reply_fits_its_shape_alone)
{
	static const struct {
		const char *reply;
		const char *fits[3]; /* no other one of the shapes below does */
	} cases[] = {
		{":7\r\n", {"i", "n"}},
		{":-7\r\n", {"i"}},
		{"$2\r\n17\r\n", {"s", "d"}},
		{"$19\r\n1234567890123456789\r\n", {"s"}},
		{"$0\r\n\r\n", {"s"}},
		{"$2\r\nog\r\n", {"s", "a"}},
		{"$3\r\nogs\r\n", {"s"}},
		{"$-1\r\n", {NULL}},
		{"+OK\r\n", {NULL}},
		{"*0\r\n", {NULL}},
		{"*2\r\n:1\r\n:2\r\n", {"[*i]"}},
		{"*3\r\n:1\r\n:2\r\n:3\r\n", {NULL}},
		{"*1\r\n:1\r\n", {NULL}},
		{"*2\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n", {"[i[*si]]"}},
		{"*2\r\n:1\r\n*1\r\n$1\r\na\r\n", {NULL}},
		{"*3\r\n:1\r\n*0\r\n:1\r\n", {NULL}},
		{"*2\r\n:1\r\n*-1\r\n", {NULL}},
	};
	static const char *const shapes[] = {"i", "n", "s", "d", "a", "[*s]", "[*i]", "[i[*si]]"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		redisReader *reader = redisReaderCreate();
		void *read = NULL;

		redisReaderFeed(reader, cases[i].reply, strlen(cases[i].reply));
		assert_int_equal(redisReaderGetReply(reader, &read), REDIS_OK);
		assert_non_null(read);
		for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
			bool fits = false;

			for (size_t at = 0; at < 3 && cases[i].fits[at]; at++)
				fits |= !strcmp(cases[i].fits[at], shapes[k]);
			if (shape_fits(shapes[k], *shapes[k] == '[' && k == 7 ? 0 : 2, read) !=
			    fits)
				fail_msg("%s and %s", cases[i].reply, shapes[k]);
		}
		freeReplyObject(read);
		redisReaderFree(reader);
	}
}

/* Appends a random reply. */
static size_t random_reply(struct random *random, char *text, size_t room, int depth)
{
	static const char *const parts[] = {":0\r\n",
					    ":1\r\n",
					    ":-1\r\n",
					    ":1700000000000\r\n",
					    ":9223372036854775807\r\n",
					    ":-9223372036854775808\r\n",
					    "$-1\r\n",
					    "$0\r\n\r\n",
					    "$1\r\no\r\n",
					    "$1\r\n0\r\n",
					    "$3\r\ninf\r\n",
					    "$4\r\n-inf\r\n",
					    "$6\r\n1e+300\r\n",
					    "$3\r\n3:9\r\n",
					    "$5\r\n8 0\n\n\r\n",
					    "$11\r\n8 0\nPOST 1\n\r\n",
					    "$20\r\n8 0\nPOST http://h/\n\n\r\n",
					    "$16\r\n1700000000000000\r\n",
					    "+OK\r\n",
					    "-ERR no\r\n",
					    "$8\r\n1:2:3:ab\r\n",
					    "$7\r\n1:2:1:a\r\n"};
	size_t size;
	size_t elements;

	if (depth == 3 || (depth && random_below(random, 4)))
		return (size_t)snprintf(
			text, room, "%s",
			parts[random_below(random, sizeof(parts) / sizeof(parts[0]))]);
	elements = random_below(random, 10);
	size = (size_t)snprintf(text, room, "*%zu\r\n", elements);
	for (size_t i = 0; i < elements; i++)
		size += random_reply(random, text + size, room - size, depth + 1);
	return size;
}

static size_t random_part(struct random *random, char kind, char *text, size_t room)
{
	static const char *const numbers[] = {"0",
					      "1",
					      "7",
					      "1700000000000",
					      "9007199254740993",
					      "9223372036854775807",
					      "-1",
					      "-9223372036854775808"};
	static const char *const strings[] = {"",
					      "k",
					      "3:9",
					      "4",
					      "inf",
					      "-inf",
					      "1e300",
					      "-1e300",
					      "nan",
					      "7 8 0\n\n",
					      "7 1 0\n\nx",
					      "7 8 0\n",
					      "1:2:1:a",
					      "1:2:9:a",
					      "0",
					      "1 0 one cron UTC @daily",
					      "60000 9007199254740993 all 1"};
	static const char *const digits[] = {"0", "1", "1700000000000000", "999999999999999999"};
	const char *string;

	switch (kind) {
	case 'i':
		return (size_t)snprintf(text, room, ":%s\r\n", numbers[random_below(random, 8)]);
	case 'n':
		return (size_t)snprintf(text, room, ":%s\r\n", numbers[random_below(random, 6)]);
	case 'd':
		string = digits[random_below(random, 4)];
		break;
	case 'a':
		string = &"gso"[random_below(random, 3)];
		return (size_t)snprintf(text, room, "$1\r\n%c\r\n", *string);
	default:
		string = strings[random_below(random, 17)];
	}
	return (size_t)snprintf(text, room, "$%zu\r\n%s\r\n", strlen(string), string);
}

/* Appends a reply that fits the shape, or nearly. Moves *shape behind it. */
static size_t random_fitting(struct random *random, const char **shape, uint64_t most_rounds,
			     char *text, size_t room)
{
	const char *round = NULL;
	size_t elements = 0;
	size_t size = 0;
	/* Arrays that belong together have the same size in most cases. */
	uint64_t rounds = random_once_in(random, 8) ? random_below(random, 4) : most_rounds;
	char parts[4096];

	if (**shape != '[') {
		char kind = *(*shape)++;

		return random_once_in(random, 20) ? random_reply(random, text, room, 2)
						  : random_part(random, kind, text, room);
	}
	for (++*shape; **shape != ']' || (round && rounds); elements++) {
		if (**shape == '*')
			round = ++*shape;
		if (**shape == ']') {
			*shape = round;
			rounds--;
		}
		if (round && !rounds) {
			*shape = round + strspn(round, "sindag");
			elements--;
			continue;
		}
		size += random_fitting(random, shape, most_rounds, parts + size,
				       sizeof(parts) - size);
	}
	++*shape;
	return (size_t)snprintf(text, room, "*%zu\r\n%.*s", elements, (int)size, parts);
}

/* Sets a reply that fits some script, or sometimes none. */
static void set_random_reply(struct random *random, const struct script *script)
{
	char text[REPLY_SIZE];
	const char *shape = script->shape;

	if (random_once_in(random, 8))
		random_reply(random, text, sizeof(text), 0);
	else
		random_fitting(random, &shape, random_below(random, 4), text, sizeof(text));
	set_reply(text);
}

TEST(once, random_replies_crash_nothing)
{
	enum { ROUNDS = TEST_SHARE_OF(4000) };
	static const struct script *const scripts[] = {
		&script_add,    &script_add,    &script_list,        &script_list,
		&script_cancel, &script_add,    &script_list,        &script_list,
		&script_scan,   &script_count,  &script_add,         &script_dead_drop,
		&script_limit,  &script_rule,   &script_delete,      &script_add,
		&script_add,    &script_claim,  &script_finish,      &script_extend,
		&script_finish, &script_finish, &script_workers,     &script_limit,
		&script_rule,   &script_rule,   &script_group_drain, &script_groups};
	struct random random = random_from(seed_choose(), 0);
	size_t fine = 0;

	for (int i = 0; i < ROUNDS; i++) {
		size_t call = random_below(&random, redis_call_count);

		set_random_reply(&random, scripts[call]);
		fine += redis_calls[call].call(redis) == TW_OK;
	}
	/* Some replies were valid. */
	assert_in_range(fine, 1, ROUNDS - 1);
}

TEST(once, worker_outlives_random_replies)
{
	enum { ROUNDS = TEST_SHARE_OF(400) };
	const struct tw_redis_options redis_options = {
		.url = server.url, .shards = 4, .reply_timeout = 20 * TW_MILLISECOND};
	struct tw_redis_worker_options options = {
		.lease = 100 * TW_MILLISECOND, .poll = 10 * TW_MILLISECOND, .dead_max_count = 4};
	static const struct script *const scripts[] = {&script_claim, &script_finish};
	struct random random = random_from(seed_choose(), 1);
	static const char idle[] = "*6\r\n$1\r\n1\r\n:-1\r\n:0\r\n*0\r\n*0\r\n*0\r\n";
	struct tw_redis_worker_stats before;
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker *worker;
	int tries = 0;

	runs_attach(&options);
	/* A busy machine may not reply in that time. */
	WAIT_UNTIL(tw_redis_worker_start(&worker, &redis_options, &options, NULL) == TW_OK);
	for (int i = 0; i < ROUNDS; i++) {
		set_random_reply(&random, scripts[random_below(&random, 2)]);
		wait_for(5 * TW_MILLISECOND);
	}
	/* The worker continues. */
	before = worker_stats(worker);
	do {
		assert_in_range(++tries, 1, 100);
		set_reply(idle);
		wait_for(150 * TW_MILLISECOND);
		stats = worker_stats(worker);
	} while (stats.claims == before.claims);
	assert_int_equal(tw_redis_worker_stop(worker, 0), TW_OK);
	worker_destroy(worker);
}

TEST_FILE(open_all, close_all)
