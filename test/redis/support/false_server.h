/* SPDX-License-Identifier: MIT */
/*
 * A false server answers as a Redis of 4 shards, or as rules say. A rule has a word, which requests
 * it is for, and the reply to them:
 *
 *     INFO     a command; EVAL and EVALSHA are those of scripts other than the layout's
 *     claim    a script by its name
 *     script   each script other than the layout's
 *     #a       each request with the argument a
 *
 *     -ERR no, :7 or other lines of the protocol
 *     'text'   a string
 *     [1 -1 'text' [] nil]
 *              an array; nil, and none, which is the nil of arrays, may stand alone, too
 *     info redis_version:7.2.0 role:master
 *              these lines
 *     silence  none, though the server has done what was asked, and none to the connection's later
 *              requests
 *     close    none after that, and the connection is closed
 *     hold     none until false_server_release(); the connection's requests wait
 *     late REPLY
 *              after a tenth of a second, in which the server does nothing else
 *     usual    what it would be without rules
 *
 * The server may have one task, which claims give until a worker reports that it is done.
 */
#ifndef REDIS_SUPPORT_FALSE_SERVER_H
#define REDIS_SUPPORT_FALSE_SERVER_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

enum { FALSE_CONNECTIONS_MAX = 64, FALSE_RULES_MAX = 16, FALSE_ALWAYS = INT_MAX };

struct false_rule {
	char word[16];
	char *reply;
	int times; /* how often it is still used; 0 if the place is free */
};

struct false_server {
	/* Constant after the start */
	int port;
	char url[64];
	int listener;
	int change; /* an eventfd that wakes the thread */
	pthread_t thread;

	pthread_mutex_t lock; /* guards the fields above the thread's */
	bool stops;
	struct false_rule rules[FALSE_RULES_MAX]; /* later ones come first */
	char task[16];                            /* the task's key; "" if there is none */
	bool is_leased;
	size_t attempts; /* attempts of the task that have begun */
	size_t asked;    /* calls of scripts other than the layout's */
	size_t keys;     /* the number of the last script's keys */
	size_t flagged;  /* scripts that had a first line for the server */
	size_t held;     /* requests that were held, so far */
	size_t releases;

	/* Only the server's thread uses these. */
	struct {
		int descriptor;
		redisReader *reader;
		redisReply *held; /* the request that later ones wait for, or NULL */
		size_t releases;  /* those before it came; SIZE_MAX if it gets no reply */
	} connections[FALSE_CONNECTIONS_MAX];
	size_t open;
};

void false_server_start(struct false_server *server);
/* Starts it on a listening socket, which is closed at the stop. The caller sets its url. */
void false_server_start_at(struct false_server *server, int listener);
void false_server_stop(struct false_server *server);

/* Sets the reply to the next `times` requests of the word. With FALSE_ALWAYS it replaces all rules
 * for the word; with 0 there are none. */
void false_server_set(struct false_server *server, const char *word, const char *reply, int times);
/* Forgets rules, task and counts. */
void false_server_reset(struct false_server *server);
/* Sends the held replies. */
void false_server_release(struct false_server *server);
/* Gives it a task, in the first shard. */
void false_server_give(struct false_server *server, const char *key);
size_t false_server_asked(struct false_server *server);
/* Returns whether the rule for the word is still to be used. */
bool false_server_has(struct false_server *server, const char *word);

#endif
