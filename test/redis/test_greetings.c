/* SPDX-License-Identifier: MIT */
/*
 * A server refuses a call's new connection, or a call, or sends it elsewhere. Calls retry temporary
 * errors and return the others (test_errors.c has each error of a call). Other answers of a server
 * or a Sentinel to a greeting are judged. Each is a false one.
 */
#include "support/talk.h"

#include "redis/client/client.h"

TALK(server_that_is_not_ready_is_connected_to_again,
     "open password p; cancel break = OUTCOME_UNKNOWN;"
     "2x {AUTH|CLIENT|INFO} {-BUSY Redis is busy running a script."
     "|-LOADING Redis is loading the dataset in memory|-MASTERDOWN Link with MASTER is down"
     "|-TRYAGAIN not now|-ERR max number of clients reached}; cancel a")

TALK(error_of_a_server_that_stays_unready_is_reported,
     "open; cancel break = OUTCOME_UNKNOWN; on INFO -BUSY Redis is busy running a script.;"
     "patience 50ms; cancel a = UNREACHABLE BUSY Redis is busy running a script.")

TALK(opening_tries_once_and_reports_it_too,
     "once {INFO|layout} -BUSY Redis is busy; open = UNREACHABLE BUSY Redis is busy; open")

TALK(layout_of_another_kind_is_reported,
     "once layout 'x'; open = UNFIT can't be read;"
     "once layout '5'; open = UNFIT can't be read;"
     "once layout '5 0'; open = UNFIT can't be read;"
     "once layout '5 1000000'; open = UNFIT can't be read;"
     "once layout '4 4';"
     "open = UNFIT has layout 4, expected 5: move its tasks by `twr list --json` of;"
     "once layout '5 5'; open = UNFIT has 5 shards, expected 4")

/* These are more than one command for each shard takes. */
TEST(talk, tasks_that_do_not_reach_the_server_have_the_status_each)
{
	enum { COUNT = 600 };
	static struct tw_redis_task tasks[COUNT];
	static struct tw_redis_added each[COUNT];

	for (int i = 0; i < COUNT; i++)
		tasks[i] = (struct tw_redis_task){.key = "k", .key_size = 1};
	/* One of them is invalid, and so is one of the last. */
	tasks[1].key_size = tasks[COUNT - 1].key_size = 0;
	SAY("open; cancel break = OUTCOME_UNKNOWN; on INFO -BUSY not now; patience 50ms");
	assert_int_equal(tw_redis_add(talk_client(), tasks, COUNT, each), TW_REDIS_UNREACHABLE);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(each[i].status, i == 1 ? TW_INVALID : TW_REDIS_UNREACHABLE);
}

TALK(refused_login_ends_the_call,
     "open password p; cancel break = OUTCOME_UNKNOWN;"
     "on AUTH -WRONGPASS invalid username-password pair;"
     "cancel a = REFUSED WRONGPASS invalid username-password pair;"
     /* The second time it is not asked, for the refusal is recent. All shards get it. */
     "patience 1ns; drop = REFUSED WRONGPASS invalid username-password pair")

TALK(server_is_judged_by_its_info,
     "once INFO info redis_version:7.0.15 maxmemory_policy:noeviction; open;"
     /* Only the policy is checked if other fields are missing. */
     "once INFO info maxmemory_policy:noeviction; open;"
     "once INFO info; open = UNFIT eviction policy;"
     "once INFO info redis_version:4.0.14 maxmemory_policy:noeviction; open = UNFIT Redis 5;"
     "once INFO info maxmemory_policy:allkeys-lru; open = UNFIT allkeys-lru may;"
     "once INFO info maxmemory_policy:allkeys-random; open = UNFIT allkeys-random may;"
     "once INFO info maxmemory_policy:volatile-lru; open;"
     "once INFO info redis_mode:sentinel; open = UNFIT is a Sentinel;"
     /* Valkey reports it so. */
     "once INFO info redis_version:7.2.4 server_mode:sentinel; open = UNFIT is a Sentinel;"
     /* These names only end like the expected ones. */
     "once INFO info no_maxmemory_policy:noeviction; open = UNFIT eviction policy;"
     "once INFO info no_maxmemory_policy:allkeys-lru maxmemory_policy:noeviction; open")

TALK(unexpected_answer_to_a_greeting_is_reported,
     "once INFO +OK; open = UNFIT eviction policy;"
     "once INFO -NOPERM no permissions; open = UNFIT NOPERM;"
     "once INFO -NOAUTH Authentication required.; open = REFUSED NOAUTH;"
     "once INFO ?; open = UNREACHABLE Protocol error;"
     "once AUTH ?; open password p = UNREACHABLE Protocol error;"
     "once AUTH -ERR AUTH called without any password configured;"
     "open password p = REFUSED without any password;"
     /* A client name is optional. */
     "once CLIENT -NOPERM no permissions; open;"
     "once SELECT -ERR DB index is out of range; open at /9999 = INVALID no such database")

TALK(server_without_scripts_is_unfit,
     "once layout {-ERR unknown command 'EVAL', with args|-ERR unknown command `EVAL`, with args"
     "|-ERR Could not find scripting engine 'lua'};"
     "open = UNFIT the server does not run scripts (EVAL): ;"
     /* Another server at the address may lack them, too. */
     "open; once EVAL -ERR unknown command 'EVAL';"
     "cancel a = UNFIT does not run scripts (EVAL): ERR unknown command")

/* No client asks for RESP3, so its messages are not from a usable Redis. */
#define PUSH ">2\r\n$10\r\ninvalidate\r\n*0\r\n"

TALK(message_of_resp3_is_taken_for_no_reply,
     "once {layout " PUSH "$3\r\n5 4"
     "|INFO " PUSH "$28\r\nmaxmemory_policy:noeviction\r\n|CLIENT " PUSH "+OK};"
     "open = UNREACHABLE Protocol error;"
     /* The call's reply is lost with the connection, and the next call gets its own. */
     "open; once EVAL " PUSH ":-2; cancel a = OUTCOME_UNKNOWN Protocol error; cancel a")

TALK(greeting_that_takes_too_long_is_given_up,
     "on INFO silence; open reply 20ms = UNREACHABLE the reply timed out")

#define BY_ONE "open at redis+sentinel://127.0.0.1:$a/main"

TALK(sentinel_must_give_an_address,
     "once SENTINEL nil; " BY_ONE " = UNFIT no master named main;"
     "once SENTINEL none; " BY_ONE " = UNFIT no master named main;"
     "once SENTINEL []; " BY_ONE " = UNFIT no address;"
     "once SENTINEL ['127.0.0.1']; " BY_ONE " = UNFIT no address;"
     "once SENTINEL [127 '6379']; " BY_ONE " = UNFIT no address;"
     "once SENTINEL ['127.0.0.1' 6379]; " BY_ONE " = UNFIT no address;"
     "once SENTINEL -ERR unknown command; " BY_ONE " = UNFIT unknown command;"
     "once SENTINEL -NOAUTH Authentication required.; " BY_ONE " = REFUSED NOAUTH;"
     "once SENTINEL -LOADING not yet; " BY_ONE " = UNREACHABLE LOADING;"
     "once SENTINEL ?; " BY_ONE " = UNREACHABLE Protocol error;"
     "once SENTINEL ['127.0.0.1' '$a']; " BY_ONE)

TALK(sentinel_must_give_a_port,
     "once SENTINEL ['127.0.0.1' '{|x|0|-1|65536|4294967295}']; " BY_ONE " = UNFIT no address")

TEST(talk, sentinel_must_give_a_host_of_at_most_255_bytes)
{
	SAY("once SENTINEL ['%0*d' '6379']; " BY_ONE " = UNFIT no address", HOST_SIZE, 0);
}

/* The Sentinel has old information. */
TALK(replica_reported_as_the_master_is_refused,
     "on SENTINEL ['127.0.0.1' '$a']; once INFO info maxmemory_policy:noeviction role:slave;" BY_ONE
     " = UNREACHABLE should be the master but is a replica")

TALK(word_of_a_sentinel_that_answers_counts_more,
     "once SENTINEL nil; open at redis+sentinel://127.0.0.1:{$a,127.0.0.1:$away|"
     "$away,127.0.0.1:$a}/main = UNFIT no master named main")

TALK(sentinel_that_is_away_is_passed_over,
     "on SENTINEL ['127.0.0.1' '$a'];"
     "open at redis+sentinel://127.0.0.1:$away,127.0.0.1:$b/main = UNFIT;"
     "at b; on SENTINEL ['127.0.0.1' '$a'];"
     "open at redis+sentinel://127.0.0.1:$away,127.0.0.1:$b/main; cancel a;"
     "open at redis+sentinel://127.0.0.1:$away/main = UNREACHABLE")

TALK(login_at_a_sentinel_may_fail,
     "once AUTH ?; " BY_ONE " sentinel_password p = UNREACHABLE Protocol error;"
     "once AUTH -WRONGPASS invalid password;" BY_ONE " sentinel_password p = REFUSED WRONGPASS")

/* The master that is asked for at each new connection is another one then. */
TALK(next_master_is_found_by_a_sentinel,
     "on SENTINEL ['127.0.0.1' '$b']; " BY_ONE "; cancel a; asked = 0; at b; on #b close;"
     "at a; on SENTINEL ['127.0.0.1' '$c']; cancel b = OUTCOME_UNKNOWN; cancel b;"
     "at b; asked = 2; at c; asked = 1")

/* ---- Redirects, and the scripts that are sent ---- */

TALK(redirect_is_followed_and_a_circle_of_them_ends,
     "open patience 60ms; 2x script -{MOVED|ASK} 7 127.0.0.1:$a; cancel a; asked = 3;"
     "on script -{MOVED|ASK} 7 127.0.0.1:$a; cancel a = UNREACHABLE; asked = 3-17;"
     /* The redirect leads to a closed port. */
     "once script -MOVED 7 127.0.0.1:$away; cancel a = UNREACHABLE")

TALK(redirects_that_end_in_time_are_followed,
     "open; 9x script -MOVED 7 127.0.0.1:$a; cancel a; asked = 10")

TALK(redirect_to_no_address_ends_the_call,
     "open; on script -MOVED 7{| nowhere| host:0| host:-1| host:x| host:65536};"
     "cancel a = UNREACHABLE redirected: MOVED 7; asked = 1; off script; cancel a")

TEST(talk, redirect_to_a_host_of_256_bytes_ends_the_call)
{
	SAY("open; on script -MOVED 7 %0*d:1; cancel a = UNREACHABLE; asked = 1", HOST_SIZE, 0);
}

/* Without a host it is that of the server which was asked. 127.1 is another name of that. */
TALK(redirect_to_another_name_of_a_server_is_followed,
     "open; once script -MOVED 7 {|?|127.1}:$a; cancel a; asked = 2")

TALK(redirect_at_opening_is_followed_and_a_circle_of_them_ends,
     "2x layout -MOVED 7 127.0.0.1:$a; open;"
     "on layout -MOVED 7 127.0.0.1:$a; open = UNREACHABLE MOVED 7 127.0.0.1:$a;"
     "once layout -MOVED 7 nowhere; open = UNREACHABLE redirected: MOVED 7 nowhere;"
     "once layout -MOVED 7 127.0.0.1:$away; open = UNREACHABLE;"
     "once layout -NOPERM not this key; open = REFUSED")

/* Redis 7 takes a script's first line, and refuses a command about keys that the script does not
 * name. A script that sets limits may run while the memory is full. */
#define BE "on INFO info maxmemory_policy:noeviction redis_version:"

TALK(script_is_sent_as_the_version_of_the_server_takes_it,
     BE "6.2.0; open; once script -ASK 7 127.0.0.1:$a; cancel a; keys = 12; limits; flagged = 0;" BE
	"7.2.0; open; once script -ASK 7 127.0.0.1:$a; cancel a; keys = 1; limits; flagged = 1-9")

TALK_FILE
