/* SPDX-License-Identifier: MIT */
/* Redis is down, restarts, or refuses, or its replies get lost; test_errors.c has each error of
 * each call, and the torture kills servers and workers in mid-run. */
#include "support/fixture.h"

#include "support/proxy.h"
#include "support/runs.h"
#include "support/talk.h"

TALK(call_waits_for_a_server_that_comes_back,
     "open patience {20s|ever}; cancel a; down; begin a; sleep 100ms; up; ended; asked = 1")

/* Pauses double, so the last try may come after half of it. The default is 5 s, more than this
 * takes on a busy machine. */
TALK(call_gives_up_after_its_patience,
     "open patience 400ms; down; add a = UNREACHABLE Connection refused; took 200ms-5s")

/* The worker continues where it is refused, and where the server has become unfit. */
TALK(worker_reports_refusals_and_an_unfit_server,
     "open; give k; work poll 10ms; await done 1; on script -NOPERM no; await lost 1;"
     "on script usual; await found 1; on INFO info maxmemory_policy:allkeys-lru;"
     "once script close; await lost 2; sleep 100ms; found = 1; on INFO usual; await found 2;"
     "give k; await done 2")

TALK(changed_reason_is_reported_again,
     "open password p; work poll 10ms; on AUTH -WRONGPASS no; once script close;"
     "reason = WRONGPASS; on script -NOPERM no; on AUTH +OK; reason = NOPERM; lost = 1;"
     "found = 0; on script usual; await found 1; notices = 0")

/* Redis stays away, and the stop ends nevertheless. */
TALK(stop_ends_while_redis_is_away,
     "open; on gate shut; give k; work until gate; await runs 1; on script close;"
     "on CLIENT close; off gate; stop; end k = UNCONFIRMED")

/* The server truncates replies of two bodies; each task may begin only once, and does. */
TEST(talk, claims_whose_replies_are_cut_off_use_up_no_attempt)
{
	enum { LARGE = 20 };
	static char body[TW_REDIS_BODY_MAX];
	struct tw_redis_worker *worker;
	struct redis_server server;
	struct tw_redis *redis;
	char key[KEY_SIZE];

	redis_server_start(&server, NULL);
	redis = client_open(&(struct tw_redis_options){.url = server.url, .shards = 4});
	memset(body, 'x', sizeof(body));
	for (int i = 0; i < LARGE; i++) {
		struct tw_redis_task task = {
			.key = key, .body = body, .body_size = sizeof(body), .max_attempts = 1};

		number_key(key, i);
		task.key_size = strlen(key);
		add_one(redis, &task);
	}
	redis_server_number(&server, "CONFIG SET client-output-buffer-limit %s",
			    "normal 400000 0 0");
	worker = WORK_AT(&(struct tw_redis_options){.url = server.url}, .lease = TW_SECOND);
	WAIT_UNTIL(ends_count() == LARGE);
	worker_stop(worker);
	assert_true(runs_lost() > 0);
	assert_each_ran(LARGE, 1);
	assert_int_equal(stats_of(redis).tasks, 0);
	assert_int_equal(stats_of(redis).dead, 0);
	client_close(redis);
	redis_server_stop(&server);
}

/* After the break a turn still claims from all shards. */
TEST(talk, claims_lost_in_one_break_make_a_turn_smaller_once)
{
	enum { SHARDS = 16 };
	struct tw_redis_worker *worker;
	struct redis_server server;
	struct proxy proxy;

	redis_server_start(&server, NULL);
	proxy_start(&proxy, server.port);
	client_close(client_open(&(struct tw_redis_options){.url = server.url, .shards = SHARDS}));
	proxy_lose_reply(&proxy, "/15}leases");
	worker = WORK_AT(&(struct tw_redis_options){.url = proxy.url}, .poll = 10 * TW_SECOND);
	WAIT_UNTIL(worker_stats(worker).claims >= SHARDS);
	assert_int_equal(proxy_lost(&proxy), 1);
	assert_true(worker_stats(worker).round_trips < SHARDS / 2);
	worker_stop(worker);
	proxy_stop(&proxy);
	redis_server_stop(&server);
}

TALK_FILE
