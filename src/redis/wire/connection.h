/* SPDX-License-Identifier: MIT */
/*
 * One connection to one Redis server: connect, log in, look whether the server is fit for us, write
 * requests, read replies. Whatever fails at reading or writing drops it; connecting again is a new
 * connection. One thread at a time. A zeroed struct is one that is not connected.
 */
#ifndef REDIS_WIRE_CONNECTION_H
#define REDIS_WIRE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include <timingwheel/redis.h>

#include "buffer.h"
#include "settings.h"
#include "stream.h"

struct connection {
	struct stream *stream; /* NULL: not connected */
	redisReader *reader;
	struct buffer output; /* to be written */
	size_t unread;        /* bytes that have come of the reply that is not complete */
	tw_duration reply_timeout;
	int tcp_port;     /* the server's, by its own word; 0: none */
	uint64_t scripts; /* the bits of those that it was sent as texts */
	bool secret;      /* what is to be written holds a password */
	bool cluster;     /* the server is a node of one */
	bool replica;
	bool flags; /* it knows flags of scripts: Redis 7 */
	bool wrote; /* some of what was to be written since the last reply has been */
};

/*
 * Connects, logs in, selects the database, and looks at the server. Statuses as tw_redis_open, with
 * the error.
 */
enum tw_status connection_open(struct connection *connection, const struct settings *settings,
			       const struct address *address, struct tw_redis_error *error);
/* Connects to a Sentinel, and logs in there. TW_OK, or as connection_open; then closed. */
enum tw_status connection_open_sentinel(struct connection *connection,
					const struct settings *settings,
					const struct address *address,
					struct tw_redis_error *error);
void connection_close(struct connection *connection);
/* Closes one that is no good any more; `wrote` stays. */
void connection_break(struct connection *connection, const char *reason,
		      struct tw_redis_error *error);

bool connection_is_open(const struct connection *connection);
/* To sleep on; -1: not connected. */
int connection_descriptor(const struct connection *connection);

/* Not connected, or closed by the server while nothing was expected from it. One system call. */
bool connection_is_lost(struct connection *connection);

/* Adds a request to those that are to be written. False without memory. */
bool connection_append(struct connection *connection, const char *output, size_t size);
/* Writes them. On failure it is closed; connection->wrote tells whether anything went out. */
bool connection_write(struct connection *connection, struct tw_redis_error *error);
/* Waits for the next reply; the caller frees it (freeReplyObject). NULL: it is closed. */
redisReply *connection_read(struct connection *connection, struct tw_redis_error *error);
/* Sends a request of so many words, and waits for the reply: as connection_read. */
redisReply *connection_ask(struct connection *connection, int count, const char **words,
			   struct tw_redis_error *error);
/* The next reply if it has come, without waiting; NULL: it has not, or the connection is closed. */
redisReply *connection_poll(struct connection *connection, struct tw_redis_error *error);

/* What a server's error means: TW_REDIS_UNREACHABLE: it passes, and nothing was changed;
 * TW_REDIS_REFUSED: login or permission; TW_REDIS_FAILED: all else. */
enum tw_status server_error_status(const char *text);
/* It may be read from alone. */
bool server_error_is_read_only(const char *text);

#endif
