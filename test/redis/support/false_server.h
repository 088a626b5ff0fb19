/* SPDX-License-Identifier: MIT */
/* A false server answers the commands of a new connection as Redis does, and scripts as the test
 * wants. */
#ifndef REDIS_SUPPORT_FALSE_SERVER_H
#define REDIS_SUPPORT_FALSE_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "redis/wire/script.h"

/*
 * Writes the reply to a script call in Redis's protocol, up to `room` bytes, and returns its size.
 * Returns 0 to send nothing, and FALSE_CLOSE to close the connection. Runs on the server's thread.
 */
typedef size_t false_answer_fn(void *context, const redisReply *request, char *reply, size_t room);

#define FALSE_CLOSE SIZE_MAX

enum { FALSE_CONNECTIONS_MAX = 64, FALSE_REPLIES_MAX = 8 };

struct false_server {
	/* Constant after the start */
	int port;
	char url[64];
	int listener;
	int stop; /* an eventfd */
	pthread_t thread;
	false_answer_fn *answer;
	void *context;

	pthread_mutex_t lock; /* guards the fields above the thread's */
	struct {
		char word[16];
		char *reply; /* NULL closes the connection */
		int times;   /* how often it is still used */
	} replies[FALSE_REPLIES_MAX];

	/* Only the server's thread uses these. */
	struct {
		int descriptor;
		redisReader *reader;
	} connections[FALSE_CONNECTIONS_MAX];
	size_t open;
};

/* Starts a server for namespaces of 4 shards. */
void false_server_start(struct false_server *server, false_answer_fn *answer, void *context);
/* Starts it on a listening socket, which is closed at the stop. The caller sets its url. */
void false_server_start_at(struct false_server *server, int listener, false_answer_fn *answer,
			   void *context);
/* Sets the reply to the next `times` requests that begin with the word ("layout" stands for calls
 * of that script). The reply lacks its last CR LF; "" sends nothing, and NULL closes the
 * connection. Up to eight words can be set at a time. */
void false_server_refuse(struct false_server *server, const char *word, const char *reply,
			 int times);
/* Sets the version that it reports, and whether it is a node of a cluster. */
void false_server_be(struct false_server *server, int version, bool cluster);
/* Returns whether the request calls the script. */
bool false_request_is(const redisReply *request, const struct script *script);
void false_server_stop(struct false_server *server);

#endif
