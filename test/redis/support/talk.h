/* SPDX-License-Identifier: MIT */
/*
 * A case in words: what false servers answer, what a client or a worker calls, and what it gets.
 *
 *     TALK(refused_login_ends_the_call,
 *          "open password p; cancel break = OUTCOME_UNKNOWN; "
 *          "on AUTH -WRONGPASS invalid password; cancel a = REFUSED WRONGPASS")
 *
 * A step ends at a semicolon. {x|y} stands for x in a first run of the text and for y in a second
 * one; with several of these, all are combined. $a, $b and $c are the ports of three servers, and
 * $away is one where nobody listens. Each run begins with servers without rules, in which a call
 * about the key "break" breaks the connection.
 *
 * Servers (false_server.h has words and replies):
 *     on WORD REPLY        a rule for ever. `once WORD REPLY` is one for one request, and
 *                          `2x WORD REPLY` for two; `off WORD` ends all for the word
 *     at b                 later rules and questions are for the server b
 *     cluster a 0-99 b 100-16383
 *                          all are nodes of a cluster that has this map
 *     give KEY             the server has this task
 *     release              what has been held is answered
 *     down, up             the server ends, and another one begins there
 *
 * Calls, with `= STATUS words` if they fail: the words are in the error's text.
 *     open                 a new client in place of the last one. Also: at URL, or the end of a
 *                          URL; password, sentinel_password, evict yes, durability disk|replica|
 *                          both; patience, reply and connect LENGTH: 3s, 5ms, none or ever
 *     add KEY, cancel KEY, stats, pause, limits, drop
 *                          drop is about the whole namespace
 *     patience LENGTH      that of later calls
 *     begin KEY            cancels it in another thread; `ended = STATUS` waits for the last one
 *     took LENGTH-LENGTH   the time of the last call, or stop, is in that range
 *     sleep LENGTH         waits
 *
 * A worker:
 *     work                 starts one with the options of the last open, and no hints. Also: lease
 *                          and poll LENGTH; run done|retry|kill|snooze, how a first attempt ends;
 *                          until WORD, attempts last while a rule for it is to be used
 *     stop                 stops it
 *     end KEY = DONE       the last end that it has reported of the task
 *     reason = WORDS       waits for an error that it reports
 *     trouble = STATUS     the error in its statistics
 *
 * Numbers: asked (scripts sent to the server, since the last question), attempts (of its task),
 * held, keys (of the last script), flagged (scripts with a first line for the server); lost, found,
 * notices, runs, ends, done (ends of runs that were done).
 *     lost = 1, asked = 3-17
 *     await lost 1         waits until it is at least that
 */
#ifndef REDIS_SUPPORT_TALK_H
#define REDIS_SUPPORT_TALK_H

#include "support/test.h"

#include <timingwheel/redis.h>

#include "support/false_server.h"

/* A file of such cases has this. */
#define TALK_FILE TEST_FILE(talk_open, talk_close)

#define TALK(name, text)         \
	TEST(talk, name)         \
	{                        \
		SAY("%s", text); \
	}

/* Runs the text, as printf() makes it, from the beginning. CONTINUE goes on where the last one
 * ended. */
#define SAY(...) talk_run(true, __FILE__, __LINE__, __VA_ARGS__)
#define CONTINUE(...) talk_run(false, __FILE__, __LINE__, __VA_ARGS__)

extern const struct test_kind kind_talk;

int talk_open(void **state);
int talk_close(void **state);
__attribute__((format(printf, 4, 5))) void talk_run(bool begins, const char *file, int line,
						    const char *format, ...);
/* The server a, and the client that the last open has made. */
struct false_server *talk_server(void);
struct tw_redis *talk_client(void);

#endif
