/* SPDX-License-Identifier: MIT */
/*
 * One connection to one Redis server: connect, log in, look whether the server is fit for us, write
 * requests, read replies. Whatever fails at reading or writing drops it; connecting again is a new
 * connection. One thread at a time. A zeroed struct is one that is not connected.
 */
#ifndef TIMINGWHEEL_REDIS_CONNECTION_H
#define TIMINGWHEEL_REDIS_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include <timingwheel/redis.h>

#include "settings.h"

struct connection {
	redisContext *context; /* NULL: not connected */
	bool cluster;          /* the server is a node of one */
	bool loading;          /* it said so when we connected */
	bool wrote;            /* some of what was to be written since the last reply has been */
};

/*
 * Connects, logs in and selects the database. `database` may differ from the settings' (a cluster
 * has 0 alone). Statuses as tw_redis_open, with the error.
 */
enum tw_status connection_open(struct connection *connection, const struct settings *settings,
			       const char *host, int port, struct tw_redis_error *error);
void connection_close(struct connection *connection);

/* Not connected, or closed by the server while nothing was expected from it. One system call. */
bool connection_is_lost(struct connection *connection);

/* Adds a request to those that are to be written. False without memory. */
bool connection_append(struct connection *connection, const char *request, size_t size);
/* Writes them. On failure it is closed; connection->wrote tells whether anything went out. */
bool connection_write(struct connection *connection, struct tw_redis_error *error);
/* Waits for the next reply; the caller frees it (freeReplyObject). NULL: it is closed. */
redisReply *connection_read(struct connection *connection, struct tw_redis_error *error);
/* Sends a request of so many words, and waits for the reply: as connection_read. */
redisReply *connection_ask(struct connection *connection, int count, const char **words,
			   struct tw_redis_error *error);
/* The next reply if it has come, without waiting; NULL: it has not, or the connection is closed. */
redisReply *connection_poll(struct connection *connection, struct tw_redis_error *error);

#endif
