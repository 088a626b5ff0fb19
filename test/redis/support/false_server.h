/* SPDX-License-Identifier: MIT */
/* Says what Redis would say to one that connects, and to scripts what the test wants. */
#ifndef REDIS_SUPPORT_FALSE_SERVER_H
#define REDIS_SUPPORT_FALSE_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

/*
 * Writes the reply to a script call in Redis's protocol, and returns its size; up to `room` bytes.
 * 0: it is not answered; FALSE_CLOSE: the connection is closed. On the server's thread.
 */
typedef size_t false_answer_fn(void *context, const redisReply *request, char *reply, size_t room);

#define FALSE_CLOSE SIZE_MAX

enum { FALSE_CONNECTIONS_MAX = 64, FALSE_TOLD_MAX = 8 };

struct false_server {
	/* Constant after the start. */
	int port;
	char url[64];
	int listener;
	int stop; /* an eventfd */
	pthread_t thread;
	false_answer_fn *answer;
	void *context;

	pthread_mutex_t lock; /* for all below that is not its thread's */
	struct {
		char word[16];
		char *reply; /* NULL: the connection is closed */
		int times;   /* still to come */
	} told[FALSE_TOLD_MAX];

	/* Its thread's. */
	struct {
		int descriptor;
		redisReader *reader;
	} connections[FALSE_CONNECTIONS_MAX];
	size_t open;
};

/* For namespaces of 4 shards. */
void false_server_start(struct false_server *server, false_answer_fn *answer, void *context);
/* Starts it behind a socket that listens; it is closed at the stop. Its url is the caller's. */
void false_server_start_at(struct false_server *server, int listener, false_answer_fn *answer,
			   void *context);
/* From now on requests that begin with the word ("layout" stands for calls of that script) get this
 * reply, which lacks its last CR LF, `times` times; "" is no reply, and NULL closes the connection.
 * Works for eight words at a time. */
void false_server_refuse(struct false_server *server, const char *word, const char *reply,
			 int times);
/* It says from now on that it is one of that version, a node of a cluster if so asked. */
void false_server_be(struct false_server *server, int version, bool cluster);
void false_server_stop(struct false_server *server);

#endif
